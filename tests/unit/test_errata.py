"""What docs/errata.md says of the paper and of public code, by computation."""

from itertools import combinations
from math import log, sqrt

import numpy as np
import pytest

from inside.policy import xy_design
from orthobandit import ArmSet
from orthobandit.design import Design, anchor_design
from orthobandit.simulation import near_degenerate


@pytest.mark.parametrize(("p", "factor"), [(1e-4, 31), (1e-6, 262), (1e-8, 2287)])
def test_lemma_10_as_printed_holds_for_no_constant(p, factor):
    # Two arms, 0 and 1, one round (t = 1), the second drawn with probability p, and δ = p/2.
    covariance = p * (1 - p)
    largest = max(p, 1 - p) ** 2 / covariance  # M
    off = abs((1 - p) ** 2 - covariance) / covariance  # of Σ̂ from Σ, in Σ's norm, with probability p > δ
    delta = p / 2
    printed = sqrt(largest * log(1 / delta))
    assert off / printed > factor
    # With the term of Lemma 27 it holds.
    assert off < sqrt(8 * largest * log(1 / delta)) + 6 * largest * log(1 / delta)


def test_the_norms_of_the_counterexample_are_those_of_a_design():
    arms, p = ArmSet([[0.0], [1.0]]), 1e-4
    design = Design(arms, np.array([1 - p, p]), "anchor", 0, 0.0)
    assert design.centred_norm**2 == pytest.approx((1 - p) / p)


def project_to_simplex(weights):
    """Return the nearest distribution to weights (K,)."""
    ordered = np.sort(weights)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(ordered) + 1)
    return np.maximum(weights - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)


def constant_steps(points, step=0.2, ridge=1e-6, apart=25, tolerance=1e-3):
    """Minimise max ‖x_i − x_j‖²_{A_p⁻¹} by a projected subgradient; return where it stops, and the steps."""
    pairs = np.array([one - other for one, other in combinations(points, 2)])
    p = np.full(len(points), 1.0 / len(points))
    values = []
    while len(values) <= apart or abs(values[-1] / values[-1 - apart] - 1.0) > tolerance:
        gram = (points * p[:, np.newaxis]).T @ points + ridge * np.eye(points.shape[1])
        solved = np.linalg.solve(gram, pairs.T).T
        squares = np.sum(pairs * solved, axis=1)
        worst = int(np.argmax(squares))
        values.append(squares[worst])
        p = project_to_simplex(p + step * (points @ solved[worst]) ** 2)
    return p, len(values)


@pytest.mark.parametrize("anchor", [0, 1, 5, 10])
def test_the_constant_step_of_the_xy_design_takes_twice_the_rounds_on_the_small_gap(anchor):
    arms = near_degenerate().arms
    seen = arms.features - arms.features[anchor]
    everyone = np.ones(len(arms), dtype=bool)

    def largest_variance(local):
        p = local / 4 + anchor_design(arms).probabilities / 2
        p[anchor] += 0.25
        return Design(arms, p, "spbai", 0, 0.0).contrast_norm ** 2

    stepped, steps = constant_steps(seen)
    assert steps < 30
    assert np.sort(stepped)[-2:] == pytest.approx([0.5, 0.5])
    assert largest_variance(stepped) == pytest.approx(80.0, rel=1e-6)
    certified, _ = xy_design(ArmSet(seen), everyone)
    assert largest_variance(certified) == pytest.approx(40.0, rel=1e-3)
