"""FixedBudget: the best arm within a fixed budget, under any shift."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.linalg import inverse_root, solve_ridge
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import ARMA, Baseline, Centre, Plan
from orthobandit.estimate.forecast.baselines import check_baseline
from orthobandit.estimate.orthogonal import centred_sums
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, pair_design

RIDGE = 1e-9  # of the regression, against directions that no round has told of
TINY = 1e-100  # stands in for a variance of zero


@dataclass(frozen=True)
class FixedBudget(PhasedPolicy):
    """Sequential halving under any shift: declare an arm after exactly `budget` rounds.

    ⌈log₂ r⌉ phases, at least one, of equal length; r is the affine dimension of the arms. Phase k draws
    from the contrast design of all pairs of survivors, min_p max ‖x_i − x_j‖²_{Σ_p⁻¹}, over all arms; keeps
    the ⌈r/2^k⌉ arms with the highest estimates, and one after the last. Estimates are by orthogonalised
    regression on all phases, each weighted by one over the variance of its residuals, from which a forecast
    of the level and the estimates of the phases before are subtracted.

    Departs: the linear fixed-budget halving of Yang & Tan (2022, OD-LinBAI) uses G-optimal designs and least
    squares on (x), which a moving baseline biases; here both are lifted to (1, x). Theirs forgets earlier
    phases, which takes up to twice the errors.

    Parameters
    ----------
    budget : int
        Rounds to the declaration; sooner only if all survivors have equal features.
    baseline : Baseline
        Forecast of the moving level; autoregressive by default.

    Notes
    -----
    No guarantee with a number is known for a given budget, so ``decide().certainty`` is 0. :meth:`p_value`
    says how strongly the data speak against a mistake.

    Examples
    --------
    >>> policy = FixedBudget(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.5, 0.5], 100)
    """

    budget: int
    baseline: Baseline = ARMA()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_whole("budget", self.budget)
        check_baseline(self.baseline)

    def plan(self, state: PhasedState) -> Plan:
        """Return the design in force, and the estimates that its residuals are taken from."""
        wide = np.full(state.phase.shape, np.inf)
        centre = Centre(state.carried[..., 0, :], -wide, wide)
        return Plan(state.probabilities, self._left(state), centre, state.phase)

    def rows(self, arms: ArmSet) -> int:
        """Return the rows carried: estimates, moment and Gram matrix of the regression."""
        return 2 + arms.dimension

    def phase_ends(self, arms: ArmSet) -> Whole:
        """Return the rounds after which phases end; the last is the budget."""
        count = min(max(math.ceil(math.log2(max(arms.dimension, 1))), 1), self.budget)
        return np.asarray(self.budget * np.arange(1, count + 1) // count, dtype=np.int64)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the contrast design of the survivors' pairs and the rounds of the phase."""
        ends = self.phase_ends(ahead.arms)
        start = ends[ahead.phase - 2] if ahead.phase > 1 else 0
        return pair_design(ahead.arms, ahead.survivors).probabilities, int(ends[ahead.phase - 1] - start)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the better half of the dimension; after the last phase the best arm alone."""
        arms = ended.arms
        ends = self.phase_ends(ended.arms)
        survivors = ended.survivors
        gram, moment = _regressed(ended)
        scores = arms.positions @ solve_ridge(gram, moment, _ridge(gram))
        keep = 1 if ended.phase == len(ends) else math.ceil(arms.dimension / 2**ended.phase)
        order = np.argsort(-np.where(survivors, scores, -np.inf), kind="stable")
        active = np.zeros(len(arms), dtype=np.bool_)
        active[order[: min(keep, int(survivors.sum()))]] = True
        carried = np.zeros_like(ended.carried)
        carried[0] = scores
        carried[1, : arms.dimension] = moment
        carried[2:, : arms.dimension] = gram
        return scores, active, carried

    def p_value(self, state: PhasedState) -> Array:
        """Return the p-value (...) of "the leader is not the best arm"; 1 before a phase has ended.

        With z_j the leader's lead over arm j in standard errors of the regression on all phases,
        p = min(1, c·Σ_j Φ(−z_j)), c = max(2, 1 + 1/2 + … + 1/(K−1)). The probability of *a wrong arm and
        p ≤ α* is at most α for every α, whatever the gaps, if the z_j are normal with the design given
        (docs/derivations.md has the proof). They are so for large samples but for one thing: designs of later
        phases depend on earlier rewards. docs/measured.md has what that does.

        This is *not* the share of mistakes among runs with such a p. No number can be that: if two arms are
        all but tied, half of the declarations are wrong, whatever was seen and said. What is rare then are
        small values.

        Examples
        --------
        >>> from orthobandit import Tally
        >>> policy = FixedBudget(budget=4)
        >>> state = policy.start(ArmSet.one_hot(2))
        >>> tally = Tally.of([0, 0, 1, 1], [2.0, 2.0, -2.0, -1.0], 2)
        >>> round(float(policy.p_value(policy.observe(state, policy.plan(state), tally))), 3)
        0.052
        """
        positions = state.arms.positions
        r = state.arms.dimension
        out = np.ones(state.leader.shape)
        if not r:
            return np.zeros_like(out)  # all arms are equally good
        for place in np.ndindex(out.shape):
            moment = state.carried[place][1, :r]
            gram = state.carried[place][2:, :r]
            if gram.any():
                apart = positions - positions[state.leader[place]]
                out[place] = _leader_p_value(gram, moment, apart)
        return out

    def decide(self, state: PhasedState) -> Decision:
        """Return the leader, and the declared arm once the budget is used; nothing is guaranteed."""
        return Decision(
            active=state.active,
            leader=state.leader,
            declared=state.declared,
            epsilon=np.full(state.declared.shape, np.inf),
            certainty=0.0,
            mode="none (fixed budget; `p_value` tests the declared arm)",
        )


def _regressed(ended: Ended) -> tuple[Array, Array]:
    """Return Gram matrix (r, r) and moment (r,) of the orthogonalised regression on all phases so far."""
    tally = ended.tally
    r = ended.arms.dimension
    # What residuals were taken from is added back, without its mean: a level would be noise, times Σ x̃.
    values = ended.carried[0] - ended.probabilities @ ended.carried[0]
    counts = np.asarray(tally.counts, dtype=np.float64)
    scatter = max(float(tally.squares.sum() / tally.rounds), TINY)
    gram, moment = centred_sums(ended.arms, ended.probabilities, counts, tally.sums + counts * values)
    return ended.carried[2:, :r] + gram / scatter, ended.carried[1, :r] + moment / scatter


def _leader_p_value(gram: Array, moment: Array, apart: Array) -> float:
    """Return min(1, c·Σ_j Φ(−z_j)) from V (r, r) and b (r,); `apart` (K, r) is x_j − x_leader."""
    ridge = _ridge(gram)
    variance = np.sum((apart @ inverse_root(gram + ridge * np.eye(len(gram)))) ** 2, axis=1)
    is_rival = variance > 0  # arms with the leader's features are as good as it
    lead = -apart[is_rival] @ solve_ridge(gram, moment, ridge)
    # An arm of rank k is tested against the k − 1 better ones, which gives it α/(k − 1): in all the harmonic
    # number. 2 makes p uniform if two arms are tied and others are far behind.
    factor = max(2.0, float(np.sum(1.0 / np.arange(1, len(apart)))))
    return min(factor * float(np.sum(scipy.special.ndtr(-lead / np.sqrt(variance[is_rival])))), 1.0)


def _ridge(gram: Array) -> float:
    return RIDGE * max(float(np.trace(gram)) / len(gram), TINY)
