"""Bounds of all past residuals at once, from where θ must lie by now.

W(θ) = Λ + Σ g²ε(θ)²Q, with ε(θ) = e − x̃ᵀθ and Q = (x̃x̃ᵀ + 2Σ_t)/3, is a polynomial of degree two in θ. Its
coefficients are sums over rounds: `second` Σ g²ε²Q, `third` Σ g²ε·x̃ ⊗ Q and `fourth` Σ g²·x̃x̃ᵀ ⊗ Q, where ε is
that of some centre. If θ = centre + Lv with ‖v‖ ≤ 1, M_i is `third` contracted with Le_i, and M_ij is
`fourth` contracted with Le_i and Le_j, then

    W(θ) = W − 2Σ v_iM_i + Σ v_iv_jM_ij,    W that of the centre.

Σ c_kM_k ≼ ½(τX + τ⁻¹ΣM_kX⁻¹M_k) for every ‖c‖ ≤ 1, X ≻ 0 and τ > 0, and vvᵀ is ‖v‖²/d times I plus a matrix
of trace 0 and norm at most √(1 − 1/d): W̄ ≽ W(θ) follows from sums alone (docs/contextual.md has the proof).

Symmetric matrices are packed: entries (a, b) with a ≤ b, row by row, P = d(d + 1)/2 of them.
"""

from typing import Any

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual._exact_sums import refresh_inverses
from orthobandit.policy.contextual.regression import dot, invert, times

# `fourth` has about d⁴/4 numbers, and every round with a choice adds to all: 350 kB a replication at d = 20.
MAX_DIMENSION = 24
# log det A, over what it was at the last look, at which past residuals are looked at again: at most, and per
# feature. The plans' ellipsoid is that of the last look.
LOOK_AFTER = 0.5
LOOK_AFTER_PER_FEATURE = 0.03
LOOKS = 3  # bounds in a row at one look: each is found from the ellipsoid of the one before
WORTH_IT = 0.01  # gain in log volume, per feature, that makes another bound worth its time
NEGLIGIBLE = 0.05  # part of W below which the simplest bound of its last term will do
# Shares of the ball ‖θ‖ ≤ size in the ellipsoid. None is 0 or 1, which the proof on regret needs.
SHARES = np.array([0.003, 0.03, 0.1, 0.3, 0.6, 0.9])
# Values of λ, each 8 times the one before. The mixture holds for all of them at once, at a price of 2·log 3.
PRIORS = 3
PRIOR_STEP = 8.0
# A reward 10⁸ times as large as residuals leaves no digits of W in other directions, and none of an inverse
# that is updated. Any larger W is valid: its diagonal is raised by this part, well above what rounding loses.
ROUNDING = 1e-10
JUMP = np.log(1e6)  # of log det W or log det A in one round, at which inverses are computed afresh


def looks_back(dimension: int) -> bool:
    """Return whether past residuals are bounded anew as θ̂ improves; else each keeps the bound of its time."""
    return dimension <= MAX_DIMENSION


def begin_residuals(dimension: int, size: float, prior: float, keys: Whole) -> dict[str, Any]:
    """Return what is known before the first round, ‖θ‖ ≤ size, and the sums over no rounds, by name."""
    count = len(keys)
    summed = dimension if looks_back(dimension) else 0
    packed = summed * (summed + 1) // 2
    return {
        "centre": np.zeros((count, dimension)),
        "norm": np.broadcast_to(size**2 * np.eye(dimension), (count, dimension, dimension)).copy(),
        "prior": np.full(count, prior),
        "drift": np.zeros(count),
        "about": np.zeros((count, summed)),
        "second": np.zeros((count, packed)),
        "third": np.zeros((count, summed, packed)),
        "fourth": np.zeros((count, packed, packed)),
    }


@compiled
def add_packed(packed: Array, vector: Array, weight: float) -> None:
    """Add weight·vvᵀ to a packed matrix (P,)."""
    place = 0
    for a in range(vector.size):
        share = weight * vector[a]
        for b in range(a, vector.size):
            packed[place] += share * vector[b]
            place += 1


@compiled
def unpack_into(packed: Array, matrix: Array) -> None:
    """Write a packed matrix (P,) to both triangles of `matrix` (d, d)."""
    place = 0
    for a in range(matrix.shape[0]):
        for b in range(a, matrix.shape[0]):
            matrix[a, b] = packed[place]
            matrix[b, a] = packed[place]
            place += 1


@compiled
def add_residual(
    memory: Any,
    i: int,
    features: Array,
    mean: Array,
    probabilities: Array,
    arm: int,
    error: float,
    weight: float,
) -> None:
    """Add a round with weight g to the sums; `error` is r − f, and `mean` (d,) is μ_t."""
    count, size = features.shape
    fourth = memory.fourth[i]
    packed = fourth.shape[0]
    centred = np.empty(size)
    outer = np.zeros(packed)
    planned = np.zeros(packed)  # g²Q
    square = weight * weight / 3.0
    for a in range(count):
        share = 2.0 * square * probabilities[a]
        if a == arm:
            share += square
        if share > 0.0:
            for k in range(size):
                centred[k] = features[a, k] - mean[k]
            add_packed(planned, centred, share)
    for k in range(size):
        centred[k] = features[arm, k] - mean[k]
    add_packed(outer, centred, 1.0)
    residual = error - dot(centred, memory.about[i])
    for q in range(packed):
        memory.second[i, q] += residual * residual * planned[q]
    for k in range(size):
        share = residual * centred[k]
        for q in range(packed):
            memory.third[i, k, q] += share * planned[q]
    for p in range(packed):
        share = outer[p]
        for q in range(packed):
            fourth[p, q] += share * planned[q]


@compiled
def contract_into(fourth: Array, vector: Array, out: Array) -> None:
    """Write the sum over b of vector_b·fourth[(a, b), :] for every a: `out` is (d, P)."""
    out[:] = 0.0
    place = 0
    for a in range(vector.size):
        for b in range(a, vector.size):
            row = fourth[place]
            share = vector[b]
            if share != 0.0:
                for q in range(row.size):
                    out[a, q] += share * row[q]
            share = vector[a]
            if b > a and share != 0.0:
                for q in range(row.size):
                    out[b, q] += share * row[q]
            place += 1


@compiled
def recentre(memory: Any, i: int, centre: Array) -> None:
    """Make the sums those of residuals at another value of θ."""
    size = centre.size
    move = centre - memory.about[i]
    second = memory.second[i]
    third = memory.third[i]
    moved = np.empty(third.shape)
    contract_into(memory.fourth[i], move, moved)
    for a in range(size):
        for q in range(second.size):
            second[q] += move[a] * (moved[a, q] - 2.0 * third[a, q])
    for a in range(size):
        for q in range(second.size):
            third[a, q] -= moved[a, q]
        memory.about[i, a] = centre[a]


@compiled
def multiply_into(left: Array, right: Array, out: Array) -> None:
    """Write left·right (d, d)."""
    size = left.shape[0]
    out[:] = 0.0
    for a in range(size):
        for k in range(size):
            share = left[a, k]
            for b in range(size):
                out[a, b] += share * right[k, b]


@compiled
def add_sandwich(matrix: Array, inverse: Array, weight: float, half: Array, out: Array) -> None:
    """Add weight·MX⁻¹M to `out`, for symmetric M and X⁻¹; `half` (d, d) is overwritten."""
    size = matrix.shape[0]
    multiply_into(matrix, inverse, half)
    for a in range(size):
        for k in range(size):
            share = weight * half[a, k]
            for b in range(size):
                out[a, b] += share * matrix[k, b]


@compiled
def mean_part(inverse: Array, matrix: Array) -> float:
    """Return tr(X⁻¹M)/d."""
    size = matrix.shape[0]
    total = 0.0
    for a in range(size):
        total += dot(inverse[a], matrix[a])
    return float(total / size)


@compiled
def log_determinant(matrix: Array) -> float:
    """Return log det of a positive definite matrix; +∞ if it is not, by rounding."""
    size = matrix.shape[0]
    lower = np.zeros((size, size))
    if not cholesky_into(matrix, size, lower, 0.0):
        return np.inf
    total = 0.0
    for a in range(size):
        total += 2.0 * np.log(lower[a, a])
    return total


@compiled
def raise_diagonal(matrix: Array) -> None:
    """Make a matrix that is positive semi-definite up to rounding positive definite, in any units."""
    for a in range(matrix.shape[0]):
        matrix[a, a] *= 1.0 + ROUNDING


@compiled
def restate(memory: Any, i: int) -> None:
    """Compute inverses and log det(W/λ) afresh from A and W, after a round that dwarfs all before it."""
    size = memory.theta.shape[1]
    raise_diagonal(memory.scatter[i])
    refresh_inverses(
        memory.gram[i], memory.scatter[i], memory.inverse[i], memory.scatter_inverse[i], memory.spread[i]
    )
    logs = log_determinant(memory.scatter[i])
    memory.growth[i] = logs - size * np.log(memory.prior[i]) + 2.0 * np.log(PRIORS)


@compiled
def where_into(settings: Any, memory: Any, i: int, centre: Array, lower: Array) -> bool:
    """Write centre and L, so that θ = centre + Lv with ‖v‖ ≤ 1; return False if there is no such θ.

    ‖b − Gθ‖²_{W⁻¹}/β² ≤ 1 and ‖θ‖²/size² ≤ 1 are averaged, with the weights that leave the least volume.
    Where nothing is left, the event of probability 1 − δ has not happened.
    """
    size = centre.size
    gram = memory.gram[i].copy()
    moment = np.empty(size)
    times(gram, memory.theta[i], moment)
    for a in range(size):
        gram[a, a] -= settings.ridge
    scale = 1.0 / (2.0 * settings.log_inverse + memory.growth[i])
    half = np.empty((size, size))
    pulled = np.empty((size, size))
    multiply_into(gram, memory.scatter_inverse[i], half)
    multiply_into(half, gram, pulled)
    other = np.empty(size)
    times(memory.scatter_inverse[i], moment, other)
    length = dot(moment, other) * scale
    towards = np.empty(size)
    times(gram, other, towards)
    shape = np.empty((size, size))
    inverse = np.empty((size, size))
    middle = np.empty(size)
    factor = np.zeros((size, size))
    least = np.inf
    for ball in SHARES:
        # (θ − c)ᵀH(θ − c) ≤ `left`, H being the average of GW⁻¹G/β² and I/size².
        share = (1.0 - ball) * scale
        for a in range(size):
            for b in range(size):
                shape[a, b] = share * pulled[a, b]
            shape[a, a] += ball / settings.size**2
            other[a] = share * towards[a]
        invert(shape, inverse)
        times(inverse, other, middle)
        left = 1.0 - (1.0 - ball) * length + dot(middle, other)
        if not left > 0.0:
            continue
        for a in range(size):
            for b in range(size):
                shape[a, b] = left * inverse[a, b]
        if not cholesky_into(shape, size, factor, 0.0):
            continue
        volume = 0.0
        for a in range(size):
            volume += np.log(factor[a, a])
        if volume < least:
            least = volume
            for a in range(size):
                centre[a] = middle[a]
                for b in range(a + 1):
                    lower[a, b] = factor[a, b]
    return least < np.inf


@compiled
def bound_into(settings: Any, memory: Any, i: int, lower: Array, bound: Array) -> bool:
    """Write W̄ ≽ W(θ) for every θ = about + Lv with ‖v‖ ≤ 1, W with the least of the priors.

    Returns False if rounding has left no digits of W.
    """
    size = lower.shape[0]
    packed = memory.second[i].size
    unpack_into(memory.second[i], bound)
    for a in range(size):
        bound[a, a] += settings.prior
    raise_diagonal(bound)
    if log_determinant(bound) == np.inf:
        return False
    inverse = np.empty((size, size))
    invert(bound, inverse)
    row = np.empty(packed)
    matrix = np.empty((size, size))
    half = np.empty((size, size))
    crossed = np.zeros((size, size))
    # M_i: `third` contracted with a column of L.
    for k in range(size):
        row[:] = 0.0
        for a in range(k, size):
            for q in range(packed):
                row[q] += lower[a, k] * memory.third[i, a, q]
        unpack_into(row, matrix)
        add_sandwich(matrix, inverse, 1.0, half, crossed)
    # M_ij, of which the sum of M_ii alone bounds the last term.
    diagonal = np.zeros((size, size))
    norm = np.zeros((size, size))
    for a in range(size):
        for b in range(size):
            norm[a, b] = dot(lower[a], lower[b])
    row[:] = 0.0
    place = 0
    for a in range(size):
        for b in range(a, size):
            share = norm[a, b] if a == b else 2.0 * norm[a, b]
            for q in range(packed):
                row[q] += share * memory.fourth[i, place, q]
            place += 1
    unpack_into(row, diagonal)
    part = mean_part(inverse, diagonal)
    spread = np.zeros((size, size))
    root = 0.0
    if part > NEGLIGIBLE:
        columns = np.empty((size, packed))
        column = np.empty(size)
        for k in range(size):
            for a in range(size):
                column[a] = lower[a, k] if a >= k else 0.0
            contract_into(memory.fourth[i], column, columns)
            for j in range(k + 1):
                row[:] = 0.0
                for a in range(j, size):
                    for q in range(packed):
                        row[q] += lower[a, j] * columns[a, q]
                unpack_into(row, matrix)
                add_sandwich(matrix, inverse, 1.0 if j == k else 2.0, half, spread)
        add_sandwich(diagonal, inverse, -1.0 / size, half, spread)
        root = np.sqrt(max(mean_part(inverse, spread), 0.0))
    off = np.sqrt(1.0 - 1.0 / size)
    is_spread = root > 0.0 and part / size + off * root < part
    cross = np.sqrt(max(mean_part(inverse, crossed), 0.0))
    stretch = 1.0 + cross
    if is_spread:
        stretch += 0.5 * off * root
    for a in range(size):
        for b in range(size):
            # (ε − x̃ᵀh)² ≤ 2ε² + 2(x̃ᵀh)².
            simple = 2.0 * (bound[a, b] + diagonal[a, b])
            value = stretch * bound[a, b]
            if cross > 0.0:
                value += crossed[a, b] / cross
            if is_spread:
                value += diagonal[a, b] / size + 0.5 * off * spread[a, b] / root
            else:
                value += diagonal[a, b]
            bound[a, b] = value
            # What the simple bound has beyond this one.
            half[a, b] = simple - value
    # In no direction more than the simple bound, which the proof on regret needs.
    if not cholesky_into(half, size, matrix, 0.0):
        for a in range(size):
            for b in range(size):
                bound[a, b] += half[a, b]
    return True


@compiled
def look_back(settings: Any, memory: Any, i: int) -> None:
    """Bound all residuals so far, make W what follows if it is less, and note where θ lies for the plans.

    Of the priors λ the one is taken with which the ellipsoid has the least volume.
    """
    size = memory.theta.shape[1]
    is_summed = memory.about.shape[1] > 0
    memory.drift[i] = 0.0
    lower = np.zeros((size, size))
    centre = np.zeros(size)
    bound = np.empty((size, size))
    least = log_determinant(memory.scatter[i]) + size * np.log(2.0 * settings.log_inverse + memory.growth[i])
    for _ in range(LOOKS if is_summed else 1):
        if is_summed:
            if not where_into(settings, memory, i, centre, lower):
                return
            recentre(memory, i, centre)
            if not bound_into(settings, memory, i, lower, bound):
                break
        else:
            bound[:] = memory.scatter[i]
            for a in range(size):
                bound[a, a] += settings.prior - memory.prior[i]
        before = least
        last = settings.prior
        for step in range(PRIORS):
            prior = settings.prior * PRIOR_STEP**step
            for a in range(size):
                bound[a, a] += prior - last
            last = prior
            logs = log_determinant(bound)
            growth = logs - size * np.log(prior) + 2.0 * np.log(PRIORS)
            volume = logs + size * np.log(2.0 * settings.log_inverse + growth)
            if volume < least:
                least = volume
                memory.prior[i] = prior
                memory.growth[i] = growth
                memory.scatter[i] = bound
        if least < before:
            refresh_inverses(
                memory.gram[i],
                memory.scatter[i],
                memory.inverse[i],
                memory.scatter_inverse[i],
                memory.spread[i],
            )
        if before - least < WORTH_IT * size:
            break
    if not where_into(settings, memory, i, centre, lower):
        return
    for a in range(size):
        memory.centre[i, a] = centre[a]
        for b in range(size):
            memory.norm[i, a, b] = dot(lower[a], lower[b])
