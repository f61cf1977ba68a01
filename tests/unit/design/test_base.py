"""What every design carries: norms, certificate, description; and how all solvers behave."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import (
    Design,
    _contrast_optimal,
    _d_optimal,
    anchor_design,
    centred_design,
    contrast_design,
    g_optimal_design,
)
from orthobandit.errors import DesignError, OrthobanditError, ParameterError

SOLVERS = [g_optimal_design, anchor_design, centred_design, contrast_design]
RANDOM = np.random.default_rng(0).standard_normal((40, 4))


def design_of(features, probabilities, reference=0):
    return Design(ArmSet(features), np.asarray(probabilities, dtype=float), "uniform", reference, 0.0)


def brute_force(features, p, reference):
    """Return the three norms by the textbook formulas, for a design that spans."""
    x = np.asarray(features)
    mean = p @ x
    inverse = np.linalg.pinv((x - mean).T * p @ (x - mean))
    pairs = (x[:, np.newaxis] - x).reshape(-1, x.shape[1])
    return [
        np.sqrt(np.einsum("ij,jk,ik->i", z, inverse, z).max()) for z in (x - mean, x - x[reference], pairs)
    ]


def norms(design):
    return [design.centred_norm, design.reference_norm, design.contrast_norm]


@pytest.mark.parametrize("seed", range(5))
def test_norms_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((15, 3)) @ rng.standard_normal((3, 5))
    p = rng.dirichlet(np.ones(15))
    p[:5] = 0
    p /= p.sum()
    assert np.allclose(norms(design_of(features, p, 7)), brute_force(features, p, 7), rtol=1e-9)


def test_norms_by_hand():
    design = design_of([[0.0], [1.0], [3.0]], [0.5, 0.5, 0.0], reference=2)
    assert design.mean.tolist() == [0.5]
    assert design.covariance.tolist() == [[0.25]]
    assert design.support.tolist() == [0, 1]
    assert norms(design) == pytest.approx([5, 6, 6])


def test_norms_are_infinite_where_the_design_cannot_estimate():
    square = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    edge = design_of(square, [0.5, 0.5, 0.0, 0.0])
    assert norms(edge) == [np.inf] * 3
    assert norms(design_of(square[:2], [1.0, 0.0])) == [np.inf] * 3
    assert norms(design_of(square[:1] * 2, [1.0, 0.0])) == [0.0] * 3


def test_norms_of_arms_in_odd_units():
    factor = np.array([1e-9, 1.0, 1e9, 1e-3])
    p = np.full(40, 1 / 40)
    plain, scaled = design_of(RANDOM, p), design_of(RANDOM * factor + 100 * factor, p)
    assert np.allclose(norms(plain), norms(scaled), rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_probabilities_are_a_frozen_distribution(solver):
    design = solver(ArmSet(RANDOM))
    assert design.probabilities.sum() == pytest.approx(1, abs=1e-14)
    assert design.probabilities.min() >= 0
    assert not design.probabilities.flags.writeable
    assert np.array_equal(design.support, np.flatnonzero(design.probabilities))


@pytest.mark.parametrize("solver", SOLVERS)
def test_output_is_the_same_bit_for_bit(solver):
    first, again = solver(ArmSet(RANDOM)), solver(ArmSet(RANDOM.copy()))
    assert np.array_equal(first.probabilities, again.probabilities)
    assert first.optimality_gap == again.optimality_gap


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("gap", [0.0, 1.0, -1e-6, np.nan, np.inf])
def test_the_gap_must_make_sense(solver, gap):
    with pytest.raises(ParameterError, match=r"gap=.* must lie strictly between 0 and 1"):
        solver(ArmSet(RANDOM), gap=gap)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("given", [[[1.0, 0.0], [0.0, 1.0]], np.eye(2)])
def test_arms_must_be_an_arm_set(solver, given):
    with pytest.raises(
        ParameterError, match=r"arms is a (list|ndarray); wrap the features in ArmSet\(\.\.\.\)"
    ):
        solver(given)


def progress_of(solver, arms, **options):
    calls = []
    design = solver(arms, progress=lambda done, total: calls.append((done, total)), **options)
    return design, calls


@pytest.mark.parametrize("solver", SOLVERS)
def test_progress_is_reported_to_the_end(solver):
    design, calls = progress_of(solver, ArmSet(RANDOM), gap=1e-5)
    done, totals = zip(*calls, strict=True)
    assert done[0] == 0
    assert list(done) == sorted(done)
    assert set(totals) == {5.0}
    assert done[-1] == 5.0
    assert design.optimality_gap <= 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("count", [40, 9000])
def test_a_warm_start_finds_the_same_optimum_in_no_more_passes(solver, count):
    if solver is contrast_design and count > 1000:
        count = 300
    arms = ArmSet(np.random.default_rng(1).standard_normal((count, 4)))
    cold, slow = progress_of(solver, arms)
    warm, fast = progress_of(solver, arms, start=cold)
    assert len(fast) <= len(slow)
    assert warm.optimality_gap <= (1e-4 if solver is contrast_design else 1e-6)
    assert np.allclose(warm.covariance, cold.covariance, atol=2e-2 if solver is contrast_design else 1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_that_does_not_span_is_no_obstacle(solver):
    arms = ArmSet(RANDOM)
    lone = np.eye(40)[3]
    for p in (lone, 0.5 * lone + 0.5 * np.eye(40)[0], np.full(40, 1 / 40)):
        design = solver(arms, start=Design(arms, p, "centred", 0, 0.0))
        assert np.allclose(design.covariance, solver(arms).covariance, atol=1e-2)


def test_a_start_must_be_of_as_many_arms():
    start = centred_design(ArmSet.one_hot(3))
    for solver in SOLVERS:
        with pytest.raises(ParameterError, match="start is a design of 3 arms; there are 40"):
            solver(ArmSet(RANDOM), start=start)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_tolerance_out_of_reach_raises(solver, monkeypatch):
    module = _contrast_optimal if solver is contrast_design else _d_optimal
    monkeypatch.setattr(module, "MAX_PASSES", 1)
    with pytest.raises(DesignError, match=r"reached a gap of .* in 1 passes; 1.00e-08 was asked") as caught:
        solver(ArmSet(RANDOM), gap=1e-8)
    assert isinstance(caught.value, OrthobanditError)
    assert caught.value.tolerance == pytest.approx(1e-8)
    assert 1e-8 < caught.value.gap < 10


def test_description_for_people():
    arms = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], ["plain", "bold", "sale", "both"])
    shown = centred_design(arms).describe(top=3)
    lines = shown.splitlines()
    assert lines[0] == "centred design of 4 arms, affine dimension 2"
    assert "certified gap" in lines[1]
    assert "1.4142   (least possible 1.4142)" in lines[2]
    assert "2.8284" in lines[3]
    assert lines[4].split() == ["arms", "played", "4"]
    assert all(line.split()[1] == "0.2500" for line in lines[5:8])
    assert lines[8].strip() == "… and 1 more"


def test_description_of_many_arms_leaves_out_the_pairs(monkeypatch):
    monkeypatch.setattr("inside.design.MAX_ARMS_ALL_PAIRS", 3)
    design = centred_design(ArmSet.one_hot(4))
    assert "pairs" not in design.describe()
    assert design.to_json()["contrast_norm"] is None


def test_json_is_complete_and_plain():
    arms = ArmSet([[0.0], [0.3], [1.0]], ["a", "b", "c"])
    report = json.loads(json.dumps(anchor_design(arms, 2).to_json()))
    assert report["method"] == "anchor"
    assert report["reference"] == "c"
    assert (report["arms"], report["dimension"]) == (3, 1)
    assert report["probabilities"] == {"a": 0.5, "c": 0.5}
    assert report["reference_norm"] == report["contrast_norm"] == pytest.approx(2)
    assert report["centred_norm"] == pytest.approx(1)
    assert 0 <= report["optimality_gap"] <= 1e-6
