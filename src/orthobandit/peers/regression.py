"""One ridge regression for linear policies, inside compiled loops, with the views of it that plans read.

A row v is the features of the arm that was played, or the same less their mean under the plan. With

    V = λI + Σ vvᵀ,    b = Σ vr,    θ̂ = V⁻¹b

a round changes V⁻¹ by rank one (Sherman & Morrison 1950). For q = vᵀV⁻¹v and e = r − vᵀθ̂ of before the round,
the views and their changes are

    of fixed arms X (K, n):   P = XV⁻¹Xᵀ and s = Xθ̂;   P ← P − ggᵀ/(1 + q),  s ← s + ge/(1 + q),  g = XV⁻¹v
    of features:              V⁻¹ and θ̂;               likewise with g = V⁻¹v

The first takes O(K²) a round whatever the dimension, and plans read lengths and distances of arms from it.
The second takes O(n²) and serves offers, whose arms are others in every round. Who draws from N(θ̂, v²V⁻¹)
with fixed arms factors V and keeps the sums alone. Each has a memory of its own, since every array that
compiled steps are handed costs them some 15 ns a round. Views are now and then computed afresh from the sums,
so rounding cannot pile up.
"""

from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled, compiled_in_place
from orthobandit._foundation.linalg import backward, cholesky_into, forward, whiten_into
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual.regression import (
    REFRESH,
    add_outer,
    add_times,
    dot,
    invert,
    scores_into,
    update_inverse,
)

REFRESH_ROUNDS = 256  # a fresh P takes O(K²n), a change O(K²): at this distance it hardly counts


class Sums(NamedTuple):
    """Σ vvᵀ (R, n, n), Σ vr (R, n), rounds in them (R,) and the key of the random numbers (R,)."""

    gram: Array
    moment: Array
    step: Whole
    key: Whole


class ArmsView(NamedTuple):
    """Σ vvᵀ (R, n, n), Σ vr (R, n), rounds (R,), log(det V/λⁿ) (R,), and P (R, K, K), s (R, K)."""

    gram: Array
    moment: Array
    step: Whole
    growth: Array
    inner: Array
    scores: Array


class FeaturesView(NamedTuple):
    """V (R, n, n), its inverse, θ̂ (R, n), the residuals' mean square (R,), rounds (R,) and keys (R,).

    n is d, or d + 1 with the level as the last coefficient.
    """

    gram: Array
    inverse: Array
    theta: Array
    variance: Array
    step: Whole
    key: Whole


def begin_sums(keys: Whole, dimension: int) -> Sums:
    """Return the sums before the first round of replications with these keys (R,)."""
    runs = len(keys)
    return Sums(
        gram=np.zeros((runs, dimension, dimension)),
        moment=np.zeros((runs, dimension)),
        step=np.zeros(runs, dtype=np.int64),
        key=np.asarray(keys, dtype=np.int64),
    )


def begin_arms_view(features: Array, ridge: float, runs: int) -> ArmsView:
    """Return the view of fixed arms (K, n) before the first round."""
    count, dimension = features.shape
    inner = features @ features.T / ridge
    return ArmsView(
        gram=np.zeros((runs, dimension, dimension)),
        moment=np.zeros((runs, dimension)),
        step=np.zeros(runs, dtype=np.int64),
        growth=np.zeros(runs),
        inner=np.tile((inner + inner.T) / 2, (runs, 1, 1)),
        scores=np.zeros((runs, count)),
    )


def begin_features_view(keys: Whole, dimension: int, ridge: float) -> FeaturesView:
    """Return the view of features before the first round of replications with these keys (R,)."""
    runs = len(keys)
    unit = np.broadcast_to(np.eye(dimension), (runs, dimension, dimension))
    return FeaturesView(
        gram=ridge * unit,
        inverse=unit / ridge,
        theta=np.zeros((runs, dimension)),
        variance=np.ones(runs),
        step=np.zeros(runs, dtype=np.int64),
        key=np.asarray(keys, dtype=np.int64),
    )


@compiled
def posterior_into(gram: Array, moment: Array, ridge: float, lower: Array, theta: Array) -> None:
    """Write L with LLᵀ = gram + ridge·I and θ̂ = (LLᵀ)⁻¹ moment."""
    size = moment.size
    shifted = gram.copy()
    for j in range(size):
        shifted[j, j] += ridge
        theta[j] = moment[j]
    cholesky_into(shifted, size, lower, 0.0)
    forward(lower, size, theta)
    backward(lower, size, theta)


@compiled_in_place
def add_row(gram: Array, moment: Array, vector: Array, reward: float) -> None:
    """Add vvᵀ and vr."""
    for j in range(vector.size):
        moment[j] += vector[j] * reward
        for k in range(vector.size):
            gram[j, k] += vector[j] * vector[k]


@compiled
def learn_sums(settings: Any, memory: Sums, i: int, _probabilities: Array, arm: int, reward: float) -> bool:
    """Add a round of a fixed arm as it is to the sums; `settings` have the features (K, n)."""
    add_row(memory.gram[i], memory.moment[i], settings.features[arm], reward)
    memory.step[i] += 1
    return True


@compiled
def learn_plain(
    settings: Any, memory: ArmsView, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add a round of a fixed arm as it is; `settings` have the features (K, n), and λ as `ridge`."""
    inner = memory.inner[i]
    scores = memory.scores[i]
    features = settings.features
    gram = memory.gram[i]
    moment = memory.moment[i]
    add_row(gram, moment, features[arm], reward)
    grown = 1.0 + inner[arm, arm]
    # det(V + xxᵀ) = det V·(1 + xᵀV⁻¹x): the determinant is followed without being computed.
    memory.growth[i] += np.log(grown)
    memory.step[i] += 1
    if memory.step[i] % REFRESH_ROUNDS == 0:
        refresh_arms(features, settings.ridge, gram, moment, inner, scores)
    else:
        update_arms(inner, scores, inner[arm].copy(), grown, reward - scores[arm])
    return True


@compiled
def learn_centred_at_plan(
    settings: Any, memory: ArmsView, i: int, probabilities: Array, arm: int, reward: float
) -> bool:
    """Add a round of a fixed arm less the mean of the plan; `settings` as for :func:`learn_plain`."""
    inner = memory.inner[i]
    scores = memory.scores[i]
    features = settings.features
    count, size = features.shape
    centred = features[arm].copy()
    pull = inner[arm].copy()
    expected = scores[arm]
    for a in range(count):
        p = probabilities[a]
        if p > 0.0:
            expected -= p * scores[a]
            for b in range(count):
                pull[b] -= p * inner[a, b]
            for j in range(size):
                centred[j] -= p * features[a, j]
    gram = memory.gram[i]
    moment = memory.moment[i]
    add_row(gram, moment, centred, reward)
    memory.step[i] += 1
    if memory.step[i] % REFRESH_ROUNDS == 0:
        refresh_arms(features, settings.ridge, gram, moment, inner, scores)
        return True
    grown = 1.0 + pull[arm]
    for a in range(count):
        grown -= probabilities[a] * pull[a]
    update_arms(inner, scores, pull, grown, reward - expected)
    return True


@compiled
def learn_offered(
    _settings: Any,
    memory: FeaturesView,
    i: int,
    features: Array,
    _probabilities: Array,
    arm: int,
    reward: float,
    _forecast: float,
) -> None:
    """Add a round with features of its own, as they are."""
    size = memory.theta.shape[1]
    vector = np.empty(size)
    pull = np.empty(size)
    theta = memory.theta[i]
    lift_into(features[arm], vector)
    error = reward - dot(vector, theta)
    grown = update_inverse(memory.inverse[i], vector, 1.0, pull)
    for k in range(size):
        theta[k] += pull[k] / grown * error
    add_outer(memory.gram[i], vector, 1.0)
    memory.step[i] += 1
    memory.variance[i] += (error * error - memory.variance[i]) / (memory.step[i] + 1.0)
    if memory.step[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])


@compiled
def update_arms(inner: Array, scores: Array, pull: Array, grown: float, surprise: float) -> None:
    """Change P and s by one round: pull = g, grown = 1 + q, surprise = e."""
    for a in range(scores.size):
        share = pull[a] / grown
        scores[a] += share * surprise
        for b in range(scores.size):
            inner[a, b] -= share * pull[b]


@compiled_in_place
def lift_into(feature: Array, vector: Array) -> None:
    """Write features (d,) to a row (n,); one more place there is for an intercept, and gets 1."""
    for k in range(feature.size):
        vector[k] = feature[k]
    if vector.size > feature.size:
        vector[feature.size] = 1.0


@compiled_in_place
def look_at(inverse: Array, theta: Array, feature: Array, pulled: Array) -> tuple[float, float]:
    """Return xᵀθ̂ without the intercept, and ‖z‖²_{V⁻¹} of z = (x, 1) or x, of one arm of an offer."""
    size = feature.size
    has_intercept = theta.size > size
    # V⁻¹z of z with a last entry of 1: the last row of V⁻¹, and those of features.
    if has_intercept:
        for k in range(theta.size):
            pulled[k] = inverse[size, k]
    else:
        pulled[:] = 0.0
    add_times(inverse, feature, pulled)
    score = 0.0
    squared = pulled[size] if has_intercept else 0.0
    for k in range(size):
        score += feature[k] * theta[k]
        squared += feature[k] * pulled[k]
    return score, squared


@compiled
def score_offered(_settings: Any, memory: FeaturesView, i: int, feature: Array) -> float:
    """Return xᵀθ̂ without the intercept."""
    return dot(feature, memory.theta[i, : feature.size])


@compiled
def refresh_arms(
    features: Array, ridge: float, gram: Array, moment: Array, inner: Array, scores: Array
) -> None:
    """Compute P and s afresh from the sums."""
    count, size = features.shape
    lower = np.zeros((size, size))
    theta = np.empty(size)
    white = np.empty((size, count))
    posterior_into(gram, moment, ridge, lower, theta)
    whiten_into(lower, features, white)
    scores_into(features, theta, scores)
    for a in range(count):
        for b in range(a + 1):
            total = 0.0
            for j in range(size):
                total += white[j, a] * white[j, b]
            inner[a, b] = inner[b, a] = total
