"""`SameShape` keeps δ for heavy-tailed arms that differ by location only, and fails where it says it does.

Each test of δ raises a false alarm with probability at most 10⁻⁸.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom
from tests.failure_rates import assert_kept

from orthobandit import AnytimeElimination, ArmSet, Environment, SameShape, Tally, simulate
from orthobandit.simulation import Constant, Sine, StudentT

pytestmark = pytest.mark.statistical

DELTA = 0.1


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("shift", [Constant(), Sine()], ids=["still", "sine"])
def test_the_best_of_three_heavy_tailed_arms_is_rarely_dropped(goal, shift):
    # Two arms are all but equal, one is worse by far.
    policy = AnytimeElimination(DELTA, goal=goal, confidence=SameShape(5.0 * 3**0.5))
    world = Environment(ArmSet.one_hot(3), (0.02, 0.0, -3.0), shift, StudentT(3.0))

    def failures(first, runs):
        settings = {"horizon": 3000, "replications": runs, "seed": 81, "first": first}
        found = simulate(policy, world, stop_when_declared=True, **settings)
        return int(np.count_nonzero(~found.decision.active[:, 0]))

    assert_kept(DELTA, failures, 300, false_alarm=1e-8)


@dataclass(frozen=True)
class Jackpots:
    """An arm that pays 100 in one of fifty rounds beside one that always pays about 1."""

    rounds: int = 4000

    def declared(self, seed):
        """Return which arm is declared: 0 pays 2 on average, 1 pays 1."""
        policy = AnytimeElimination(DELTA, confidence=SameShape(5.0))
        arms = ArmSet.one_hot(2)
        state = policy.start(arms)
        forecaster = policy.baseline.forecaster()
        rng = np.random.default_rng(seed)
        clock = 0
        while int(policy.decide(state).declared) < 0 and clock < self.rounds:
            plan = policy.plan(state)
            drawn = rng.choice(2, int(plan.rounds), p=plan.probabilities)
            residuals = np.empty(len(drawn))
            for k, arm in enumerate(drawn):
                reward = 100.0 * (rng.random() < 0.02) if arm == 0 else 1.0 + 0.1 * rng.standard_normal()
                made = forecaster.forecast(clock)
                residuals[k] = plan.residuals(np.array([arm]), np.array([reward]), made.value)[0]
                forecaster.learn(made, reward)
                clock += 1
            state = policy.observe(state, plan, Tally.of(drawn, residuals, 2))
        return int(policy.decide(state).declared)


def test_it_is_false_for_rare_large_rewards_as_it_says():
    wrong = sum(Jackpots().declared(seed) == 1 for seed in range(20))
    assert wrong > binom.isf(1e-8, 20, DELTA)
