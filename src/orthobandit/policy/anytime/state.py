"""The memory of anytime elimination: one array a quantity, replications along the leading axes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.evidence import Evidence
from orthobandit.policy._states import dump_state, freeze, load_array, load_tally
from orthobandit.policy.anytime.rounds import EVIDENCE
from orthobandit.policy.anytime.run import Run


@dataclass(frozen=True, eq=False)
class AnytimeState:
    """The memory of :class:`AnytimeElimination`; leading axes (...) are replications.

    Attributes
    ----------
    arms : ArmSet
    active : (..., K) array of bool
        Survivors.
    retired : (..., K) array of bool
        Arms that the user has taken out.
    stage : (...) array of int
        0 while the baseline warms up, 1 in the pilot, 2 once rounds count.
    length, late, rounds, designed, plans : (...) arrays of int
        Rounds until the plan in force is made anew, and how many of these came late, of earlier plans; rounds
        since the start and when its distribution was made, plans so far.
    probabilities, values : (..., K) arrays
        The plan in force and the estimated rewards that its residuals are taken from.
    tally : Tally
        Residuals under the plan in force.
    gram, moment : (..., r, r), (..., r) arrays
        Sums of the weighted regression behind `values`.
    noise : (...) array
        Variance of a residual.
    watched, squared, scattered, largest, excess : (...) arrays
        Sizes of residuals from the pilot on, `scattered` after it from then on; see
        :class:`~orthobandit.estimate.confidence.evidence.Sizes`.
    drawn, relative : (..., K) arrays
        Rounds of each arm, and its squared residuals in units of the others'; see
        :func:`~orthobandit.estimate.confidence.evidence.relative_squares`.
    informed : (...) array
        Events of all batches from the pilot on, each by itself.
    totals, weights, variances, slack, pooled, peaks : (..., K, K) arrays
        Evidence on every pair; see :class:`~orthobandit.estimate.confidence.modes.Evidence`.
    alpha, rho, scale : (..., K, K) arrays
        Tuning of every pair; see :class:`~orthobandit.estimate.confidence.modes.Tuning`.
    left : (..., K) array
        What is left of δ for each arm, should it be the best.
    met : (..., K, K) array of bool
        Rivals that each arm was tested against.
    first_plan : (..., K, K) array of int
        Number of the first plan whose rounds each entry of the evidence counts: of entries that began when an
        arm was retired or added, the next after that.
    leader, declared : (...) arrays of int
    epsilon : (...) array
        The leader is within this of the best arm.
    """

    arms: ArmSet
    active: NDArray[np.bool_]
    retired: NDArray[np.bool_]
    stage: Whole
    length: Whole
    late: Whole
    rounds: Whole
    designed: Whole
    plans: Whole
    probabilities: Array
    values: Array
    tally: Tally
    gram: Array
    moment: Array
    noise: Array
    watched: Whole
    drawn: Array
    relative: Array
    squared: Array
    scattered: Array
    largest: Array
    excess: Array
    informed: Array
    totals: Array
    weights: Array
    variances: Array
    slack: Array
    pooled: Array
    peaks: Array
    alpha: Array
    rho: Array
    scale: Array
    left: Array
    met: NDArray[np.bool_]
    first_plan: Whole
    leader: Whole
    declared: Whole
    epsilon: Array

    def __post_init__(self) -> None:
        freeze(self)

    def run(self, place: tuple[int, ...]) -> Run:
        """Return one replication."""
        return Run.of(self, place)

    def with_runs(self, runs: list[Run], tally: Tally) -> "AnytimeState":
        """Return the state with other runs, in the order of the batch, and what is tallied since."""
        return stacked(self.arms, runs, self.stage.shape, tally)

    def with_rounds(self, tally: Tally, more: Whole) -> "AnytimeState":
        """Return the state with what is tallied now, after so many more rounds (...)."""
        return replace(self, tally=tally, rounds=self.rounds + more)


def _shapes(arms: ArmSet) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Return type and shape, without the batch, of every array of a state."""
    k = len(arms)
    r = arms.dimension
    arm = (k,)
    pair = (k, k)
    numbers = ("stage", "length", "late", "rounds", "designed", "plans", "watched", "leader", "declared")
    whole: dict[str, tuple[type, tuple[int, ...]]] = dict.fromkeys(numbers, (np.int64, ()))
    real: dict[str, tuple[type, tuple[int, ...]]] = {
        "probabilities": (np.float64, arm),
        "values": (np.float64, arm),
        "drawn": (np.float64, arm),
        "relative": (np.float64, arm),
        "gram": (np.float64, (r, r)),
        "moment": (np.float64, (r,)),
        **dict.fromkeys(
            ("noise", "squared", "scattered", "largest", "excess", "informed", "epsilon"), (np.float64, ())
        ),
    }
    pairs = (*EVIDENCE, "alpha", "rho", "scale")
    return {
        "active": (np.bool_, arm),
        "retired": (np.bool_, arm),
        "met": (np.bool_, pair),
        "first_plan": (np.int64, pair),
        "left": (np.float64, arm),
        **whole,
        **real,
        **dict.fromkeys(pairs, (np.float64, pair)),
    }


def stacked(arms: ArmSet, runs: list[Run], batch: tuple[int, ...], tally: Tally) -> AnytimeState:
    """Return one state of the runs, in the shape of the batch."""
    arrays: dict[str, Any] = {
        name: np.array([getattr(run, name) for run in runs], dtype=kind).reshape((*batch, *shape))
        for name, (kind, shape) in _shapes(arms).items()
    }
    return AnytimeState(arms=arms, tally=tally, **arrays)


def updated(state: AnytimeState, place: Any, run: Run, tally: Tally) -> AnytimeState:
    """Return the state with other values of the runs at `place`, and another tally."""
    everything = Run.of(state, ...).put(place, run)
    arrays: dict[str, Any] = {name: getattr(everything, name) for name in Run.names()}
    return AnytimeState(arms=state.arms, tally=tally, **arrays)


def dump(state: AnytimeState) -> dict[str, Any]:
    """Return the state as plain lists and numbers that survive ``json.dumps`` exactly."""
    # JSON has no infinity: an epsilon that is not yet known is null.
    known = state.epsilon.astype(np.object_)
    known = np.where(np.isfinite(state.epsilon), known, np.array(None)).tolist()
    return {**dump_state(state), "epsilon": known, "bets": True}


def load(arms: ArmSet, data: dict[str, Any], *, is_exact: bool) -> AnytimeState:
    """Invert :func:`dump`; `is_exact` tells whether evidence is that of an exact mode."""
    active = load_array(data, "active", np.bool_)
    batch = active.shape[:-1]
    if "first_plan" not in data:  # 0.2 let tests that started again count rounds drawn before
        data = {**data, "first_plan": np.zeros((*batch, len(arms), len(arms)), dtype=np.int64)}
    arrays = {
        name: load_array(data, name, kind, (*batch, *shape)) for name, (kind, shape) in _shapes(arms).items()
    }
    arrays["epsilon"] = np.where(np.isnan(arrays["epsilon"]), np.inf, arrays["epsilon"])
    if is_exact and "bets" not in data:  # 0.2 did not look
        evidence = Evidence(**{name: arrays[name] for name in EVIDENCE}).of_unknown_sizes(arrays["scale"])
        arrays |= {name: getattr(evidence, name) for name in EVIDENCE}
    return AnytimeState(arms=arms, tally=load_tally(data, "tally", (*batch, len(arms))), **arrays)
