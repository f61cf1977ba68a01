"""The memory of anytime elimination with very many arms: vectors of K numbers, and fewer as arms drop out."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._checks import check_fits
from orthobandit._packed import packed, sparse, unpacked, unsparse
from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence import Confidence
from orthobandit.policy.anytime.leading.against import Against
from orthobandit.policy.anytime.leading.run import EMPTY, LeadingRun
from orthobandit.policy.anytime.state import AnytimeState

MARK = "against leaders"  # in a dump, tells it from one of all pairs
VERSION = 1
WHOLE = ("stage", "length", "late", "rounds", "designed", "plans", "watched", "leader", "declared", "leaders")
REAL = ("noise", "squared", "scattered", "largest", "excess", "informed")
MATRICES = ("gram", "moment")
SPARSE = ("probabilities", "drawn", "relative")
TALLIED = ("counts", "sums", "squares", "largest")


@dataclass(frozen=True, eq=False)
class LeadingState:
    """The memory of :class:`~orthobandit.AnytimeElimination` without a square; `batch` are replications.

    Attributes
    ----------
    arms : ArmSet
    batch : tuple of int
    runs : tuple of LeadingRun
        One a replication, in the order of the batch.
    tally : Tally
        Residuals under the plans in force.
    """

    arms: ArmSet
    batch: tuple[int, ...]
    runs: tuple[LeadingRun, ...]
    tally: Tally

    @classmethod
    def fresh(cls, arms: ArmSet, batch: tuple[int, ...]) -> "LeadingState":
        """Return the state before the first round."""
        runs = [LeadingRun.fresh(arms)] * int(np.prod(batch, dtype=np.int64))
        return cls(arms, batch, tuple(runs), Tally.zeros(len(arms), batch))

    def run(self, place: tuple[int, ...]) -> LeadingRun:
        """Return one replication."""
        return self.runs[int(np.ravel_multi_index(place, self.batch)) if place else 0]

    def with_runs(self, runs: list[LeadingRun], tally: Tally) -> "LeadingState":
        """Return the state with other runs, in the order of the batch, and what is tallied since."""
        return replace(self, runs=tuple(runs), tally=tally)

    def with_rounds(self, tally: Tally, more: Whole) -> "LeadingState":
        """Return the state with what is tallied now, after so many more rounds (...)."""
        added = zip(self.runs, np.asarray(more).reshape(-1).tolist(), strict=True)
        runs = tuple(replace(run, rounds=run.rounds + count) for run, count in added)
        return replace(self, runs=runs, tally=tally)

    def _of_all(self, name: str, dtype: Any) -> NDArray[Any]:
        if not self.batch:
            return np.asarray(getattr(self.runs[0], name), dtype=dtype)
        parts = np.array([getattr(run, name) for run in self.runs], dtype=dtype)
        return parts.reshape((*self.batch, *parts.shape[1:]))

    @property
    def active(self) -> Mask:
        """Survivors (..., K)."""
        return self._of_all("active", np.bool_)

    @property
    def probabilities(self) -> Array:
        """The plan in force (..., K)."""
        return self._of_all("probabilities", np.float64)

    @property
    def values(self) -> Array:
        """Estimates (..., K) that residuals are taken from."""
        return self._of_all("values", np.float64)

    @property
    def stage(self) -> Whole:
        """0 in the warm-up, 1 in the pilot, 2 once rounds count (...)."""
        return self._of_all("stage", np.int64)

    @property
    def length(self) -> Whole:
        """Rounds until the plan in force is made anew (...)."""
        return self._of_all("length", np.int64)

    @property
    def late(self) -> Whole:
        """How many of these came late, of earlier plans (...)."""
        return self._of_all("late", np.int64)

    @property
    def rounds(self) -> Whole:
        """Rounds since the start (...)."""
        return self._of_all("rounds", np.int64)

    @property
    def plans(self) -> Whole:
        """Plans so far (...)."""
        return self._of_all("plans", np.int64)

    @property
    def leader(self) -> Whole:
        """The arm that looks best (...)."""
        return self._of_all("leader", np.int64)

    @property
    def declared(self) -> Whole:
        """The arm declared best (...), −1 where none is."""
        return self._of_all("declared", np.int64)

    @property
    def epsilon(self) -> Array:
        """The leader is within this of the best arm (...)."""
        return self._of_all("epsilon", np.float64)


def all_pairs_of(state: "AnytimeState | LeadingState", method: str) -> AnytimeState:
    """Return a state with evidence on all pairs, or refuse what needs it."""
    if isinstance(state, LeadingState):
        raise ParameterError(
            f"{method} needs evidence on all pairs, and that of {len(state.arms):,} arms is on pairs with"
            " leaders alone; start with pairs='all'"
        )
    return state


def bounds_against_leaders(
    state: LeadingState, confidence: Confidence, of: int | None, over: int | None
) -> Array:
    """Return upper bounds (..., K, K), or a row or a column (..., K) of them: see the policy."""
    k, is_whole = len(state.arms), of is None and over is None
    shape = (k, k) if is_whole else (k,)
    check_fits(
        f"upper_bounds of all pairs of {k:,} arms",
        8.0 * float(np.prod(shape)) * len(state.runs),
        "ask for one row or one column by `of` or `over`",
    )
    out = np.full((len(state.runs), *shape), np.inf)
    for run, table in zip(state.runs, out, strict=True):
        for one in run.led:
            if of is not None:
                if run.active[of]:
                    place = np.searchsorted(run.kept, [of])
                    table[one.arm] = one.only(place).upper_bounds(confidence, run.events)[0]
            elif over in (None, one.arm):
                bounds = one.upper_bounds(confidence, run.events)
                table[(run.kept, one.arm) if is_whole else run.kept] = bounds
        if is_whole:
            np.fill_diagonal(table, 0.0)
        else:
            table[of if over is None else over] = 0.0
    return out.reshape((*state.batch, *shape))


def dump(state: LeadingState) -> dict[str, Any]:
    """Return the state as plain values that survive ``json.dumps`` exactly; long arrays are packed."""
    parts = [getattr(state.tally, name).reshape(len(state.runs), -1) for name in TALLIED]
    tallies = ({name: sparse(part[row]) for name, part in zip(TALLIED, parts, strict=True)} for row in range(len(state.runs)))
    return {
        MARK: VERSION,
        "batch": list(state.batch),
        "runs": [_dumped(run) for run in state.runs],
        "tallies": list(tallies),
    }


def load(arms: ArmSet, data: Mapping[str, Any]) -> LeadingState:
    """Invert :func:`dump`."""
    if data[MARK] != VERSION:
        raise ParameterError(f"data[{MARK!r}] is {data[MARK]!r}; this version reads {VERSION}")
    batch, count = tuple(int(size) for size in data["batch"]), len(arms)
    runs = tuple(_loaded(arms, run) for run in data["runs"])
    kinds = (np.int64, np.float64, np.float64, np.float64)
    tallied = [
        np.array([unsparse(name, one[name], kind, count) for one in data["tallies"]]).reshape((*batch, count))
        for name, kind in zip(TALLIED, kinds, strict=True)
    ]
    return LeadingState(arms, batch, runs, Tally(*tallied))


def _dumped(run: LeadingRun) -> dict[str, Any]:
    sequences = list(run.sequences())
    return {
        **{name: int(getattr(run, name)) for name in WHOLE},
        **{name: float(getattr(run, name)) for name in REAL},
        **{name: packed(getattr(run, name)) for name in (*MATRICES, "values")},
        **{name: sparse(getattr(run, name)) for name in SPARSE},
        "active": packed(np.packbits(run.active)),
        "epsilon": float(run.epsilon) if np.isfinite(run.epsilon) else None,
        "counts": run.tests is not None,
        "sequences": [_sums(one, sequences[:place]) for place, one in enumerate(sequences)],
    }


def _sums(one: Against, before: list[Against]) -> dict[str, Any]:
    """Return evidence as plain values; its arrays by number where they are those of an earlier one."""
    same = [place for place, other in enumerate(before) if one.is_same_as(other)]
    head = {"arm": one.arm, "alpha": one.alpha, "since": one.since}
    return {**head, "same": same[0]} if same else {**head, **{name: packed(getattr(one, name)) for name in _names()}}


def _names() -> list[str]:
    return [part.name for part in fields(Against) if part.name not in ("arm", "alpha", "since")]


def _loaded(arms: ArmSet, data: Mapping[str, Any]) -> LeadingRun:
    k, r = len(arms), arms.dimension
    shapes: dict[str, tuple[int | None, ...]] = {"gram": (r, r), "moment": (r,), "values": (k,)}
    bits = unpacked("active", data["active"], np.uint8, ((k + 7) // 8,))
    active = np.unpackbits(bits, count=k).astype(np.bool_)
    sequences = list[Against]()
    for one in data["sequences"]:
        head = (int(one["arm"]), float(one["alpha"]), int(one["since"]))
        if "same" in one:
            sequences.append(replace(sequences[one["same"]], arm=head[0], alpha=head[1], since=head[2]))
            continue
        shape = (int(np.count_nonzero(active)),)
        sequences.append(Against(*head, *(unpacked(name, one[name], np.float64, shape) for name in _names())))
    counts = bool(data["counts"])
    return LeadingRun(
        **{name: int(data[name]) for name in WHOLE},
        **{name: float(data[name]) for name in REAL},
        **{name: unpacked(name, data[name], np.float64, shape) for name, shape in shapes.items()},
        **{name: unsparse(name, data[name], np.float64, k) for name in SPARSE},
        active=active,
        retired=np.zeros(k, dtype=np.bool_),
        epsilon=np.inf if data["epsilon"] is None else float(data["epsilon"]),
        tests=sequences[0] if counts else None,
        led=tuple(sequences[1:]) if counts else (),
        **EMPTY,
    )
