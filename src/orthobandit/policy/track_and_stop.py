"""Track-and-stop for linear rewards: lazy track-and-stop, Frank–Wolfe sampling and LinGame; blind to shifts.

With ℓ the best of the estimates θ̂ and Δ̂_j its lead over arm j, the best proportions of arms maximise

    f(w) = min_j f_j(w),    f_j(w) = Δ̂_j²/(2‖x_ℓ − x_j‖²_{A(w)⁻¹}),    A(w) = Σ w_a x_a x_aᵀ.

All three policies approach them and stop by the same test (:mod:`~orthobandit.policy._linear_rounds`). f_j
has the gradient ½(x_aᵀ(θ̂ − λ_j))² in w_a, λ_j the nearest parameter under which j is as good as ℓ:
θ̂ − λ_j = A⁻¹y·Δ̂_j/‖y‖²_{A⁻¹}, y = x_ℓ − x_j.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import centred_design
from orthobandit.errors import ParameterError
from orthobandit.policy._linear_rounds import (
    NO_RIDGE,
    LinearMemory,
    LinearSettings,
    StoppingPolicy,
    Width,
    add_centred_round,
    add_linear_round,
    compare_rivals,
    has_stopped,
    inner,
    invert_into,
    leader_of,
    plus_identity,
    span_features,
    unplayed,
    width_at,
)
from orthobandit.policy.bose import settle_on
from orthobandit.policy.every_round import ObserveStep, PlanStep
from orthobandit.policy.gap_exploration import heuristic_width
from orthobandit.policy.linear import play

FRANK_WOLFE_STEPS = 1000  # of lazy track-and-stop, as published
SMALLEST_STEP = 1e-3  # relative change of w at which they end
THRESHOLDS = ("paper", "gk16", "heuristic")
# Right after the spanning arms λ_min(A) equals both of its limits: rounding, hence units, must not decide.
ROUNDING = 1e-9
FIRST_MIXABILITY = 0.01  # AdaHedge's regret before the first round, as in the released code


class Proportions(NamedTuple):
    """How proportions see the arms: A(w)⁻¹x_a (K, d), ‖x_ℓ − x_j‖² (K,) and f_j (K,), inf for no rival."""

    images: Array
    norms: Array
    values: Array


@compiled
def respond(
    features: Array, twins: Whole, weights: Array, scores: Array, rivals: Mask, leader: int
) -> Proportions:
    """Return how well proportions w (K,) tell the leader from its rivals."""
    count, size = features.shape
    matrix = np.zeros((size, size))
    for a in range(count):
        if weights[a] > 0.0:
            for j in range(size):
                for k in range(size):
                    matrix[j, k] += weights[a] * features[a, j] * features[a, k]
    trace = 0.0
    for j in range(size):
        trace += matrix[j, j]
    images = np.empty((count, size))
    leverages = np.empty(count)
    # Directions that w has all but left get a huge norm instead of a failing factorisation.
    invert_into(plus_identity(matrix, NO_RIDGE * trace / size), features, images, leverages)
    norms = np.zeros(count)
    values = np.full(count, np.inf)
    for j in range(count):
        if rivals[j] and twins[j] != twins[leader]:
            cross = inner(features[leader], images[j])
            norms[j] = max(leverages[leader] + leverages[j] - 2.0 * cross, 1e-300)
            values[j] = (scores[leader] - scores[j]) ** 2 / (2.0 * norms[j])
    return Proportions(images, norms, values)


@compiled
def gradient_into(
    features: Array, seen: Proportions, scores: Array, leader: int, rival: int, out: Array
) -> None:
    """Write ½(x_aᵀ(θ̂ − λ_j))² of every arm."""
    direction = seen.images[leader] - seen.images[rival]
    scale = (scores[leader] - scores[rival]) / seen.norms[rival]
    for a in range(len(features)):
        out[a] = 0.5 * (scale * inner(features[a], direction)) ** 2


@compiled
def frank_wolfe(features: Array, twins: Whole, scores: Array, rivals: Mask, weights: Array) -> None:
    """Improve the proportions w (K,) by Frank–Wolfe steps of length 1/(k+1) on f."""
    everyone = np.ones(scores.size, dtype=np.bool_)
    leader = leader_of(scores, everyone)
    gradient = np.empty(scores.size)
    for k in range(1, FRANK_WOLFE_STEPS + 1):
        seen = respond(features, twins, weights, scores, rivals, leader)
        rival = int(np.argmin(seen.values))
        # A tie at the top asks for proportions of no arm in particular.
        if not 0.0 < seen.values[rival] < np.inf:
            return
        gradient_into(features, seen, scores, leader, rival, gradient)
        best = int(np.argmax(gradient))
        weights *= k / (k + 1.0)
        weights[best] += 1.0 / (k + 1.0)
        if 1.0 / ((k + 1.0) * np.sqrt(inner(weights, weights))) < SMALLEST_STEP:
            return


@compiled
def reaches(gram: Array, amount: float) -> bool:
    """Tell whether λ_min of a symmetric matrix is `amount` or more, and above 0."""
    size = len(gram)
    least = (1.0 - ROUNDING) * amount
    return cholesky_into(plus_identity(gram, -least), size, np.zeros((size, size)), 0.0)


@compiled
def most_behind(counts: Whole, tracked: Array) -> int:
    """Return the arm that was played least compared with its tracked proportions, of those that have any."""
    found = -1
    for a in range(counts.size):
        if tracked[a] > 0.0 and (found < 0 or counts[a] - tracked[a] < counts[found] - tracked[found]):
            found = a
    return found


@compiled
def is_power_of_two(number: int) -> bool:
    """Tell whether a positive number is a power of two."""
    return number & (number - 1) == 0


@compiled
def plan_tracking(settings: LinearSettings, memory: LinearMemory, i: int, probabilities: Array) -> int:
    """Play the arm that was chosen after the last round, or draw from the proportions."""
    if memory.declared[i] >= 0:
        return settle_on(memory.declared[i], probabilities)
    if not settings.draws:
        return play(memory.upcoming[i], probabilities)
    share = min(1.0, settings.pace / np.sqrt(memory.step[i] + 1.0))
    probabilities[:] = (1.0 - share) * memory.weights[i] + share * settings.spread
    return 1


@compiled
def observe_tracking(
    settings: LinearSettings, memory: LinearMemory, i: int, probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round, test whether to stop, renew the proportions at powers of two, choose the next arm."""
    if settings.draws:
        add_centred_round(settings, memory, i, probabilities, arm, reward)
    else:
        add_linear_round(settings, memory, i, arm, reward)
        # First the arms that span the features, each once.
        for a in settings.spanner:
            if memory.counts[i, a] == 0:
                memory.upcoming[i] = a
                return True
    t = memory.step[i]
    if reaches(memory.gram[i], settings.least):
        leader, _, index = compare_rivals(settings, memory, i, width_at(settings, memory, i))
        if has_stopped(settings, memory, i, leader, index):
            return True
    if is_power_of_two(t):
        frank_wolfe(settings.design, settings.twins, memory.scores[i], memory.active[i], memory.weights[i])
    if settings.draws:
        return True
    memory.tracked[i] += memory.weights[i]
    if reaches(memory.gram[i], settings.pace * np.sqrt(t)):
        memory.upcoming[i] = most_behind(memory.counts[i], memory.tracked[i])
    else:
        memory.upcoming[i] = settings.spanner[memory.turn[i]]
        memory.turn[i] = (memory.turn[i] + 1) % settings.spanner.size
    return True


@dataclass(frozen=True)
class LazyTrackAndStop(StoppingPolicy):
    """Lazy track-and-stop (Jedra & Proutiere 2020).

    Least squares θ̂ on all rounds. When the number of rounds is a power of two, Frank–Wolfe steps renew the
    proportions w towards max_w min_j Δ̂_j²/‖x_ℓ − x_j‖²_{A(w)⁻¹}; in between they are tracked: play the arm
    that is farthest behind the sum of all w so far. While λ_min(Σ xxᵀ) < c₀√t, arms that span the features
    take turns instead; c₀ = λ₀/√d, λ₀ the least eigenvalue of their Σ xxᵀ. Stop when
    min_j Δ̂_j²/(2‖x_ℓ − x_j‖²_{A⁻¹}) exceeds

    - "paper": (1 + u)·σ²·log(det(A/(uλ₀) + I)^{1/2}/δ), free of K, and λ_min(A) ≥ λ₀;
    - "modified", the paper's appendix: (1 + u)·σ²·(log(1/δ) + ½·log t + (d/2)·log(1 + 1/u));
    - "gk16": σ²·log((1 + log t)/δ), "heuristic": σ²·log((1 + t)/δ), for comparing sampling rules.

    With "paper" the declared arm is best with probability 1 − δ for linear rewards with σ-sub-Gaussian noise,
    and the rounds are asymptotically optimal as δ → 0. **Under a shift** nothing holds: arms are tracked, not
    drawn, and least squares takes the moving baseline for their merit.

    With ``draw=True`` every arm is drawn from w, mixed with the exact centred design at a share min(1, r/√t),
    features are centred at the mean of the distribution (orthogonalised regression) and w is the best for
    them. A shift then causes no bias, but it is noise: σ must cover it for the test to mean anything, and the
    thresholds are not proven for centred features.

    Departs: spanning arms by pivoted QR, where the released code of others draws them; arms with equal
    features are no rivals; least squares has a ridge of 10⁻⁹ mean squared norms. Proportions are those of the
    published thousand Frank–Wolfe steps: within some per cent of the optimum, not certified.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    eliminates : bool
        Drop arms one by one (:class:`~orthobandit.policy.LinGapE`).
    threshold : {"paper", "modified", "gk16", "heuristic"}
        The stopping rule.
    u : float
        u of the threshold; the paper's experiments have 0.1.
    draw : bool
        Draw from the proportions and centre, instead of tracking them.

    Examples
    --------
    >>> policy = LazyTrackAndStop()
    >>> policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 2.0]]))).probabilities.tolist()
    [0.0, 1.0]
    """

    threshold: str = "paper"
    u: float = 0.1
    draw: bool = False

    plan_into: ClassVar[PlanStep] = staticmethod(plan_tracking)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_tracking)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("threshold", self.threshold, (*THRESHOLDS, "modified"))
        check_positive("u", self.u)
        if not isinstance(self.draw, bool):
            raise ParameterError(f"draw={self.draw!r} must be True or False")

    def features_of(self, arms: ArmSet) -> Array:
        """Return the features on their span; differences alone where they are centred."""
        return np.ascontiguousarray(arms.positions) if self.draw else super().features_of(arms)

    def ridge_of(self, features: Array) -> float:
        """Return a λ that only keeps V regular before the features are spanned."""
        return NO_RIDGE * max(float(np.mean(np.sum(features**2, axis=1))), 1e-100)

    def width(self, arms: ArmSet) -> Width:
        """Return the coefficients of C_t."""
        if self.threshold in ("gk16", "heuristic"):
            return glr_width(self.threshold, self.noise, self.delta)
        features = self.features_of(arms)
        d = features.shape[1]
        constant = -2 * (1 + self.u) * math.log(self.delta)
        if self.threshold == "modified":
            constant += (1 + self.u) * d * math.log(1 + 1 / self.u)
            return Width(float(self.noise), constant, log_rounds=1 + self.u, first=0.0)
        least = spanning_arms(features)[1]
        return Width(float(self.noise), constant, growth=1 + self.u, prior=self.u * least)

    def settings(self, arms: ArmSet) -> LinearSettings:
        """Return what the compiled steps read."""
        linear = self.linear_settings(arms)
        spanner, least = spanning_arms(linear.features)
        d = linear.features.shape[1]
        if not self.draw:
            return linear._replace(spanner=spanner, pace=least / math.sqrt(max(d, 1)), least=least)
        # Seen with an intercept, a distribution tells differences apart as if they were centred.
        design = np.column_stack([np.ones(len(arms)), linear.features])
        spread = np.array(centred_design(arms).probabilities)
        return linear._replace(design=design, spanner=spanner, spread=spread, pace=float(d), draws=True)

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinearMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        size = len(numbers)
        spanner, _ = spanning_arms(self.features_of(arms))
        first = int(spanner[0]) if len(spanner) else 0
        return self.linear_memory(arms, size)._replace(
            upcoming=np.full(size, first, dtype=np.int64),
            weights=np.full((size, len(arms)), 1.0 / len(arms)),
            tracked=np.zeros((size, len(arms))),
        )


def spanning_arms(features: Array) -> tuple[Whole, float]:
    """Return arms (d,) that span the features (K, d), and the least eigenvalue of their Σ xxᵀ."""
    d = features.shape[1]
    if not d:
        return np.zeros(0, dtype=np.int64), 1.0
    chosen = scipy.linalg.qr(features.T, mode="r", pivoting=True)[1][:d]
    spanner = np.ascontiguousarray(chosen, dtype=np.int64)
    return spanner, float(np.linalg.eigvalsh(features[spanner].T @ features[spanner])[0])


def glr_width(threshold: str, noise: float, delta: float) -> Width:
    """Return C_t of the thresholds that public code compares sampling rules with; no proof covers them."""
    if threshold == "heuristic":
        return heuristic_width(noise, delta)
    return Width(float(noise), -2 * math.log(delta), log_log=2.0)


@compiled
def hedge_into(losses: Array, rate: float, weights: Array) -> None:
    """Write the exponential weights of these losses."""
    least = losses.min()
    total = 0.0
    for a in range(losses.size):
        weights[a] = np.exp(-rate * (losses[a] - least))
        total += weights[a]
    for a in range(losses.size):
        weights[a] /= total


@compiled
def observe_game(
    settings: LinearSettings, memory: LinearMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round, test whether to stop, let the learners play one round of the game, track them."""
    add_linear_round(settings, memory, i, arm, reward)
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    leader, rival, index = compare_rivals(settings, memory, i, width_at(settings, memory, i))
    if has_stopped(settings, memory, i, leader, index):
        memory.upcoming[i] = memory.declared[i]
        return True
    scores = memory.scores[i]
    count = scores.size
    losses = memory.losses[i, leader]
    weights = np.empty(count)
    rate = np.log(count) / memory.mixability[i, leader]
    hedge_into(losses, rate, weights)
    seen = respond(settings.features, settings.twins, weights, scores, memory.active[i], leader)
    rival = int(np.argmin(seen.values))
    gains = np.empty(count)
    gradient_into(settings.features, seen, scores, leader, rival, gains)
    spread = np.log(float(memory.step[i]))
    for a in range(count):
        # Optimism: the largest gain within the arm's own confidence interval, at most its half-width.
        root = np.sqrt(2.0 * gains[a]) + np.sqrt(2.0 * spread * memory.leverages[i, a])
        gains[a] = min(0.5 * root**2, spread)
    _incur(losses, memory.mixability[i], leader, rate, weights, gains)
    memory.tracked[i] += weights
    memory.upcoming[i] = most_behind(memory.counts[i], memory.tracked[i])
    return True


@compiled
def _incur(losses: Array, mixability: Array, answer: int, rate: float, weights: Array, gains: Array) -> None:
    """Add the losses −gains to a learner: AdaHedge (De Rooij, Van Erven, Grünwald & Koolen 2014)."""
    most = gains.max()
    expected = 0.0
    mixed = 0.0
    for a in range(losses.size):
        losses[a] -= gains[a]
        expected -= weights[a] * gains[a]
        mixed += weights[a] * np.exp(rate * (gains[a] - most))
    # The gap between the expected loss and the mix loss −(1/η)·log Σ w·exp(−η·loss), which is never larger.
    mixability[answer] += max(expected + most + np.log(mixed) / rate, 0.0)


@dataclass(frozen=True)
class GlrPolicy(StoppingPolicy):
    """What LinGame and Frank–Wolfe sampling share: thresholds, and a ridge of 1."""

    threshold: str = "paper"
    norm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_positive("norm", self.norm)

    def width(self, arms: ArmSet) -> Width:
        """Return the coefficients of C_t."""
        if self.threshold != "paper":
            return glr_width(self.threshold, self.noise, self.delta)
        features = span_features(arms)
        d = max(features.shape[1], 1)
        rate = float(np.max(np.sum(features**2, axis=1), initial=0.0)) / d
        constant = -2 * math.log(self.delta)
        return Width(float(self.noise), constant, log_rounds=float(d), rate=rate, offset=float(self.norm))


@dataclass(frozen=True)
class LinGame(GlrPolicy):
    """LinGame (Degenne, Ménard, Shang & Valko 2020): the proportions as the saddle point of a game.

    Every arm once. Then one learner for each possible answer ℓ, AdaHedge, proposes proportions w; nature
    answers with the nearest parameter λ under which ℓ is not best; the learner gains
    ½(u_a + √(2·log t·‖x_a‖²_{V⁻¹}))² of each arm, at most log t, u_a the magnitude of x_aᵀ(θ̂ − λ); the sum of
    all w is tracked.
    V = I + Σ xxᵀ. Stop when min_j Δ̂_j²/(2‖x_ℓ − x_j‖²_{V⁻¹}) exceeds

    - "paper": (√(σ²(log(1/δ) + (d/2)·log(1 + tL²/d))) + S/√2)², L the largest norm of a feature vector;
    - "gk16": σ²·log((1 + log t)/δ), "heuristic": σ²·log((1 + t)/δ), for comparing sampling rules.

    With "paper" the declared arm is best with probability 1 − δ for linear rewards with σ-sub-Gaussian noise
    and ‖θ‖ ≤ S; asymptotically optimal as δ → 0. **Under a shift** nothing holds: arms are tracked, not
    drawn, and least squares takes the moving baseline for their merit. Departs: arms with equal features are
    no rivals; `eliminates` as in :class:`~orthobandit.policy.LinGapE`.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    eliminates : bool
        Drop arms one by one; nature then answers with rivals that are left.
    threshold : {"paper", "gk16", "heuristic"}
        The stopping rule.
    norm : float
        S.

    Examples
    --------
    >>> policy = LinGame()
    >>> policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]]))).probabilities.tolist()
    [1.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_game)
    pair_bytes: ClassVar[float] = 8.0  # of the losses

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinearMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        shape = (len(numbers), len(arms))
        return self.linear_memory(arms, len(numbers))._replace(
            losses=np.zeros((*shape, len(arms))),
            mixability=np.full(shape, FIRST_MIXABILITY),
            # Every arm is played once before its proportions count.
            tracked=np.ones(shape),
        )


@compiled
def solve_game(payoffs: Array) -> Array:
    """Return the column player's best mixture z (K,) in max_z min_j Σ_k payoffs[j, k]·z_k.

    Dantzig's reduction: shifted so that all payoffs P are positive, the row player maximises Σ q with
    Σ_j P[j, k]·q_j ≤ 1 for every k, and z is the dual solution over its sum. The simplex method with Bland's
    rule, which never cycles, starts at the feasible q = 0.
    """
    rows, columns = payoffs.shape
    low = payoffs.min()
    unit = max(payoffs.max() - low, 1e-300)
    # Columns of the table: q, slacks, right side; its last row is the objective.
    table = np.zeros((columns + 1, rows + columns + 1))
    for k in range(columns):
        for j in range(rows):
            table[k, j] = 1.0 + (payoffs[j, k] - low) / unit
        table[k, rows + k] = 1.0
        table[k, -1] = 1.0
    table[-1, :rows] = -1.0
    basis = rows + np.arange(columns)
    for _ in range(50 * (rows + columns)):
        entering = -1
        for j in range(rows + columns):
            if table[-1, j] < -1e-12:
                entering = j
                break
        if entering < 0:
            break
        leaving = -1
        for k in range(columns):
            if table[k, entering] > 1e-12:
                if leaving < 0:
                    leaving = k
                    continue
                mine = table[k, -1] / table[k, entering]
                best = table[leaving, -1] / table[leaving, entering]
                if mine < best or (mine == best and basis[k] < basis[leaving]):
                    leaving = k
        basis[leaving] = entering
        table[leaving] /= table[leaving, entering]
        for k in range(columns + 1):
            if k != leaving:
                table[k] -= table[k, entering] * table[leaving]
    mixture: Array = np.maximum(table[-1, rows : rows + columns], 0.0)
    mixture /= mixture.sum()
    return mixture


@compiled
def is_square(number: int) -> bool:
    """Tell whether a number is the square of a whole one."""
    root = int(np.floor(np.sqrt(float(number)) + 0.5))
    return root * root == number


@compiled
def observe_sampling(
    settings: LinearSettings, memory: LinearMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round, test whether to stop, take one Frank–Wolfe step, play the arm farthest behind."""
    add_linear_round(settings, memory, i, arm, reward)
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    leader, _, index = compare_rivals(settings, memory, i, width_at(settings, memory, i))
    if has_stopped(settings, memory, i, leader, index):
        memory.upcoming[i] = memory.declared[i]
        return True
    scores = memory.scores[i]
    count = scores.size
    t = float(memory.step[i])
    weights = memory.weights[i]
    target = np.full(count, 1.0 / count)
    seen = respond(settings.features, settings.twins, weights, scores, memory.active[i], leader)
    least = seen.values.min()
    if 0.0 < least < np.inf and not is_square(memory.step[i] // count):
        # All rivals within r of the least f are taken into account: f alone is not smooth.
        near = np.flatnonzero(seen.values < least + t ** (-0.9) / count)
        gradients = np.empty((near.size, count))
        for j in range(near.size):
            gradient_into(settings.features, seen, scores, leader, near[j], gradients[j])
        if near.size == 1:
            target[:] = 0.0
            target[np.argmax(gradients[0])] = 1.0
        else:
            for j in range(near.size):
                gradients[j] -= inner(gradients[j], weights)
            target[:] = solve_game(gradients)
    weights *= (t - 1.0) / t
    weights += target / t
    found = 0
    for a in range(count):
        if weights[a] * memory.counts[i, found] > weights[found] * memory.counts[i, a]:
            found = a
    memory.upcoming[i] = found
    return True


@dataclass(frozen=True)
class FrankWolfeSampling(GlrPolicy):
    """FWS (Wang, Tzeng & Proutiere 2021): one Frank–Wolfe step of the proportions for every round.

    Every arm once. Then the proportions w take a step of length 1/t towards the mixture z that maximises the
    least directional derivative ∇f_j(w)·(z − w) over the rivals j with f_j(w) < min f + r_t, r_t = t^{−0.9}/K
    (a matrix game, solved exactly); in rounds t with ⌊t/K⌋ a square z is uniform. The arm with the largest
    w_a/N_a is played. Stops by the same tests as :class:`~orthobandit.policy.LinGame`.

    Asymptotically optimal as δ → 0 for linear rewards. **Under a shift** nothing holds: arms are tracked, not
    drawn, and least squares takes the moving baseline for their merit. Departs: θ̂ has a ridge of 1, as in
    the released code; arms with equal features are no rivals.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    eliminates : bool
        Drop arms one by one (:class:`~orthobandit.policy.LinGapE`).
    threshold : {"paper", "gk16", "heuristic"}
        The stopping rule; the authors' experiments have "gk16".
    norm : float
        S.

    Examples
    --------
    >>> policy = FrankWolfeSampling(threshold="gk16")
    >>> policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]]))).probabilities.tolist()
    [1.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_sampling)

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinearMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        shape = (len(numbers), len(arms))
        return self.linear_memory(arms, len(numbers))._replace(weights=np.full(shape, 1.0 / len(arms)))
