"""The memory of anytime elimination with very many arms: vectors of K numbers, and fewer as arms drop out."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_fits
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.policy.anytime.leading.run import LeadingRun
from orthobandit.policy.anytime.settings import Settings
from orthobandit.policy.anytime.state import AnytimeState


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

    def advanced(self, policy: Settings, done: Mask) -> "LeadingState":
        """Return the state after the batches (...) that are done."""
        runs = [
            run.advanced(policy, self.arms, self.tally[place]) if done[place] else run
            for run, place in zip(self.runs, np.ndindex(self.batch), strict=True)
        ]
        return self.with_runs(runs, self.tally.without(done))

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
    k = len(state.arms)
    is_whole = of is None and over is None
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
                    table[one.arm] = one.only(place).upper_bounds(confidence, run.shown(one).only(place))[0]
            elif over in (None, one.arm):
                bounds = one.upper_bounds(confidence, run.shown(one))
                table[(run.kept, one.arm) if is_whole else run.kept] = bounds
        if is_whole:
            np.fill_diagonal(table, 0.0)
        else:
            table[of if over is None else over] = 0.0
    return out.reshape((*state.batch, *shape))
