"""An exact radius that follows the residuals, for noise that does not depend on the arm.

If a round's level and noise ν_t + η_t are the same whichever arm is drawn, both are fixed before the draw,
and the draw is the only chance that is left. With a centre f_t and a weight g_t that are fixed before it,

    ε_t = r_t − f_t − x̃ᵀθ,    S = Σ g x̃ε = b − Gθ,    W = Λ + Σ g²ε²(x̃x̃ᵀ + 2Σ_t)/3

keep ‖S‖²_{W⁻¹} ≤ 2·log(1/δ) + log det(W/Λ) at all times with probability 1 − δ, by Delyon's inequality given
ε: no range, no variance proxy and no tail is assumed. ε depends on θ, so its bound |r − f − x̃ᵀθ̂| + ‖x̃‖_N
stands in, which holds as long as θ was inside before (docs/contextual.md has the proof). Rounds are weighed
by what is known of their residuals: early ones, whose bound is loose, count for less.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual._exact_sums import add_exact_round, begin_sums, exact_norm_into
from orthobandit.policy.contextual._regression import direct_into, dot, mean_into, scores_into, times

CAUTIOUS = 10  # first rounds, in which twice the largest residual stands for their scale
MEMORY = 500.0  # rounds that the scale of residuals looks back on
# The ridge, in rounds' worth of noise for a θ of the declared size, and where the boundary is tightest, in
# multiples of that ridge. Any values are valid; these had the least regret of a few.
RIDGE = 0.1
PRIOR = 300.0


@dataclass(frozen=True)
class AdditiveNoise:
    """Declares that the noise of a round does not depend on the arm: an arm adds x_aᵀθ to whatever comes.

    It may have any distribution and any tails, and may depend on the visitor, on the past and on the level.
    It does not hold for rewards that are 0 or 1, whose scatter changes with their mean: declare
    :class:`~orthobandit.estimate.Bounded` for those.
    """


class AdditiveSettings(NamedTuple):
    """What the compiled steps read: the most that ‖θ‖ can be, ρ and λ that begin A and W, and log(1/δ).

    `noise`, about what W gains when A gains 1, is 1: rounds are weighed by their inverse variance.
    """

    size: float
    ridge: float
    prior: float
    log_inverse: float
    noise: float


class AdditiveMemory(NamedTuple):
    """What R replications remember.

    A = ρI + G and W (R, d, d), their inverses, M = A⁻¹WA⁻¹, θ̂ (R, d), log det(W/λ) (R,) and the mean square
    of recent residuals (R,).
    """

    gram: Array
    inverse: Array
    scatter: Array
    scatter_inverse: Array
    spread: Array
    theta: Array
    growth: Array
    squares: Array
    rounds: Whole
    taught: Whole
    key: Whole


def additive_settings(size: float, delta: float) -> AdditiveSettings:
    """Return what the compiled steps read; weights are in units of a residual's inverse variance."""
    ridge = RIDGE / size**2
    return AdditiveSettings(float(size), ridge, PRIOR * ridge, -float(np.log(delta)), 1.0)


def begin_additive(dimension: int, settings: AdditiveSettings, keys: Whole) -> AdditiveMemory:
    """Return the memory before the first round."""
    sums = begin_sums(dimension, settings.ridge, settings.prior, keys)
    return AdditiveMemory(squares=np.zeros(len(keys)), **sums)


@compiled
def plan_additive(
    settings: AdditiveSettings, memory: AdditiveMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Plan with the exact ellipsoid."""
    count, size = features.shape
    if count == 1:
        probabilities[0] = 1.0
        return 0
    norm = np.empty((size, size))
    exact_norm_into(settings, memory, i, norm)
    scores = np.empty(count)
    scores_into(features, memory.theta[i], scores)
    # No gap exceeds the declared size times the distance of two arms.
    largest = 0.0
    for a in range(count):
        for b in range(a):
            squares = 0.0
            for k in range(size):
                squares += (features[a, k] - features[b, k]) ** 2
            largest = max(largest, squares)
    direct_into(features.copy(), scores, norm, 1.0, settings.size * np.sqrt(largest), probabilities)
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
    mean = np.empty(size)
    centred = np.empty(size)
    other = np.empty(size)
    norm = np.empty((size, size))
    mean_into(features, probabilities, mean)
    exact_norm_into(settings, memory, i, norm)
    farthest = settings.size + np.sqrt(dot(theta, theta))
    # How far θ̂ may be off along x̃: the mean square over the plan, known before the draw, and what was drawn.
    planned = 0.0
    drawn = 0.0
    for a in range(count):
        if probabilities[a] > 0.0:
            for k in range(size):
                centred[k] = features[a, k] - mean[k]
            times(norm, centred, other)
            off = min(dot(centred, other), farthest * farthest * dot(centred, centred))
            planned += probabilities[a] * off
            if a == arm:
                drawn = np.sqrt(max(off, 0.0))
    recent = memory.squares[i]
    error = reward - forecast - dot(features[arm], theta)
    if taught <= CAUTIOUS:
        memory.squares[i] = max(recent, 4.0 * error * error)
    elif taught == CAUTIOUS + 1:
        memory.squares[i] = recent / 4.0
    else:
        memory.squares[i] += (error * error - recent) / min(taught - CAUTIOUS + 1.0, MEMORY)
    # Nothing is known of residuals before the first one, which only tells their scale.
    if recent <= 0.0:
        return
    weight = 1.0 / (np.sqrt(recent) + np.sqrt(planned)) ** 2
    bound = (weight * (abs(error) + drawn)) ** 2
    # W gains g²ε²(x̃x̃ᵀ + 2Σ_t)/3.
    add_exact_round(
        memory, i, features, mean, probabilities, arm, error, weight, 2.0 * bound / 3.0, bound / 3.0
    )
