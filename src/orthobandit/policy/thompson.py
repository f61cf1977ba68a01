"""Thompson sampling that a shift cannot bias: semiparametric, and action-centred against a reference arm."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, forward, solve_ridge, whiten_into
from orthobandit._foundation.random import GAMMA, fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy._ridge import add_round, posterior_into, scores_into
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState, keys, open_decision

Singles = NDArray[np.float32]

LANES = 512  # draws scored at a time, at most: their normals for 20 features fill 40 kB, which stay in cache
WEIGHTS = {"printed": 1.0, "released": 2.0}  # how often a round counts


class ThompsonSettings(NamedTuple):
    """Features on the arms' hull (K, r) and as given (K, d), v, M, and how often a round counts."""

    positions: Array
    features: Array
    spread: float
    draws: int
    weight: float


class ThompsonMemory(NamedTuple):
    """B − I (R, r, r), y (R, r), rounds in them (R,), and the key of the random numbers (R,).

    Where the level is subtracted, also Σ zzᵀ (R, d + 1, d + 1) and Σ zr (R, d + 1) of z = (1, x).
    """

    gram: Array
    moment: Array
    level_gram: Array
    level_moment: Array
    step: Whole
    key: Whole


@compiled
def _score(white: Singles, means: Singles, arm: int, normals: Singles, scores: Singles) -> None:
    """Write means[a] + w_a·z of two arms from `arm` on for every draw z, the columns of `normals` (r, draws).

    Two arms and four features at a time: a normal is then loaded once for eight operations.
    """
    size, lanes = normals.shape
    for k in range(lanes):
        scores[0, k] = means[arm]
        scores[1, k] = means[arm + 1]
    j = 0
    while j + 3 < size:
        a = white[j, arm]
        b = white[j + 1, arm]
        c = white[j + 2, arm]
        d = white[j + 3, arm]
        e = white[j, arm + 1]
        f = white[j + 1, arm + 1]
        g = white[j + 2, arm + 1]
        h = white[j + 3, arm + 1]
        for k in range(lanes):
            p = normals[j, k]
            q = normals[j + 1, k]
            r = normals[j + 2, k]
            s = normals[j + 3, k]
            scores[0, k] += (a * p + b * q) + (c * r + d * s)
            scores[1, k] += (e * p + f * q) + (g * r + h * s)
        j += 4
    while j < size:
        a = white[j, arm]
        e = white[j, arm + 1]
        for k in range(lanes):
            scores[0, k] += a * normals[j, k]
            scores[1, k] += e * normals[j, k]
        j += 1


@compiled
def _keep_better(scores: Singles, arm: np.float32, best: Singles, winner: Singles) -> None:
    for k in range(scores.size):
        is_better = scores[k] > best[k]
        best[k] = scores[k] if is_better else best[k]
        winner[k] = arm if is_better else winner[k]


@compiled
def count_wins(start: np.uint64, white: Singles, means: Singles, draws: int, wins: Array) -> None:
    """Count how often each arm has the largest score means[a] + white[:, a]·z over independent normal z.

    The first of equal arms wins. Draws and scores are in single precision. Arms go in pairs: an odd one
    out is paired with a last column of `white` (r, K or K + 1) whose mean is −inf.
    """
    size, count = white.shape
    blocks = (draws + LANES - 1) // LANES
    lanes = ((draws + blocks - 1) // blocks + 15) // 16 * 16  # whole vectors
    normals = np.empty((size, lanes), dtype=np.float32)
    scores = np.empty((2, lanes), dtype=np.float32)
    best = np.empty(lanes, dtype=np.float32)
    winner = np.empty(lanes, dtype=np.float32)
    for first in range(0, draws, lanes):
        fill_normals(start, normals.reshape(size * lanes))
        start += GAMMA * np.uint64(size * lanes)
        best[:] = -np.inf
        winner[:] = 0.0
        for a in range(0, count, 2):
            _score(white, means, a, normals, scores)
            _keep_better(scores[0], np.float32(a), best, winner)
            _keep_better(scores[1], np.float32(a + 1), best, winner)
        for k in range(min(lanes, draws - first)):
            wins[int(winner[k])] += 1.0


@compiled
def plan_frequencies(settings: ThompsonSettings, memory: ThompsonMemory, i: int, probabilities: Array) -> int:
    """Play each arm with the frequency with which it is best among draws from the posterior."""
    positions = settings.positions
    (count, size) = settings.positions.shape
    lower = np.zeros((size, size))
    theta = np.empty(size)
    means = np.empty(count)
    posterior_into(memory.gram[i], memory.moment[i], 1.0, lower, theta)
    scores_into(positions, theta, means)
    white = np.empty((size, count))
    whiten_into(lower, positions, white)
    even = count + count % 2
    spread = np.zeros((size, even), dtype=np.float32)
    centre = np.full(even, -np.inf, dtype=np.float32)
    for a in range(count):
        centre[a] = means[a]
        for j in range(size):
            spread[j, a] = settings.spread * white[j, a]
    probabilities[:] = 0.0
    start = starting_point(memory.key[i], memory.step[i])
    count_wins(start, spread, centre, settings.draws, probabilities)
    for a in range(count):
        probabilities[a] /= settings.draws
    return 1


@compiled
def observe_centred(
    settings: ThompsonSettings, memory: ThompsonMemory, i: int, probabilities: Array, arm: int, reward: float
) -> bool:
    """Add w(x̃x̃ᵀ + Cov_π) to B and 2wx̃(r − level) to y, w = 1 and level 0 in the paper."""
    positions = settings.positions
    (count, size) = settings.positions.shape
    mean = np.zeros(size)
    for a in range(count):
        if probabilities[a] > 0.0:
            for j in range(size):
                mean[j] += probabilities[a] * positions[a, j]
    for a in range(count):
        share = settings.weight * (probabilities[a] + (1.0 if a == arm else 0.0))
        if share > 0.0:
            for j in range(size):
                left = share * (positions[a, j] - mean[j])
                for k in range(size):
                    memory.gram[i, j, k] += left * (positions[a, k] - mean[k])
    level = 0.0
    if memory.level_moment.shape[1] > 0:
        level = _level(settings.features[arm], memory.level_gram[i], memory.level_moment[i], reward)
    for j in range(size):
        memory.moment[i, j] += 2.0 * settings.weight * (positions[arm, j] - mean[j]) * (reward - level)
    memory.step[i] += 1
    return True


@compiled
def _level(feature: Array, gram: Array, moment: Array, reward: float) -> float:
    """Return the intercept of the ridge regression of past rewards on (1, x), then add this round to it."""
    size = moment.size
    lower = np.zeros((size, size))
    fitted = np.empty(size)
    lifted = np.ones(size)
    # Fitted before this round is added: the level must not know the reward that it is taken from.
    posterior_into(gram, moment, 1.0, lower, fitted)
    lifted[1:] = feature
    add_round(gram, moment, lifted, reward)
    return float(fitted[0])


@dataclass(frozen=True)
class SemiparametricTS(RoundPolicy):
    """Contextual Thompson sampling for semiparametric rewards (Kim & Paik 2019, Algorithm 1).

    Every round: π_a is the frequency with which arm a is best among M draws θ̃ ~ N(θ̂, v²B⁻¹); the arm is drawn
    from π. With x̃ = x_a − Σ π_b x_b: B = I + Σ (x̃x̃ᵀ + Cov_π), y = 2Σ x̃r, θ̂ = B⁻¹y. Regret Õ(d^{3/2}√T).

    "released" is the rule of the authors' public code, which is not the paper's: every round counts twice,
    B = I + 2Σ (x̃x̃ᵀ + Cov_π), y = 4Σ x̃(r − ĉ), where ĉ is the intercept of an ordinary ridge regression of
    the past rewards on (1, x). Doubling changes no estimate but for the prior, which it halves, and draws θ̃
    with v/√2 for v; ĉ is fixed before the arm is drawn, so it is a forecast of the level that takes noise
    out and lets no shift in.

    Departs: the paper plays the arm that a first draw makes best and estimates its probability by M further
    ones; here the arm is drawn from the frequencies themselves, so the logged probabilities are exact. d is
    the affine dimension r, which changes no contrast. Scores of draws are compared in single precision.
    The authors' public code carries a note that they claim a US patent on the method; using this class may
    need their permission.

    Parameters
    ----------
    horizon : int
        T in v = c√(r·log T). Playing on after it is allowed.
    scale : float
        c.
    draws : int
        M, Monte-Carlo draws of a plan.
    rule : {"printed", "released"}
        What a round adds to B and y.

    Examples
    --------
    >>> policy = SemiparametricTS(horizon=100)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]), seed=4)
    >>> bool(abs(policy.plan(state).probabilities[0] - 0.5) < 0.1)
    True
    """

    horizon: int
    scale: float = 1.0
    draws: int = 1000
    rule: str = "printed"

    plan_into: ClassVar[PlanStep] = staticmethod(plan_frequencies)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_centred)

    def __post_init__(self) -> None:
        check_whole("horizon", self.horizon, least=2)
        check_positive("scale", self.scale)
        check_whole("draws", self.draws)
        check_choice("rule", self.rule, WEIGHTS)

    def spread(self, arms: ArmSet) -> float:
        """Return v = c√(r·log T)."""
        return self.scale * math.sqrt(max(arms.dimension, 1) * math.log(self.horizon))

    def settings(self, arms: ArmSet) -> ThompsonSettings:
        """Return what the compiled steps read."""
        return ThompsonSettings(
            positions=np.ascontiguousarray(arms.positions),
            features=np.ascontiguousarray(arms.features),
            spread=self.spread(arms),
            draws=self.draws,
            weight=WEIGHTS[self.rule],
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> ThompsonMemory:
        """Return the memory before the first round."""
        size = len(numbers)
        r = arms.dimension
        lifted = arms.features.shape[1] + 1 if self.rule == "released" else 0
        return ThompsonMemory(
            gram=np.zeros((size, r, r)),
            moment=np.zeros((size, r)),
            level_gram=np.zeros((size, lifted, lifted)),
            level_moment=np.zeros((size, lifted)),
            step=np.zeros(size, dtype=np.int64),
            key=keys(seed, "semiparametric thompson", numbers),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the arm that is played most; nothing is claimed."""
        return open_decision(state, state.probabilities, "none")


class CentredSettings(NamedTuple):
    """Differences to the reference arm (K, r), that arm, v, and the limits of π."""

    differences: Array
    reference: int
    spread: float
    least: float
    most: float


class CentredMemory(NamedTuple):
    """B − I (R, r, r), b (R, r), rounds (R,) and the key of the random numbers (R,)."""

    gram: Array
    moment: Array
    step: Whole
    key: Whole


@compiled
def plan_challenger(settings: CentredSettings, memory: CentredMemory, i: int, probabilities: Array) -> int:
    """Let the best other arm of one draw challenge the reference arm with its clipped probability."""
    differences = settings.differences
    (count, size) = settings.differences.shape
    probabilities[:] = 0.0
    probabilities[settings.reference] = 1.0
    if count == 1:
        return FOREVER
    lower = np.zeros((size, size))
    theta = np.empty(size)
    posterior_into(memory.gram[i], memory.moment[i], 1.0, lower, theta)
    drawn = np.empty(size)
    scores = np.empty(count)
    fill_normals(starting_point(memory.key[i], memory.step[i]), drawn)
    backward(lower, size, drawn)
    for j in range(size):
        drawn[j] = theta[j] + settings.spread * drawn[j]
    scores_into(differences, drawn, scores)
    # The reference never challenges itself.
    scores[settings.reference] = -np.inf
    challenger = int(np.argmax(scores))
    white = differences[challenger].copy()
    lead = 0.0
    for j in range(size):
        lead += white[j] * theta[j]
    forward(lower, size, white)
    norm = math.sqrt((white * white).sum())
    # P(s_āᵀθ > 0) of a normal law: Φ(lead/(v·‖s_ā‖_{B⁻¹})). Equal features leave it at ½.
    chance = 0.5 * math.erfc(-lead / (math.sqrt(2.0) * settings.spread * norm)) if norm > 0.0 else 0.5
    chance = min(max(chance, settings.least), settings.most)
    probabilities[challenger] = chance
    probabilities[settings.reference] = 1.0 - chance
    return 1


@compiled
def observe_challenge(
    settings: CentredSettings, memory: CentredMemory, i: int, probabilities: Array, arm: int, reward: float
) -> bool:
    """Add π(1−π)ssᵀ to B and s(1{challenger} − π)r to b, whichever of the two arms was played."""
    challenger = -1
    for a in range(probabilities.size):
        if a != settings.reference and probabilities[a] > 0.0:
            challenger = a
    chance = probabilities[challenger]
    size = settings.differences.shape[1]
    push = ((1.0 if arm == challenger else 0.0) - chance) * reward
    for j in range(size):
        difference = settings.differences[challenger, j]
        memory.moment[i, j] += difference * push
        for k in range(size):
            spread = chance * (1.0 - chance) * settings.differences[challenger, k]
            memory.gram[i, j, k] += difference * spread
    memory.step[i] += 1
    return True


@dataclass(frozen=True)
class ActionCentredTS(RoundPolicy):
    """Action-centred contextual bandit (Greenewald, Tewari, Klasnja & Murphy 2017, Algorithm 1).

    With s_a = x_a − x_0: θ̃ ~ N(θ̂, v²B⁻¹) names the challenger ā = argmax_{a≠0} s_aᵀθ̃; it is played with
    probability π = clip(P(s_āᵀθ > 0), π_min, π_max) and the reference arm otherwise. After every round, also
    when the reference arm is played, B += π(1−π)ssᵀ and b += s(1{challenger} − π)r with s = s_ā, θ̂ = B⁻¹b,
    B_0 = I. Regret Õ(d²√T) against the best policy with probabilities in [π_min, π_max].

    Departs: v is an argument instead of the theorem's √(24d·log(t/δ)/ε); the features of a difference are
    x_a − x_0 on the arms' hull, which generalises the paper's "act or not" to K arms.

    Parameters
    ----------
    spread : float
        v.
    least, most : float
        π_min and π_max, strictly between 0 and 1.
    reference : int
        The arm that needs no action.

    Examples
    --------
    >>> policy = ActionCentredTS()
    >>> policy.plan(policy.start(ArmSet([[0.0], [1.0]]))).probabilities.tolist()
    [0.5, 0.5]
    """

    spread: float = 1.0
    least: float = 0.1
    most: float = 0.9
    reference: int = 0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_challenger)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_challenge)

    def __post_init__(self) -> None:
        check_positive("spread", self.spread)
        check_fraction("least", self.least)
        check_fraction("most", self.most)
        check_whole("reference", self.reference, least=0)
        if self.least > self.most:
            raise ParameterError(f"least={self.least} must not exceed most={self.most}")

    def settings(self, arms: ArmSet) -> CentredSettings:
        """Return what the compiled steps read."""
        if self.reference >= len(arms):
            raise ParameterError(f"reference={self.reference} is not an arm; arms are 0 to {len(arms) - 1}")
        differences = np.ascontiguousarray(arms.positions - arms.positions[self.reference])
        return CentredSettings(
            differences, self.reference, float(self.spread), float(self.least), float(self.most)
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> CentredMemory:
        """Return the memory before the first round."""
        size = len(numbers)
        r = arms.dimension
        return CentredMemory(
            gram=np.zeros((size, r, r)),
            moment=np.zeros((size, r)),
            step=np.zeros(size, dtype=np.int64),
            key=keys(seed, "action-centred thompson", numbers),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest estimate, the reference arm on ties; nothing is claimed."""
        theta = solve_ridge(state.memory.gram, state.memory.moment, 1.0)
        differences = self.settings(state.arms).differences
        scores = (theta[..., np.newaxis, :] @ differences.T)[..., 0, :]
        ahead = scores.max(axis=-1, keepdims=True) > 0
        at_reference = np.arange(len(state.arms)) == self.reference
        return open_decision(state, np.where(ahead, scores, at_reference), "none")
