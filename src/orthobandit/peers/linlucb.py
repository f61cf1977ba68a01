"""LinLUCB: the best of K arms, compared within environments."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.linalg import inverse_root
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision


@dataclass(frozen=True)
class LinLUCB(PhasedPolicy):
    """LinLUCB (Srisawad, Branke & Tran-Thanh 2024): LUCB on a regression with environment dummies.

    Rewards are μ_i + s_j + noise in environment j: the level moves from one environment to the next and
    stands still within it. Least squares on arm and environment dummies gives μ̂ up to a level; with
    information Λ = Σ_j [diag(n_j) − n_j n_jᵀ/N_j] the standard error of μ̂_i − μ̂_ℓ is that of its contrast in
    Λ⁻¹. Every environment plays the leader ℓ and the rival with the largest μ̂_i − μ̂_ℓ + c·σ·(standard
    error), half and half; the first plays all arms alike. After `budget` rounds the leader is declared.

    **Under a shift** that is constant within epochs nothing is lost. One that moves within them is noise but
    no bias, since the two arms of an epoch are drawn alike at all times. Features are ignored.

    Departs: built from the paper's abstract and summaries, since the text could not be had here: c and the
    exact bound are ours. Environments are epochs of known length; arms are drawn, where the paper plays two
    different arms in every environment.

    Parameters
    ----------
    budget : int
        Rounds to the declaration.
    epoch : int
        Rounds of an environment.
    scale : float
        c·σ.

    Examples
    --------
    >>> policy = LinLUCB(budget=1000, epoch=50)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 50)
    """

    budget: int
    epoch: int
    scale: float = 2.0

    def __post_init__(self) -> None:
        check_whole("budget", self.budget)
        check_whole("epoch", self.epoch, least=2)
        check_positive("scale", self.scale)
        if self.epoch > self.budget:
            raise ParameterError(Argument("epoch", self.epoch), f" must not exceed budget={self.budget}")

    def rows(self, arms: ArmSet) -> int:
        """Return the rows carried: Λ and the moment."""
        return len(arms) + 1

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return a fair coin between the leader and its rival, for one environment."""
        count = len(ahead.arms)
        rounds = min(self.epoch, self.budget - self.epoch * (ahead.phase - 1))
        if ahead.phase == 1:
            return np.full(count, 1 / count), rounds
        leader, rival = self._pair(ahead.carried)
        return np.where(np.isin(np.arange(count), (leader, rival)), 0.5, 0.0), rounds

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Add the environment; after the budget the leader alone is left."""
        n = np.asarray(ended.tally.counts, dtype=np.float64)
        total = n.sum()
        carried = ended.carried.copy()
        carried[:-1] += np.diag(n) - np.outer(n, n) / total
        carried[-1] += ended.tally.sums - n * ended.tally.sums.sum() / total
        scores, _ = _environment_fit(carried)
        if self.epoch * ended.phase < self.budget:
            return scores, ended.survivors, carried
        return scores, np.arange(len(n)) == np.argmax(scores), carried

    def _pair(self, carried: Array) -> tuple[int, int]:
        """Return leader and rival."""
        scores, inverse = _environment_fit(carried)
        leader = int(np.argmax(scores))
        variances = np.diagonal(inverse) + inverse[leader, leader] - 2 * inverse[leader]
        optimism = scores + self.scale * np.sqrt(np.maximum(variances, 0.0))
        optimism[leader] = -np.inf
        return leader, int(np.argmax(optimism))

    def decide(self, state: PhasedState) -> Decision:
        """Return the leader, and the declared arm once the budget is used; nothing is claimed."""
        return unclaimed_decision(state, "none (fixed budget)")


def _environment_fit(carried: Array) -> tuple[Array, Array]:
    """Return μ̂ (K,) up to a level, and the inverse (K, K) of Λ with the level fixed by Σ μ̂ = 0."""
    count = carried.shape[1]
    information = carried[:-1]
    # Λ1 = 0: adding 11ᵀ fixes the level and no contrast. The ridge is for arms that were never compared.
    regular = information + np.ones((count, count)) / count
    root = inverse_root(regular + 1e-6 * np.eye(count))
    inverse = np.asarray(root @ root.T)
    return np.asarray(inverse @ carried[-1]), inverse
