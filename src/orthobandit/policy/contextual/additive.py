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
from orthobandit.policy.contextual._regression import (
    add_outer,
    direct_into,
    dot,
    invert,
    mean_into,
    scores_into,
    times,
    update_inverse,
)

REFRESH = 512  # rounds after which inverses are computed afresh
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
    """What the compiled steps read: the most that ‖θ‖ can be, ρ and λ that begin A and W, and log(1/δ)."""

    size: float
    ridge: float
    prior: float
    log_inverse: float


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
    return AdditiveSettings(float(size), ridge, PRIOR * ridge, -float(np.log(delta)))


def begin_additive(dimension: int, settings: AdditiveSettings, keys: Whole) -> AdditiveMemory:
    """Return the memory before the first round."""
    count = len(keys)
    unit = np.broadcast_to(np.eye(dimension), (count, dimension, dimension))
    return AdditiveMemory(
        gram=settings.ridge * unit,
        inverse=unit / settings.ridge,
        scatter=settings.prior * unit,
        scatter_inverse=unit / settings.prior,
        spread=unit * (settings.prior / settings.ridge**2),
        theta=np.zeros((count, dimension)),
        growth=np.zeros(count),
        squares=np.zeros(count),
        rounds=np.zeros(count, dtype=np.int64),
        taught=np.zeros(count, dtype=np.int64),
        key=np.asarray(keys, dtype=np.int64),
    )


@compiled
def additive_norm_into(settings: AdditiveSettings, memory: AdditiveMemory, i: int, norm: Array) -> None:
    """Write N with |zᵀ(θ̂ − θ)|² ≤ zᵀNz for all z at all times, with probability 1 − δ.

    |zᵀ(θ̂ − θ)| ≤ β‖z‖_M + √ρ·S‖z‖_{A⁻¹}, and (a + b)² ≤ (1 + k)a² + (1 + 1/k)b² for every k > 0.
    """
    radius = np.sqrt(2.0 * settings.log_inverse + memory.growth[i])
    bias = np.sqrt(settings.ridge) * settings.size
    # M is about A⁻¹ where weights are right: this k makes both terms of the bound proportional.
    k = bias / radius
    first = (1.0 + k) * radius * radius
    second = (1.0 + 1.0 / k) * bias * bias
    size = norm.shape[0]
    for a in range(size):
        for b in range(size):
            norm[a, b] = first * memory.spread[i, a, b] + second * memory.inverse[i, a, b]


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
    additive_norm_into(settings, memory, i, norm)
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
    inverse = memory.inverse[i]
    spread = memory.spread[i]
    mean = np.empty(size)
    centred = np.empty(size)
    pull = np.empty(size)
    other = np.empty(size)
    norm = np.empty((size, size))
    mean_into(features, probabilities, mean)
    additive_norm_into(settings, memory, i, norm)
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
    for k in range(size):
        centred[k] = features[arm, k] - mean[k]
    # A' = A + g·x̃x̃ᵀ turns M = A⁻¹WA⁻¹ into M − κ(uvᵀ + vuᵀ) + κ²s·uuᵀ with u = A⁻¹x̃, v = Mx̃, s = x̃ᵀMx̃.
    times(spread, centred, other)
    squared = dot(centred, other)
    grown = update_inverse(inverse, centred, weight, pull)
    share = weight / grown
    for a in range(size):
        theta[a] += pull[a] * share * error
        for b in range(size):
            spread[a, b] += share * (
                share * pull[a] * pull[b] * squared - pull[a] * other[b] - other[a] * pull[b]
            )
    add_outer(memory.gram[i], centred, weight)
    # W gains g²ε²(x̃x̃ᵀ + 2Σ_t)/3, one rank for every arm that could have been drawn.
    for a in range(count):
        gained = 2.0 * bound * probabilities[a] / 3.0
        if a == arm:
            gained += bound / 3.0
        if gained > 0.0:
            for k in range(size):
                centred[k] = features[a, k] - mean[k]
            memory.growth[i] += np.log(update_inverse(memory.scatter_inverse[i], centred, gained, other))
            add_outer(memory.scatter[i], centred, gained)
            times(inverse, centred, pull)
            add_outer(spread, pull, gained)
    if taught % REFRESH == 0:
        refresh_inverses(memory.gram[i], memory.scatter[i], inverse, memory.scatter_inverse[i], spread)


@compiled
def refresh_inverses(
    gram: Array, scatter: Array, inverse: Array, scatter_inverse: Array, spread: Array
) -> None:
    """Compute A⁻¹, W⁻¹ and M = A⁻¹WA⁻¹ afresh from the sums A and W."""
    size = gram.shape[0]
    invert(gram, inverse)
    invert(scatter, scatter_inverse)
    half = np.zeros((size, size))
    for a in range(size):
        for k in range(size):
            for b in range(size):
                half[a, b] += inverse[a, k] * scatter[k, b]
    spread[:] = 0.0
    for a in range(size):
        for k in range(size):
            for b in range(size):
                spread[a, b] += half[a, k] * inverse[k, b]
