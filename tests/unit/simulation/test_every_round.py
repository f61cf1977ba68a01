"""Policies that plan every round: the compiled loop against the protocol played round by round."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from orthobandit.errors import DesignError, RewardError
from orthobandit.policy import BOSE, SemiparametricTS
from orthobandit.simulation import (
    Bernoulli,
    CancelBest,
    Gaussian,
    PushLeader,
    RandomWalk,
    ReactToLast,
    Sine,
    StudentT,
    exact_gap,
    simulate,
)
from orthobandit.simulation.runner import LOOK_ROUNDS


@dataclass(frozen=True)
class Hidden:
    """The same policy without its compiled steps."""

    policy: Any

    baseline = None

    def start(self, *args, **kwargs):
        return self.policy.start(*args, **kwargs)

    def plan(self, state):
        return self.policy.plan(state)

    def observe(self, state, plan, tally):
        return self.policy.observe(state, plan, tally)

    def decide(self, state):
        return self.policy.decide(state)


def instance(shift, noise=None):
    return exact_gap(3, 5, 0.5, seed=2).moved(shift, noise)


def rows(result):
    plain = result.to_json()["rows"]
    return {name: plain[name] for name in plain if name != "elimination_times"}


QUICK = BOSE(horizon=2500, scale=0.15)  # declares within the horizon
CASES = [
    (QUICK, instance(Sine(), Gaussian(0.5))),
    (BOSE(horizon=900, distribution="uniform"), instance(RandomWalk())),
    (BOSE(horizon=900), instance(Sine(), Bernoulli())),
    (BOSE(horizon=900), instance(Sine(), StudentT())),
    (BOSE(horizon=300), instance(PushLeader())),
    (BOSE(horizon=2500, scale=0.15), instance(ReactToLast(strength=0.3), Gaussian(0.5))),
    (SemiparametricTS(horizon=300, draws=20), instance(CancelBest(0.7))),
]


@pytest.mark.parametrize(("policy", "environment"), CASES, ids=lambda case: type(case).__name__)
@pytest.mark.parametrize("stop_when_declared", [False, True])
def test_compiled_rounds_equal_the_protocol_bit_by_bit(policy, environment, stop_when_declared):
    horizon = policy.horizon
    settings = {
        "horizon": horizon,
        "replications": 2,
        "seed": 3,
        "checkpoints": [1, 7, 100, horizon],
        "stop_when_declared": stop_when_declared,
    }
    fast = simulate(policy, environment, **settings)
    slow = simulate(Hidden(policy), environment, **settings)
    assert rows(fast) == rows(slow)
    out = fast.elimination_times >= 0
    assert np.all(fast.elimination_times[out] >= slow.elimination_times[out])
    at = fast.elimination_times[out]
    stops = np.broadcast_to(fast.stop_times[:, None], out.shape)[out]
    assert np.all((at % LOOK_ROUNDS == 0) | (at == horizon) | (at == stops))


def test_the_quick_case_declares_so_that_stopping_is_tested():
    result = simulate(QUICK, CASES[0][1], horizon=QUICK.horizon, replications=2, seed=3)
    assert np.all(result.stop_times > 0)
    assert np.all(result.plans > 2)


def test_batches_and_single_runs_agree():
    policy, environment = CASES[0]
    settings = {"horizon": policy.horizon, "replications": 4, "seed": 5}
    together = simulate(policy, environment, **settings)
    assert together.equals(simulate(policy, environment, batch=1, **settings))


def test_numbers_of_replications_can_start_anywhere():
    policy, environment = CASES[0]
    settings = {"horizon": 500, "seed": 5}
    whole = simulate(policy, environment, replications=5, **settings)
    part = simulate(policy, environment, first=3, replications=2, **settings)
    assert part.equals(whole.only(np.array([3, 4])))


@pytest.mark.parametrize(("code", "error"), [("plan", DesignError), ("observe", RewardError)])
def test_a_step_that_fails_raises(code, error):
    from inside._foundation import compiled
    from orthobandit.policy.every_round import Steps

    @compiled
    def no_plan(settings, memory, i, probabilities):
        return -1

    @compiled
    def no_reward(settings, memory, i, probabilities, arm, reward):
        return False

    @dataclass(frozen=True)
    class Failing(BOSE):
        def compiled(self, arms):
            steps = super().compiled(arms)
            if code == "plan":
                return Steps(steps.settings, no_plan, steps.observe)
            return Steps(steps.settings, steps.plan_into, no_reward)

        def _replan(self, arms, packed, which):
            BOSE(horizon=self.horizon)._replan(arms, packed, which)

    with pytest.raises(error):
        simulate(Failing(horizon=100), CASES[0][1], horizon=100, replications=1, seed=0)
