"""Tables of the service: tokens, which it made by itself before, webhooks, and what they are told."""

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
