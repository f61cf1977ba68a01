"""Where the log of an experiment is kept: in memory, in a file or in a database."""

from orthobandit.experiment.store.base import Outcome, Row, Store, Writer
from orthobandit.experiment.store.memory import MemoryStore

__all__ = ["MemoryStore", "Outcome", "Row", "Store", "Writer"]
