"""Tables of the service: tokens, which it made by itself before, webhooks, and those of the dashboard."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "service_tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        if_not_exists=True,
    )
    _make_webhooks()
    _make_dashboard()


def _make_webhooks() -> None:
    op.create_table(
        "service_webhooks",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("kinds", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("is_off", sa.Boolean, nullable=False),
    )
    op.create_table(
        "service_news",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("experiment", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "service_deliveries",
        sa.Column("webhook", sa.Text, primary_key=True),
        sa.Column("news", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("next", sa.Double, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
    )
    op.create_index("service_deliveries_by_time", "service_deliveries", ["state", "next"])


def _make_dashboard() -> None:
    op.create_table(
        "service_sessions",
        sa.Column("id", sa.LargeBinary, primary_key=True),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_table(
        "service_history",
        sa.Column("experiment", sa.Text, primary_key=True),
        sa.Column("at", sa.Double, primary_key=True),
        sa.Column("settled", sa.BigInteger, nullable=False),
        sa.Column("gaps", sa.Text, nullable=False),
    )
    op.create_table(
        "service_actions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("experiment", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("arm", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("service_actions_by_state", "service_actions", ["state", "due"])
    op.create_index("service_actions_by_experiment", "service_actions", ["experiment", "at"])
