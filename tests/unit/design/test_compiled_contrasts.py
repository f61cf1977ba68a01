import numpy as np
import pytest

from orthobandit import ArmSet, contrast_design
from orthobandit.design import contrast_weights, earning_design
from orthobandit.design.compiled_contrasts import leader_weights


def worst(rows, p, contrasts):
    """Return max_y yᵀΣ_p⁺y, from a pseudo-inverse."""
    centred = rows - p @ rows
    inverse = np.linalg.pinv((centred * p[:, np.newaxis]).T @ centred)
    return np.einsum("ij,jk,ik->i", contrasts, inverse, contrasts).max()


def problem(seed, is_one_hot):
    """Return arms, pairs of one arm with others, and weights over several orders of magnitude."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 30))
    features = rng.standard_normal((count, int(rng.integers(1, 9)))) * 10.0 ** rng.uniform(-3, 3)
    arms = ArmSet.one_hot(count) if is_one_hot else ArmSet(features)
    leader, others = int(rng.integers(count)), rng.permutation(count)[: count - 2]
    others = others[others != leader]
    weights = 10.0 ** rng.uniform(-3, 0, len(others))
    return (
        arms,
        np.column_stack([np.full(len(others), leader), others]),
        weights,
        10.0 ** rng.uniform(-2, 0, count),
    )


@pytest.mark.parametrize("is_one_hot", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_as_good_as_the_certified_design(seed, is_one_hot):
    arms, pairs, weights, costs = problem(seed, is_one_hot)
    rows = arms.positions.copy()  # for read-only rows the solver would be compiled once more
    contrasts = (rows[pairs[:, 0]] - rows[pairs[:, 1]]) * np.sqrt(weights)[:, np.newaxis]
    free = contrast_weights(rows, contrasts)
    exact = contrast_design(arms, pairs, weights, gap=1e-4).probabilities
    assert worst(rows, free, contrasts) <= 1.0102 * worst(rows, exact, contrasts)
    paid = contrast_weights(rows, contrasts, costs=costs)
    exact = earning_design(arms, pairs, weights, costs, gap=1e-4).probabilities
    best = (costs @ exact) * worst(rows, exact, contrasts)
    assert (costs @ paid) * worst(rows, paid, contrasts) <= 1.0102 * best


def test_a_start_changes_little():
    arms, pairs, weights, _ = problem(3, is_one_hot=False)
    rows = arms.positions.copy()
    contrasts = (rows[pairs[:, 0]] - rows[pairs[:, 1]]) * np.sqrt(weights)[:, np.newaxis]
    first = contrast_weights(rows, contrasts)
    again = contrast_weights(rows, contrasts, start=first, gap=1e-6)
    assert worst(rows, first, contrasts) <= 1.0102 * worst(rows, again, contrasts)


def test_rows_that_do_not_fill_the_space_are_enough_for_their_own_differences():
    rows = np.array([[0.0, 5.0, 1.0], [1.0, 5.0, 1.0], [2.0, 5.0, 1.0]])
    found = contrast_weights(rows, np.array([[2.0, 0.0, 0.0]]))
    np.testing.assert_allclose(found, [0.5, 0.0, 0.5], atol=0.01)


def test_what_is_too_large_or_too_delicate_is_left_to_the_general_solver():
    rows = np.random.default_rng(0).standard_normal((200, 2))
    assert contrast_weights(rows, rows[:1] - rows[1:2]) is None
    assert contrast_weights(rows[:5], np.zeros((0, 2))) is None
    nearly_flat = np.column_stack([np.arange(4.0), np.arange(4.0) + 1e-6 * np.array([0, 1, 0, 1])])
    assert contrast_weights(nearly_flat, nearly_flat[:1] - nearly_flat[1:2]) is None


def test_replications_at_once_are_what_each_is_alone():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((9, 3))
    playable = np.ones((4, 9), dtype=bool)
    playable[1, :4] = False
    leaders = np.array([0, 5, 8, 2])
    weights = rng.uniform(0.1, 1.0, (4, 9)) * playable
    weights[np.arange(4), leaders] = 0.0
    weights[3] = 0.0  # nothing is asked for: left to the general solver
    costs = rng.uniform(0.1, 1.0, (4, 9))
    positions = rows.copy()
    positions.flags.writeable = False  # as those of an ArmSet: else the solver would be compiled once more
    p, found = leader_weights(positions, playable, leaders, weights, costs=costs)
    assert found.tolist() == [True, True, True, False]
    for run in range(3):
        left, asked = playable[run], weights[run] > 0
        contrasts = (rows[leaders[run]] - rows[asked]) * np.sqrt(weights[run, asked])[:, np.newaxis]
        alone = contrast_weights(rows[left], contrasts, costs=costs[run, left])
        np.testing.assert_array_equal(p[run, left], alone)
        assert not p[run, ~left].any()
