"""The service's own tables, beside those of the experiments in the same database."""

from sqlalchemy import BigInteger, Column, Double, Index, LargeBinary, MetaData, Table, Text

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

# Of the dashboard.
SESSIONS = Table(
    "service_sessions",
    METADATA,
    Column("id", LargeBinary, primary_key=True),  # hash of what is in the browser's cookie
    Column("token", Text, nullable=False),  # that it was begun with
    Column("until", Double, nullable=False),  # seconds since the epoch
)
HISTORY = Table(
    "service_history",
    METADATA,
    Column("experiment", Text, primary_key=True),
    Column("at", Double, primary_key=True),  # seconds since the epoch
    Column("settled", BigInteger, nullable=False),
    Column("gaps", Text, nullable=False),  # JSON: by label, estimate, lower and upper end
)
ACTIONS = Table(
    "service_actions",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("experiment", Text, nullable=False),
    Column("kind", Text, nullable=False),  # "pause", "resume", "stop" or "retire"
    Column("arm", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),  # the name of the token
    Column("at", Double, nullable=False),  # when somebody asked for it
    Column("due", Double, nullable=False),  # when it is done, unless it is undone before
    Column("state", Text, nullable=False),  # "waiting", "doing", "done", "undone" or "refused"
    Column("detail", Text, nullable=False),  # why it was refused
    Index("service_actions_by_state", "state", "due"),
    Index("service_actions_by_experiment", "experiment", "at"),
)
