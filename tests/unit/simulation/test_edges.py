"""Inputs at the edge: a clear refusal, or the obvious answer."""

import numpy as np
import pytest

from orthobandit import SBE, ArmSet, Environment, PureExploration, simulate
from orthobandit.errors import ParameterError
from orthobandit.simulation import CancelBest, Sine, one_hot

POLICIES = [SBE(), SBE(schedule="theory"), SBE(design="contrast"), PureExploration(rounds=50)]
ROW = np.random.default_rng(0).standard_normal(20)


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True, 2**62])
def test_a_horizon_is_a_whole_number_of_rounds(horizon):
    with pytest.raises(ParameterError, match="horizon="):
        simulate(SBE(), one_hot([0.0, 1.0]), horizon=horizon, replications=1, seed=0)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, float("nan")])
@pytest.mark.parametrize("make", [SBE, lambda delta: PureExploration(rounds=1, delta=delta)])
def test_delta_is_a_probability_strictly_between_0_and_1(make, delta):
    with pytest.raises(ParameterError, match=r"delta=.* must lie strictly between 0 and 1"):
        make(delta=delta)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("shift", [Sine(), CancelBest()], ids=repr)
@pytest.mark.parametrize("count", [1, 2, 7])
def test_arms_without_a_difference_are_declared_at_once_and_cost_nothing(count, shift, policy):
    environment = Environment(ArmSet(np.tile(ROW, (count, 1))), ROW[::-1], shift)
    for stops in (False, True):
        result = simulate(
            policy, environment, horizon=10**5, replications=3, seed=1, stop_when_declared=stops
        )
        assert result.declared.tolist() == [0, 0, 0]
        assert result.stop_times.tolist() == [0, 0, 0]
        assert result.correct.all()
        assert not result.regret.any()


def test_a_feature_that_never_varies_makes_no_difference():
    varied = np.array([[0.0, 5.0], [1.0, 5.0]])
    plain = simulate(SBE(), Environment(ArmSet(varied[:, :1]), [1.0]), horizon=999, replications=5, seed=1)
    result = simulate(SBE(), Environment(ArmSet(varied), [1.0, 0.0]), horizon=999, replications=5, seed=1)
    assert np.array_equal(result.declared, plain.declared)
    assert np.array_equal(result.stop_times, plain.stop_times)


def test_arms_that_are_equally_good_are_never_wrong():
    result = simulate(SBE(), one_hot([0.3, 0.3, 0.3]), horizon=5000, replications=40, seed=1)
    assert result.summary().wrong == 0
    assert not result.regret.any()


def test_a_horizon_of_one_round_decides_nothing():
    result = simulate(SBE(), one_hot([0.0, 1.0]), horizon=1, replications=5, seed=1)
    assert np.all(result.declared < 0)
    assert result.plans.tolist() == [1] * 5
