"""The same optima as a general convex solver, on small random problems."""

import cvxpy as cp
import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import anchor_design, centred_design, contrast_design, g_optimal_design


def problem_of(seed):
    rng = np.random.default_rng(seed)
    count, width = int(rng.integers(6, 30)), int(rng.integers(1, 5))
    return rng.standard_normal((count, width)) + rng.standard_normal(width)


def moment(p, z):
    return z.T @ cp.diag(p) @ z


def solved(objective, p, constraints=()):
    problem = cp.Problem(objective, [cp.sum(p) == 1, *constraints])
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    return problem.value


def log_det(z, p):
    return np.linalg.slogdet((z.T * p) @ z)[1]


def lifted(x):
    return np.hstack([np.ones((len(x), 1)), x])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("solver", "points"),
    [
        (centred_design, lifted),
        (g_optimal_design, lambda x: x),
        (anchor_design, lambda x: x - x[0]),
    ],
    ids=["centred", "g-optimal", "anchor"],
)
def test_determinants(solver, points, seed):
    x = problem_of(seed)
    z = points(x)
    p = cp.Variable(len(x), nonneg=True)
    theirs = solved(cp.Maximize(cp.log_det(moment(p, z))), p)
    probabilities = solver(ArmSet(x), gap=1e-8).probabilities.copy()
    if solver is anchor_design:
        probabilities = 2 * probabilities
        probabilities[0] -= 1
    assert log_det(z, probabilities) == pytest.approx(theirs, abs=1e-5)


def worst(z, contrasts, p):
    return np.einsum("ij,ji->i", contrasts, np.linalg.solve((z.T * p) @ z, contrasts.T)).max()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["all pairs", "reference", "weighted", "single"])
def test_contrasts(kind, seed):
    x = problem_of(seed + 10)[:14]
    rng = np.random.default_rng(seed)
    arms, first = ArmSet(x), np.array([[0, 1]])
    pairs = {
        "all pairs": np.array(np.triu_indices(len(x), 1)).T,
        "reference": np.array([[i, 2] for i in range(len(x)) if i != 2]),
        "weighted": rng.permutation(len(x))[:6].reshape(3, 2),
        "single": first,
    }[kind]
    weights = rng.uniform(0.2, 5, len(pairs)) if kind == "weighted" else np.ones(len(pairs))
    asked = {
        "all pairs": {},
        "reference": {"reference": 2},
        "weighted": {"pairs": pairs, "weights": weights},
        "single": {"pairs": first},
    }[kind]
    z = lifted(x)
    contrasts = (z[pairs[:, 0]] - z[pairs[:, 1]]) * np.sqrt(weights)[:, np.newaxis]
    p, bound = cp.Variable(len(x), nonneg=True), cp.Variable()
    below = [cp.matrix_frac(y, moment(p, z)) <= bound for y in contrasts]
    theirs = solved(cp.Minimize(bound), p, below)
    design = contrast_design(arms, **asked)
    assert worst(z, contrasts, design.probabilities) == pytest.approx(theirs, rel=1.2e-4)
