"""Fixed budget: the best arm after exactly n rounds, by halving on lifted designs."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from orthobandit._checks import check_whole
from orthobandit.arms import ArmSet
from orthobandit.design import contrast_design
from orthobandit.estimate import PairGeometry
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState
from orthobandit.policy.base import Decision

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class FixedBudget(PhasedPolicy):
    """Sequential halving under any shift: declare an arm after exactly `budget` rounds.

    ⌈log₂ r⌉ phases, at least one, of equal length; r is the affine dimension of the arms. Phase k draws
    from the contrast design of all pairs of survivors, min_p max ‖x_i − x_j‖²_{Σ_p⁻¹}, over all arms; keeps
    the ⌈r/2^k⌉ arms with the highest estimates, and one after the last. An estimate is the mean of the
    unbiased ψ (:class:`~orthobandit.estimate.PairGeometry`) of that phase alone, with the estimate of the
    phases before subtracted first: phases are then fresh samples, and a constant level costs nothing.

    Departs: the linear fixed-budget halving of Yang & Tan (2022, OD-LinBAI) uses G-optimal designs and least
    squares on (x), which a moving baseline biases; here both are lifted to (1, x).

    Parameters
    ----------
    budget : int
        Rounds to the declaration; sooner only if all survivors have equal features.

    Notes
    -----
    No guarantee with a number is known for a given budget, so ``decide().confidence`` is 0. The honest error
    estimate is :meth:`error`: the chance, were estimates normal with the seen variances, that some arm that
    was dropped in some phase is better than the winner of that phase, summed over arms and phases. It is an
    estimate and not a bound: gaps are those seen, which selection makes somewhat too large.

    Examples
    --------
    >>> policy = FixedBudget(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.5, 0.5], 100)
    """

    budget: int

    carries = 2  # estimates so far, and each arm's part in the chance of a wrong declaration

    def __post_init__(self) -> None:
        check_whole("budget", self.budget)

    def phase_ends(self, arms: ArmSet) -> NDArray[np.int64]:
        """Return the rounds after which phases end; the last is the budget."""
        count = min(max(math.ceil(math.log2(max(arms.dimension, 1))), 1), self.budget)
        return np.asarray(self.budget * np.arange(1, count + 1) // count, dtype=np.int64)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the contrast design of the survivors' pairs and the rounds of the phase."""
        ends = self.phase_ends(ahead.arms)
        start = ends[ahead.phase - 2] if ahead.phase > 1 else 0
        return _pair_design(ahead.arms, ahead.survivors.tobytes()), int(ends[ahead.phase - 1] - start)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the better half of the dimension; after the last phase the best arm alone."""
        arms, ends, survivors = ended.arms, self.phase_ends(ended.arms), ended.survivors
        scores, errors = _scores(ended)
        keep = 1 if ended.phase == len(ends) else math.ceil(arms.dimension / 2**ended.phase)
        order = np.argsort(-np.where(survivors, scores, -np.inf), kind="stable")
        active = np.zeros(len(arms), dtype=np.bool_)
        active[order[: min(keep, int(survivors.sum()))]] = True
        winner, dropped = order[0], survivors & ~active
        differs = np.any(arms.positions != arms.positions[winner], axis=1)
        ratio = np.divide(scores[winner] - scores, errors[winner], where=differs, out=np.zeros(len(arms)))
        chance = ended.carried[1] + np.where(dropped & differs, ndtr(-ratio), 0.0)
        return scores, active, np.stack([scores - scores[winner], chance])

    def error(self, state: PhasedState) -> Array:
        """Return the estimated chance (...) of having dropped the best arm so far, at most 1."""
        return np.asarray(np.minimum(state.carried[..., 1, :].sum(axis=-1), 1.0))

    def decide(self, state: PhasedState) -> Decision:
        """Return the leader, and the declared arm once the budget is used; nothing is guaranteed."""
        return Decision(
            active=state.active,
            leader=state.leader,
            declared=state.declared,
            epsilon=np.full(state.declared.shape, np.inf),
            confidence=0.0,
            mode="none (fixed budget; `error` estimates the chance of a mistake)",
        )


def _scores(ended: Ended) -> tuple[Array, Array]:
    """Return estimated rewards (K,) up to a common level, and standard errors (K, K) of their differences."""
    tally, values = ended.tally, ended.carried[0]
    counts = np.asarray(tally.counts, dtype=np.float64)
    rounds = max(float(counts.sum()), 1.0)
    geometry = PairGeometry.of(ended.arms.positions, ended.probabilities)
    # A common level is subtracted after the fact: its error is of smaller order than what it removes.
    sums = tally.sums - counts * values
    level = float(sums.sum()) / rounds
    squares = tally.squares - 2.0 * values * tally.sums + counts * values**2
    squares = np.maximum(squares - 2.0 * level * sums + counts * level**2, 0.0)
    totals, variances = geometry.sums(counts, sums - counts * level, squares, values)
    return totals[:, 0] / rounds, np.sqrt(variances) / rounds


@lru_cache(maxsize=64)
def _pair_design(arms: ArmSet, mask: bytes) -> Array:
    left = np.flatnonzero(np.frombuffer(mask, dtype=np.bool_))
    if len(left) == len(arms):
        return contrast_design(arms).probabilities
    first, second = np.triu_indices(len(left), 1)
    return contrast_design(arms, np.column_stack([left[first], left[second]])).probabilities
