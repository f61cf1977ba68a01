"""Tokens may be for some experiments only, and may expire."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; tokens so far are for all experiments, and do not expire."""
    op.add_column("service_tokens", sa.Column("experiments", sa.Text))
    op.add_column("service_tokens", sa.Column("until", sa.Double))
