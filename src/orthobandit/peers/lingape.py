"""LinGapE: play the arm that tells most about the leader and its strongest rival; blind to shifts."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.peers._linear_rounds import (
    LinearMemory,
    LinearSettings,
    StoppingPolicy,
    Width,
    add_linear_round,
    compare_rivals,
    has_stopped,
    inner,
    span_features,
    unplayed,
    width_at,
)
from orthobandit.policy.every_round import ObserveStep

CONSTANTS = ("released", "paper", "heuristic")


@compiled
def most_telling(settings: LinearSettings, memory: LinearMemory, i: int, leader: int, rival: int) -> int:
    """Return the arm x of the least ‖y‖²_{(V + xxᵀ)⁻¹}, y = x_leader − x_rival; the first one on ties."""
    features = settings.features
    direction = memory.images[i, leader] - memory.images[i, rival]
    found = 0
    most = -1.0
    for a in range(len(features)):
        # A round of x takes (yᵀV⁻¹x)²/(1 + xᵀV⁻¹x) off ‖y‖²_{V⁻¹}.
        gain = inner(features[a], direction) ** 2 / (1.0 + memory.leverages[i, a])
        if gain > most:
            most = gain
            found = a
    return found


@compiled
def observe_gap(
    settings: LinearSettings, memory: LinearMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round, test whether to stop, and choose the next arm: at first every arm once."""
    add_linear_round(settings, memory, i, arm, reward)
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    leader, rival, index = compare_rivals(settings, memory, i, width_at(settings, memory, i))
    if has_stopped(settings, memory, i, leader, index):
        memory.upcoming[i] = memory.declared[i]
    else:
        memory.upcoming[i] = most_telling(settings, memory, i, leader, rival)
    return True


@dataclass(frozen=True)
class LinGapE(StoppingPolicy):
    """LinGapE (Xu, Honda & Sugiyama 2018, Algorithm 1) with the greedy choice of arms.

    Every arm once. Then, with V = λI + Σ xxᵀ and θ̂ = V⁻¹Σ xr: the leader i has the largest x_iᵀθ̂, the
    rival j the largest (x_j − x_i)ᵀθ̂ + C_t·‖x_i − x_j‖_{V⁻¹}; stop and declare i when that is at most ε,
    otherwise play argmin_a ‖x_i − x_j‖²_{(V + x_ax_aᵀ)⁻¹}. With d the rank of the features and L their
    largest norm, C_t is

    - "released", the authors' public code: σ√(d·log(K²(1 + tL²/λ)/δ)) + √λ·S;
    - "paper": σ√(2·log(K²/δ) + log det(V/λ)) + √λ·S, never larger for norms ≤ 1;
    - "heuristic", for comparing sampling rules: σ√(2·log((1 + t)/δ)), without a proof.

    The declared arm is within ε of the best with probability 1 − δ if rewards are linear with σ-sub-Gaussian
    noise and ‖θ‖ ≤ S, for the first two. **Under a shift** nothing holds: the arm is a function of the past,
    so least squares takes the moving baseline for the arms' merit.

    Departs: the sampling rule of the paper's proof tracks the ratios of an ℓ₁ problem for every pair (i, j);
    the greedy rule here is the one of its experiments. Arms with equal features are no rivals. `eliminates`
    adds the dropping of arms of Tirinzoni & Degenne (2022): an arm that some leader has beaten by
    C_t·‖x_i − x_j‖ is no rival any more, and a sole remaining arm is declared.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    eliminates : bool
        Drop arms one by one.
    epsilon : float
        ε.
    constants : {"released", "paper", "heuristic"}
        C_t.
    ridge : float
        λ.
    norm : float
        S; the authors have 2.

    Examples
    --------
    >>> policy = LinGapE()
    >>> policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]]))).probabilities.tolist()
    [1.0, 0.0]
    """

    epsilon: float = 0.0
    constants: str = "released"
    ridge: float = 1.0
    norm: float = 2.0

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_gap)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("constants", self.constants, CONSTANTS)
        check_positive("ridge", self.ridge)
        check_positive("norm", self.norm)
        if not 0 <= self.epsilon < math.inf:
            raise ParameterError(Argument("epsilon", self.epsilon), " must be finite and not negative")

    def ridge_of(self, features: Array) -> float:  # noqa: ARG002
        """Return λ."""
        return float(self.ridge)

    def width(self, arms: ArmSet) -> Width:
        """Return the coefficients of C_t."""
        features = span_features(arms)
        d = features.shape[1]
        logs = math.log(len(arms) ** 2 / self.delta)
        offset = math.sqrt(self.ridge) * self.norm
        if self.constants == "heuristic":
            return heuristic_width(self.noise, self.delta)
        if self.constants == "paper":
            return Width(self.noise, 2 * logs, growth=1.0, prior=float(self.ridge), offset=offset)
        rate = float(np.max(np.sum(features**2, axis=1), initial=0.0)) / self.ridge
        return Width(self.noise, d * logs, log_rounds=float(d), rate=rate, offset=offset)

    def settings(self, arms: ArmSet) -> LinearSettings:
        """Return what the compiled steps read."""
        return self.linear_settings(arms, self.epsilon)


def heuristic_width(noise: float, delta: float) -> Width:
    """Return σ√(2·log((1 + t)/δ)), with which public code compares sampling rules; no proof covers it."""
    return Width(float(noise), -2 * math.log(delta), log_rounds=2.0)
