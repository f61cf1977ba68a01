"""Weights of draws in estimates of contrasts, for many distributions at once."""

import numpy as np
import pytest

from inside.estimate import Pulls
from orthobandit import ArmSet

RNG = np.random.default_rng(4)


def contrasts(count):
    return np.eye(count)[1:] - np.eye(count)[0]


def test_weights_are_unbiased_for_every_contrast():
    arms = ArmSet(RNG.standard_normal((6, 3)))
    p = RNG.dirichlet(np.ones(6), 20)
    pulls = Pulls.of(arms.positions, contrasts(6), p)
    assert pulls.known.all()
    means = np.einsum("gk,gmk->gm", p, pulls.pull)
    assert means == pytest.approx(np.zeros_like(means), abs=1e-9)
    found = np.einsum("gk,gmk,kr->gmr", p, pulls.pull, arms.positions)
    wanted = np.broadcast_to(contrasts(6) @ arms.positions, found.shape)
    assert found == pytest.approx(wanted, abs=1e-9)
    squares = np.einsum("gk,gmk->gm", p, pulls.pull**2)
    assert squares == pytest.approx(pulls.variance, rel=1e-9)


def test_one_hot_arms_have_the_inverse_of_their_probability():
    p = np.array([[0.2, 0.3, 0.5]])
    pulls = Pulls.of(ArmSet.one_hot(3).positions, contrasts(3), p)
    assert pulls.pull[0] == pytest.approx(np.array([[-5.0, 10 / 3, 0.0], [-5.0, 0.0, 2.0]]), abs=1e-9)
    assert pulls.reach[0] == pytest.approx([5.0, 5.0])


def test_no_gap_is_known_of_an_arm_that_is_not_drawn():
    # Two arms of five: rounding of their common coordinates must not look like a small variance.
    for count in (3, 5, 8):
        arms = ArmSet.one_hot(count)
        small = RNG.random(500)
        p = np.zeros((500, count))
        p[:, -1], p[:, 1] = small, 1.0 - small
        every = np.eye(count)
        rows = np.array([every[i] - every[j] for i in range(count) for j in range(i)])
        known = Pulls.of(arms.positions, rows, p).known
        drawn = (rows != 0)[:, [0, *range(2, count - 1)]].any(axis=1)
        assert np.array_equal(known, np.broadcast_to(~drawn, known.shape))


def test_arms_drawn_next_to_never_have_weights_that_are_numbers():
    p = np.array([[0.0, 1 - 1.2e-7, 0.0, 1.2e-7], [1e-12, 1 - 1e-12, 0.0, 0.0]])
    pulls = Pulls.of(ArmSet.one_hot(4).positions, contrasts(4), p)
    assert np.all(np.isfinite(pulls.pull))
    assert pulls.known.tolist() == [[False, False, False], [True, False, False]]
    assert pulls.reach[1, 0] == pytest.approx(1e12, rel=1e-3)


def test_features_shared_by_all_drawn_arms_tell_nothing():
    rng = np.random.default_rng(5)
    for _ in range(300):
        features = np.column_stack([rng.standard_normal((6, 2)), np.zeros(6)])
        features[4:, 2] = rng.standard_normal(2)  # arms that are not drawn
        arms, p = ArmSet(features + rng.standard_normal(3)), np.zeros((1, 6))
        p[0, :4] = rng.dirichlet(np.ones(4))
        known = Pulls.of(arms.positions, contrasts(6), p).known[0]
        assert known.tolist() == [True, True, True, False, False]


def test_the_closed_form_of_arms_that_share_nothing_is_the_same():
    # One-hot arms, and features that are affinely independent without being so; some are never drawn.
    p = RNG.dirichlet(np.ones(5), 300)
    p[:100, 2] = 0.0
    p[50:150, 0] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    many = np.vstack([contrasts(5), [[0.5, 0.5, -0.25, -0.25, -0.5]], np.zeros((1, 5))])
    for arms in (ArmSet.one_hot(5), ArmSet(RNG.standard_normal((5, 4)))):
        slow = Pulls.of(arms.positions, many, p)
        fast = Pulls.of_separate(many, p)
        np.testing.assert_array_equal(fast.known, slow.known)
        for name in ("pull", "variance", "reach"):
            np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9)
