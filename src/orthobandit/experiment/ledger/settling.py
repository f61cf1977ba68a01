"""Proposals whose rewards are awaited, and the order in which they are settled.

Rewards are counted in assignment order, not arrival order: a proposal is settled once its reward was told or
its deadline has passed, and only after all proposals drawn before it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.json_arrays import unpacked
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.experiment.ledger.snapshot import pack

MAX_SETTLED_AT_ONCE = 4096  # proposals
COLUMNS = ("arms", "distributions", "deadlines", "held", "informed", "forecasts", "values")


@dataclass(frozen=True, eq=False)
class Settled:
    """Proposals (n,) that are settled next, in the order of draws.

    `values` (m, n) are NaN where silent; `informed` (m, n) says whether the level was known when the forecast
    was made.
    """

    first: int
    arms: Whole
    distributions: Whole
    forecasts: Array
    values: Array
    held: Mask
    informed: Mask

    @property
    def silent(self) -> Mask:
        """Mask (n,) of proposals without a value of the objective."""
        return np.asarray(np.isnan(self.values[0]))

    def __getitem__(self, rows: slice) -> "Settled":
        start = rows.start or 0
        return Settled(
            self.first + start,
            self.arms[rows],
            self.distributions[rows],
            self.forecasts[:, rows],
            self.values[:, rows],
            self.held[rows],
            self.informed[:, rows],
        )

    def __len__(self) -> int:
        return len(self.arms)

    def runs(self) -> Iterator["Settled"]:
        """Yield runs of proposals that share the distribution, the holdout flag and the known levels."""
        if len(self) == 1:
            yield self
            return
        change = (np.diff(self.distributions) != 0) | np.diff(self.held)
        change = np.flatnonzero(change | np.diff(self.informed, axis=1).any(axis=0))
        ends = [*(change + 1).tolist(), len(self)]
        begin = 0
        for end in ends:
            yield self[begin:end]
            begin = end


class Waiting:
    """Open proposals in the order of draws, from the first that is not settled; columns grow at the end."""

    def __init__(self, metrics: int, first: int = 1) -> None:
        self.first = first  # number of the oldest proposal that is not settled
        self._head = 0
        self._end = 0
        self._metrics = metrics
        self._arms = np.zeros(64, dtype=np.int64)
        self._distributions = np.zeros(64, dtype=np.int64)
        self._deadlines = np.zeros(64)
        self._held = np.zeros(64, dtype=np.bool_)
        self._informed = np.zeros((metrics, 64), dtype=np.bool_)
        self._forecasts = np.zeros((metrics, 64))
        self._values = np.zeros((metrics, 64))

    def __len__(self) -> int:
        return self._end - self._head

    @property
    def distributions(self) -> set[int]:
        """Numbers of the distributions that they were drawn from."""
        return set(np.unique(self._distributions[self._head : self._end]).tolist())

    @property
    def next(self) -> int:
        """Number of the next proposal."""
        return self.first + len(self)

    def add(
        self,
        arms: Whole,
        distribution: int,
        deadline: float,
        forecasts: Array,
        held: Mask,
        informed: Mask,
    ) -> None:
        """Add proposals (n,), with forecasts (m, n) that were made with the level known or not (m,)."""
        count = len(arms)
        self._make_room(count)
        new = slice(self._end, self._end + count)
        self._arms[new] = arms
        self._distributions[new] = distribution
        self._deadlines[new] = deadline
        self._held[new] = held
        self._forecasts[:, new] = forecasts
        self._values[:, new] = np.nan
        self._informed[:, new] = informed[:, np.newaxis]
        self._end += count

    def told(self, metric: int, numbers: Whole) -> Array:
        """Return the values (n,) of open proposals so far, NaN where there is none."""
        return np.asarray(self._values[metric, numbers + (self._head - self.first)])

    def tell(self, metric: int, numbers: Whole, values: Array) -> None:
        """Set the values of open proposals (n,)."""
        self._values[metric, numbers + (self._head - self.first)] = values

    def settled(self, at: float, needed: int) -> Settled | None:
        """Remove and return the longest settled prefix, at most 4,096 proposals; None if there is none.

        A proposal is settled once the first `needed` of its metrics have values, or once its deadline has
        passed; with `needed` 0, only the deadline counts.
        """
        if not self.is_due(at, needed):
            return None
        stop = min(self._end, self._head + MAX_SETTLED_AT_ONCE)
        if stop == self._head + 1:
            count = 1
        else:
            done = self._is_settled(slice(self._head, stop), at, needed)
            count = len(done) if done.all() else int(np.argmin(done))
        rows = slice(self._head, self._head + count)
        out = Settled(
            self.first,
            self._arms[rows].copy(),
            self._distributions[rows].copy(),
            self._forecasts[:, rows].copy(),
            self._values[:, rows].copy(),
            self._held[rows].copy(),
            self._informed[:, rows].copy(),
        )
        self._head += count
        self.first += count
        return out

    def is_due(self, at: float, needed: int) -> bool:
        """Tell whether :meth:`settled` would return any."""
        return len(self) > 0 and self._is_first_settled(at, needed)

    def count_overdue(self, at: float) -> int:
        """Return how many proposals have a deadline that has passed."""
        return int(np.count_nonzero(self._deadlines[self._head : self._end] <= at))

    def _is_first_settled(self, at: float, needed: int) -> bool:
        if self._deadlines.item(self._head) <= at:
            return True
        # A value that was not told is NaN, which does not equal itself.
        return needed > 0 and all(one == one for one in self._values[:needed, self._head].tolist())

    def _is_settled(self, rows: slice, at: float, needed: int) -> Mask:
        over = self._deadlines[rows] <= at
        if not needed:
            return np.asarray(over)
        return np.asarray(over | ~np.isnan(self._values[:needed, rows]).any(axis=0))

    def _make_room(self, count: int) -> None:
        """Make the columns long enough for more proposals, and drop the settled ones at their front."""
        size = len(self._arms)
        if self._end + count <= size:
            return
        kept = slice(self._head, self._end)
        larger = max(size, 2 * (len(self) + count))
        for name in COLUMNS:
            old = getattr(self, f"_{name}")
            new = np.zeros((*old.shape[:-1], larger), dtype=old.dtype)
            new[..., : len(self)] = old[..., kept]
            setattr(self, f"_{name}", new)
        self._head, self._end = 0, len(self)

    def provisional(self, metric: int) -> tuple[Whole, Array]:
        """Return arms and values of open proposals, to be displayed only."""
        rows = slice(self._head, self._end)
        told = ~np.isnan(self._values[metric, rows])
        return self._arms[rows][told], self._values[metric, rows][told]

    def to_json(self, pack: Callable[[NDArray[Any]], Any] = pack) -> dict[str, Any]:
        """Return plain values that survive JSON exactly; `pack` encodes the columns, which may be very long.

        `pack` may keep the arrays it is given, which share memory with the columns: rows never change, except
        for values.
        """
        rows = slice(self._head, self._end)
        columns = {name: getattr(self, f"_{name}")[..., rows] for name in COLUMNS}
        columns["values"] = columns["values"].copy()
        return {"first": self.first} | {name: pack(column) for name, column in columns.items()}

    @classmethod
    def from_json(cls, data: dict[str, Any], metrics: int) -> "Waiting":
        """Invert :meth:`to_json`."""
        out = cls(metrics, data["first"])
        columns = {
            name: unpacked(name, data[name], like.dtype, (*like.shape[:-1], None))
            for name, like in ((name, getattr(out, f"_{name}")) for name in COLUMNS)
        }
        count = columns["arms"].size
        out._make_room(count)
        for name, column in columns.items():
            kept = getattr(out, f"_{name}")
            kept[..., :count] = column.reshape(*kept.shape[:-1], count)
        out._end = count
        return out
