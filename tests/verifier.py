"""What a design is worth, recomputed from raw features in exact rational arithmetic.

Slow and obvious on purpose, and independent of the package: floats become fractions, linear systems are
solved by elimination without rounding, and every norm is taken at its word. Infinite norms are `math.inf`.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

ZERO, ONE = Fraction(0), Fraction(1)


def exact(array):
    """Return nested lists of fractions equal to the floats of an array; lists are fractions already."""
    if isinstance(array, list):
        return array
    array = np.asarray(array, dtype=float)
    return [Fraction(x) for x in array.tolist()] if array.ndim == 1 else [exact(row) for row in array]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def independent_columns(rows):
    """Return positions of columns that are a basis of the column space, by elimination."""
    rows, columns, done = [list(row) for row in rows], [], 0
    for j in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(done, len(rows)) if rows[i][j] != 0), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        for i in range(done + 1, len(rows)):
            factor = rows[i][j] / rows[done][j]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[done], strict=True)]
        columns.append(j)
        done += 1
    return columns


def solved(matrix, right):
    """Return x with matrix·x = right for several right-hand sides, or None if the matrix is singular."""
    n = len(matrix)
    rows = [list(row) + [r[i] for r in right] for i, row in enumerate(matrix)]
    for j in range(n):
        pivot = next((i for i in range(j, n) if rows[i][j] != 0), None)
        if pivot is None:
            return None
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [x / rows[j][j] for x in rows[j]]
        for i in range(n):
            if i != j and rows[i][j]:
                factor = rows[i][j]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[j], strict=True)]
    return [[rows[i][n + k] for i in range(n)] for k in range(len(right))]


class Exact:
    """A design on the hull of the arms: coordinates are the columns that tell the arms apart.

    With `centred` norms are those of Σ⁻¹ around the mean, without it those of (Σ p x xᵀ)⁻¹.
    """

    def __init__(self, features, probabilities, *, centred=True):
        features, p = exact(features), exact(probabilities)
        self.p = [x / sum(p) for x in p]
        differences = [minus(x, features[0]) for x in features] if centred else features
        self.columns = independent_columns(differences)
        self.rank = len(self.columns)
        self.points = [[x[j] for j in self.columns] for x in features]
        self.mean = [dot(self.p, column) for column in zip(*self.points, strict=True)]
        if not centred:
            self.mean = [ZERO] * self.rank
        played = [(q, minus(x, self.mean)) for q, x in zip(self.p, self.points, strict=True) if q]
        self.covariance = [
            [sum((q * x[i] * x[j] for q, x in played), ZERO) for j in range(self.rank)]
            for i in range(self.rank)
        ]
        unit = [[ONE if i == j else ZERO for j in range(self.rank)] for i in range(self.rank)]
        self.inverse = solved(self.covariance, unit)

    def image(self, vector):
        """Return Σ⁻¹·vector."""
        return [dot(row, vector) for row in self.inverse]

    def squared(self, vector):
        """Return vectorᵀΣ⁻¹vector for a vector in the chosen columns."""
        if self.inverse is None:
            return ZERO if not any(vector) else math.inf
        return dot(vector, self.image(vector))

    def leverages(self):
        return [self.squared(minus(x, self.mean)) for x in self.points]

    def to(self, reference):
        return [self.squared(minus(x, self.points[reference])) for x in self.points]

    def pairs(self):
        return max(max(self.to(i)) for i in range(len(self.points)))

    def gap(self):
        """Return max leverage / rank − 1, what a D-optimal design certifies."""
        return float(max(self.leverages()) / self.rank - 1)

    def contrast_gap(self, contrasts, weights=None, allowed=None):
        """Return (largest weighted squared norm) / (a lower bound for every design) − 1.

        The multipliers come from a linear program in floats; whatever they are, the bound evaluated with
        them is exact and valid, so that only a certificate that is really there can be found.
        """
        weights = [ONE] * len(contrasts) if weights is None else exact(weights)
        vectors = [[y[j] for j in self.columns] for y in contrasts]
        images = [self.image(y) for y in vectors]
        values = [w * dot(y, g) for w, y, g in zip(weights, vectors, images, strict=True)]
        allowed = range(len(self.points)) if allowed is None else allowed
        # Pull of contrast y on arm i: w (x_i−μ)ᵀΣ⁻¹y squared.
        pulls = [
            [w * dot(minus(self.points[i], self.mean), g) ** 2 for w, g in zip(weights, images, strict=True)]
            for i in allowed
        ]
        multipliers = _multipliers(np.array(values, dtype=float), np.array(pulls, dtype=float))
        phi = dot(multipliers, values)
        bound = phi**2 / max(dot(multipliers, row) for row in pulls)
        return float(max(values) / bound - 1)


def single_contrast_gap(features, probabilities, contrast):
    """Return the gap of one contrast y by Elfving's theorem: yᵀΣ_p⁻¹y ≥ (yᵀh)² if |a + x_iᵀh| ≤ 1 for all i.

    The best a, h come from a linear program in floats and are scaled to hold exactly.
    """
    design = Exact(features, probabilities)
    y = [contrast[j] for j in design.columns]
    around = [minus(x, design.points[0]) for x in design.points]
    unit = [max(abs(x) for x in column) for column in zip(*around, strict=True)]
    scaled = np.array([[u / v for u, v in zip(x, unit, strict=True)] for x in around], dtype=float)
    target = np.array([u / v for u, v in zip(y, unit, strict=True)], dtype=float)
    lifted = np.column_stack([np.ones(len(scaled)), scaled])
    result = linprog(
        -np.append(0.0, target / np.abs(target).max()),
        A_ub=np.vstack([lifted, -lifted]),
        b_ub=np.ones(2 * len(lifted)),
        bounds=(None, None),
        method="highs",
    )
    assert result.success, result.message
    a, *h = exact(result.x)
    h = [u / v for u, v in zip(h, unit, strict=True)]
    largest = max(abs(a + dot(x, h)) for x in around)
    return float(design.squared(y) / (dot(y, h) / largest) ** 2 - 1)


def _multipliers(values, pulls):
    """Return λ ≥ 0, Σλ = 1, that about maximises (λᵀv)²/max_i (pulls·λ)_i.

    Near the optimum both λᵀv and the maximum are close to max v, so in units of it the logarithm of the
    bound is close to 2λᵀv − max_i (pulls·λ)_i − 1: a linear program.
    """
    top, count = values.max(), len(values)
    result = linprog(
        np.append(-2.0 * values / top, 1.0),
        A_ub=np.column_stack([pulls / top, -np.ones(len(pulls))]),
        b_ub=np.zeros(len(pulls)),
        A_eq=np.append(np.ones(count), 0.0)[np.newaxis],
        b_eq=[1.0],
        method="highs",
    )
    assert result.success, result.message
    found = exact(np.maximum(result.x[:count], 0.0))
    return [x / sum(found) for x in found]
