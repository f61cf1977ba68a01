"""Small positive definite systems inside compiled loops, one replication at a time."""

import numpy as np

from orthobandit._compile import compiled
from orthobandit._types import Array


@compiled
def factor(matrix: Array, size: int, lower: Array, floor: float) -> bool:
    """Write L with LLᵀ = matrix[:size, :size] to the lower triangle of `lower`.

    Returns False as soon as a pivot is not above `floor` times its diagonal entry: the matrix is then
    singular to that precision and `lower` is not to be used.
    """
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = total / lower[j, j]
            elif total > floor * matrix[i, i]:
                lower[i, i] = np.sqrt(total)
            else:
                return False
    return True


@compiled
def forward(lower: Array, size: int, right: Array) -> None:
    """Overwrite right[:size] with L⁻¹ right."""
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= lower[i, k] * right[k]
        right[i] = total / lower[i, i]


@compiled
def backward(lower: Array, size: int, right: Array) -> None:
    """Overwrite right[:size] with L⁻ᵀ right."""
    for i in range(size - 1, -1, -1):
        total = right[i]
        for k in range(i + 1, size):
            total -= lower[k, i] * right[k]
        right[i] = total / lower[i, i]


@compiled
def whiten(lower: Array, rows: Array, out: Array) -> None:
    """Write L⁻¹ x of every row x of `rows` (K, n) to the columns of `out` (n, K)."""
    count, size = rows.shape
    for i in range(size):
        for a in range(count):
            out[i, a] = rows[a, i]
        # Along the arms, so that each step is one vector operation over all of them.
        for k in range(i):
            share = lower[i, k]
            for a in range(count):
                out[i, a] -= share * out[k, a]
        scale = 1.0 / lower[i, i]
        for a in range(count):
            out[i, a] *= scale
