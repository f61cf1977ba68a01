"""Thompson sampling on the centred regression of personalised policies: no level can bias it."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.forecast.baselines import ARMA, Baseline, check_baseline
from orthobandit.peers.thompson_draws import wins_into
from orthobandit.policy.contextual.base import CompiledContextual, ObserveStep, PlanStep, ScoreStep
from orthobandit.policy.contextual.regression import (
    CentredMemory,
    begin_centred,
    learn_centred,
    scale_into,
    score_centred,
)


class SampledSettings(NamedTuple):
    """What the compiled steps read: the spread in units of the residuals' scale, and how many draws.

    `weight` is how often a round counts where rounds are added as published.
    """

    spread: float
    draws: int
    weight: float


@compiled
def plan_offered(
    settings: SampledSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Play each arm as often as it is best under N(θ̂, v²V⁻¹), counted over many draws: logged exactly."""
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    probabilities[:] = 0.0
    if features.shape[0] == 1:
        probabilities[0] = 1.0
        return 0
    spread = settings.spread * np.sqrt(memory.variance[i])
    wins_into(
        scaled,
        memory.theta[i],
        memory.inverse[i],
        spread,
        settings.draws,
        memory.key[i],
        memory.rounds[i],
        probabilities,
    )
    return 0


@dataclass(frozen=True)
class CentredThompson(CompiledContextual):
    """Thompson sampling on the centred regression: our estimator with the posterior N(θ̂, v²V⁻¹).

    Each arm is played as often as it is best in `draws` samples, so that propensities are exact.

    Parameters
    ----------
    spread : float
        v in units of the residuals' scale.
    draws : int
        Samples of the posterior a round.
    ridge : float
        Per feature, in units of each feature's spread.
    baseline : Baseline
        Forecast of the level.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Offer
    >>> policy = CentredThompson()
    >>> plan = policy.plan(policy.start(1), Offer([[0.0], [1.0]]))
    >>> float(plan.probabilities.sum())
    1.0
    """

    spread: float = 0.8
    draws: int = 64
    ridge: float = 1.0
    baseline: Baseline = ARMA()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_positive("spread", self.spread)
        check_whole("draws", self.draws, least=2)
        check_positive("ridge", self.ridge)
        check_baseline(self.baseline)

    def settings(self, dimension: int) -> SampledSettings:  # noqa: ARG002
        """Return what the compiled steps read."""
        return SampledSettings(float(self.spread), int(self.draws), 1.0)

    def begin(self, dimension: int, keys: Whole) -> CentredMemory:
        """Return the memory before the first round."""
        return begin_centred(dimension, self.ridge, keys)

    plan_into: ClassVar[PlanStep] = staticmethod(plan_offered)
    observe_into: ClassVar[ObserveStep] = staticmethod(learn_centred)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)
