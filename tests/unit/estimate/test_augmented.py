"""Augmented estimates: unbiased to the last digit, by enumeration of everything that can happen."""

from itertools import product

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.estimate import PairGeometry

ARMS = {
    "line": ArmSet([[0.0], [0.3], [1.0]]),
    "plane": ArmSet([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0], [0.9, 0.9]]),
    "one hot": ArmSet.one_hot(3),
}


def plan_of(count, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(count))


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("seed", range(4))
def test_weights_see_the_contrast_and_nothing_else(name, seed):
    arms = ARMS[name]
    x, p = arms.features, plan_of(len(arms), seed)
    geometry = PairGeometry.of(arms.positions, p)
    for i, j in product(range(len(arms)), repeat=2):
        g = geometry.inner[i] - geometry.inner[j]
        assert p @ g == pytest.approx(0.0, abs=1e-12)
        assert (p * g) @ x == pytest.approx(x[i] - x[j], abs=1e-11)
        if i != j:
            assert p @ g**2 == pytest.approx(geometry.variance[i, j], rel=1e-9)
            assert np.abs(g).max() == pytest.approx(geometry.reach(p)[i, j], rel=1e-12)


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("seed", range(4))
def test_the_mean_over_all_outcomes_is_the_contrast_for_any_baseline_estimate_and_shift(name, seed):
    arms, rng = ARMS[name], np.random.default_rng(100 + seed)
    p = plan_of(len(arms), seed)
    theta = rng.standard_normal(arms.features.shape[1])
    means = arms.features @ theta
    values = arms.features @ rng.standard_normal(len(theta)) + rng.standard_normal()
    baseline, shift = rng.normal(0.0, 3.0, 2)
    geometry = PairGeometry.of(arms.positions, p)
    mean = np.zeros((len(arms), len(arms)))
    square = np.zeros_like(mean)
    for arm, (noise, chance) in product(range(len(arms)), [(-1.0, 0.6), (1.5, 0.4)]):
        residual = means[arm] + shift + noise - baseline - values[arm]
        one = Tally.of([arm], [residual], len(arms))
        totals, variances = geometry.sums(one.counts.astype(float), one.sums, one.squares, values)
        mean += p[arm] * chance * totals
        square += p[arm] * chance * variances
    assert mean == pytest.approx(means[:, np.newaxis] - means, abs=1e-12)
    assert np.all(square >= 0)


def test_two_rounds_stay_unbiased_when_the_second_baseline_follows_the_first_reward():
    # All outcomes of two rounds; plan, values, baseline and shift of the second depend on the first.
    arms, theta = ARMS["plane"], np.array([0.7, -0.4])
    means, first = arms.features @ theta, np.array([0.4, 0.3, 0.2, 0.1])
    noises, mean = [(-1.0, 0.5), (1.0, 0.5)], np.zeros((4, 4))
    for (a, (e, c)), (b, (f, d)) in product(product(range(4), noises), repeat=2):
        reward = means[a] + 0.3 + e
        second = np.roll(first, a)
        values, baseline = arms.features @ [2.0, -1.0] * reward, 2.0 * reward
        nu = np.sign(reward) * 1.7
        total = np.zeros((4, 4))
        for p, arm, u, v in (
            (first, a, reward, np.zeros(4)),
            (second, b, means[b] + nu + f - baseline - values[b], values),
        ):
            one = Tally.of([arm], [u], 4)
            geometry = PairGeometry.of(arms.positions, p)
            total += geometry.sums(one.counts.astype(float), one.sums, one.squares, v)[0]
        mean += first[a] * c * second[b] * d * total
    assert mean == pytest.approx(2 * (means[:, np.newaxis] - means), abs=1e-11)


def test_sums_of_tallies_merge():
    arms, p, values = ARMS["plane"], np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.0, -0.4, 2.0])
    rng = np.random.default_rng(3)
    geometry = PairGeometry.of(arms.positions, p)
    parts = [Tally.of(rng.integers(0, 4, 50), rng.standard_normal(50), 4) for _ in range(2)]
    both = parts[0] + parts[1]
    whole = geometry.sums(both.counts.astype(float), both.sums, both.squares, values)
    pieces = [geometry.sums(t.counts.astype(float), t.sums, t.squares, values) for t in parts]
    for k in range(2):
        assert pieces[0][k] + pieces[1][k] == pytest.approx(whole[k], abs=1e-9)


def test_totals_and_variances_by_hand():
    # One-hot arms with p = (½, ½): g(0) = 2 and g(1) = −2 for the pair (0, 1).
    geometry = PairGeometry.of(ArmSet.one_hot(2).positions, np.array([0.5, 0.5]))
    tally = Tally.of([0, 0, 1], [1.0, 3.0, 5.0], 2)
    totals, variances = geometry.sums(
        tally.counts.astype(float), tally.sums, tally.squares, np.array([0.25, 0.0])
    )
    assert totals[0, 1] == pytest.approx(3 * 0.25 + 2 * 4.0 - 2 * 5.0)
    assert totals[1, 0] == pytest.approx(-totals[0, 1])
    assert variances[0, 1] == pytest.approx(4 * (1.0 + 9.0 + 25.0))


def test_pairs_outside_the_range_of_the_plan_have_infinite_variance():
    arms = ArmSet.one_hot(4)
    geometry = PairGeometry.of(arms.positions, np.array([0.5, 0.5, 0.0, 0.0]))
    known = np.isfinite(geometry.variance) & ~np.eye(4, dtype=bool)
    assert np.argwhere(known).tolist() == [[0, 1], [1, 0]]


def test_equal_arms_are_no_pair():
    arms = ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    geometry = PairGeometry.of(arms.positions, np.full(3, 1 / 3))
    assert np.isinf(geometry.variance[1, 2])
    assert np.isfinite(geometry.variance[0, 1])


def test_a_plan_on_one_arm_estimates_nothing():
    geometry = PairGeometry.of(ArmSet.one_hot(3).positions, np.array([0.0, 1.0, 0.0]))
    assert np.all(np.isinf(geometry.variance[~np.eye(3, dtype=bool)]))


def test_variances_of_near_arms_do_not_cancel():
    # Arms 1 and 2 differ by 1e-5: a difference of sums of squares would lose ten digits.
    arms, p = ArmSet([[0.0, 0.0], [1.0, 0.0], [1.0, 1e-5], [0.0, 1.0]]), np.full(4, 0.25)
    geometry = PairGeometry.of(arms.positions, p)
    squares = np.array([1.0, 2.0, 3.0, 4.0])
    _, variances = geometry.sums(np.full(4, 5.0), np.zeros(4), squares, np.zeros(4))
    g = geometry.inner[1] - geometry.inner[2]
    assert variances[1, 2] == pytest.approx(g**2 @ squares, rel=1e-12)
    assert variances[1, 2] > 0
