"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "releases",
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("release", sa.Text, nullable=False),
    )
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("seal", sa.LargeBinary, nullable=False),
    )
    _make_log()
    _make_rows()
    _make_snapshots()


def _make_log() -> None:
    op.create_table(
        "events",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("seal", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "plans",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("event", sa.BigInteger, primary_key=True),
        sqlite_with_rowid=False,
    )


def _make_rows() -> None:
    op.create_table(
        "proposals",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("unit", sa.Text),
        sa.Column("arm", sa.BigInteger, nullable=False),
        sa.Column("plan", sa.BigInteger, nullable=False),
        sa.Column("distribution", sa.BigInteger, nullable=False),
        sa.Column("held", sa.Boolean, nullable=False),
        sa.Column("forecasts", sa.Text, nullable=False),
        sa.Column("covariates", sa.Text),
        sqlite_with_rowid=False,
    )
    given = sa.text("unit IS NOT NULL")
    op.create_index(
        "proposals_by_unit",
        "proposals",
        ["experiment", "unit"],
        sqlite_where=given,
        postgresql_where=given,
    )
    op.create_table(
        "rewards",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("event", sa.BigInteger, primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True),
        sa.Column("proposal", sa.BigInteger, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("rewards_by_proposal", "rewards", ["experiment", "proposal"])


def _make_snapshots() -> None:
    op.create_table(
        "snapshots",
        sa.Column("experiment", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("seal", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
