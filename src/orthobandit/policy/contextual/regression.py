"""The centred regression that ours, BOSE and Thompson sampling share, inside compiled loops.

First the small linear algebra of one round, then the regression. Loops run along the last axis, so that they
are vectorised without reordering any sum.

With μ_t = Σ p x and x̃ = x_a − μ_t, e_t = r − m_t − μ_tᵀθ̂ has the mean x̃ᵀθ given the draw, plus a level that
is fixed before it: V = ρI + Σ x̃x̃ᵀ, θ̂ = V⁻¹ Σ x̃e estimates θ whatever the level does (docs/contextual.md).

Features are taken in units of their own spread, noted when a feature first differs between arms of an offer.
One offer may be far from typical: a context that is nearly 0 makes for tiny interactions. So the ridge
follows the mean square of the spread over the offers so far; ρ then means the same in any units.
"""

from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled, compiled_in_place
from orthobandit._foundation.linalg import backward, cholesky_into, forward
from orthobandit._foundation.types import Array, Whole


@compiled_in_place
def times(matrix: Array, vector: Array, out: Array) -> None:
    """Write matrix·vector for a symmetric matrix."""
    for k in range(vector.size):
        out[k] = 0.0
    add_times(matrix, vector, out)


@compiled_in_place
def add_times(matrix: Array, vector: Array, out: Array) -> None:
    """Add the sum of a matrix's first rows (n of m, m), weighed by a vector (n,), to `out` (m,)."""
    columns = out.size
    # Four rows at a time: `out` is then read and written a quarter as often, which is what takes the time.
    whole = vector.size - vector.size % 4
    for j in range(0, whole, 4):
        v0 = vector[j]
        v1 = vector[j + 1]
        v2 = vector[j + 2]
        v3 = vector[j + 3]
        for k in range(columns):
            out[k] += (matrix[j, k] * v0 + matrix[j + 1, k] * v1) + (
                matrix[j + 2, k] * v2 + matrix[j + 3, k] * v3
            )
    for j in range(whole, vector.size):
        for k in range(columns):
            out[k] += matrix[j, k] * vector[j]


@compiled_in_place
def dot(a: Array, b: Array) -> float:
    """Return aᵀb."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled_in_place
def add_outer(matrix: Array, vector: Array, weight: float) -> None:
    """Add weight·vvᵀ."""
    for j in range(vector.size):
        share = weight * vector[j]
        for k in range(vector.size):
            matrix[j, k] += share * vector[k]


@compiled_in_place
def update_inverse(inverse: Array, vector: Array, weight: float, pull: Array) -> float:
    """Turn V⁻¹ into (V + weight·vvᵀ)⁻¹ (Sherman & Morrison 1950); write pull = V⁻¹v of before.

    Returns 1 + weight·vᵀV⁻¹v, by which the determinant has grown.
    """
    times(inverse, vector, pull)
    grown = 1.0 + weight * dot(vector, pull)
    add_outer(inverse, pull, -weight / grown)
    return grown


@compiled
def invert(matrix: Array, inverse: Array) -> None:
    """Write the inverse of a positive definite matrix, afresh."""
    size = matrix.shape[0]
    lower = np.zeros((size, size))
    column = np.empty(size)
    cholesky_into(matrix, size, lower, 0.0)
    for k in range(size):
        column[:] = 0.0
        column[k] = 1.0
        forward(lower, size, column)
        backward(lower, size, column)
        for j in range(size):
            inverse[j, k] = column[j]


@compiled_in_place
def mean_into(features: Array, probabilities: Array, mean: Array) -> None:
    """Write μ = Σ p_a x_a."""
    mean[:] = 0.0
    for a in range(features.shape[0]):
        if probabilities[a] > 0.0:
            for k in range(mean.size):
                mean[k] += probabilities[a] * features[a, k]


@compiled_in_place
def scores_into(features: Array, theta: Array, scores: Array) -> None:
    """Write x_aᵀθ of every row."""
    count, size = features.shape
    # Four rows at a time: each sum waits for its last addition, and four of them wait together.
    whole = count - count % 4
    for a in range(0, whole, 4):
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for k in range(size):
            s0 += features[a, k] * theta[k]
            s1 += features[a + 1, k] * theta[k]
            s2 += features[a + 2, k] * theta[k]
            s3 += features[a + 3, k] * theta[k]
        scores[a] = s0
        scores[a + 1] = s1
        scores[a + 2] = s2
        scores[a + 3] = s3
    for a in range(whole, count):
        scores[a] = dot(features[a], theta)


@compiled_in_place
def squares_into(features: Array, squares: Array) -> None:
    """Write x_aᵀx_a of every row."""
    count, size = features.shape
    whole = count - count % 4
    for a in range(0, whole, 4):
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for k in range(size):
            s0 += features[a, k] * features[a, k]
            s1 += features[a + 1, k] * features[a + 1, k]
            s2 += features[a + 2, k] * features[a + 2, k]
            s3 += features[a + 3, k] * features[a + 3, k]
        squares[a] = s0
        squares[a + 1] = s1
        squares[a + 2] = s2
        squares[a + 3] = s3
    for a in range(whole, count):
        squares[a] = dot(features[a], features[a])


@compiled
def pair_widths_into(features: Array, norm: Array, widths: Array) -> None:
    """Write (x_a − x_b)ᵀN(x_a − x_b) for all pairs (K, K) of a positive semi-definite N (d, d)."""
    count, size = features.shape
    pulled = np.zeros((count, size))
    turned = np.empty((size, count))
    for a in range(count):
        for k in range(size):
            turned[k, a] = features[a, k]
        for j in range(size):
            for k in range(size):
                pulled[a, k] += features[a, j] * norm[j, k]
    for a in range(count):
        for b in range(count):
            widths[a, b] = 0.0
        for k in range(size):
            for b in range(count):
                widths[a, b] += pulled[a, k] * turned[k, b]
    for a in range(count):
        for b in range(a):
            squared = widths[a, a] + widths[b, b] - 2.0 * widths[a, b]
            widths[a, b] = squared if squared > 0.0 else 0.0
    for a in range(count):
        widths[a, a] = 0.0
        for b in range(a):
            widths[b, a] = widths[a, b]


@compiled
def direct_into(
    features: Array, scores: Array, norm: Array, radius: float, most: float, probabilities: Array
) -> None:
    """Write the distribution on two arms with the least (expected regret)²/information.

    Δ_a = max_b [score_b − score_a + radius·‖x_a − x_b‖] is the most that arm a may lose, at most `most`. With
    probabilities q and 1 − q on a and b the regret is qΔ_a + (1 − q)Δ_b and the information is
    q(1 − q)‖x_a − x_b‖²; the ratio is least, 4Δ_aΔ_b/‖x_a − x_b‖², at q = Δ_b/(Δ_a + Δ_b). If nobody can beat
    the leader, it is played alone.

    `features` (K, d) are overwritten; lengths are those of the positive semi-definite `norm` (d, d).
    """
    count, size = features.shape
    # Few allocations: each takes as long as a row of arithmetic.
    work = np.empty((3, max(count, size)))
    room = np.empty(2 * count * size + count * count + count)
    _direct(features, scores, norm, radius, most, probabilities, work, room)


@compiled_in_place
def _direct(
    features: Array,
    scores: Array,
    norm: Array,
    radius: float,
    most: float,
    probabilities: Array,
    work: Array,
    room: Array,
) -> None:
    """Do what :func:`direct_into` says, with arrays (3, max(K, d)) and (2Kd + K² + K,) to work in."""
    count, size = features.shape
    leader = 0
    for a in range(count):
        if scores[a] > scores[leader]:
            leader = a
    probabilities[:] = 0.0
    # Differences from the leader: a large common feature would cost digits.
    for a in range(count):
        if a != leader:
            for k in range(size):
                features[a, k] -= features[leader, k]
    features[leader] = 0.0
    # No eigenvalue of the norm exceeds its largest absolute row sum: an arm that this cannot lift above the
    # leader needs no length. Most rounds of a long experiment end here.
    sums = work[0, :size]
    sums[:] = 0.0
    for j in range(size):
        for k in range(size):
            sums[k] += abs(norm[j, k])
    longest = 0.0
    for k in range(size):
        longest = max(longest, sums[k])
    largest = radius * radius * longest
    squares = work[1, :count]
    squares_into(features, squares)
    from_leader = work[2, :count]
    is_beaten = True
    for a in range(count):
        behind = scores[leader] - scores[a]
        # Marked by −1 until its length is known.
        from_leader[a] = -1.0
        if a != leader and largest * squares[a] >= behind * behind:
            is_beaten = False
    if is_beaten:
        probabilities[leader] = 1.0
        return
    area = count * size
    pulled = room[:area].reshape((count, size))
    turned = room[area : 2 * area].reshape((size, count))
    squared = room[2 * area : 2 * area + count * count].reshape((count, count))
    losses = room[2 * area + count * count :]
    lost = 0.0
    for everyone in range(2):
        for a in range(count):
            behind = scores[leader] - scores[a]
            if from_leader[a] >= 0.0 or (everyone == 0 and largest * squares[a] < behind * behind):
                continue
            times(norm, features[a], pulled[a])
            from_leader[a] = max(dot(pulled[a], features[a]), 0.0)
            if from_leader[a] > 0.0:
                lost = max(lost, radius * np.sqrt(from_leader[a]) - behind)
        if lost <= 0.0:
            probabilities[leader] = 1.0
            return
    # ‖x_a − x_b‖² = ‖y_a‖² + ‖y_b‖² − 2y_aᵀNy_b with y the differences from the leader.
    losses[:] = 0.0
    for a in range(count):
        for k in range(size):
            turned[k, a] = features[a, k]
    for a in range(count):
        for b in range(a):
            squared[a, b] = from_leader[a] + from_leader[b]
        for k in range(size):
            share = 2.0 * pulled[a, k]
            for b in range(a):
                squared[a, b] -= share * turned[k, b]
    for a in range(count):
        for b in range(a):
            if squared[a, b] > 0.0:
                width = radius * np.sqrt(squared[a, b])
                gap = scores[a] - scores[b]
                losses[a] = max(losses[a], width - gap)
                losses[b] = max(losses[b], width + gap)
    for a in range(count):
        losses[a] = min(losses[a], most)
    # Ratios are compared by cross-multiplying; a division takes several times as long.
    first = leader
    second = leader
    over = np.inf
    under = 1.0
    for a in range(count):
        for b in range(a):
            product = losses[a] * losses[b]
            if squared[a, b] > 0.0 and product * under < over * squared[a, b]:
                over = product
                under = squared[a, b]
                first = a
                second = b
    # The arm that may lose more is played less: this share makes regret²/information least for the pair.
    together = losses[first] + losses[second]
    probabilities[first] = losses[second] / together
    probabilities[second] = losses[first] / together


REFRESH = 1024  # rounds after which the inverse is computed afresh, so that rounding cannot pile up
CAUTIOUS = 10  # first rounds, in which twice the largest residual stands for the scale: θ̂ knows nothing yet
FAR = 16.0  # variance of a feature in an offer, over that which the ridge stands for, that is out of line
SETTLED = 1024  # rounds after which the ridge is left as it is
ROUGH = 32  # taught rounds before later residuals are compared with those so far
CALMER = 0.5  # later residuals with less than this part of the variance make earlier rounds count for less


class CentredMemory(NamedTuple):
    """What R replications remember.

    `units` (R, d) of features, 0 until known, with the mean square of their spread in these units and the
    part of V's diagonal that is the ridge (R, d); V (R, d, d) and its inverse; θ̂ (R, d) in these units;
    Σ x̃x̃ᵀe² (R, d, d), the variance of residuals that follows, and the sum of their squares since it was last
    compared with them, or of all (R,); rounds, and those that taught something (R,); keys (R,); the ridge
    before the first round (R,).
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


def begin_centred(dimension: int, ridge: float, keys: Whole) -> CentredMemory:
    """Return the memory before the first round of replications with these keys (R,)."""
    count = len(keys)
    # Features in units of their spread have a squared length of about d: so the ridge is per feature.
    prior = np.broadcast_to(ridge * dimension * np.eye(dimension), (count, dimension, dimension))
    return CentredMemory(
        units=np.zeros((count, dimension)),
        spreads=np.zeros((count, dimension)),
        ridge=np.full((count, dimension), ridge * dimension),
        gram=prior.copy(),
        inverse=np.broadcast_to(np.eye(dimension) / (ridge * dimension), prior.shape).copy(),
        theta=np.zeros((count, dimension)),
        weighed=np.zeros((count, dimension, dimension)),
        variance=np.ones(count),
        squares=np.zeros(count),
        rounds=np.zeros(count, dtype=np.int64),
        taught=np.zeros(count, dtype=np.int64),
        key=np.asarray(keys, dtype=np.int64),
        first=np.full(count, ridge * dimension),
    )


@compiled_in_place
def scale_into(units: Array, features: Array, scaled: Array) -> None:
    """Write features in units of their spread; note the unit of a feature that differs for the first time."""
    count, size = features.shape
    for k in range(size):
        if units[k] == 0.0:
            mean = 0.0
            for a in range(count):
                mean += features[a, k] / count
            squares = 0.0
            for a in range(count):
                squares += (features[a, k] - mean) ** 2 / count
            # Differences that rounding explains are none.
            if squares > 1e-24 * mean * mean:
                units[k] = np.sqrt(squares)
    # The last row holds the factors until its own turn.
    last = count - 1
    for k in range(size):
        # A feature that never differed has no effect to learn.
        scaled[last, k] = 1.0 / units[k] if units[k] > 0.0 else 0.0
    for a in range(count):
        for k in range(size):
            scaled[a, k] = features[a, k] * scaled[last, k]


@compiled_in_place
def spread_of(scaled: Array, k: int) -> float:
    """Return the variance of a feature between the arms of an offer (K, d)."""
    count = scaled.shape[0]
    mean = 0.0
    for a in range(count):
        mean += scaled[a, k] / count
    squares = 0.0
    for a in range(count):
        squares += (scaled[a, k] - mean) ** 2 / count
    return squares


@compiled
def change_ridge(memory: Any, i: int, spreads: Array) -> None:
    """Make the ridge that of features with these variances (d,); those that are 0 stay as they are."""
    size = spreads.size
    moment = np.empty(size)
    times(memory.gram[i], memory.theta[i], moment)
    for k in range(size):
        if spreads[k] > 0.0:
            # The first ridge was that of a variance of 1.
            ridge = memory.first[i] * spreads[k]
            memory.gram[i, k, k] += ridge - memory.ridge[i, k]
            memory.ridge[i, k] = ridge
    invert(memory.gram[i], memory.inverse[i])
    times(memory.inverse[i], moment, memory.theta[i])


@compiled
def grow_ridge(memory: Any, i: int, scaled: Array) -> None:
    """Before an offer is planned for: raise the ridge of features that differ far more than it stands for.

    Coefficients of features that hardly differed so far would otherwise be taken at their word. Nothing here
    depends on rewards, and doing it twice changes nothing.
    """
    size = scaled.shape[1]
    larger = np.zeros(size)
    is_needed = False
    for k in range(size):
        square = spread_of(scaled, k)
        if memory.first[i] * square > FAR * memory.ridge[i, k]:
            larger[k] = square
            is_needed = True
    if is_needed:
        change_ridge(memory, i, larger)


@compiled
def follow_spread(memory: Any, i: int, scaled: Array) -> None:
    """Note the spread of an offer's features; after 2, 4, 8, … rounds the ridge is made to follow it.

    The ridge is then in units of features as they typically are.
    """
    spreads = memory.spreads[i]
    rounds = memory.rounds[i]
    for k in range(spreads.size):
        spreads[k] += (spread_of(scaled, k) - spreads[k]) / rounds
    if rounds > 1 and rounds & (rounds - 1) == 0:
        change_ridge(memory, i, spreads)


@compiled
def forget_rough_rounds(memory: Any, i: int, share: float) -> None:
    """Let all rounds so far count `share` times: their residuals were larger than those of today.

    A forecast of the level that has become good leaves residuals whose variance is lower; in least squares
    a round counts in inverse proportion to it. V = ridge + G becomes ridge + share·G, and Σ x̃e is scaled too.
    The few calm rounds among them count for less, too: their sums are not kept apart.
    """
    size = memory.theta.shape[1]
    gram = memory.gram[i]
    weighed = memory.weighed[i]
    moment = np.empty(size)
    times(gram, memory.theta[i], moment)
    for j in range(size):
        moment[j] *= share
        for k in range(size):
            gram[j, k] *= share
            weighed[j, k] *= share * share
        gram[j, j] += (1.0 - share) * memory.ridge[i, j]
    invert(gram, memory.inverse[i])
    times(memory.inverse[i], moment, memory.theta[i])


@compiled_in_place
def score_centred(_settings: object, memory: Any, i: int, feature: Array) -> float:
    """Return xᵀθ̂; features whose unit is not known count as 0."""
    total = 0.0
    for k in range(feature.size):
        if memory.units[i, k] > 0.0:
            total += feature[k] / memory.units[i, k] * memory.theta[i, k]
    return total


@compiled
def learn_centred(
    _settings: Any,
    memory: Any,  # a CentredMemory, or another with its fields
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to the regression, and estimate anew how much residuals scatter.

    `memory.variance` is the mean of squared residuals e², each weighed by x̃ᵀV⁻¹x̃: by how much its round
    counts in θ̂, whose error has the covariance V⁻¹(Σ x̃x̃ᵀe²)V⁻¹. So a level that was forecast badly in the
    first rounds keeps the variance high for as long as θ̂ mostly rests on them. Rounds in which one arm was
    certain to be played do not lower it, however small their residuals.

    All of it is one function, because handing `memory` on to others would take longer than their work.
    """
    # Where one arm is certain to be played, its reward says nothing about differences between arms.
    is_drawn = probabilities[arm] < 1.0
    is_settled = memory.rounds[i] >= SETTLED  # the ridge follows the features no longer
    if is_settled and not is_drawn:
        memory.rounds[i] += 1
        return
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    if not is_settled:
        grow_ridge(memory, i, scaled)
    memory.rounds[i] += 1
    if is_drawn:
        memory.taught[i] += 1
        taught = memory.taught[i]
        theta = memory.theta[i]
        inverse = memory.inverse[i]
        weighed = memory.weighed[i]
        size = theta.size
        centred = np.empty(size)
        pull = np.empty(size)
        mean_into(scaled, probabilities, centred)
        for k in range(size):
            centred[k] = scaled[arm, k] - centred[k]
        error = reward - forecast - dot(scaled[arm], theta)
        square = error * error
        grown = update_inverse(inverse, centred, 1.0, pull)
        share = error / grown
        for k in range(size):
            theta[k] += pull[k] * share
        add_outer(memory.gram[i], centred, 1.0)
        # Rounding errors gather in an inverse that is updated, and less so in `gram`: begin anew from it.
        if taught % REFRESH == 0:
            invert(memory.gram[i], inverse)
        add_outer(weighed, centred, square)
        if taught <= CAUTIOUS:
            memory.variance[i] = 4.0 * square if taught == 1 else max(memory.variance[i], 4.0 * square)
        else:
            # tr(V⁻¹M)/tr(V⁻¹G), G being V without its ridge; summed by column, which is vectorised.
            columns = pull
            columns[:] = 0.0
            for j in range(size):
                for k in range(size):
                    columns[k] += inverse[j, k] * weighed[j, k]
            over = 0.0
            under = float(size)
            ridge = memory.ridge[i]
            for j in range(size):
                under -= inverse[j, j] * ridge[j]
                over += columns[j]
            memory.variance[i] = over / under
            memory.squares[i] += square
            # After 64, 128, … such rounds the later half is compared with what θ̂ rests on.
            if taught >= ROUGH and taught & (taught - 1) == 0:
                # Two standard errors above a mean of squares, if residuals are normal: no calm by chance.
                recent = memory.squares[i] / (taught // 2) * (1.0 + 2.0 * np.sqrt(4.0 / taught))
                memory.squares[i] = 0.0
                if taught > ROUGH and recent < CALMER * memory.variance[i]:
                    forget_rough_rounds(memory, i, recent / memory.variance[i])
                    memory.variance[i] = recent
    # After the reward was centred with the θ̂ that planned the round.
    if not is_settled:
        follow_spread(memory, i, scaled)
