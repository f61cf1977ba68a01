"""Thompson sampling with a debiased outcome and a learnt level, for offers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.estimate.forecast.baselines import ARMA, Baseline
from orthobandit.peers.action_centred_ts import ContextualActionCentredTS, challenger_of
from orthobandit.peers.residual_scale import follow_scale
from orthobandit.policy.contextual.base import ObserveStep
from orthobandit.policy.contextual.regression import (
    REFRESH,
    CentredMemory,
    add_outer,
    dot,
    invert,
    scale_into,
    update_inverse,
)


@compiled
def observe_debiased(
    _settings: Any,
    memory: CentredMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add the debiased outcome of one round with the weight π(1 − π).

    With the model m + x_aᵀθ̂ of both arms' rewards, b gains π(1 − π)s·(sᵀθ̂ + (1{challenger} − π)e/(π(1 − π))),
    e = r − m − x_aᵀθ̂; as B gains π(1 − π)ssᵀ, θ̂ = B⁻¹b moves by B⁻¹s(1{challenger} − π)e.
    """
    size = features.shape[1]
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    theta = memory.theta[i]
    error = reward - forecast - dot(scaled[arm], theta)
    follow_scale(memory, i, error)
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    challenger = challenger_of(probabilities, 0)
    chance = probabilities[challenger]
    difference = scaled[challenger] - scaled[0]
    pull = np.empty(size)
    weight = chance * (1.0 - chance)
    grown = update_inverse(memory.inverse[i], difference, weight, pull)
    add_outer(memory.gram[i], difference, weight)
    # `pull` is B⁻¹s before the round; after it, B⁻¹s is smaller by the factor by which det B grew.
    push = ((1.0 if arm == challenger else 0.0) - chance) * error / grown
    for k in range(size):
        theta[k] += pull[k] * push
    if memory.taught[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])


@dataclass(frozen=True)
class DebiasedThompson(ContextualActionCentredTS):
    """Thompson sampling with a debiased outcome and a learnt baseline, after RoME (Huch et al. 2024).

    Arms are chosen as in action-centred Thompson sampling: the best other arm of one draw challenges the
    first arm, the reference. A model that learns from round to round forecasts the level from what is known
    of the visitor, and with θ̂ gives both arms' expected rewards f_0 and f_1. The outcome
    f_1 − f_0 + (1{challenger} − π)(r − f_a)/(π(1 − π)), whose mean is the true difference however wrong the
    model is, enters the regression with the weight π(1 − π).

    Departs: RoME also has random effects of users and of time, which a network may tie together; here effects
    are those of the features (:class:`SemiGraphTS` has users). Its models are refitted out of fold; here each
    round is forecast before it is learnt from, to the same end. v is in units of the residuals' scale.

    ``baseline=OnlineRegression(make)`` takes any model with ``predict_one`` and ``learn_one``, such as
    river's; the model then sees the visitor's context.

    Parameters
    ----------
    spread, least, most, ridge
        As in :class:`ContextualActionCentredTS`.
    baseline : Baseline
        The model of the level; autoregressive by default.

    Examples
    --------
    >>> from orthobandit.estimate import OnlineRegression
    >>> class Mean:
    ...     total, count = 0.0, 0
    ...     def predict_one(self, x): return self.total / max(self.count, 1)
    ...     def learn_one(self, x, y): self.total += y; self.count += 1
    >>> policy = DebiasedThompson(baseline=OnlineRegression(Mean))
    >>> policy.start(2).dimension
    2
    """

    baseline: Baseline = ARMA()  # noqa: RUF009

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_debiased)
