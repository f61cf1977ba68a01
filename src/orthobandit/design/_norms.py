"""The largest distance between two of many points, without a table of all pairs."""

import numpy as np

from orthobandit._types import Array

BLOCK = 512


def diameter(points: Array) -> float:
    """Return max_{i,j} ‖z_i − z_j‖ for points (K, r).

    Points are sorted by distance from their mean; two blocks are compared only if the farthest members
    of both could beat the best pair so far (triangle inequality), so clouds cost much less than K².
    """
    if len(points) < 2 or not points.shape[1]:
        return 0.0
    centred = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    order = np.argsort(-squares, kind="stable")
    centred, squares = centred[order], squares[order]
    sizes = np.sqrt(squares)
    best = 0.0
    for i in range(0, len(centred), BLOCK):
        if 2 * sizes[i] <= best:
            break
        for j in range(i, len(centred), BLOCK):
            if sizes[i] + sizes[j] <= best:
                break
            distances = squares[i : i + BLOCK, np.newaxis] + squares[j : j + BLOCK]
            distances -= 2.0 * (centred[i : i + BLOCK] @ centred[j : j + BLOCK].T)
            best = max(best, float(np.sqrt(distances.max(initial=0.0))))
    return best
