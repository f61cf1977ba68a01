"""Every name of the catalogues of designs and instances keeps what its kind promises."""

import inspect

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import DESIGNS
from orthobandit.simulation import INSTANCES, named_instance

ARMS = {
    "random": ArmSet(np.random.default_rng(5).standard_normal((6, 3)) / 2),
    "one hot": ArmSet.one_hot(4),
    "flat": ArmSet(np.random.default_rng(6).standard_normal((5, 2)) @ np.ones((2, 4)) / 2 + 3),
    "repeated": ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.2, 0.3]]),
    "single": ArmSet([[2.0, 1.0]]),
}
REQUIRED = {"seed": 3, "means": [0.3, 0.5, 0.4]}


@pytest.mark.parametrize("arms", ARMS)
@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_is_a_distribution_as_near_the_best_as_is_asked(name, arms):
    for gap in (1e-2, 1e-5):
        design = DESIGNS[name](ARMS[arms], gap=gap)
        assert design.method == name
        assert design.probabilities.shape == (len(ARMS[arms]),)
        assert np.all(design.probabilities >= 0.0)
        assert design.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
        assert 0.0 <= design.optimality_gap <= gap


def made(name):
    needed = inspect.signature(INSTANCES[name]).parameters
    return named_instance(name, **{key: value for key, value in REQUIRED.items() if key in needed})


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_comes_from_its_settings_and_knows_its_best_arm(name):
    environment, again = made(name), made(name)
    assert np.array_equal(environment.arms.features, again.arms.features)
    assert environment.gaps == pytest.approx(environment.means.max() - environment.means)
    assert environment.gaps[environment.best] == 0.0
