"""Fixed-confidence policies on linear rewards that play one arm a round: their regression and stopping rule.

LinGapE, lazy track-and-stop, LinGame and Frank–Wolfe sampling differ in which arm they play next. They share
V = λI + Σ xxᵀ and θ̂ = V⁻¹Σ xr, and they stop alike: with ℓ the arm of the largest x_aᵀθ̂ and a width C_t,

    max_j  (x_j − x_ℓ)ᵀθ̂ + C_t·‖x_ℓ − x_j‖_{V⁻¹} ≤ ε,

which for ε = 0 is the generalised likelihood ratio test min_j Δ̂_j²/(2‖x_ℓ − x_j‖²_{V⁻¹}) ≥ C_t²/2.

All of them are blind to shifts. The arm is a function of the past, so that x − E x = 0: no centring is left
that could take a moving baseline off.

The memory holds V⁻¹x_a of every arm, (K, d) numbers that a round changes in O(Kd), instead of all inner
products (K, K).
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, cholesky_into, forward
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.peers.regression import REFRESH_ROUNDS, add_row
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.every_round import PlanStep, RoundPolicy, RoundState, play, settle_on

# Without much of a ridge the first rounds take V from nearly singular to regular, where updates lose digits.
EARLY_ROUNDS = 64
# A ridge that only keeps V regular before the features are spanned, in units of their mean square.
NO_RIDGE = 1e-9


class Width(NamedTuple):
    """C_t = σ√(c + a·log(first + rate·t) + b·log(1 + log t) + g·log det(I + A/prior)) + offset, A = Σ xxᵀ."""

    noise: float
    constant: float
    log_rounds: float = 0.0
    first: float = 1.0
    rate: float = 1.0
    log_log: float = 0.0
    growth: float = 0.0
    prior: float = 1.0
    offset: float = 0.0


class LinearSettings(NamedTuple):
    """What all these policies read, and what those that track proportions read besides.

    Features (K, d) on their span, for each arm the first with the same features (K,), λ, C_t, ε, and whether
    arms are dropped one by one. Then features as designs see them (K, n), arms (d,) that span them, `spread`
    (K,) that is mixed with proportions where arms are drawn from them (`draws`), c of forced exploration
    while λ_min(A) < c√t (`pace`), and the λ_min(A) before which nothing stops (`least`).
    """

    features: Array
    twins: Whole
    ridge: float
    width: Width
    epsilon: float
    eliminates: bool
    design: Array
    spanner: Whole
    spread: Array
    pace: float
    least: float
    draws: bool


class LinearMemory(NamedTuple):
    """Σ xxᵀ (R, d, d), Σ xr (R, d), rounds (R,), V⁻¹x_a (R, K, d), ‖x_a‖²_{V⁻¹} and x_aᵀθ̂ (R, K).

    `counts` (R, K) are plays, `active` (R, K) arms that are not dropped, `upcoming` (R,) the arm to play next
    and `declared` (R,) the one that was found best, or −1.

    Policies that track have proportions `weights` (R, K), their sums so far `tracked` (R, K) and, in `turn`
    (R,), whose turn it is to be explored; LinGame has AdaHedge's losses of the arms (R, K, K) and its
    mixability gap (R, K) for each answer. For others those arrays are empty. One type for all of them: what
    they share is then compiled once.
    """

    gram: Array
    moment: Array
    step: Whole
    images: Array
    leverages: Array
    scores: Array
    counts: Whole
    active: Mask
    upcoming: Whole
    declared: Whole
    weights: Array
    tracked: Array
    turn: Whole
    losses: Array
    mixability: Array


@compiled
def invert_into(matrix: Array, features: Array, images: Array, leverages: Array) -> None:
    """Write M⁻¹x_a and x_aᵀM⁻¹x_a of every arm, for a regular M."""
    count, size = features.shape
    lower = np.zeros((size, size))
    cholesky_into(matrix, size, lower, 0.0)
    for a in range(count):
        image = images[a]
        image[:] = features[a]
        forward(lower, size, image)
        backward(lower, size, image)
        leverages[a] = inner(features[a], image)


@compiled
def inner(first: Array, second: Array) -> float:
    """Return Σ_j first_j·second_j."""
    total = 0.0
    for j in range(first.size):
        total += first[j] * second[j]
    return total


@compiled
def plus_identity(matrix: Array, amount: float) -> Array:
    """Return matrix + amount·I."""
    out = matrix.copy()
    for j in range(len(out)):
        out[j, j] += amount
    return out


@compiled
def squared_gap_norm(settings: LinearSettings, memory: LinearMemory, i: int, a: int, b: int) -> float:
    """Return ‖x_a − x_b‖²_{V⁻¹}."""
    cross = inner(settings.features[a], memory.images[i, b])
    return float(max(memory.leverages[i, a] + memory.leverages[i, b] - 2.0 * cross, 0.0))


@compiled
def add_linear_round(settings: LinearSettings, memory: LinearMemory, i: int, arm: int, reward: float) -> None:
    """Add one round to the regression of replication i."""
    expected = memory.scores[i, arm]
    _absorb(settings, memory, i, settings.features[arm], memory.images[i, arm].copy(), reward, expected)
    memory.counts[i, arm] += 1


@compiled
def add_centred_round(
    settings: LinearSettings, memory: LinearMemory, i: int, probabilities: Array, arm: int, reward: float
) -> None:
    """Add one round of run `i` with the features centred at the plan's mean, x_a − Σ p_b x_b."""
    # images: V⁻¹x of every arm, and scores: xᵀθ̂; both are linear in x, so centring them is centring x.
    vector = settings.features[arm].copy()
    pull = memory.images[i, arm].copy()
    expected = memory.scores[i, arm]
    for b in range(probabilities.size):
        p = probabilities[b]
        if p > 0.0:
            expected -= p * memory.scores[i, b]
            for j in range(vector.size):
                vector[j] -= p * settings.features[b, j]
                pull[j] -= p * memory.images[i, b, j]
    _absorb(settings, memory, i, vector, pull, reward, expected)
    memory.counts[i, arm] += 1


@compiled
def _absorb(
    settings: LinearSettings,
    memory: LinearMemory,
    i: int,
    vector: Array,
    pull: Array,
    reward: float,
    expected: float,
) -> None:
    """Add vvᵀ to V and vr to its moment; `pull` is V⁻¹v and `expected` vᵀθ̂ of before."""
    features = settings.features
    count, size = features.shape
    images = memory.images[i]
    leverages = memory.leverages[i]
    scores = memory.scores[i]
    add_row(memory.gram[i], memory.moment[i], vector, reward)
    memory.step[i] += 1
    if memory.step[i] <= EARLY_ROUNDS or memory.step[i] % REFRESH_ROUNDS == 0:
        invert_into(plus_identity(memory.gram[i], settings.ridge), features, images, leverages)
        for a in range(count):
            scores[a] = inner(images[a], memory.moment[i])
        return
    # Sherman & Morrison: V⁻¹ loses V⁻¹v(V⁻¹v)ᵀ/(1 + vᵀV⁻¹v).
    grown = 1.0 + inner(vector, pull)
    for a in range(count):
        cross = inner(features[a], pull)
        share = cross / grown
        scores[a] += share * (reward - expected)
        leverages[a] -= share * cross
        for j in range(size):
            images[a, j] -= share * pull[j]


@compiled
def width_at(settings: LinearSettings, memory: LinearMemory, i: int) -> float:
    """Return C_t of replication i."""
    width = settings.width
    t = float(memory.step[i])
    inside = width.constant
    if width.log_rounds > 0.0:
        inside += width.log_rounds * np.log(width.first + width.rate * t)
    if width.log_log > 0.0:
        inside += width.log_log * np.log(1.0 + np.log(t))
    if width.growth > 0.0:
        size = settings.features.shape[1]
        lower = np.zeros((size, size))
        cholesky_into(plus_identity(memory.gram[i], width.prior), size, lower, 0.0)
        for j in range(size):
            inside += width.growth * (2.0 * np.log(lower[j, j]) - np.log(width.prior))
    return float(width.noise * np.sqrt(max(inside, 0.0)) + width.offset)


@compiled
def leader_of(scores: Array, active: Mask) -> int:
    """Return the active arm of the largest score, the first one on ties."""
    found = -1
    for a in range(scores.size):
        if active[a] and (found < 0 or scores[a] > scores[found]):
            found = a
    return found


@compiled
def unplayed(counts: Whole) -> int:
    """Return the first arm that was never played, or −1."""
    for a in range(counts.size):
        if counts[a] == 0:
            return a
    return -1


@compiled
def compare_rivals(
    settings: LinearSettings, memory: LinearMemory, i: int, width: float
) -> tuple[int, int, float]:
    """Return leader, rival and the largest (x_j − x_ℓ)ᵀθ̂ + C‖x_ℓ − x_j‖ of arms unlike the leader.

    Where arms are dropped (Tirinzoni & Degenne 2022), those that the leader beats by C‖x_ℓ − x_j‖ leave
    `active` here, and only the others are rivals. The rival is −1 when none is left.
    """
    scores = memory.scores[i]
    active = memory.active[i]
    everyone = np.ones(scores.size, dtype=np.bool_)
    # The arm that drops others is the best-looking of all, also of those that were dropped.
    leader = leader_of(scores, everyone)
    rival = -1
    index = -np.inf
    for j in range(scores.size):
        if settings.twins[j] == settings.twins[leader] or not active[j]:
            continue
        optimism = (
            scores[j] - scores[leader] + width * np.sqrt(squared_gap_norm(settings, memory, i, leader, j))
        )
        if settings.eliminates and optimism < 0.0:
            active[j] = False
        elif optimism > index:
            index = optimism
            rival = j
    return leader, rival, index


@compiled
def has_stopped(settings: LinearSettings, memory: LinearMemory, i: int, leader: int, index: float) -> bool:
    """Declare an arm if the rule above says so, or if all others are dropped; tell whether it did."""
    if settings.eliminates:
        active = memory.active[i]
        first = leader_of(memory.scores[i], active)
        others = 0
        for a in range(active.size):
            others += active[a] and settings.twins[a] != settings.twins[first]
        if first >= 0 and others == 0:
            memory.declared[i] = first
            return True
    if index <= settings.epsilon:
        memory.declared[i] = leader
        return True
    return False


@compiled
def plan_upcoming(_settings: LinearSettings, memory: LinearMemory, i: int, probabilities: Array) -> int:
    """Play the arm that was chosen after the last round; the declared one for ever."""
    if memory.declared[i] >= 0:
        return settle_on(memory.declared[i], probabilities)
    return play(memory.upcoming[i], probabilities)


def span_features(arms: ArmSet) -> Array:
    """Return the features (K, d) in an orthonormal basis of their span; d is their rank."""
    directions = affine_frame(arms.features, through_zero=True).directions
    # Features of full rank stay as they are, so that nothing is rounded.
    full = len(directions) == arms.features.shape[1]
    return np.ascontiguousarray(arms.features if full else arms.features @ directions.T)


def first_twins(arms: ArmSet) -> Whole:
    """Return for each arm (K,) the first arm with the same features: rounding would tell them apart."""
    _, first, place = np.unique(arms.features, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[place.reshape(-1)], dtype=np.int64)


@dataclass(frozen=True)
class StoppingPolicy(RoundPolicy):
    """The policy protocol around a choice of arms and the stopping rule of the module's documentation."""

    delta: float = 0.05
    noise: float = 1.0
    eliminates: bool = False

    plan_into: ClassVar[PlanStep] = staticmethod(plan_upcoming)

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)
        if not isinstance(self.eliminates, bool):
            raise ParameterError(Argument("eliminates", self.eliminates), " must be True or False")

    def settings(self, arms: ArmSet) -> LinearSettings:
        """Return what the compiled steps read."""
        return self.linear_settings(arms)

    @abstractmethod
    def width(self, arms: ArmSet) -> Width:
        """Return the coefficients of C_t."""

    def ridge_of(self, features: Array) -> float:  # noqa: ARG002
        """Return λ."""
        return 1.0

    def features_of(self, arms: ArmSet) -> Array:
        """Return the features (K, d) of the regression."""
        return span_features(arms)

    def linear_settings(self, arms: ArmSet, epsilon: float = 0.0) -> LinearSettings:
        """Return what regression and stopping rule read."""
        features = self.features_of(arms)
        return LinearSettings(
            features=features,
            twins=first_twins(arms),
            ridge=self.ridge_of(features),
            width=self.width(arms),
            epsilon=float(epsilon),
            eliminates=self.eliminates,
            design=features,
            spanner=np.zeros(0, dtype=np.int64),
            spread=np.zeros(0),
            pace=0.0,
            least=0.0,
            draws=False,
        )

    def linear_memory(self, arms: ArmSet, size: int) -> LinearMemory:
        """Return the memory of `size` replications before the first round."""
        features = self.features_of(arms)
        count, width = features.shape
        ridge = self.ridge_of(features)
        alike = bool(np.all(first_twins(arms) == 0))
        return LinearMemory(
            gram=np.zeros((size, width, width)),
            moment=np.zeros((size, width)),
            step=np.zeros(size, dtype=np.int64),
            images=np.tile(features / ridge, (size, 1, 1)),
            leverages=np.tile(np.sum(features**2, axis=1) / ridge, (size, 1)),
            scores=np.zeros((size, count)),
            counts=np.zeros((size, count), dtype=np.int64),
            active=np.ones((size, count), dtype=np.bool_),
            upcoming=np.zeros(size, dtype=np.int64),
            # Arms without any difference are equally good.
            declared=np.full(size, 0 if alike else -1, dtype=np.int64),
            weights=np.zeros((size, 0)),
            tracked=np.zeros((size, 0)),
            turn=np.zeros(size, dtype=np.int64),
            losses=np.zeros((size, 0, 0)),
            mixability=np.zeros((size, 0)),
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinearMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        return self.linear_memory(arms, len(numbers))

    def decide(self, state: RoundState) -> Decision:
        """Return the leader and the declared arm; nothing is claimed, since a shift may have made them."""
        memory = state.memory
        return stopped_decision(state, memory.active, memory.scores, memory.declared)


def stopped_decision(state: RoundState, active: Mask, scores: Array, declared: Whole) -> Decision:
    """Return a decision that drops and declares arms but claims nothing; a declared arm is alone active."""
    is_over = np.asarray(state.rounds == FOREVER)
    chosen = np.asarray(declared[..., np.newaxis] == np.arange(len(state.arms)))
    left = np.where(is_over[..., np.newaxis], chosen, active)
    # With every arm dropped but none declared, all may be best.
    left = left | ~left.any(axis=-1, keepdims=True)
    return Decision(
        active=left,
        leader=np.asarray(np.argmax(np.where(left, scores, -np.inf), axis=-1)),
        declared=np.asarray(declared),
        epsilon=np.full(declared.shape, np.inf),
        certainty=0.0,
        mode="none (assumes that the baseline stands still)",
    )
