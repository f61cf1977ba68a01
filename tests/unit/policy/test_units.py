"""Units decide nothing: rewards in cents and in euros give the same decisions, at the same time."""

from functools import cache

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Bounded, Environment, FixedBudget, SubGaussian, simulate
from orthobandit.estimate import AutoRegression, ExponentialMean, NoBaseline, RunningMean, SeasonalRegression
from orthobandit.policy import BOSE, POLICIES, named_policy, policy_settings
from orthobandit.simulation import Clipped, Constant, Gaussian, Sine, near_degenerate

BASELINES = [NoBaseline(), RunningMean(), ExponentialMean(), AutoRegression(), SeasonalRegression((24.0,), 2)]
ARMS = ArmSet([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0], [0.9, 0.9]])
THETA = np.array([0.6, 0.3])


def found(policy, scale, noise, level=3.0):
    world = Environment(ARMS, scale * THETA, Sine(scale * level, scale), noise)
    result = simulate(policy, world, horizon=6000, replications=8, seed=4, checkpoints=[6000])
    return result.stop_times.tolist(), result.decision.declared.tolist(), result.elimination_times.tolist()


@cache
def found_in_units(goal, baseline):
    """Return what the policy finds when rewards are not rescaled: the same for all scales."""
    return found(AnytimeElimination(0.1, goal=goal, baseline=baseline), 1.0, Gaussian(1.0))


# Powers of two change no digit, so that decisions must be the same to the round.
@pytest.mark.parametrize("scale", [2.0**-40, pytest.param(2.0**7, marks=pytest.mark.slow), 2.0**50])
@pytest.mark.parametrize("baseline", BASELINES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_rescaling_rewards_changes_no_decision(goal, baseline, scale):
    policy = AnytimeElimination(0.1, goal=goal, baseline=baseline)
    assert found(policy, scale, Gaussian(scale)) == found_in_units(goal, baseline)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
@pytest.mark.parametrize(
    "mode",
    [
        lambda scale: {"confidence": SubGaussian(scale * 1.0, scale * 6.0, sigma=scale)},
        lambda scale: {"rewards": (-scale, 8.0 * scale)},
    ],
)
def test_rescaling_changes_no_decision_of_exact_modes(mode, scale):
    one, other = (
        found(AnytimeElimination(0.1, **mode(by)), by, Clipped(-by, 8.0 * by, by)) for by in (1.0, scale)
    )
    assert one == other


def test_rescaling_changes_no_decision_within_a_budget():
    one, other = (found(FixedBudget(600), by, Gaussian(by)) for by in (1.0, 2.0**30))
    assert one == other


def test_a_high_level_costs_no_more_than_a_low_one():
    # Two arms at 300 and 310 with σ = 100 are as far apart as two at 3 and 3.1 with σ = 1.
    times = {}
    for scale in (1.0, 100.0):
        world = Environment(ArmSet.one_hot(2), [3.0 * scale, 3.2 * scale], Constant(), Gaussian(scale))
        result = simulate(
            AnytimeElimination(0.05), world, horizon=50_000, replications=20, seed=1, stop_when_declared=True
        )
        times[scale] = result.stop_times
    # Not a power of two: the last digits differ, and so may a few stopping times by a batch.
    assert np.all(times[100.0] > 0)
    assert np.abs(np.log(times[100.0] / times[1.0])).max() < 0.25


def test_a_tally_is_not_spoilt_by_rounding():
    # Rewards of 1e-0 around −2 and almost equal arms: nothing may be subtracted after the fact.
    policy = AnytimeElimination(0.1, baseline=NoBaseline())
    simulate(policy, near_degenerate(shift=Constant(-2.0)), horizon=30_000, replications=4, seed=101)


@pytest.mark.parametrize("distance", [1e-5, 1e-7, 1e-9])
def test_arms_that_are_close_to_each_other_are_told_apart(distance):
    # Far from both there is a third arm, dropped soon, from which the distance is measured no more.
    arms = ArmSet([[0.0], [distance], [-1.0]])
    world = Environment(arms, [1.0 / distance], Constant(), Gaussian(0.5))
    result = simulate(
        AnytimeElimination(0.05), world, horizon=20_000, replications=4, seed=2, stop_when_declared=True
    )
    assert result.decision.declared.tolist() == [1] * 4


def test_a_range_asks_for_the_exact_mode():
    assert AnytimeElimination(rewards=(0, 1)).confidence == Bounded(0.0, 1.0)
    assert AnytimeElimination().confidence.name == "asymptotic"
    assert AnytimeElimination(rewards=(0, 1), confidence=Bounded(0.0, 1.0)).confidence == Bounded(0.0, 1.0)


# Every policy of the catalogue as a function of the units of features and rewards, which are told to those
# that ask. A name that is missing here fails the test below.
CLAIMING = ("anytime", "sbe", "explore", "bose", "farthest-pair", "stratified")
# They claim nothing, as LinUCB and others that `make test` plays, and have long loops of their own.
SLOW_TO_COMPILE = (
    "semiparametric-ts",
    "action-centred-ts",
    "lingape",
    "lazy-track-and-stop",
    "lingame",
    "frank-wolfe-sampling",
    "lucb",
    "action-elimination",
    "ucb1",
    "mab-thompson",
)
SETTINGS = {
    "explore": {"rounds": 300},
    "fixed-budget": {"budget": 600},
    "bose": {"horizon": 600, "constants": "theory"},
    "farthest-pair": {"horizon": 600, "constants": "theory"},
    "semiparametric-ts": {"horizon": 600},
    "one-shot": {"gap": 0.4},
    "stratified": {"epoch": 100},
    "p1-rage": {"budget": 600},
    "sp-bai-budget": {"budget": 600},
    "od-linbai": {"budget": 600},
    "g-bai": {"budget": 600},
    "peace": {"budget": 600},
    "p1-peace": {"budget": 600},
    "adjacent-bai": {"budget": 600},
    "linlucb": {"budget": 600, "epoch": 100},
    "pooled-track-and-stop": {"period": 100},
    "sbe": {"schedule": "theory", "C2": 96.0},
}


def claims_in_units(name, feature, reward, **settings):
    """Return certainty, and the claims if there is any, of a world in other units played with one seed."""
    policy = named_policy(name, **SETTINGS.get(name, {}) | settings)
    arms = ArmSet(feature * np.array([[1.0], [-1.0], [0.9]]))
    world = Environment(arms, [reward / feature], Sine(reward, reward), Gaussian(0.25 * reward))
    result = simulate(policy, world, horizon=600, replications=4, seed=8, checkpoints=[600])
    decision = result.decision
    if decision.certainty == 0.0:
        assert np.all(np.isinf(decision.epsilon)), "an ε is a claim"
        return 0.0, None
    epsilon = (decision.epsilon / reward).tolist()
    return decision.certainty, (decision.active.tolist(), decision.declared.tolist(), epsilon)


@pytest.mark.parametrize(("feature", "reward"), [(2.0**-5, 1.0), (2.0**5, 2.0**6)])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW_TO_COMPILE)) for name in POLICIES]
)
def test_units_change_no_claim_of_any_policy_or_it_asks(name, feature, reward):
    told = ("theta_bound", "shift_bound", "noise")
    asks = set(told) <= set(policy_settings(name))
    # Without units: a policy that asks claims nothing, the others claim the same.
    plain = claims_in_units(name, 1.0, 1.0)
    assert claims_in_units(name, feature, reward) == plain
    if asks:
        assert plain == (0.0, None)
        one = claims_in_units(name, 1.0, 1.0, theta_bound=1.0, shift_bound=2.0, noise=0.25)
        bounds = {"theta_bound": reward / feature, "shift_bound": 2.0 * reward, "noise": 0.25 * reward}
        assert claims_in_units(name, feature, reward, **bounds) == one
        plain = one
    assert (plain[0] > 0) == (name in CLAIMING)


def test_declared_units_let_bose_drop_an_arm_at_the_same_round():
    found = []
    for feature, reward in ((1.0, 1.0), (2.0**-5, 1.0), (2.0**5, 2.0**6)):
        policy = BOSE(
            horizon=6000,
            constants="theory",
            theta_bound=reward / feature,
            shift_bound=reward,
            noise=0.25 * reward,
        )
        arms = ArmSet(feature * np.array([[1.0], [-1.0]]))
        world = Environment(arms, [reward / feature], Sine(0.0, reward), Gaussian(0.25 * reward))
        result = simulate(policy, world, horizon=6000, replications=2, seed=8, checkpoints=[6000])
        found.append((result.stop_times.tolist(), result.decision.declared.tolist()))
    assert found[0][1] == [0, 0]
    assert found[1] == found[2] == found[0]
