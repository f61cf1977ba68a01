"""The tables of a store, as they are after all migrations.

Rows are only ever added, except that old snapshots and requests are dropped. Every fact is stored once: the
log (`events`) says that proposals were drawn or rewards told, and how many; the rows themselves are in
`proposals` and `rewards`. `plans` finds the entry of a plan or distribution by number.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

METADATA = MetaData()

RELEASES = Table(
    "releases",  # which release brought the tables to which version
    METADATA,
    Column("version", Text, primary_key=True),
    Column("release", Text, nullable=False),
)
EXPERIMENTS = Table(
    "experiments",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("settings", Text, nullable=False),  # JSON
    Column("seal", LargeBinary, nullable=False),  # hash of the settings
)
EVENTS = Table(
    "events",
    METADATA,
    Column("experiment", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),  # "asked", "told", or that of a note
    Column("at", Double, nullable=False),
    Column("data", Text, nullable=False),  # JSON
    Column("seal", LargeBinary, nullable=False),  # hash of the seal before and of this entry with its rows
    sqlite_with_rowid=False,
)
PLANS = Table(
    "plans",
    METADATA,
    Column("experiment", Integer, primary_key=True),
    Column("kind", Text, primary_key=True),  # "plan" or "distribution"
    Column("number", BigInteger, primary_key=True),
    Column("event", BigInteger, primary_key=True),
    sqlite_with_rowid=False,
)
PROPOSALS = Table(
    "proposals",
    METADATA,
    Column("experiment", Integer, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("at", Double, nullable=False),
    Column("unit", Text),
    Column("arm", BigInteger, nullable=False),
    Column("plan", BigInteger, nullable=False),
    Column("distribution", BigInteger, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("forecasts", Text, nullable=False),  # JSON: a list
    Column("covariates", Text),  # JSON: an object
    sqlite_with_rowid=False,
)
Index(
    "proposals_by_unit",
    PROPOSALS.c.experiment,
    PROPOSALS.c.unit,
    sqlite_where=PROPOSALS.c.unit.is_not(None),
    postgresql_where=PROPOSALS.c.unit.is_not(None),
)
REWARDS = Table(
    "rewards",
    METADATA,
    Column("experiment", Integer, primary_key=True),
    Column("event", BigInteger, primary_key=True),
    Column("position", BigInteger, primary_key=True),  # within the entry, from 0
    Column("proposal", BigInteger, nullable=False),
    Column("metric", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("value", Double, nullable=False),
    Index("rewards_by_proposal", "experiment", "proposal"),
    sqlite_with_rowid=False,
)
REQUESTS = Table(
    "requests",
    METADATA,
    Column("experiment", Integer, primary_key=True),
    Column("key", Text, primary_key=True),  # that the caller gave it
    Column("at", Double, nullable=False),
    Column("answer", Text, nullable=False),  # JSON
    Index("requests_by_time", "experiment", "at"),
    sqlite_with_rowid=False,
)
SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    Column("experiment", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("state", Text, nullable=False),  # JSON
    Column("seal", LargeBinary, nullable=False),  # hash of the state
    sqlite_with_rowid=False,
)
