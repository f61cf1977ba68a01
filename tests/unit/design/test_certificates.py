"""Every certificate and norm, recomputed from raw features in exact arithmetic."""

import itertools

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import anchor_design, centred_design, contrast_design, g_optimal_design
from verifier import Exact, exact, minus, single_contrast_gap


def conditioned(condition):
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    return (rng.standard_normal((30, 5)) * np.geomspace(1, 1 / condition, 5)) @ turn


def clustered(spread):
    rng = np.random.default_rng(2)
    return rng.standard_normal((6, 4))[rng.integers(6, size=30)] + spread * rng.standard_normal((30, 4))


def sphere():
    points = np.random.default_rng(3).standard_normal((30, 4))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def low_rank():
    rng = np.random.default_rng(4)
    return (rng.integers(-4, 5, (20, 3)) @ rng.integers(-4, 5, (3, 6)) + 7).astype(float)


def far_arm():
    points = np.random.default_rng(5).standard_normal((25, 4))
    points[7] *= 1e9
    return points


def plain(count=30, width=4, seed=6):
    return np.random.default_rng(seed).standard_normal((count, width))


FAMILIES = {
    "condition 1e4": conditioned(1e4),
    "condition 1e8": conditioned(1e8),
    "condition 1e12": conditioned(1e12),
    "duplicated": np.tile(plain(10), (3, 1)),
    "integer grid": np.array(list(itertools.product([-1.0, 0.0, 1.0, 2.0], repeat=3))),
    "binary": np.array(list(itertools.product([0.0, 1.0], repeat=4))),
    "one-hot": np.eye(8),
    "sphere": sphere(),
    "clusters 1e-2": clustered(1e-2),
    "clusters 1e-5": clustered(1e-5),
    "clusters 1e-8": clustered(1e-8),
    "heavy tails": np.random.default_rng(7).standard_t(1.2, (30, 4)),
    "exponents": np.exp(4 * plain()),
    "lengths": plain() * 10.0 ** np.random.default_rng(8).uniform(-6, 6, (30, 1)),
    "offset 1e3": plain() + 1e3,
    "offset 1e8": plain() + 1e8 * plain(1, 4),
    "units": plain() * [1e-12, 1e-3, 1e5, 1e12],
    "one far arm": far_arm(),
    "fewer dimensions": low_rank(),
    "constant column": np.hstack([np.ones((30, 1)), plain(30, 3)]),
    "polynomials": np.vander(np.linspace(-1, 0.5, 25), 6),
}
EVERY = pytest.mark.parametrize("name", FAMILIES)


def squared(norm):
    return pytest.approx(float(norm) ** 2, rel=1e-8)


def check_norms(design):
    truth = Exact(design.arms.features, design.probabilities)
    assert truth.rank == design.arms.dimension
    assert float(max(truth.leverages())) == squared(design.centred_norm)
    assert float(max(truth.to(design.reference))) == squared(design.reference_norm)
    assert float(truth.pairs()) == squared(design.contrast_norm)
    return truth


@EVERY
def test_centred(name):
    design = centred_design(ArmSet(FAMILIES[name]))
    gap = check_norms(design).gap()
    assert gap == pytest.approx(design.optimality_gap, abs=1e-9)
    assert gap <= 1e-6


@EVERY
def test_g_optimal(name):
    design = g_optimal_design(ArmSet(FAMILIES[name]))
    truth = Exact(FAMILIES[name], design.probabilities, centred=False)
    assert truth.gap() == pytest.approx(design.optimality_gap, abs=1e-9)
    assert truth.gap() <= 1e-6
    assert len(design.support) <= truth.rank * (truth.rank + 1) // 2


@EVERY
@pytest.mark.parametrize("reference", [7, pytest.param(0, marks=pytest.mark.slow)])
def test_anchor(name, reference):
    design = anchor_design(ArmSet(FAMILIES[name]), reference)
    truth = check_norms(design)
    features, around = exact(FAMILIES[name]), 2 * design.probabilities
    around[reference] -= 1
    differences = [minus(x, features[reference]) for x in features]
    inner = Exact(differences, around, centred=False)
    assert inner.gap() == pytest.approx(design.optimality_gap, abs=1e-9)
    assert inner.gap() <= 1e-6
    root = np.sqrt(truth.rank * (1 + inner.gap()))
    assert design.reference_norm <= 2 * root * (1 + 1e-9)
    assert design.centred_norm <= (2 * root + 1) * (1 + 1e-9)
    assert design.contrast_norm <= 4 * root * (1 + 1e-9)
    assert len(design.support) <= truth.rank * (truth.rank + 1) // 2 + 1


def few(name):
    """Return arms few enough to list all pairs of them exactly."""
    features = FAMILIES[name]
    return features[np.linspace(0, len(features) - 1, 12).astype(int)] if len(features) > 12 else features


@EVERY
def test_contrast_of_all_pairs(name):
    design = contrast_design(ArmSet(few(name)), gap=1e-5)
    features = exact(few(name))
    pairs = [minus(x, y) for x, y in itertools.combinations(features, 2)]
    assert check_norms(design).contrast_gap([pair for pair in pairs if any(pair)]) <= 1e-4
    assert design.optimality_gap <= 1e-5


@EVERY
def test_contrast_with_a_reference_and_weights(name):
    features = exact(few(name))
    weights = np.linspace(1, 3, len(features))
    design = contrast_design(ArmSet(few(name)), reference=1, weights=weights, gap=1e-5)
    truth = Exact(features, design.probabilities)
    listed = [(w, minus(x, features[1])) for w, x in zip(weights, features, strict=True)]
    listed = [(w, y) for w, y in listed if any(y)]
    assert truth.contrast_gap([y for _, y in listed], np.array([w for w, _ in listed])) <= 1e-4


@EVERY
def test_single_contrast(name):
    features = few(name)
    design = contrast_design(ArmSet(features), [[0, 5]])
    truth = exact(features)
    gap = single_contrast_gap(truth, design.probabilities, minus(truth[0], truth[5]))
    assert gap <= 1.2e-4
    assert gap == pytest.approx(design.optimality_gap, abs=1e-4)
