"""The tables of the HTTP service, which share the database and its versions with those of the experiments."""

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, Table, Text

from orthobandit.experiment.store.sql.schema import METADATA

TOKENS = Table(
    "service_tokens",
    METADATA,
    Column("id", Text, primary_key=True),  # its first part, which is no secret
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),  # of its second part
    Column("at", Double, nullable=False),  # seconds since the epoch
    Column("experiments", Text),  # JSON: a list of keys, `*` in them for anything; null for all experiments
    Column("until", Double),  # when it expires, in seconds since the epoch; null for never
)
WEBHOOKS = Table(
    "service_webhooks",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),  # in clear: what is sent is signed with it
    Column("kinds", Text, nullable=False),  # JSON: a list
    Column("at", Double, nullable=False),
    Column("is_off", Boolean, nullable=False),  # whoever is there does not want it any more
)
NEWS = Table(
    "service_news",  # what happened in experiments, each once
    METADATA,
    Column("id", Text, primary_key=True),  # follows from what happened
    Column("experiment", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),  # JSON, as it is sent
)
DELIVERIES = Table(
    "service_deliveries",
    METADATA,
    Column("webhook", Text, primary_key=True),
    Column("news", Text, primary_key=True),
    Column("state", Text, nullable=False),  # "waiting", "sent" or "dead"
    Column("tries", Integer, nullable=False),
    Column("next", Double, nullable=False),  # when to try
    Column("answer", Text, nullable=False),  # to the last try
    Index("service_deliveries_by_time", "state", "next"),
)
# The tables below are the dashboard's.
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
ALL_TABLES = METADATA.sorted_tables  # those of experiments included
