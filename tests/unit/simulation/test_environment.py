import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.simulation import (
    NOISES,
    Bernoulli,
    Clipped,
    Constant,
    Environment,
    Gaussian,
    Sine,
    StudentT,
    Uniform,
    named_noise,
)


def test_environment_owns_means_gaps_and_regret():
    environment = Environment(ArmSet([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0.5, -1.0])
    assert environment.means.tolist() == [0.5, -1.0, -0.5]
    assert environment.gaps.tolist() == [0.0, 1.5, 1.0]
    assert environment.best == 0
    assert environment.regret([[1, 2, 3], [5, 0, 0]]).tolist() == [6.0, 0.0]
    assert environment.shift == Constant()
    assert environment.noise == Gaussian()


def test_rounding_makes_no_arm_worse():
    row, theta = np.random.default_rng(0).standard_normal((2, 20))
    same = Environment(ArmSet(np.tile(row, (7, 1))), theta)
    assert not same.gaps.any()
    assert same.best == 0
    assert not Environment(ArmSet([[0.3, 0.0], [0.1, 0.2]]), [1.0, 1.0]).gaps.any()
    assert Environment(ArmSet([[0.3, 0.0], [0.1, 0.2]]), [1.0, 1.0 + 1e-13]).gaps[0] > 0


def test_truth_is_read_only():
    environment = Environment(ArmSet.one_hot(2), [0.0, 1.0])
    for array in (environment.theta, environment.means, environment.gaps):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_moved_changes_shift_and_noise_only():
    environment = Environment(ArmSet.one_hot(2), [0.0, 1.0], noise=Uniform(0.5))
    moved = environment.moved(Sine())
    assert (moved.shift, moved.noise) == (Sine(), Uniform(0.5))
    assert moved.arms is environment.arms
    assert environment.moved(Sine(), Bernoulli()).noise == Bernoulli()


def test_description_is_plain():
    described = Environment(ArmSet.one_hot(3), [0.0, 1.0, 2.0], Sine()).describe()
    assert described["theta"] == [0.0, 1.0, 2.0]
    assert described["shift"] == "Sine(offset=1.0, amplitude=1.0, frequency=2.0)"
    assert (described["arms"], described["features"], described["dimension"]) == (3, 3, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(2), [0.0, 1.0]), "wrap the features"),
        ((ArmSet.one_hot(2), [0.0]), r"theta has shape \(1,\)"),
        ((ArmSet.one_hot(2), [[0.0, 1.0]]), "theta has shape"),
        ((ArmSet.one_hot(2), [0.0, np.nan]), r"theta\[1\] is nan"),
        ((ArmSet.one_hot(2), ["a", "b"]), "theta is not a list of numbers"),
        ((ArmSet([[1e150], [0.0]]), [1e200]), "not finite"),
        ((ArmSet.one_hot(2), [0.0, 1.0], "sine"), "shift='sine'"),
        ((ArmSet.one_hot(2), [0.0, 1.0], Sine(), 1.0), "noise=1.0"),
        ((ArmSet.one_hot(2), [0.2, 1.5], None, Bernoulli()), r"a mean in \[0, 1\]; that of arm 1 is 1.5"),
        ((ArmSet.one_hot(2), [0.2, 0.5], Constant(-0.3), Bernoulli()), "that of arm 0 is -0.1"),
    ],
)
def test_bad_environments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Environment(*arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Gaussian(-1.0),
        lambda: Gaussian(np.inf),
        lambda: Uniform(np.nan),
        lambda: StudentT(df=1.0),
        lambda: StudentT(scale=-1.0),
        lambda: Clipped(low=1.0, high=1.0),
        lambda: Clipped(high=np.inf),
        lambda: named_noise("poisson"),
    ],
)
def test_bad_noise_is_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_every_named_noise_is_made():
    for name in NOISES:
        assert named_noise(name) == NOISES[name]()
