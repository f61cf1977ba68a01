"""Intervals for what rules would have earned hold at all times, for all rules at once, whatever is played."""

import numpy as np
import pytest
from scipy.stats import binom

from orthobandit.estimate import Asymptotic, Bounded, Plan, SubGaussian
from orthobandit.policy.contextual import InformationDirected, Interactions, RuleComparison, spread_plan

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

RUNS, ROUNDS, DELTA, FLOOR = 60, 300, 0.1, 0.03
PAGES = Interactions(["A", "B", "C"], context=["age"])
THETA = np.array([0.05, 0.1, -0.05, 0.05])  # of B, B × age, C, C × age
RULES = {
    "A": "A",
    "B": "B",
    "C for the old": lambda offer: "C" if offer.context["age"] > 0 else "A",
    "either": lambda offer: {"A": 0.5, "C": 0.5},
}
PLANS = {
    "adaptive": None,
    "even": np.full(3, 1 / 3),
    "skewed": np.array([FLOOR, FLOOR, 1 - 2 * FLOOR]),
}
# The level of a round, which may know who comes, the last arm and the mean of the plan in force.
LEVELS = {
    "who comes": lambda t, age, last, mean: 0.25 * np.tanh(age),
    "bursts": lambda t, age, last, mean: 0.25 if t % 50 == 0 else 0.0,
    "adversary": lambda t, age, last, mean: -mean + (0.15 if last == 0 else -0.15),
}


def ever_misses(seed, confidence, plan, level):
    """Play rounds under an adaptive or a fixed plan; tell whether some interval misses at some look."""
    rng = np.random.default_rng([seed, 11])
    policy = InformationDirected()
    state = policy.start(PAGES.dimension)
    found = RuleComparison.start(
        RULES, reference="A", confidence=confidence, delta=DELTA, floor=FLOOR, noise=0.5, rounds=ROUNDS
    )
    truth = np.zeros(3)
    last = 0
    for t in range(ROUNDS):
        age = float(rng.uniform(-1, 1))
        offer = PAGES.offer({"age": age})
        p = spread_plan(policy.plan(state, offer), 3 * FLOOR) if plan is None else Plan(plan, 1)
        arm = int(rng.choice(3, p=p.probabilities))
        effects = offer.features @ THETA
        mean = 0.5 + effects[arm] + level(t, age, last, float(p.probabilities @ effects))
        reward = float(rng.random() < mean)
        z, _ = found.weights(offer, p)
        truth += z @ effects
        found = found.add(offer, p, arm, reward, forecast=0.5, theta=policy.estimate(state))
        state = policy.observe(state, offer, p, arm, reward, 0.5)
        last = arm
        if t % 4 == 3:
            for gain, gained in zip(found.gains(), truth / (t + 1), strict=True):
                if not gain.low <= gained <= gain.high:
                    return True
    return False


BOUNDED = Bounded(0.0, 1.0)
CASES = [
    *((BOUNDED, plan, level) for plan in PLANS for level in LEVELS),
    *((mode, "adaptive", "bursts") for mode in (SubGaussian(0.0, 1.0, 0.5), Asymptotic())),
    *((mode, "skewed", "adversary") for mode in (SubGaussian(0.0, 1.0, 0.5), Asymptotic())),
]


@pytest.mark.parametrize(("confidence", "plan", "level"), CASES, ids=repr)
def test_gains_of_all_rules_hold_at_all_times(confidence, plan, level):
    misses = sum(ever_misses(seed, confidence, PLANS[plan], LEVELS[level]) for seed in range(RUNS))
    # False-alarm rate 1e-6 for each of the 13 cases.
    assert misses <= binom.isf(1e-6, RUNS, DELTA)
