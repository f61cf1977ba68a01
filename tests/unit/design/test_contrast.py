"""Designs for chosen differences on arms whose optimum is known, and what may be asked of them."""

import itertools

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import centred_design, contrast_design
from orthobandit.errors import ParameterError

LINE = ArmSet([[0.0], [1.0], [2.0]])
SQUARE = ArmSet(np.array(list(itertools.product([-1.0, 1.0], repeat=2))))
THREE = ArmSet.one_hot(3)


def test_one_arm_and_equal_arms_are_a_point_mass():
    assert contrast_design(ArmSet([[1.0, 2.0]])).probabilities.tolist() == [1.0]
    design = contrast_design(ArmSet([[1.0, 2.0]] * 3))
    assert design.probabilities.tolist() == [1.0, 0.0, 0.0]
    assert (design.optimality_gap, design.contrast_norm) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("arms", "expected", "norm"),
    [
        (ArmSet([[5.0, 1.0], [3.0, 2.0]]), [0.5, 0.5], 2.0),
        (LINE, [0.5, 0.0, 0.5], 2.0),
        (SQUARE, [0.25] * 4, np.sqrt(8)),
        (ArmSet.one_hot(7), [1 / 7] * 7, np.sqrt(14)),
    ],
    ids=["two arms", "a line", "square", "one-hot"],
)
def test_all_pairs_by_hand(arms, expected, norm):
    design = contrast_design(arms)
    # The largest norm is within 1e-4 of the optimum, where it is flat: p is known to about its root.
    assert np.allclose(design.probabilities, expected, atol=5e-3)
    assert (
        norm * (1 - 1e-12) <= design.contrast_norm <= norm * np.sqrt(1 + design.optimality_gap) * (1 + 1e-12)
    )
    assert 0 <= design.optimality_gap <= 1e-4
    assert design.method == "contrast"


@pytest.mark.parametrize(
    "asked",
    [{"pairs": [[0, 1]]}, {"vectors": [[1.0]]}, {"vectors": [[-0.25]]}, {"vectors": [[2]]}],
    ids=["pair", "vector", "scaled vector", "whole vector"],
)
def test_a_single_contrast_is_best_estimated_from_the_ends(asked):
    # The slope of a line: the c-optimal design is on the ends, though the pair is 0 and 1.
    design = contrast_design(LINE, **asked, gap=1e-8)
    assert np.allclose(design.probabilities, [0.5, 0.0, 0.5], atol=1e-4)


def test_a_single_pair_of_unrelated_arms_is_played_half_and_half():
    design = contrast_design(ArmSet.one_hot(4), [[1, 3]])
    assert np.allclose(design.probabilities, [0.0, 0.5, 0.0, 0.5], atol=1e-2)
    assert design.optimality_gap <= 1e-4


@pytest.mark.parametrize(("count", "reference"), [(2, 1), (5, 0), (10, 4)])
def test_differences_to_one_unrelated_arm(count, reference):
    # max_i 1/p_ref + 1/p_i is least at p_ref = 1/(1 + √(K−1)), where it is (1 + √(K−1))².
    design = contrast_design(ArmSet.one_hot(count), reference=reference)
    least = 1 + np.sqrt(count - 1)
    assert design.reference == reference
    assert design.probabilities[reference] == pytest.approx(1 / least, abs=1e-2)
    assert least * (1 - 1e-12) <= design.reference_norm <= least * np.sqrt(1 + 1e-4)


def test_a_listed_reference_is_the_same_problem():
    arms = ArmSet(np.random.default_rng(0).standard_normal((12, 3)))
    listed = contrast_design(arms, [[i, 2] for i in range(12)])
    named = contrast_design(arms, reference=2)
    assert np.allclose(listed.probabilities, named.probabilities, atol=1e-3)
    assert named.reference_norm == pytest.approx(
        max(np.sqrt(d @ np.linalg.solve(listed.covariance, d)) for d in arms.features - arms.features[2]),
        rel=1e-3,
    )


def test_weights_shift_probability_to_what_matters():
    # Pairs (0,1) and (0,2) of unrelated arms: the maximum of 4(1/p0 + 1/p1) and 1/p0 + 1/p2.
    grid = np.linspace(0.01, 0.98, 600)
    p0, p1 = np.meshgrid(grid, grid, indexing="ij")
    p2 = 1 - p0 - p1
    with np.errstate(divide="ignore"):
        worst = np.where(p2 > 0, np.maximum(4 * (1 / p0 + 1 / p1), 1 / p0 + 1 / p2), np.inf)
    design = contrast_design(THREE, [[0, 1], [0, 2]], weights=[4.0, 1.0])
    p = design.probabilities
    assert max(4 * (1 / p[0] + 1 / p[1]), 1 / p[0] + 1 / p[2]) <= worst.min() * (1 + 1e-4)
    assert p[1] > p[2]


def test_only_ratios_of_weights_matter_and_zero_leaves_out():
    arms = ArmSet(np.random.default_rng(1).standard_normal((8, 3)))
    pairs = [[0, 1], [2, 3], [4, 5]]
    once = contrast_design(arms, pairs, weights=[1.0, 2.0, 0.0])
    scaled = contrast_design(arms, pairs, weights=[1e6, 2e6, 0.0])
    without = contrast_design(arms, pairs[:2], weights=[1.0, 2.0])
    assert np.allclose(once.probabilities, scaled.probabilities, atol=1e-9)
    assert np.allclose(once.probabilities, without.probabilities, atol=1e-9)


def test_a_weight_a_reference_may_have():
    design = contrast_design(THREE, reference=0, weights=[0.0, 1.0, 0.0])
    assert np.allclose(design.probabilities, [0.5, 0.5, 0.0], atol=1e-2)


@pytest.mark.parametrize(
    "support", [[0, 1], [True, True, False], np.array([1, 0, 1])], ids=["numbers", "mask", "repeated numbers"]
)
def test_only_arms_in_the_support_are_played(support):
    design = contrast_design(LINE, [[0, 1]], support=support)
    assert design.support.tolist() == [0, 1]
    assert np.allclose(design.probabilities, [0.5, 0.5, 0.0], atol=1e-6)


def test_a_restricted_support_still_serves_contrasts_of_all_arms():
    arms = ArmSet(np.random.default_rng(2).standard_normal((20, 3)))
    free, restricted = contrast_design(arms), contrast_design(arms, support=range(8))
    assert set(restricted.support) <= set(range(8))
    assert restricted.contrast_norm > free.contrast_norm
    with pytest.raises(ParameterError, match="contrast 0 lies outside"):
        contrast_design(arms, [[0, 1]], support=[5])


def test_a_restricted_support_that_cannot_estimate_a_contrast_is_refused():
    message = (
        r"contrast 1 lies outside what the playable arms span, so no design estimates it;"
        " allow more arms or leave it out"
    )
    with pytest.raises(ParameterError, match=message):
        contrast_design(THREE, [[0, 1], [0, 2]], support=[0, 1])
    with pytest.raises(ParameterError, match=message):
        contrast_design(THREE, vectors=[[1.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
    with pytest.raises(ParameterError, match="arm 2 lies outside what the playable arms span"):
        contrast_design(THREE, support=[0, 1])


def test_starts_from_another_design():
    arms = ArmSet(np.random.default_rng(3).standard_normal((60, 4)))
    cold = contrast_design(arms)
    warm = contrast_design(arms, start=cold)
    assert warm.contrast_norm == pytest.approx(cold.contrast_norm, rel=1e-4)
    assert contrast_design(arms, start=centred_design(arms)).optimality_gap <= 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": [[0, 1]], "reference": 0}, "one of pairs, vectors and reference"),
        ({"pairs": [[0, 1]], "vectors": [[1.0]]}, "one of pairs, vectors and reference"),
        ({"weights": [1.0]}, "weights need pairs, vectors or a reference to belong to"),
        ({"pairs": [[0, 1]], "weights": [1.0, 2.0]}, "weights have shape"),
        ({"pairs": [[0, 1]], "weights": [-1.0]}, "weights must be finite and not negative"),
        ({"pairs": [[0, 1]], "weights": [np.nan]}, "weights must be finite and not negative"),
        ({"pairs": [[0, 3]]}, "pairs name an arm outside 0 to 2"),
        ({"pairs": [[0, -1]]}, "pairs name an arm outside 0 to 2"),
        ({"pairs": [0, 1]}, "pairs have shape"),
        ({"pairs": [[0.0, 1.0]]}, "type float64"),
        ({"pairs": [["a", "b"]]}, "pairs have shape"),
        ({"pairs": []}, "pairs have shape"),
        ({"pairs": np.empty((0, 2), dtype=int)}, "one pair or more"),
        ({"vectors": np.empty((0, 3))}, "one or more"),
        ({"vectors": [[np.inf, 0.0, 0.0]]}, "vectors have a non-finite entry"),
        ({"vectors": [[1.0, 0.0]]}, "vectors have shape"),
        ({"reference": 3}, "reference=3 is not an arm"),
        ({"reference": -1}, "reference=-1 is not an arm"),
        ({"support": []}, "support"),
        ({"support": [False] * 3}, "support is empty"),
        ({"support": [0, 3]}, "support must be a mask of 3 booleans or arm numbers 0 to 2"),
        ({"support": [0.0, 1.0]}, "support must be a mask"),
        ({"support": [True, False]}, "support must be a mask"),
    ],
)
def test_requests_that_make_no_sense(options, message):
    with pytest.raises(ParameterError, match=message):
        contrast_design(THREE, **options)


def test_the_support_has_no_more_arms_than_moments():
    points = np.random.default_rng(4).standard_normal((300, 3))
    sphere = ArmSet(points / np.linalg.norm(points, axis=1, keepdims=True))
    assert len(contrast_design(sphere).support) <= 10


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e3, 1e12])
def test_the_length_of_contrasts_does_not_matter(size):
    arms = ArmSet(np.random.default_rng(5).standard_normal((30, 3)))
    vectors = np.random.default_rng(6).standard_normal((4, 3))
    once, again = contrast_design(arms, vectors=vectors), contrast_design(arms, vectors=size * vectors)
    assert again.optimality_gap <= 1e-4
    assert np.allclose(once.probabilities, again.probabilities, atol=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_few_contrasts_of_many_features(seed):
    # The best arms for one difference may be two, far from spanning the rest.
    rng = np.random.default_rng(seed)
    arms = ArmSet(rng.standard_normal((24, 16)))
    design = contrast_design(arms, rng.integers(24, size=(1 + seed % 3, 2)))
    assert design.optimality_gap <= 1e-4


def test_a_design_that_would_take_hours_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr("inside.design.MAX_DESIGN_SECONDS", 1e-9)
    with pytest.raises(ParameterError, match=r"all pairs of 3 arms .* hours; centred_design\(arms\)"):
        contrast_design(ArmSet.one_hot(3))
    contrast_design(ArmSet.one_hot(3), [[0, 1]])
