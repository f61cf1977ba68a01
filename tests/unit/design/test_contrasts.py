"""Pricing contrasts: farthest partners, distinct rows, the largest of many."""

import numpy as np
import pytest

from inside._foundation import diameter
from orthobandit.design import _contrast_optimal
from orthobandit.design._contrast_optimal import AllPairs, Listed, distinct, farthest_partners, largest


def distances(points):
    difference = points[:, np.newaxis] - points
    return np.einsum("ijk,ijk->ij", difference, difference)


@pytest.mark.parametrize("count", [1, 2, 9, 40, 130])
def test_partners_against_brute_force(count, monkeypatch):
    monkeypatch.setattr(_contrast_optimal, "BLOCK_ROWS", 16)
    points = np.random.default_rng(count).standard_normal((count, 3))
    values, partners = farthest_partners(points)
    table = distances(points)
    assert np.allclose(values, table.max(axis=1), rtol=1e-12)
    assert np.array_equal(partners, table.argmax(axis=1))


@pytest.mark.parametrize("count", [2, 5, 33])
def test_ties_go_to_the_next_point_in_cyclic_order(count, monkeypatch):
    monkeypatch.setattr(_contrast_optimal, "BLOCK_ROWS", 8)
    values, partners = farthest_partners(np.eye(count))
    assert np.allclose(values, 2)
    assert np.array_equal(partners, (np.arange(count) + 1) % count)


def test_equal_points_are_no_distance_apart():
    values, _ = farthest_partners(np.ones((5, 2)))
    assert values.tolist() == [0.0] * 5


def test_all_pairs_returns_the_worst_first_found_from_either_end():
    rows = np.random.default_rng(0).standard_normal((50, 3))
    transform = np.diag([1.0, 2.0, 0.5])
    worst, contrasts = AllPairs(rows).worst(transform, 5)
    assert worst == pytest.approx(distances(rows @ transform).max())
    values = np.square(contrasts @ transform).sum(axis=1)
    assert values.max() == pytest.approx(worst)
    assert 1 <= len(contrasts) <= 5
    assert len(distinct(contrasts)) == len(contrasts)


def test_listed_contrasts_are_priced_one_by_one():
    rows = np.array([[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.5, 0.5]])
    worst, contrasts = Listed(rows).worst(np.eye(2), 2)
    assert worst == 9
    assert [0.0, 3.0] in contrasts.tolist()


@pytest.mark.parametrize("kind", [AllPairs, Listed])
def test_spanning_contrasts_span(kind):
    rows = np.random.default_rng(1).standard_normal((20, 2)) @ np.random.default_rng(2).standard_normal(
        (2, 4)
    )
    chosen = kind(rows).spanning(np.eye(4))
    assert len(chosen) == 2
    assert np.linalg.matrix_rank(chosen) == 2


def test_a_contrast_and_its_opposite_are_one():
    rows = np.array([[1.0, -2.0], [-1.0, 2.0], [0.0, 3.0], [0.0, -3.0], [1.0, 2.0]])
    assert distinct(rows).tolist() == [[0.0, 3.0], [1.0, -2.0], [1.0, 2.0]]


def test_the_largest_are_positive_and_in_order():
    values = np.array([3.0, -1.0, 0.0, 5.0, 4.0])
    assert largest(values, 2).tolist() == [3, 4]
    assert largest(values, 9).tolist() == [0, 3, 4]


@pytest.mark.parametrize("count", [1, 2, 3, 700, 1500])
def test_diameter_against_brute_force(count):
    rng = np.random.default_rng(count)
    points = rng.standard_normal((count, 4)) * rng.exponential(size=(count, 1))
    assert diameter(points) == pytest.approx(np.sqrt(distances(points).max()), abs=1e-12)
    assert diameter(np.zeros((count, 0))) == 0
    assert diameter(np.ones((count, 2))) == 0
