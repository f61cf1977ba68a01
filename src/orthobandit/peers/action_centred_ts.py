"""Action-centred Thompson sampling, against a reference arm: a shift cannot bias it."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, forward, solve_ridge
from orthobandit._foundation.random import fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.peers.regression import posterior_into
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.contextual.regression import scores_into
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState, keys, open_decision


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
