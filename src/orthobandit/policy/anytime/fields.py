"""The memory of anytime elimination: every field described once.

A description gives a field's type, its axes and its value before the first round. Starting, slicing, putting
replications back, growing with new arms, writing and reading all follow from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.json_arrays import numbers_of, packed, plain, sparse, unpacked, unsparse
from orthobandit._foundation.release import stamp
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.policy._states import freeze, load_array, load_tally

Place = tuple[Any, ...]  # indexes the leading axes of a state
ALL: Place = (...,)  # every replication
# Names of the arrays of evidence; see orthobandit.estimate.confidence.evidence.Evidence.
EVIDENCE = ("totals", "weights", "variances", "slack", "pooled", "peaks")


class Stage(IntEnum):
    """What the rounds of a batch are for."""

    WARM_UP = 0  # the baseline learns the level
    PILOT = 1  # shows how large residuals and gaps are
    COUNTING = 2  # every batch adds to the evidence


@dataclass(frozen=True)
class Description:
    """What a field holds for each replication.

    Attributes
    ----------
    dtype : type
    axes : str
        One letter an axis: "K" for arms, "r" for dimensions of the arms; "" for one number.
    start : bool, int, float or object
        Value before the first round, also of the entries of arms that are added later.
    is_sparse : bool
        Whether it is mostly 0 where arms are very many.
    """

    dtype: type
    axes: str
    start: Any
    is_sparse: bool

    def shape(self, arms: ArmSet) -> tuple[int, ...]:
        """Return the shape of one replication's array."""
        return tuple(len(arms) if axis == "K" else arms.dimension for axis in self.axes)

    def pack(self, value: NDArray[Any]) -> Any:
        """Return one replication's value in the compact form, for very many arms."""
        if not self.axes:
            return plain(value) if self.dtype is np.float64 else int(value)
        if self.dtype is np.bool_:
            return packed(np.packbits(value))
        return sparse(value) if self.is_sparse else packed(value)

    def unpack(self, name: str, data: Any, arms: ArmSet) -> NDArray[Any]:
        """Invert :meth:`pack`, or say what does not fit."""
        shape = self.shape(arms)
        if not self.axes:
            # None stands for an infinite epsilon, which JSON does not know.
            return numbers_of(data) if self.dtype is np.float64 else np.asarray(int(data), dtype=self.dtype)
        if self.dtype is np.bool_:
            bits = unpacked(name, data, np.uint8, ((shape[0] + 7) // 8,))
            return np.unpackbits(bits, count=shape[0]).astype(np.bool_)
        if self.is_sparse:
            return unsparse(name, data, self.dtype, shape[0])
        return unpacked(name, data, self.dtype, shape)


def holds(dtype: type, axes: str = "", start: Any = 0, *, is_sparse: bool = False) -> dict[str, Description]:
    """Return the metadata of a dataclass field: its :class:`Description`."""
    return {"description": Description(dtype, axes, start, is_sparse)}


@dataclass(frozen=True, eq=False)
class Fields:
    """What both layouts of evidence remember; leading axes (...) are replications, and there may be none.

    Attributes
    ----------
    arms : ArmSet
    tally : Tally
        Residuals under the plan in force.
    active : (..., K) array of bool
        Survivors.
    stage : (...) array of int
        A :class:`Stage`.
    length, late : (...) arrays of int
        Rounds until the plan in force is made anew, and how many of these came late, of earlier plans.
    rounds, designed, plans : (...) arrays of int
        Rounds since the start, and when the distribution in force was made; number of the plan in force.
    probabilities, values : (..., K) arrays
        The plan in force, and the estimated rewards that its residuals are taken from.
    gram, moment : (..., r, r), (..., r) arrays
        Sums of the weighted regression behind `values`.
    noise : (...) array
        Variance of a residual.
    watched, squared, scattered, largest, excess : (...) arrays
        Sizes of residuals from the pilot on (`scattered`: from its end on, once it has ended); see
        :class:`~orthobandit.estimate.confidence.evidence.Sizes`.
    drawn, relative : (..., K) arrays
        Rounds of each arm, and its squared residuals in units of the others'; see
        :func:`~orthobandit.estimate.confidence.evidence.relative_squares`.
    informed : (...) array
        Events of all batches from the pilot on, each by itself.
    leader, declared : (...) arrays of int
        The arm that looks best, and the one declared best; −1 while none is.
    epsilon : (...) array
        The leader is within this of the best arm.
    is_expected : (...) array of bool
        Whether boundaries are tuned for a gap that was expected before the first round.
    retired : (..., K) array of bool
        Arms that the user has taken out.
    """

    arms: ArmSet
    tally: Tally
    active: Mask = field(metadata=holds(np.bool_, "K", start=True))
    stage: Whole = field(metadata=holds(np.int64))
    length: Whole = field(metadata=holds(np.int64, start=1))
    late: Whole = field(metadata=holds(np.int64))
    rounds: Whole = field(metadata=holds(np.int64))
    designed: Whole = field(metadata=holds(np.int64))
    plans: Whole = field(metadata=holds(np.int64, start=1))
    probabilities: Array = field(metadata=holds(np.float64, "K", is_sparse=True))
    values: Array = field(metadata=holds(np.float64, "K"))
    gram: Array = field(metadata=holds(np.float64, "rr"))
    moment: Array = field(metadata=holds(np.float64, "r"))
    noise: Array = field(metadata=holds(np.float64))
    watched: Whole = field(metadata=holds(np.int64))
    drawn: Array = field(metadata=holds(np.float64, "K", is_sparse=True))
    relative: Array = field(metadata=holds(np.float64, "K", is_sparse=True))
    squared: Array = field(metadata=holds(np.float64))
    scattered: Array = field(metadata=holds(np.float64))
    largest: Array = field(metadata=holds(np.float64))
    excess: Array = field(metadata=holds(np.float64))
    informed: Array = field(metadata=holds(np.float64))
    leader: Whole = field(metadata=holds(np.int64))
    declared: Whole = field(metadata=holds(np.int64, start=-1))
    epsilon: Array = field(metadata=holds(np.float64, start=np.inf))
    is_expected: Mask = field(metadata=holds(np.bool_, start=False))
    retired: Mask = field(metadata=holds(np.bool_, "K", start=False))

    @classmethod
    @cache
    def descriptions(cls) -> Mapping[str, Description]:
        """Return the description of every field but the arms and the tally, by name."""
        return {
            part.name: part.metadata["description"] for part in fields(cls) if "description" in part.metadata
        }

    @classmethod
    def fresh(cls, arms: ArmSet, batch: tuple[int, ...], **own: Any) -> Self:
        """Return the state before the first round; `own` has the values that arms or policy decide."""
        arrays: dict[str, Any] = {
            name: np.full((*batch, *one.shape(arms)), own.get(name, one.start), dtype=one.dtype)
            for name, one in cls.descriptions().items()
        }
        return cls(arms=arms, tally=Tally.zeros(len(arms), batch), **arrays).frozen()

    def frozen(self) -> Self:
        """Make all arrays read-only, as those of a state that is handed out are, and return the state."""
        freeze(self)
        return self

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the leading axes."""
        return self.stage.shape

    def __getitem__(self, place: Any) -> Self:
        """Return some replications; `place` indexes the leading axes."""
        if isinstance(place, tuple) and not place and not self.batch:
            return self
        arrays = {name: np.asarray(np.asarray(getattr(self, name))[place]) for name in self.descriptions()}
        return type(self)(arms=self.arms, tally=self.tally[place], **arrays)

    def changed(self, **values: Any) -> Self:
        """Return the state with other values of some fields.

        As `dataclasses.replace` does it, without handing all forty fields to the constructor.
        """
        out = object.__new__(type(self))
        vars(out).update(vars(self))
        vars(out).update(values)
        return out

    def with_runs(self, runs: Iterable[tuple[Place, Self, Self]], tally: Tally) -> Self:
        """Return the state with other values of the replications at some places, and another tally.

        Parameters
        ----------
        runs : iterable of (place, state, state)
            Replications as they are in this state, and as they become. Where a place is `ALL`, there is no
            other.
        tally : Tally
        """
        arrays = dict[str, Any]()
        for place, before, after in runs:
            if not self.batch or place is ALL:
                # All replications take the place of the state: nothing need be copied.
                return after.changed(tally=tally).frozen()
            for name in self.descriptions():
                value = getattr(after, name)
                if value is getattr(before, name):
                    continue  # most fields stay as they are, and are not copied
                if name not in arrays:
                    arrays[name] = np.array(getattr(self, name))
                # The ellipsis makes numpy assign what an array of objects holds, and not the array itself.
                arrays[name][(*place, ...)] = value
        return self.changed(tally=tally, **arrays).frozen()

    def with_rounds(self, tally: Tally, more: Whole) -> Self:
        """Return the state with a new running tally, after `more` (...) further rounds."""
        rounds = np.asarray(self.rounds + more)
        rounds.flags.writeable = False
        return self.changed(tally=tally, rounds=rounds)

    @classmethod
    def stack(cls, runs: list[Self], batch: tuple[int, ...]) -> Self:
        """Return one state of replications with the same arms, in the order of the batch, with no tally."""
        arms = runs[0].arms
        arrays = dict[str, Any]()
        for name, one in cls.descriptions().items():
            arrays[name] = np.empty((len(runs), *one.shape(arms)), dtype=one.dtype)
            for place, run in enumerate(runs):
                # The ellipsis makes numpy assign what an array of objects holds, and not the array itself.
                arrays[name][place, ...] = getattr(run, name)
            arrays[name] = arrays[name].reshape((*batch, *one.shape(arms)))
        return cls(arms=arms, tally=Tally.zeros(len(arms), batch), **arrays).frozen()

    def grow(self, arms: ArmSet, **fills: Any) -> Self:
        """Return one replication with arms after those so far, whose entries are as at the start.

        `fills` has other values for new entries. Arrays with an axis over dimensions are left as they are.
        """
        arrays = dict[str, Any]()
        for name, one in self.descriptions().items():
            if "K" in one.axes:
                before = getattr(self, name)
                arrays[name] = np.full(one.shape(arms), fills.get(name, one.start), dtype=one.dtype)
                arrays[name][tuple(map(slice, before.shape))] = before
        return self.changed(arms=arms, tally=Tally.zeros(len(arms)), **arrays)

    def dump_fields(self) -> dict[str, Any]:
        """Return all fields and the tally as plain lists and numbers, and the format that they have."""
        values = {name: getattr(self, name).tolist() for name in self.descriptions()}
        # JSON has no infinity: an epsilon that is not yet known is null.
        return {**stamp(), **values, "epsilon": plain(self.epsilon), "tally": self.tally.to_json()}

    @classmethod
    def load_fields(cls, arms: ArmSet, data: dict[str, Any]) -> dict[str, Any]:
        """Return arms, tally and all fields by name, as :meth:`dump_fields` wrote them."""
        batch = load_array(data, "active", np.bool_).shape[:-1]
        arrays = {
            name: load_array(data, name, description.dtype, (*batch, *description.shape(arms)))
            for name, description in cls.descriptions().items()
        }
        arrays["epsilon"] = np.where(np.isnan(arrays["epsilon"]), np.inf, arrays["epsilon"])
        return {"arms": arms, "tally": load_tally(data, "tally", (*batch, len(arms))), **arrays}
