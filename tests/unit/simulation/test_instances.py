import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.simulation import (
    Bernoulli,
    Sine,
    exact_gap,
    near_degenerate,
    one_hot,
    successor_sphere,
    uniform_sphere,
)


@pytest.mark.parametrize(("dimension", "count"), [(5, 10), (20, 30), (2, 2), (2, 50), (64, 80)])
@pytest.mark.parametrize("gap", [1e-3, 0.5, 1.5])
def test_gap_is_exact_and_norms_are_one(dimension, count, gap):
    for seed in range(5):
        environment = exact_gap(dimension, count, gap, seed=seed)
        assert abs(np.sort(environment.gaps)[1] - gap) < 1e-12
        assert np.linalg.norm(environment.theta) == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(np.linalg.norm(environment.arms.features, axis=1), 1, atol=1e-12)


def test_instances_come_from_their_seed():
    first, again, other = (exact_gap(5, 10, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.arms.features, again.arms.features)
    assert not np.array_equal(first.arms.features, other.arms.features)
    assert len({exact_gap(5, 10, seed=seed).best for seed in range(30)}) > 5


def test_soare_angle():
    environment = near_degenerate(4, 0.1, shift=Sine())
    assert environment.arms.features.shape == (5, 4)
    np.testing.assert_allclose(environment.means, [2, 0, 0, 0, 2 * np.cos(0.1)])
    assert environment.shift == Sine()


def test_one_hot_has_the_given_means():
    environment = one_hot([0.2, 0.7], noise=Bernoulli())
    assert environment.means.tolist() == [0.2, 0.7]
    assert environment.noise == Bernoulli()


def test_sphere_arms_have_unit_norm():
    environment = uniform_sphere(10, 100, seed=3)
    np.testing.assert_allclose(np.linalg.norm(environment.arms.features, axis=1), 1)
    assert environment.theta.tolist() == [2.0] + [0.0] * 9


def test_the_successors_arms_are_those_of_his_generator():
    environment = successor_sphere(10, 100, seed=7)
    drawn = np.random.default_rng(1_000_003 + 13 * 10 + 7919 * 100 + 7).normal(size=(100, 10))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    assert np.array_equal(environment.arms.features, drawn)
    assert environment.theta.tolist() == [2.0] + [0.0] * 9
    # The table's instances stay what they are, whatever numpy draws in later versions.
    first = successor_sphere(10, 100, seed=0).arms.features
    assert first[0, :3].round(8).tolist() == [-0.31813113, -0.50746582, -0.33955823]
    gaps = [np.sort(successor_sphere(10, 100, seed=i).gaps)[1] for i in range(100)]
    assert min(gaps) == pytest.approx(0.00354439, abs=1e-8)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: exact_gap(1, 10, seed=0),
        lambda: exact_gap(5, 1, seed=0),
        lambda: exact_gap(5, 10, 0.0, seed=0),
        lambda: exact_gap(5, 10, 2.0, seed=0),
        lambda: exact_gap(5, 10, seed=-1),
        lambda: near_degenerate(1),
        lambda: near_degenerate(angle=0.0),
        lambda: uniform_sphere(0, 5, seed=0),
        lambda: uniform_sphere(3, 2.5, seed=0),
        lambda: one_hot([0.0, np.nan]),
        lambda: successor_sphere(10, 0, seed=0),
        lambda: successor_sphere(10, 100, seed=-1),
        lambda: successor_sphere(10, 100, seed=0.5),
    ],
)
def test_bad_instances_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()
