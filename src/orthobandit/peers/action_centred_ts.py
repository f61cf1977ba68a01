"""Action-centred Thompson sampling, against a reference arm: a shift cannot bias it."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.compile import compiled, compiled_in_place
from orthobandit._foundation.linalg import backward, cholesky_into, forward, solve_ridge
from orthobandit._foundation.random import fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate.forecast.baselines import Baseline, RunningMean, check_baseline
from orthobandit.peers.regression import Sums, begin_sums, posterior_into
from orthobandit.peers.residual_scale import follow_scale
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.contextual.base import CompiledContextual, ScoreStep
from orthobandit.policy.contextual.base import ObserveStep as OfferObserveStep
from orthobandit.policy.contextual.base import PlanStep as OfferPlanStep
from orthobandit.policy.contextual.regression import (
    REFRESH,
    CentredMemory,
    add_outer,
    begin_centred,
    dot,
    invert,
    scale_into,
    score_centred,
    scores_into,
    times,
    update_inverse,
)
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState, keys, open_decision


class CentredSettings(NamedTuple):
    """Differences to the reference arm (K, r), that arm, v, and the limits of π."""

    differences: Array
    reference: int
    spread: float
    least: float
    most: float


@compiled_in_place
def chance_of(lead: float, width: float, least: float, most: float) -> float:
    """Return P(sᵀθ > 0) of a normal law, clipped, from sᵀθ̂ and v‖s‖_{B⁻¹}; equal features leave it at ½."""
    chance = 0.5 * math.erfc(-lead / (math.sqrt(2.0) * width)) if width > 0.0 else 0.5
    return float(min(max(chance, least), most))


@compiled_in_place
def challenger_of(probabilities: Array, reference: int) -> int:
    """Return the arm beside the reference that the plan may play."""
    challenger = reference
    for a in range(probabilities.size):
        if a != reference and probabilities[a] > 0.0:
            challenger = a
    return challenger


@compiled
def plan_challenger(settings: CentredSettings, memory: Sums, i: int, probabilities: Array) -> int:
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
    chance = chance_of(lead, settings.spread * norm, settings.least, settings.most)
    probabilities[challenger] = chance
    probabilities[settings.reference] = 1.0 - chance
    return 1


@compiled
def observe_challenge(
    settings: CentredSettings, memory: Sums, i: int, probabilities: Array, arm: int, reward: float
) -> bool:
    """Add π(1−π)ssᵀ to B and s(1{challenger} − π)r to b, whichever of the two arms was played."""
    challenger = challenger_of(probabilities, settings.reference)
    chance = probabilities[challenger]
    difference = settings.differences[challenger]
    push = ((1.0 if arm == challenger else 0.0) - chance) * reward
    for j in range(difference.size):
        memory.moment[i, j] += difference[j] * push
    add_outer(memory.gram[i], difference, chance * (1.0 - chance))
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
            raise ParameterError(Argument("least", self.least), f" must not exceed most={self.most}")

    def settings(self, arms: ArmSet) -> CentredSettings:
        """Return what the compiled steps read."""
        if self.reference >= len(arms):
            raise ParameterError(
                Argument("reference", self.reference), f" is not an arm; arms are 0 to {len(arms) - 1}"
            )
        differences = np.ascontiguousarray(arms.positions - arms.positions[self.reference])
        return CentredSettings(
            differences, self.reference, float(self.spread), float(self.least), float(self.most)
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> Sums:
        """Return the memory before the first round."""
        return begin_sums(keys(seed, "action-centred thompson", numbers), arms.dimension)

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest estimate, the reference arm on ties; nothing is claimed."""
        theta = solve_ridge(state.memory.gram, state.memory.moment, 1.0)
        differences = self.settings(state.arms).differences
        scores = (theta[..., np.newaxis, :] @ differences.T)[..., 0, :]
        ahead = scores.max(axis=-1, keepdims=True) > 0
        at_reference = np.arange(len(state.arms)) == self.reference
        return open_decision(state, np.where(ahead, scores, at_reference), "none")


class OfferedSettings(NamedTuple):
    """What the compiled steps read: the spread in units of the residuals' scale, and the limits of π."""

    spread: float
    least: float
    most: float


@compiled
def plan_offered(
    settings: OfferedSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Let the best other arm of one draw challenge the first arm with its clipped probability."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    probabilities[:] = 0.0
    if count == 1:
        probabilities[0] = 1.0
        return 0
    inverse = memory.inverse[i]
    lower = np.zeros((size, size))
    normals = np.empty(size)
    drawn = memory.theta[i].copy()
    fill_normals(starting_point(memory.key[i], memory.rounds[i]), normals)
    cholesky_into(inverse, size, lower, 1e-300)
    spread = settings.spread * np.sqrt(memory.variance[i])
    for j in range(size):
        for k in range(j + 1):
            drawn[j] += spread * lower[j, k] * normals[k]
    challenger = 1
    most = -np.inf
    for a in range(1, count):
        score = dot(scaled[a], drawn)
        if score > most:
            most = score
            challenger = a
    difference = scaled[challenger] - scaled[0]
    pulled = np.empty(size)
    times(inverse, difference, pulled)
    lead = dot(difference, memory.theta[i])
    width = spread * np.sqrt(max(dot(difference, pulled), 0.0))
    chance = chance_of(lead, width, settings.least, settings.most)
    probabilities[challenger] = chance
    probabilities[0] = 1.0 - chance
    return 0


@compiled
def observe_offered(
    _settings: Any,
    memory: CentredMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add π(1 − π)ssᵀ to B and s(1{challenger} − π)r to b, whichever of the two arms was played."""
    size = features.shape[1]
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    theta = memory.theta[i]
    follow_scale(memory, i, reward - forecast - dot(scaled[arm], theta))
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    challenger = challenger_of(probabilities, 0)
    chance = probabilities[challenger]
    difference = scaled[challenger] - scaled[0]
    push = ((1.0 if arm == challenger else 0.0) - chance) * (reward - forecast)
    moment = np.empty(size)
    pull = np.empty(size)
    # b = Bθ̂ before the round; B changes below.
    times(memory.gram[i], theta, moment)
    for k in range(size):
        moment[k] += difference[k] * push
    weight = chance * (1.0 - chance)
    add_outer(memory.gram[i], difference, weight)
    update_inverse(memory.inverse[i], difference, weight, pull)
    if memory.taught[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])
    times(memory.inverse[i], moment, theta)


@dataclass(frozen=True)
class ContextualActionCentredTS(CompiledContextual):
    """Action-centred Thompson sampling (Greenewald, Tewari, Klasnja & Murphy 2017), contextual as published.

    The first arm of every offer is the reference ("do nothing"). With s_a = x_a − x_0, θ̃ ~ N(θ̂, v²B⁻¹) names
    the challenger ā = argmax_{a≠0} s_aᵀθ̃; it is played with probability π = clip(P(s_āᵀθ > 0), π_min, π_max)
    and the reference otherwise. After every round, also when the reference is played, B += π(1 − π)ssᵀ and
    b += s(1{challenger} − π)r with s = s_ā. Its regret is against the best policy with probabilities in
    [π_min, π_max]; against the best arm it grows with every round.
    Departs: v is in units of the residuals' scale, and a running mean is taken off rewards.

    Parameters
    ----------
    spread : float
        v in units of the residuals' scale.
    least, most : float
        π_min and π_max, strictly between 0 and 1.
    ridge : float
        Per feature, in units of each feature's spread.
    baseline : Baseline
        Forecast of the level.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Offer
    >>> policy = ContextualActionCentredTS()
    >>> policy.plan(policy.start(1), Offer([[0.0], [1.0]])).probabilities.tolist()
    [0.5, 0.5]
    """

    spread: float = 1.0
    least: float = 0.1
    most: float = 0.9
    ridge: float = 1.0
    baseline: Baseline = RunningMean()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_positive("spread", self.spread)
        check_fraction("least", self.least)
        check_fraction("most", self.most)
        check_positive("ridge", self.ridge)
        check_baseline(self.baseline)
        if self.least > self.most:
            raise ParameterError(Argument("least", self.least), f" must not exceed most={self.most}")

    def settings(self, dimension: int) -> OfferedSettings:  # noqa: ARG002
        """Return what the compiled steps read."""
        return OfferedSettings(float(self.spread), float(self.least), float(self.most))

    def begin(self, dimension: int, keys: Whole) -> CentredMemory:
        """Return the memory before the first round."""
        return begin_centred(dimension, self.ridge, keys)

    plan_into: ClassVar[OfferPlanStep] = staticmethod(plan_offered)
    observe_into: ClassVar[OfferObserveStep] = staticmethod(observe_offered)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)
