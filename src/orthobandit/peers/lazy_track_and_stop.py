"""Lazy track-and-stop: linear rewards, the best proportions found anew now and then; blind to shifts."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import centred_design
from orthobandit.errors import Argument, ParameterError
from orthobandit.peers._linear_rounds import (
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
    leader_of,
    plus_identity,
    width_at,
)
from orthobandit.peers.tracking import THRESHOLDS, glr_width, gradient_into, most_behind, respond
from orthobandit.policy.every_round import ObserveStep, PlanStep, play, settle_on

FRANK_WOLFE_STEPS = 1000  # of lazy track-and-stop, as published
SMALLEST_STEP = 1e-3  # relative change of w at which they end
# Right after the spanning arms λ_min(A) equals both of its limits: rounding, hence units, must not decide.
ROUNDING = 1e-9


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
        Drop arms one by one (:class:`~orthobandit.peers.LinGapE`).
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
            raise ParameterError(Argument("draw", self.draw), " must be True or False")

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
