"""The service's own tables, beside those of the experiments in the same database."""

from sqlalchemy import Column, Double, LargeBinary, MetaData, Table, Text

METADATA = MetaData()

TOKENS = Table(
    "service_tokens",
    METADATA,
    Column("id", Text, primary_key=True),  # its first part, which is no secret
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),  # of its second part
    Column("at", Double, nullable=False),  # seconds since the epoch
)
