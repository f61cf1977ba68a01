"""BOSE for rounds with their own features: filter the arms of each offer, and explore what is left."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.design.ball import ball_into
from orthobandit.estimate.forecast.baselines import Baseline, RunningMean, check_baseline
from orthobandit.policy.contextual.base import CompiledContextual, ObserveStep, PlanStep, ScoreStep
from orthobandit.policy.contextual.regression import (
    SETTLED,
    CentredMemory,
    begin_centred,
    grow_ridge,
    learn_centred,
    pair_widths_into,
    scale_into,
    score_centred,
    scores_into,
)

BALL, UNIFORM = range(2)


class FilterSettings(NamedTuple):
    """What the compiled steps read: the radius in units of the residuals' scale, and how to explore."""

    radius: float
    explore: int


@compiled
def plan_filtered(
    settings: FilterSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Keep arms that no other beats by more than the radius; play the survivors."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    if memory.rounds[i] < SETTLED:
        grow_ridge(memory, i, scaled)
    probabilities[:] = 0.0
    scores = np.empty(count)
    squared = np.empty((count, count))
    scores_into(scaled, memory.theta[i], scores)
    pair_widths_into(scaled, memory.inverse[i], squared)
    radius = settings.radius * np.sqrt(memory.variance[i])
    survives = np.ones(count, dtype=np.bool_)
    for a in range(count):
        for b in range(count):
            if scores[b] - scores[a] > radius * np.sqrt(squared[a, b]) and b != a:
                survives[a] = False
    among = np.flatnonzero(survives)
    if among.size == 1:
        probabilities[among[0]] = 1.0
        return 0
    if settings.explore == UNIFORM:
        for survivor in among:
            probabilities[survivor] = 1.0 / among.size
        return 0
    # Inner products from the first arm: ⟨y_a − y_0, y_b − y_0⟩ = (w_a0 + w_b0 − w_ab)/2.
    inner = np.empty((count, count))
    for a in range(count):
        for b in range(count):
            inner[a, b] = (squared[a, 0] + squared[b, 0] - squared[a, b]) / 2.0
    return 0 if ball_into(inner, among, probabilities) <= 1e-6 else -1


@dataclass(frozen=True)
class ContextualBOSE(CompiledContextual):
    """BOSE (Krishnamurthy, Wu & Syrgkanis 2018), contextual as published.

    Drop arm a of the offer if another has (x_b − x_a)ᵀθ̂ > γ‖x_a − x_b‖_{V⁻¹}; play one survivor alone, and
    else a distribution with ‖x_a − μ‖²_{V⁻¹} ≤ tr(V⁻¹Σ) for all survivors: the dual of the smallest enclosing
    ball, solved exactly. Departs: γ is in units of the residuals' scale instead of a bound on them, the ridge
    is 1 per feature instead of 4d·log(9T) + 8·log(4T/δ), and a running mean is taken off rewards; with the
    published constants regret is several times as large. The authors' public code plays the survivors
    uniformly (``explore="uniform"``).

    Parameters
    ----------
    radius : float
        γ in units of the residuals' scale.
    explore : {"ball", "uniform"}
    ridge : float
        Per feature, in units of each feature's spread.
    baseline : Baseline
        Forecast of the level.
    """

    radius: float = 1.0
    explore: str = "ball"
    ridge: float = 1.0
    baseline: Baseline = RunningMean()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("ridge", self.ridge)
        check_choice("explore", self.explore, ("ball", "uniform"))
        check_baseline(self.baseline)

    def settings(self, dimension: int) -> FilterSettings:  # noqa: ARG002, D102
        return FilterSettings(float(self.radius), UNIFORM if self.explore == "uniform" else BALL)

    def begin(self, dimension: int, keys: Whole) -> CentredMemory:  # noqa: D102
        return begin_centred(dimension, self.ridge, keys)

    plan_into: ClassVar[PlanStep] = staticmethod(plan_filtered)
    observe_into: ClassVar[ObserveStep] = staticmethod(learn_centred)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)
