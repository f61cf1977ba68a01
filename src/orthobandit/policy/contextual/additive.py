"""An exact radius that follows the residuals, for noise that does not depend on the arm.

If a round's level and noise ν_t + η_t are the same whichever arm is drawn, both are fixed before the draw,
and the draw is the only chance that is left. With a centre f_t and a weight g_t that are fixed before it,

    ε_t = r_t − f_t − x̃ᵀθ,    S = Σ g x̃ε = b − Gθ,    W = Λ + Σ g²ε²(x̃x̃ᵀ + 2Σ_t)/3

keep ‖S‖²_{W⁻¹} ≤ 2·log(1/δ) + log det(W/Λ) at all times with probability 1 − δ, by Delyon's inequality given
ε: no range, no variance proxy and no tail is assumed. ε depends on θ. That of a new round is bounded by what
is known of θ at its time; when more is known all rounds are bounded again, together (docs/contextual.md has
the proof). This takes sums with d⁴/4 numbers: with more than 24 features each round keeps the bound of its
time, and rounds whose bound is loose count for less.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual._exact_sums import add_exact_round, begin_sums
from orthobandit.policy.contextual._guaranteed_plan import guaranteed_into
from orthobandit.policy.contextual._residual_bounds import (
    JUMP,
    LOOK_AFTER,
    LOOK_AFTER_PER_FEATURE,
    PRIORS,
    add_residual,
    begin_residuals,
    look_back,
    restate,
)
from orthobandit.policy.contextual.regression import dot, mean_into, scores_into, times

CAUTIOUS = 10  # first rounds, which only tell the scale of residuals: twice the largest one
MEMORY = 500.0  # rounds that the scale of residuals looks back on
# How much of what θ̂ may be off counts against a round whose bound will be looked at again. With nothing of it
# weights would grow without end as residuals become small, while θ is not yet known well enough to claim it.
DOUBT = 0.3
# The ridge of θ̂, and the least λ over d², both for a θ of length 1. Any values are valid: the ridge is no
# part of the ellipsoid, and regret hardly depends on λ.
RIDGE = 10.0
PRIOR = 0.2


@dataclass(frozen=True)
class AdditiveNoise:
    """Declares that the noise of a round does not depend on the arm: an arm adds x_aᵀθ to whatever comes.

    It may have any distribution and any tails, and may depend on the visitor, on the past and on the level.
    It does not hold for rewards that are 0 or 1, whose scatter changes with their mean: declare
    :class:`~orthobandit.estimate.Bounded` for those.

    The radius is narrowest with up to 24 features. With more of them the memory for bounding past residuals
    anew would be too much, and regret is higher.
    """


class AdditiveSettings(NamedTuple):
    """What the compiled steps read: the most that ‖θ‖ can be, ρ and the least λ, and log(1/δ)."""

    size: float
    ridge: float
    prior: float
    log_inverse: float


class AdditiveMemory(NamedTuple):
    """What R replications remember.

    A = ρI + G and W (R, d, d), their inverses, M = A⁻¹WA⁻¹, θ̂ (R, d), log det(W/λ) with the price of several
    λ (R,) and the mean square of recent residuals (R,). θ lies within `norm` N (R, d, d) of `centre` (R, d),
    as found at the last look; `prior` is the λ of W, and `drift` what log det A has grown by since that look
    (R,). Then the sums that residuals are bounded by, `about` a value of θ: (R, d), (R, P), (R, d, P) and
    (R, P, P) with P = d(d + 1)/2, or without entries if there are many features.
    """

    gram: Array
    inverse: Array
    scatter: Array
    scatter_inverse: Array
    spread: Array
    theta: Array
    growth: Array
    squares: Array
    centre: Array
    norm: Array
    prior: Array
    drift: Array
    about: Array
    second: Array
    third: Array
    fourth: Array
    rounds: Whole
    taught: Whole
    key: Whole


def additive_settings(dimension: int, size: float, delta: float) -> AdditiveSettings:
    """Return what the compiled steps read; weights are in units of a residual's inverse variance."""
    return AdditiveSettings(
        float(size), RIDGE / size**2, PRIOR * dimension**2 / size**2, -float(np.log(delta))
    )


def begin_additive(dimension: int, settings: AdditiveSettings, keys: Whole) -> AdditiveMemory:
    """Return the memory before the first round."""
    memory = AdditiveMemory(
        squares=np.zeros(len(keys)),
        **begin_residuals(dimension, settings.size, settings.prior, keys),
        **begin_sums(dimension, settings.ridge, settings.prior, keys),
    )
    memory.growth[:] = 2.0 * np.log(PRIORS)
    return memory


@compiled
def plan_additive(
    settings: AdditiveSettings, memory: AdditiveMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Plan with the ellipsoid of the last look."""
    count, size = features.shape
    if count == 1:
        probabilities[0] = 1.0
        return 0
    scores = np.empty(count)
    scores_into(features, memory.centre[i], scores)
    # No gap exceeds the declared size times the distance of two arms.
    largest = 0.0
    for a in range(count):
        for b in range(a):
            squares = 0.0
            for k in range(size):
                squares += (features[a, k] - features[b, k]) ** 2
            largest = max(largest, squares)
    guaranteed_into(features, scores, memory.norm[i], settings.size * np.sqrt(largest), probabilities)
    return 0


@compiled
def observe_additive(
    settings: AdditiveSettings,
    memory: AdditiveMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to the weighted regression and to the matrix W of the ellipsoid."""
    memory.rounds[i] += 1
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    taught = memory.taught[i]
    count, size = features.shape
    theta = memory.theta[i]
    centre = memory.centre[i]
    mean = np.empty(size)
    centred = np.empty(size)
    other = np.empty(size)
    mean_into(features, probabilities, mean)
    recent = memory.squares[i]
    error = reward - forecast - dot(features[arm], theta)
    if taught <= CAUTIOUS:
        memory.squares[i] = max(recent, 4.0 * error * error)
    elif taught == CAUTIOUS + 1:
        memory.squares[i] = recent / 4.0
    else:
        memory.squares[i] += (error * error - recent) / min(taught - CAUTIOUS + 1.0, MEMORY)
    # A scale from one or two residuals may be far too small, and a weight far too large, for good.
    if taught <= CAUTIOUS or recent <= 0.0:
        return
    # How far the centre may be off along x̃: the mean square over the plan, known before the draw, and what
    # was drawn.
    farthest = settings.size + np.sqrt(dot(centre, centre))
    planned = 0.0
    drawn = 0.0
    for a in range(count):
        if probabilities[a] > 0.0:
            for k in range(size):
                centred[k] = features[a, k] - mean[k]
            times(memory.norm[i], centred, other)
            off = min(dot(centred, other), farthest * farthest * dot(centred, centred))
            planned += probabilities[a] * off
            if a == arm:
                drawn = np.sqrt(max(off, 0.0))
    is_summed = memory.about.shape[1] > 0
    share = DOUBT if is_summed else 1.0
    weight = 1.0 / (np.sqrt(recent) + share * np.sqrt(planned)) ** 2
    above = reward - forecast - dot(mean, theta)
    for k in range(size):
        centred[k] = features[arm, k] - mean[k]
    bound = (weight * (abs(above - dot(centred, centre)) + drawn)) ** 2
    if is_summed:
        add_residual(memory, i, features, mean, probabilities, arm, above, weight)
    # W gains g²ε²(x̃x̃ᵀ + 2Σ_t)/3.
    before = memory.growth[i]
    grown = add_exact_round(
        memory, i, features, mean, probabilities, arm, error, weight, 2.0 * bound / 3.0, bound / 3.0
    )
    # Rounding may have left anything in what was updated, also a logarithm that is no number.
    if not (memory.growth[i] - before < JUMP and grown < JUMP):
        restate(memory, i)
    memory.drift[i] += grown
    if memory.drift[i] >= min(LOOK_AFTER, LOOK_AFTER_PER_FEATURE * size):
        look_back(settings, memory, i)
