"""All noise of the package keeps the contract, and the suite finds noise that does not."""

from dataclasses import dataclass

import numba
import numpy as np
import pytest

from orthobandit import SBE, ArmSet, Environment, simulate
from orthobandit.errors import ParameterError
from orthobandit.peers import LinUCB
from orthobandit.policy.contextual import InformationDirected
from orthobandit.simulation import (
    NOISES,
    Bernoulli,
    Clipped,
    Gaussian,
    Noise,
    PushLeader,
    Sine,
    StudentT,
    Uniform,
    named_noise,
    next_normal,
    next_position,
)
from orthobandit.simulation.contextual import ContextualEnvironment, SphereOffers, simulate_offers
from orthobandit.testing import NOISE_CHECKS, NoiseSetting, check_noise

MORE = {
    "silent": Gaussian(0.0),
    "heavy": StudentT(1.5),
    "narrow": Clipped(-1.0, 4.0, 0.1),
    "wide": Uniform(3.0),
}


@pytest.mark.parametrize("check", NOISE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NOISES)
def test_named_noise_keeps_the_contract(name, check):
    check(named_noise(name), NoiseSetting())


@pytest.mark.parametrize("name", MORE)
def test_other_settings_keep_the_contract(name):
    check_noise(MORE[name])


@numba.njit
def _gaussian_again(mean, settings, state):
    return mean + settings[0] * next_normal(state), False


@numba.njit
def _shifted(mean, _settings, state):
    return mean + next_position(state), False


@numba.njit
def _laplace(mean, settings, state):
    first = -np.log(1 - next_position(state))
    return mean + settings[0] * (first + np.log(1 - next_position(state))), False


@numba.njit
def _by_chance(mean, _settings, state):
    return mean + np.random.normal() + 0.0 * next_position(state), False  # noqa: NPY002


@numba.njit
def _nowhere(mean, _settings, _state):
    return mean * np.inf, False


@numba.njit
def _alone(mean, _settings, _state):
    return mean


@dataclass(frozen=True)
class Again(Noise):
    """Gaussian noise that does not say so."""

    sigma: float = 1.0
    step = staticmethod(_gaussian_again)

    def settings(self):
        return np.array([self.sigma])


@dataclass(frozen=True)
class Laplace(Noise):
    scale: float = 0.5
    step = staticmethod(_laplace)

    def settings(self):
        return np.array([self.scale])


class Biased(Noise):
    step = staticmethod(_shifted)


class Random(Noise):
    step = staticmethod(_by_chance)


class Nowhere(Noise):
    step = staticmethod(_nowhere)


class Alone(Noise):
    step = staticmethod(_alone)


class Stepless(Noise):
    pass


class Interpreted(Noise):
    @staticmethod
    def step(mean, settings, state):  # noqa: ARG004
        return mean, False


class Square(Again):
    def settings(self):
        return np.zeros((2, 2))


@dataclass(frozen=True)
class Bounded(Laplace):
    """Says that rewards lie where they do not."""

    rewards = (-1.0, 1.0)


@dataclass(frozen=True)
class Boastful(Laplace):
    """Says that it is normal."""

    normal_scale = 0.5


class Nameless(Gaussian):
    __repr__ = object.__repr__


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Biased(), "have the mean"),
        (Random(), "another reward"),
        (Nowhere(), "not finite"),
        (Alone(), "not a compiled function"),
        (Stepless(), "not a compiled function"),
        (Interpreted(), r"numba\.njit"),
        (Square(), "a row of finite numbers"),
        (Bounded(), "outside"),
        (Boastful(), "not normal"),
        (Nameless(), "without addresses"),
        (Gaussian, "is a class"),
        ("gaussian", "derives from Noise"),
    ],
    ids=lambda broken: getattr(broken, "__name__", type(broken).__name__),
)
def test_a_broken_clause_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_noise(broken)


@pytest.mark.parametrize("shift", [Sine(), PushLeader()], ids=repr)
@pytest.mark.parametrize("policy", [SBE(), LinUCB()], ids=repr)
def test_noise_of_ones_own_is_played_as_ours(policy, shift):
    check_noise(Laplace())
    arms = ArmSet.one_hot(3)
    runs = [
        simulate(
            policy, Environment(arms, [0.0, 0.2, 1.0], shift, noise), horizon=500, replications=3, seed=2
        )
        for noise in (Again(2.0), _unsummed(2.0))
    ]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


def _unsummed(sigma):
    """Return our Gaussian noise, drawn reward by reward."""

    class Unsummed(Gaussian):
        normal_scale = None

    return Unsummed(sigma)


def test_noise_of_ones_own_is_played_with_offers():
    runs = [
        simulate_offers(
            InformationDirected(),
            ContextualEnvironment(SphereOffers(3, 2), [1.0, 0.0], None, noise),
            horizon=200,
            replications=2,
        )
        for noise in (Gaussian(0.5), Again(0.5))
    ]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


@pytest.mark.parametrize("shift", [Sine(), PushLeader()], ids=repr)
@pytest.mark.parametrize("policy", [SBE(), LinUCB()], ids=repr)
def test_a_reward_that_is_not_finite_is_refused(policy, shift):
    world = Environment(ArmSet.one_hot(2), [0.1, 1.0], shift, Nowhere())
    with pytest.raises(ParameterError, match="returned a reward that is not finite"):
        simulate(policy, world, horizon=100, replications=2, seed=0)


def test_noise_of_ones_own_goes_by_its_name():
    assert named_noise(f"{__name__}:Laplace", scale=2.0) == Laplace(2.0)


def test_steps_that_are_not_steps_are_named_before_play():
    for noise in (Alone(), Interpreted(), Square()):
        with pytest.raises(ParameterError, match="step"):
            simulate(
                SBE(),
                Environment(ArmSet.one_hot(2), [0.0, 1.0], noise=noise),
                horizon=10,
                replications=1,
                seed=0,
            )


def test_clipped_rounds_of_bernoulli_rewards_are_counted():
    world = Environment(ArmSet.one_hot(2), [0.5, 0.6], Sine(), Bernoulli())
    runs = simulate(LinUCB(), world, horizon=200, replications=2, seed=0)
    assert np.all(runs.clipped > 0)
