"""Where the log of an experiment is kept: in memory, in a file or in a database."""

from typing import TYPE_CHECKING, Any

from orthobandit._foundation.extras import optional_package
from orthobandit.experiment.store.contract import Outcome, Row, Store, Writer
from orthobandit.experiment.store.memory import MemoryStore

if TYPE_CHECKING:
    from orthobandit.experiment.store.sql.store import SQLStore

__all__ = ["MemoryStore", "Outcome", "Row", "SQLStore", "Store", "Writer"]


def __getattr__(name: str) -> Any:
    # Experiments in memory do not need SQLAlchemy, and its import takes longer than all others.
    if name == "SQLStore":
        optional_package("sqlalchemy", "live", "an experiment in a file")
        from orthobandit.experiment.store.sql.store import SQLStore

        return SQLStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
