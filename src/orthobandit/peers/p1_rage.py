"""P1-RAGE on lifted arms: the best arm within a fixed budget."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.linalg import whitened
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import centred_design
from orthobandit.errors import Argument, ParameterError
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, pair_design, unclaimed_decision

VIRTUAL = 15  # virtual phases at most, as in the authors' code


@dataclass(frozen=True)
class P1RAGE(PhasedPolicy):
    """P1-RAGE (Xiong, Camilleri, Fazel, Jain & Jamieson 2023) on the lifted arms (1, x).

    T rounds in E = ⌈log₂ ρ⌉ epochs of equal length, ρ the least largest ‖x_i − x_j‖²_{Σ_p⁻¹}. At the start
    of an epoch the estimate so far is used for virtual elimination: X_1 = all arms, X_{i+1} = those of X_i
    with an estimated gap of at most 2^{−i}; the next design is the average of the XY designs of X_1, X_2,
    …, mixed half and half with the G-optimal one. Nothing is ever really dropped. θ̂ is the average of the
    importance-weighted M_p⁻¹z_a·r, z = (1, x), so its part along x is Σ_p⁻¹(x_a − μ_p)r: unbiased for
    differences whatever the shift. After T rounds the largest x_aᵀθ̂ is declared.

    Departs: lifted to (1, x), where XY designs are contrast designs and the G-optimal design is the exact
    centred one; the first epoch uses the G-optimal design alone, as the authors' code does in its first
    round. The paper bounds the probability of a wrong declaration, with problem-dependent exponents and no
    number, so nothing is claimed.

    Parameters
    ----------
    budget : int
        T.
    epochs : int, optional
        E; by default ⌈log₂ ρ⌉, at least 2.

    Examples
    --------
    >>> policy = P1RAGE(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.5, 0.5], 50)
    """

    budget: int
    epochs: int | None = None

    carries = 1  # sums of importance-weighted scores

    def __post_init__(self) -> None:
        check_whole("budget", self.budget, least=2)
        if self.epochs is not None and check_whole("epochs", self.epochs) > self.budget:
            raise ParameterError(Argument("epochs", self.epochs), f" must not exceed budget={self.budget}")

    def epoch_ends(self, arms: ArmSet) -> Whole:
        """Return the rounds (E,) after which epochs end; the last is the budget."""
        count = self.epochs
        if count is None:
            value = max(pair_design(arms, np.ones(len(arms), dtype=np.bool_)).contrast_norm ** 2, 1.0)
            count = min(max(math.ceil(math.log2(value)), 2), self.budget)
        return np.asarray(self.budget * np.arange(1, count + 1) // count, dtype=np.int64)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the design of an epoch: G-optimal first, then half of it virtual elimination."""
        arms = ahead.arms
        ends = self.epoch_ends(ahead.arms)
        spread = _lifted_design(arms)
        if ahead.phase == 1:
            return spread, int(ends[0])
        seen, end = ends[ahead.phase - 2 : ahead.phase]
        scores = ahead.carried[0] / seen
        return (spread + _virtual_design(arms, scores.max() - scores)) / 2, int(end - seen)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Add the epoch; after the last, the best score alone is left."""
        p = ended.probabilities
        arms = ended.arms
        white, _ = whitened(arms.positions, p)
        carried = ended.carried + white @ (ended.tally.sums @ white)
        survivors = ended.survivors
        if ended.phase == len(self.epoch_ends(arms)):
            survivors = np.arange(len(arms)) == np.argmax(carried[0])
        return carried[0], survivors, carried

    def decide(self, state: PhasedState) -> Decision:
        """Return the leader, and the declared arm once the budget is used; nothing is claimed."""
        return unclaimed_decision(state, "none (fixed budget)")


def _virtual_design(arms: ArmSet, gaps: Array) -> Array:
    """Average the contrast designs of {gap ≤ 2⁻ⁱ}, i = 1, 2, …, after that of all arms."""
    designs: list[Array] = []
    left = np.ones(len(arms), dtype=np.bool_)
    while len(designs) < VIRTUAL and arms.subset(left).dimension:
        fewer = left & (gaps <= math.ldexp(1.0, -len(designs))) if designs else left
        if not designs or np.any(fewer != left):
            left = fewer
            if not arms.subset(left).dimension:
                break
            designs.append(pair_design(arms, left).probabilities)
        else:
            designs.append(designs[-1])
    return np.asarray(np.mean(designs, axis=0))


# The design of all arms does not depend on what was seen: one solve serves all replications and epochs.
@lru_cache(maxsize=16)
def _lifted_design(arms: ArmSet) -> Array:
    return centred_design(arms).probabilities
