"""What SBE claims is kept in any units, and what it cannot keep it does not claim.

Each exact test fails with probability below 1e-6 if the failure rate is the promised one.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from inside.simulation import Player
from orthobandit import ArmSet, Environment, Moments, OrthogonalRegression, Plan, simulate
from orthobandit.design import anchor_design
from orthobandit.policy import SBE
from orthobandit.simulation import Constant, LogAlternating, Sine, exact_gap, within
from orthobandit.theory import explicit_error_bound

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6


def is_refuted(failed, runs, rate):
    return binomtest(failed, runs, rate, alternative="greater").pvalue <= FALSE_ALARM


def errors(environment, rounds, runs, ridge, seed=1):
    """Return the largest error (runs,) of a difference to the first arm after one phase of DEO."""
    arms = environment.arms
    plan = Plan(np.tile(anchor_design(arms).probabilities, (runs, 1)), rounds)
    player = Player(environment, np.array([rounds]), seed=seed, replications=np.arange(runs))
    tally = player.play(plan.probabilities, np.full(runs, rounds))
    gaps = OrthogonalRegression(ridge=ridge).solve(arms, Moments.of(arms, plan, tally)).gaps
    found = gaps[:, :1] - gaps
    return np.abs(found - (environment.means - environment.means[0])).max(axis=1)


@pytest.mark.parametrize("shift", [Constant(1.0), within(Sine()), within(LogAlternating())])
@pytest.mark.parametrize("rounds", [3000, 30_000])
def test_the_explicit_bound_holds_and_a_tenth_of_it_does_not(shift, rounds):
    environment, runs, delta = exact_gap(3, 8, 0.3, seed=2, shift=shift), 400, 0.1
    design = anchor_design(environment.arms)
    ridge = np.log(rounds / delta)
    bound = explicit_error_bound(
        design.reference_norm**2, design.centred_norm**2, rounds, delta, 3, ridge=ridge, contrasts=7
    )
    found = errors(environment, rounds, runs, ridge)
    assert np.isfinite(bound)
    assert not is_refuted(int(np.sum(found > bound)), runs, delta)
    assert is_refuted(int(np.sum(found > bound / 10)), runs, delta)


@pytest.mark.parametrize("scale", [1.0, 0.03, 40.0])
def test_survivors_are_within_the_claim_in_any_units(scale):
    # Three arms of means .9, .3 and .72; features and θ in other units, rewards the same.
    features, theta = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]), np.array([0.9, 0.3])
    environment = Environment(ArmSet(scale * features), theta / scale, shift=within(Sine()))
    policy = SBE(delta=0.05, schedule="theory", C2=96, theta_bound=1.0 / scale, shift_bound=1.0)
    gaps, runs, failed = environment.means.max() - environment.means, 60, 0
    claims = []
    # Inside phases 2, 3 and, if that is not enough, 5.
    for horizon in (40_000, 200_000, 3_000_000):
        result = simulate(policy, environment, horizon=horizon, replications=runs, seed=3)
        decision = result.decision
        assert decision.certainty == 0.95
        worst = np.where(decision.active, gaps, 0.0).max(axis=-1)
        failed = max(failed, int(np.sum(worst > decision.epsilon)))
        claims.append(decision.epsilon.tolist())
    assert not is_refuted(failed, runs, policy.delta)
    assert claims[-1] == [0.0] * runs  # all have declared an arm


def test_constants_of_the_figures_err_more_often_than_delta_and_claim_nothing():
    # Two arms, gap .1, δ = .02, inside the paper's assumptions.
    environment = Environment(ArmSet([[0.0], [1.0]]), [0.1], shift=Constant(1.0))
    policy = SBE(delta=0.02)
    result = simulate(policy, environment, horizon=10**6, replications=1500, seed=1, stop_when_declared=True)
    wrong = int(np.sum((result.decision.declared >= 0) & ~result.correct))
    assert is_refuted(wrong, 1500, policy.delta), f"{wrong} of 1500"
    assert result.decision.certainty == 0.0
    assert np.all(np.isinf(result.decision.epsilon))
