"""Best of both: trust the level until the data contradict it.

A plain regression of rewards on (1, x) learns from every round, also from those that play one arm alone, as
long as the level does not depend on what is offered. The centred regression needs no such thing. Both
estimate the same θ if the level can be trusted, so their difference is a test (Hausman 1978): with the
centred sums G = Σ x̃x̃ᵀ and b = Σ x̃e, S = b − Gθ̂_plain is noise with a covariance of at most σ²G, and
SᵀV⁻¹S/σ² about χ² with d degrees of freedom. Once it is too large, the plain regression is never used again.
"""

from typing import NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual.regression import (
    SETTLED,
    add_outer,
    begin_centred,
    direct_into,
    dot,
    grow_ridge,
    invert,
    learn_centred,
    scale_into,
    score_centred,
    scores_into,
    times,
    update_inverse,
)

REFRESH = 1024  # rounds after which the plain inverse is computed afresh
FIRST_CHECK = 16  # taught rounds before the first test; the next ones follow after a quarter more each
ALARM = 0.01  # chance that a level which can be trusted ever is not, about


class TrustingSettings(NamedTuple):
    """What the compiled steps read: the radius in units of the residuals' scale."""

    radius: float


class TrustingMemory(NamedTuple):
    """What R replications remember: the centred regression, then the plain one.

    The first ones are those of :class:`CentredMemory`. `plain_gram`, its inverse (R, d + 1, d + 1) and
    `plain_theta` (R, d + 1) have the level last; `plain_variance` (R,) is that of its residuals; `trusts`
    (R,) is 1 until the test rejects; `checks` (R,) counts tests and `next_check` (R,) is the number of taught
    rounds before the next one.
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
    plain_gram: Array
    plain_inverse: Array
    plain_theta: Array
    plain_variance: Array
    trusts: Whole
    checks: Whole
    next_check: Whole


def begin_trusting(dimension: int, ridge: float, keys: Whole) -> TrustingMemory:
    """Return the memory before the first round."""
    count = len(keys)
    size = dimension + 1
    prior = ridge * dimension * np.eye(size)
    # The level may be anything: its own coefficient is hardly penalised.
    prior[-1, -1] = 1e-3
    return TrustingMemory(
        *begin_centred(dimension, ridge, keys),
        plain_gram=np.broadcast_to(prior, (count, size, size)).copy(),
        plain_inverse=np.broadcast_to(np.diag(1.0 / np.diag(prior)), (count, size, size)).copy(),
        plain_theta=np.zeros((count, size)),
        plain_variance=np.ones(count),
        trusts=np.ones(count, dtype=np.int64),
        checks=np.zeros(count, dtype=np.int64),
        next_check=np.full(count, FIRST_CHECK, dtype=np.int64),
    )


@compiled
def plan_trusting(
    settings: TrustingSettings, memory: TrustingMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Plan with the plain regression while the level is trusted, with the centred one afterwards."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    if memory.rounds[i] < SETTLED:
        grow_ridge(memory, i, scaled)
    if count == 1:
        probabilities[0] = 1.0
        return 0
    scores = np.empty(count)
    if memory.trusts[i]:
        scores_into(scaled, memory.plain_theta[i, :size], scores)
        # Differences of arms have no level, so the block of the features is all that matters.
        norm = memory.plain_inverse[i, :size, :size].copy()
        radius = settings.radius * np.sqrt(memory.plain_variance[i])
    else:
        scores_into(scaled, memory.theta[i], scores)
        norm = memory.inverse[i].copy()
        radius = settings.radius * np.sqrt(memory.variance[i])
    direct_into(scaled, scores, norm, radius, np.inf, probabilities)
    return 0


@compiled
def is_contradicted(memory: TrustingMemory, i: int) -> bool:
    """Tell whether the centred regression contradicts the plain one, at the level of this test."""
    size = memory.theta.shape[1]
    plain = memory.plain_theta[i, :size].copy()
    score = np.empty(size)
    pulled = np.empty(size)
    # S = b − Gθ̂_plain = V(θ̂ − θ̂_plain) + ridge·θ̂_plain, V being G with its ridge.
    times(memory.gram[i], memory.theta[i] - plain, score)
    for k in range(size):
        score[k] += memory.ridge[i, k] * plain[k]
    times(memory.inverse[i], score, pulled)
    checks = memory.checks[i]
    # α/(k(k + 1)) adds up to α over all tests; the bound is one of χ² (Laurent & Massart 2000, lemma 1).
    tail = np.log(checks * (checks + 1.0) / ALARM)
    bound = size + 2.0 * np.sqrt(size * tail) + 2.0 * tail
    return bool(dot(score, pulled) > bound * memory.variance[i])


@compiled
def observe_trusting(
    settings: TrustingSettings,
    memory: TrustingMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to both regressions, and test now and then whether they agree."""
    count, size = features.shape
    if memory.trusts[i]:
        scaled = np.empty((count, size))
        scale_into(memory.units[i], features, scaled)
        lifted = np.ones(size + 1)
        pull = np.empty(size + 1)
        for k in range(size):
            lifted[k] = scaled[arm, k]
        theta = memory.plain_theta[i]
        error = reward - forecast - dot(lifted, theta)
        grown = update_inverse(memory.plain_inverse[i], lifted, 1.0, pull)
        for k in range(size + 1):
            theta[k] += pull[k] / grown * error
        add_outer(memory.plain_gram[i], lifted, 1.0)
        rounds = memory.rounds[i] + 1
        memory.plain_variance[i] += (error * error / grown - memory.plain_variance[i]) / (rounds + 1.0)
        if rounds % REFRESH == 0:
            invert(memory.plain_gram[i], memory.plain_inverse[i])
    learn_centred(settings, memory, i, features, probabilities, arm, reward, forecast)
    if memory.trusts[i] and memory.taught[i] >= memory.next_check[i]:
        memory.checks[i] += 1
        memory.next_check[i] = memory.taught[i] + memory.taught[i] // 4
        if is_contradicted(memory, i):
            memory.trusts[i] = 0


@compiled
def score_trusting(settings: TrustingSettings, memory: TrustingMemory, i: int, feature: Array) -> float:
    """Return xᵀθ̂ of the regression that plays, without the level."""
    if not memory.trusts[i]:
        return score_centred(settings, memory, i, feature)
    total = 0.0
    for k in range(feature.size):
        if memory.units[i, k] > 0.0:
            total += feature[k] / memory.units[i, k] * memory.plain_theta[i, k]
    return total
