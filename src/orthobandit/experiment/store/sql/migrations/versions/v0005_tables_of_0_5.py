"""The tables of release 0.5: where steps to later versions begin."""

revision = "0005"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: new tables are made as ``schema.py`` and ``service_tables.py`` describe them."""
