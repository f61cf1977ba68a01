"""What a request may work with while nobody else writes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.experiment.ledger.entries import Asked, Told
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.store import Writer


@dataclass
class Turn:
    """What a request may work with while nobody else writes.

    Attributes
    ----------
    ledger : Ledger
        With all that anybody has written.
    writer : Writer
    units, done : dict
        Proposals of units, and values of requests by key, that this commit has brought: the store cannot tell
        them before its end.
    looked_up : dict
        Units that were looked up in the store for all requests of this commit at once: the number of the
        first proposal, or None.
    entered : list
        Places of units in entries that this commit has brought, the entries, and their probabilities.
    told : list of Told
        Rewards that this commit has brought.
    seq, kept : int
        The newest entry that the ledger holds, and the newest of a snapshot.
    logged_at : float
        Time of the newest entry.
    """

    ledger: Ledger
    writer: Writer | None = None
    units: dict[str, Proposal] = field(default_factory=dict)
    done: dict[str, tuple[str, Any]] = field(default_factory=dict)
    looked_up: dict[str, int | None] = field(default_factory=dict)
    entered: list[tuple[dict[str, int], Asked, Array]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    seq: int = 0
    kept: int = 0
    logged_at: float = -np.inf

    def look_up(self, units: Sequence[str]) -> None:
        """Look units up in the store together: one by one takes longer than all the rest of asking."""
        if len(units) > 1 and self.writer is not None:
            self.looked_up = dict.fromkeys(units) | self.writer.known(list(dict.fromkeys(units)))

    def known(self, units: Sequence[str]) -> dict[str, int]:
        """Return the number of the first proposal of each unit that has one in the store."""
        left = [unit for unit in units if unit not in self.looked_up]
        found = self.writer.known(left) if left and self.writer is not None else {}
        for unit in units:
            number = self.looked_up.get(unit)
            if number is not None:
                found[unit] = number
        return found

    def forget(self) -> None:
        """Forget what the commit has brought: the store can tell it now."""
        self.units.clear()
        self.looked_up.clear()
        self.done.clear()
        self.entered.clear()
        self.told.clear()


Request = Callable[[Turn], Any]
