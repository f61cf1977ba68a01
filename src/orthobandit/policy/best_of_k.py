"""The best of K arms without features: LUCB, action elimination, LinLUCB and track-and-stop on pooled means.

All of them look at each arm's mean over all of its rounds, whenever those were, except LinLUCB, which
compares arms within environments.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import inverse_root
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy._linear_rounds import leader_of, stopped_decision, unplayed
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision
from orthobandit.policy.base import Decision
from orthobandit.policy.bose import settle_on
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState
from orthobandit.policy.linear import play

LIL = 0.01  # ε of the law of the iterated logarithm's bound, as in the survey's experiments
UNBOUNDED = 1e300  # stands in for a bound that is not known yet


class RaceSettings(NamedTuple):
    """δ/K, and the factor of the bound: σ for LUCB, 2σ for action elimination."""

    share: float
    scale: float


class RaceMemory(NamedTuple):
    """Plays and sums of rewards (R, K), arms still in (R, K), the next arm, the one after, the declared (R,).

    The arm after the next is −1 if it is not chosen yet.
    """

    counts: Whole
    sums: Array
    active: Mask
    upcoming: Whole
    second: Whole
    declared: Whole


@compiled
def iterated_logarithm_bound(count: int, share: float) -> float:
    """Return 2(1 + √ε)√((1 + ε)·log(log((1 + ε)n + 2)/share)/(2n)), for noise of scale 1."""
    logs = np.log(np.log((1.0 + LIL) * count + 2.0) / share)
    return float(2.0 * (1.0 + np.sqrt(LIL)) * np.sqrt((1.0 + LIL) * max(logs, 0.0) / (2.0 * count)))


@compiled
def _means_and_bounds(settings: RaceSettings, memory: RaceMemory, i: int) -> tuple[Array, Array]:
    counts = memory.counts[i]
    means = memory.sums[i] / counts
    bounds = np.empty(counts.size)
    for a in range(counts.size):
        bounds[a] = settings.scale * iterated_logarithm_bound(counts[a], settings.share)
    return means, bounds


@compiled
def plan_race(_settings: RaceSettings, memory: RaceMemory, i: int, probabilities: Array) -> int:
    """Play the arm that is next; the declared one for ever."""
    if memory.declared[i] >= 0:
        return settle_on(memory.declared[i], probabilities)
    return play(memory.upcoming[i], probabilities)


@compiled
def observe_lucb(
    settings: RaceSettings, memory: RaceMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one reward; after every second one, compare the leader with its strongest rival."""
    memory.counts[i, arm] += 1
    memory.sums[i, arm] += reward
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    if memory.second[i] >= 0:
        memory.upcoming[i] = memory.second[i]
        memory.second[i] = -1
        return True
    means, bounds = _means_and_bounds(settings, memory, i)
    leader = int(np.argmax(means))
    highs = means + bounds
    highs[leader] = -np.inf
    rival = int(np.argmax(highs))
    memory.upcoming[i] = leader
    memory.second[i] = rival
    if means[leader] - bounds[leader] > highs[rival]:
        memory.declared[i] = leader
    return True


@compiled
def observe_elimination(
    settings: RaceSettings, memory: RaceMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one reward; after a pass through all arms that are in, drop those that the leader beats."""
    memory.counts[i, arm] += 1
    memory.sums[i, arm] += reward
    active = memory.active[i]
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    for a in range(arm + 1, active.size):
        if active[a]:
            memory.upcoming[i] = a
            return True
    means, bounds = _means_and_bounds(settings, memory, i)
    leader = leader_of(means, active)
    left = 0
    memory.upcoming[i] = leader
    for a in range(active.size):
        active[a] = active[a] and (a == leader or means[leader] - bounds[leader] < means[a] + bounds[a])
        left += active[a]
    if left == 1:
        memory.declared[i] = leader
        return True
    for a in range(active.size):
        if active[a]:
            memory.upcoming[i] = a
            break
    return True


@dataclass(frozen=True)
class RacePolicy(RoundPolicy):
    """What LUCB and action elimination share: settings, memory and decisions."""

    delta: float = 0.05
    noise: float = 1.0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_race)
    factor: ClassVar[float] = 1.0  # of the bound

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)

    def settings(self, arms: ArmSet) -> RaceSettings:
        """Return what the compiled steps read."""
        return RaceSettings(self.delta / len(arms), self.factor * self.noise)

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> RaceMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        size = len(numbers)
        shape = (size, len(arms))
        return RaceMemory(
            counts=np.zeros(shape, dtype=np.int64),
            sums=np.zeros(shape),
            active=np.ones(shape, dtype=np.bool_),
            upcoming=np.zeros(size, dtype=np.int64),
            second=np.full(size, -1, dtype=np.int64),
            declared=np.full(size, 0 if len(arms) == 1 else -1, dtype=np.int64),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the largest mean and the declared arm; nothing is claimed: a shift may have made them."""
        memory = state.memory
        means = np.divide(
            memory.sums, memory.counts, out=np.full(memory.sums.shape, -UNBOUNDED), where=memory.counts > 0
        )
        return stopped_decision(state, memory.active, means, memory.declared)


@dataclass(frozen=True)
class LUCB(RacePolicy):
    """LUCB (Kalyanakrishnan, Tewari, Auer & Stone 2012) with the bounds of Jamieson & Nowak (2014).

    Every arm once. Then, again and again: the leader has the largest mean, its rival the largest mean + U
    among the others; both are played. Stop when the leader's mean − U is above the rival's mean + U. With n
    plays of an arm U = 2σ(1 + √ε)√((1 + ε)·log(log((1 + ε)n + 2)/(δ/K))/(2n)), ε = 0.01: the constants with
    which SP-BAI's author compares. The law of the iterated logarithm justifies them up to a factor of δ.

    Features are ignored. **Under a shift** means depend on when arms were played: the rule is blind. Departs:
    the two arms are played in two rounds, one after the other.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.

    Examples
    --------
    >>> policy = LUCB()
    >>> policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.tolist()
    [1.0, 0.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_lucb)


@dataclass(frozen=True)
class ActionElimination(RacePolicy):
    """Action elimination (Even-Dar, Mannor & Mansour 2002) with the bounds of Jamieson & Nowak (2014).

    Plays all arms that are in, in turn; after each pass drops those whose mean + 2U is not above the leader's
    mean − 2U, U as in :class:`~orthobandit.policy.LUCB`; declares the last. Features are ignored.

    **Under a shift** the rule is blind, though its turns make the harm small: arms that are in have been
    played at almost the same times. A shift whose period fits a pass still favours one arm for ever.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.

    Examples
    --------
    >>> policy = ActionElimination()
    >>> policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.tolist()
    [1.0, 0.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_elimination)
    factor: ClassVar[float] = 2.0


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
            raise ParameterError(f"epoch={self.epoch} must not exceed budget={self.budget}")

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
