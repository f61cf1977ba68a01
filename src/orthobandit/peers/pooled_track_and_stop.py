"""Track-and-stop on means over all rounds, without features."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from orthobandit._foundation.checks import check_fraction, check_whole
from orthobandit._foundation.types import Array, Mask
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision


@dataclass(frozen=True)
class PooledTrackAndStop(PhasedPolicy):
    """Track-and-stop on pooled means, as the TensorZero gateway runs it for A/B tests of K variants.

    Every `period` rounds: with means, variances s² and counts n over *all* rounds so far, the probabilities
    w of the next period minimise max_j 2(s_ℓ²/w_ℓ + s_j²/w_j)/Δ̂_j² plus (ρ/√N)·‖w − 1/K‖², N the number of
    rounds, ρ = 0.01, Δ̂² at least 10⁻⁶ and w at least 10⁻⁶. Declare the leader ℓ when every rival has
    Δ̂_j²/(2(s_ℓ²/n_ℓ + s_j²/n_j)) > log((1 + log N)/δ) and all arms have `least` rounds; until then uniform.

    The test is Garivier & Kaufmann's (2016) with variances put in: a heuristic without a proof. Arms are
    drawn, features are ignored. **Under a shift** that moves while w changes, pooled means compare rounds of
    different times: an arm that is drawn more often when the level is high looks good (Simpson's paradox).

    Departs: no variance floor below 10⁻¹²; the level is not normalised. The design is the exact solution by
    bisection on the maximum, where the gateway calls a cone solver, and the regulariser is applied to it as a
    mixture with the uniform distribution of the same weight.

    Parameters
    ----------
    period : int
        Rounds between two updates, which are by the clock in the gateway.
    delta : float
        Failure probability δ.
    least : int
        Rounds of every arm before the first update; the gateway has 10.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = PooledTrackAndStop(period=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 100)
    """

    period: int
    delta: float = 0.05
    least: int = 10

    carries = 3  # counts, sums and sums of squares of all periods before

    def __post_init__(self) -> None:
        check_whole("period", self.period)
        check_fraction("delta", self.delta)
        check_whole("least", self.least, least=2)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the proportions that the estimates ask for, for one period."""
        counts, sums, squares = ahead.carried
        if counts.min() < self.least:
            return np.full(len(ahead.arms), 1 / len(ahead.arms)), self.period
        means, variances = _pooled(counts, sums, squares)
        return pooled_proportions(means, variances, float(counts.sum())), self.period

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Add the period; keep the leader alone if it passes the test against every rival."""
        tally = ended.tally
        carried = ended.carried + np.stack([tally.counts, tally.sums, tally.squares])
        counts, sums, squares = carried
        if counts.min() < self.least:
            return sums / np.maximum(counts, 1.0), ended.survivors, carried
        means, variances = _pooled(counts, sums, squares)
        leader = int(np.argmax(means))
        errors = variances / counts
        ratios = (means[leader] - means) ** 2 / (2 * (errors[leader] + errors))
        ratios[leader] = np.inf
        threshold = math.log((1 + math.log(counts.sum())) / self.delta)
        is_over = bool(np.min(ratios) > threshold)
        return means, np.arange(len(means)) == leader if is_over else ended.survivors, carried

    def decide(self, state: PhasedState) -> Decision:
        """Return the largest mean and the declared arm; nothing is claimed."""
        return unclaimed_decision(state, "none (pooled means assume that the baseline stands still)")


def _pooled(counts: Array, sums: Array, squares: Array) -> tuple[Array, Array]:
    """Return means and unbiased variances (K,), at least 1e-12."""
    means = sums / counts
    return means, np.maximum((squares - counts * means**2) / (counts - 1), 1e-12)


def pooled_proportions(means: Array, variances: Array, rounds: float) -> Array:
    """Return w (K,) that minimises max_j (s_ℓ²/w_ℓ + s_j²/w_j)/Δ_j², mixed with the uniform distribution.

    For a given w_ℓ and maximum M the rivals need w_j = s_j²/(MΔ_j² − s_ℓ²/w_ℓ); the sum of all falls in M, so
    the least M with a sum of 1 is found by bisection, inside a search over w_ℓ.

    Examples
    --------
    >>> pooled_proportions(np.array([1.0, 0.0]), np.array([1.0, 1.0]), 1e12).round(3).tolist()
    [0.5, 0.5]
    """
    count = len(means)
    leader = int(np.argmax(means))
    rivals = np.arange(count) != leader
    gaps = np.maximum((means[leader] - means[rivals]) ** 2, 1e-6)
    mine = variances[leader]
    theirs = variances[rivals]

    def shares(own: float) -> tuple[float, Array]:
        """Return log M for a share of the leader, and the shares of its rivals."""
        # M lies above (s_ℓ²/w_ℓ)/Δ_min², where a rival would need everything.
        low = math.log(mine / own / gaps.min())
        high = math.log(np.max((mine / own + theirs * count / (1 - own)) / gaps))

        def excess(log_most: float) -> float:
            left = np.maximum(math.exp(log_most) * gaps - mine / own, 1e-300)
            return float(np.sum(theirs / left)) - (1 - own)

        found = float(scipy.optimize.brentq(excess, low, high, xtol=1e-12))
        return found, theirs / (math.exp(found) * gaps - mine / own)

    best = scipy.optimize.minimize_scalar(
        lambda own: shares(own)[0], bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-7}
    )
    w = np.empty(count)
    w[leader] = best.x
    w[rivals] = shares(float(best.x))[1]
    smoothing = min(0.01 / math.sqrt(rounds), 1.0)
    w = np.maximum(w / w.sum(), 1e-6)
    return np.asarray((1 - smoothing) * w / w.sum() + smoothing / count)
