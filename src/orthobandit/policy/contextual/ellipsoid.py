"""The exact anytime ellipsoid of θ for rounds with their own features, and what it says of any contrast.

With a centre that is fixed before the draw, e = r − centre = x̃ᵀθ + c + η, |c| ≤ B and η σ-sub-Gaussian. So
S = Σ x̃(c + η) = b − Gθ with b = Σ x̃e and G = Σ x̃x̃ᵀ, and W = λI + Σ [σ²x̃x̃ᵀ + B²(x̃x̃ᵀ + 2Σ_t)/3] has

    ‖b − Gθ‖²_{W⁻¹} ≤ β² = 2·log(1/δ) + log det(W/λ)    at all times at once

with probability 1 − δ (docs/contextual.md has the derivation). Any plan may have been played: the policy that
earns and the claims that are made need not use the same radius.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual.regression import (
    SETTLED,
    add_outer,
    begin_centred,
    dot,
    grow_ridge,
    learn_centred,
    mean_into,
    scale_into,
)

# Where boundaries are tightest, in units of features' spread and of a round's noise, per feature. Any value
# is valid; this serves from hundreds of rounds to hundreds of thousands.
PRIOR = 10.0
# Penalties that intervals are intersected over, in units of the largest eigenvalue of the problem.
PENALTIES = np.logspace(-14.0, 3.0, 69)
RANGE = 1e-10  # part of a contrast, or of an eigenvalue, that counts as rounding: some digits above 10⁻¹⁶


class CertifiedSettings(NamedTuple):
    """What the compiled steps read.

    `radius` is that of the plans, in units of the residuals' scale; `low` and `high` bound the mean of every
    reward, `variance` is σ² of the noise, and `prior` λ begins W.
    """

    radius: float
    low: float
    high: float
    variance: float
    prior: float


class CertifiedMemory(NamedTuple):
    """What R replications remember: the regression that plays, then the sums that claims are made from.

    The first ones are those of :class:`CentredMemory`; `information` G and `scatter` W are (R, d, d) and
    `moment` b is (R, d), all of features in units of their spread.
    """

    units: Array
    spreads: Array
    ridge: Array
    gram: Array
    inverse: Array
    theta: Array
    weighed: Array
    variance: Array
    squares: Array
    rounds: Whole
    taught: Whole
    key: Whole
    first: Array
    information: Array
    scatter: Array
    moment: Array


def prior_of(dimension: int, noise: float) -> float:
    """Return λ, what W begins with; `noise` is about what W gains when G gains 1."""
    return PRIOR * dimension * noise


def begin_certified(dimension: int, ridge: float, prior: float, keys: Whole) -> CertifiedMemory:
    """Return the memory before the first round."""
    count = len(keys)
    start = prior * np.eye(dimension)
    return CertifiedMemory(
        *begin_centred(dimension, ridge, keys),
        information=np.zeros((count, dimension, dimension)),
        scatter=np.broadcast_to(start, (count, dimension, dimension)).copy(),
        moment=np.zeros((count, dimension)),
    )


@compiled
def observe_certified(
    settings: CertifiedSettings,
    memory: CertifiedMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to the sums of the ellipsoid, then to the regression that plays."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    if memory.rounds[i] < SETTLED:
        grow_ridge(memory, i, scaled)
    if probabilities[arm] < 1.0:
        mean = np.empty(size)
        centred = np.empty(size)
        mean_into(scaled, probabilities, mean)
        # The mean of the reward under the plan lies in [low, high]: a centre outside can only be worse. The
        # coefficients are those before this reward, so that the centre is fixed before the draw.
        centre = forecast + dot(mean, memory.theta[i])
        centre = min(max(centre, settings.low), settings.high)
        bound = max(settings.high - centre, centre - settings.low) ** 2
        for a in range(count):
            # W gains σ²x̃x̃ᵀ + B²(x̃x̃ᵀ + 2Σ_t)/3, one rank for every arm that could have been drawn.
            weight = 2.0 * bound * probabilities[a] / 3.0
            if a == arm:
                weight += settings.variance + bound / 3.0
            if weight > 0.0:
                for k in range(size):
                    centred[k] = scaled[a, k] - mean[k]
                add_outer(memory.scatter[i], centred, weight)
                if a == arm:
                    add_outer(memory.information[i], centred, 1.0)
                    for k in range(size):
                        memory.moment[i, k] += centred[k] * (reward - centre)
    learn_centred(settings, memory, i, features, probabilities, arm, reward, forecast)


class Ellipsoid(NamedTuple):
    """All θ with ‖b − Gθ‖_{W⁻¹} ≤ β and, if it is known, ‖θ‖ ≤ `size`.

    Attributes
    ----------
    information, scatter : (d, d) arrays
        G and W. Rows and columns of features that never differed are 0 in both.
    moment : (d,) array
        b.
    radius : float
        β.
    size : float
        The most that ‖θ‖ can be; +inf if nothing is known.
    """

    information: Array
    scatter: Array
    moment: Array
    radius: float
    size: float

    def intervals(self, rows: Array) -> tuple[Array, Array]:
        """Return lower and upper ends (n,) of zᵀθ for contrasts z (n, d); ±inf where nothing is known.

        For every h, zᵀθ = hᵀGθ + (z − Gh)ᵀθ lies within β‖h‖_W + size·‖z − Gh‖ of hᵀb. All of these hold on
        one event, so they are intersected: over the h that minimise κ‖h‖²_W + ‖z − Gh‖² for many κ.
        """
        known = np.diag(self.scatter) > 0
        # In units in which W has a diagonal of ones, so that nothing depends on the units of features.
        unit = np.sqrt(np.diag(self.scatter)[known])
        inside = rows[:, known] / unit
        outside = np.linalg.norm(rows[:, ~known], axis=1)
        gram = self.information[np.ix_(known, known)] / np.outer(unit, unit)
        scatter = self.scatter[np.ix_(known, known)] / np.outer(unit, unit)
        moment = self.moment[known] / unit
        low = np.full(len(rows), -np.inf)
        high = np.full(len(rows), np.inf)
        for weights in self._weights(inside, gram, scatter, unit):
            left = (inside - weights @ gram) * unit
            missed = np.hypot(np.linalg.norm(left, axis=1), outside)
            if np.isinf(self.size):
                # What is left of a contrast that rounds can estimate is rounding.
                missed = np.where(missed <= RANGE * np.linalg.norm(rows, axis=1), 0.0, missed)
            width = self.radius * np.sqrt(
                np.maximum(np.einsum("nd,de,ne->n", weights, scatter, weights), 0.0)
            )
            width[missed > 0] += self.size * missed[missed > 0]
            centre = weights @ moment
            low = np.maximum(low, centre - width)
            high = np.minimum(high, centre + width)
        return low, high

    def _weights(self, rows: Array, gram: Array, scatter: Array, unit: Array) -> Iterator[Array]:
        """Yield candidates of h (n, m) for rows z (n, m): 0, and one for every penalty."""
        yield np.zeros(rows.shape)
        if not gram.any():
            return
        if np.isinf(self.size):
            yield rows @ np.linalg.pinv(gram, rcond=RANGE, hermitian=True)
            return
        # (κW + GD²G)h = GD²z, D being the units, solved for all κ by one eigendecomposition.
        lower = np.linalg.cholesky(scatter)
        half = scipy.linalg.solve_triangular(lower, gram * unit, lower=True)
        values, vectors = np.linalg.eigh(half @ half.T)
        values = np.maximum(values, 0.0)
        pushed = (rows * unit) @ half.T @ vectors
        back = scipy.linalg.solve_triangular(lower, vectors, lower=True, trans="T")
        for penalty in PENALTIES * float(values.max()):
            yield pushed / (penalty + values) @ back.T
