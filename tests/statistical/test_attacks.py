"""Attacks on the default mode: rare events, bursts, rising stakes, lopsided plans, arms that are not alike.

A run fails if the best arm is ever dropped or some bound in its row is ever wrong. Each case is refused, if
runs fail with probability δ or less, with probability at most 10⁻⁹ (``tests/failure_rates.py``); all cases
together raise a false alarm less than once in 10⁶. Each case has a short form, and one of the length at
which it once broke the mode.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom
from tests.failure_rates import assert_kept

from orthobandit import AnytimeElimination, ArmSet, ContrastSequence, Environment, Plan, Tally
from orthobandit.estimate import RunningMean
from orthobandit.simulation import Adaptive, Bernoulli, Constant, Formula, Gaussian, StudentT, misses

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-9


@dataclass(frozen=True)
class Burst(Formula):
    """Nothing, and once a burst."""

    begin: int = 400
    length: int = 25
    size: float = 1000.0

    def at(self, rounds):
        return np.where((rounds >= self.begin) & (rounds < self.begin + self.length), self.size, 0.0)


@dataclass(frozen=True)
class Rising(Adaptive):
    """Stakes that grow by a factor in every round, whatever is played."""

    factor: float = 1.05
    most: float = 1e9

    def values(self, past):
        return np.minimum(self.factor ** past.rounds.astype(float), self.most)


@dataclass(frozen=True)
class Gambler(Adaptive):
    """Doubles the stakes while the first arm has been drawn less often than it should have been."""

    most: float = 1e9

    def values(self, past):
        due = past.probabilities[:, 0] * past.rounds - past.counts[:, 0]
        return np.where(due > 0, np.minimum(2.0 * np.abs(past.last_reward) + 1.0, self.most), 1.0)


def world(means, noise, shift=None):
    return Environment(ArmSet.one_hot(len(means)), means, shift or Constant(), noise)


COIN, NORMAL = Bernoulli(), Gaussian(1.0)
# name: environment, settings, horizon, and what broke the mode before it waited
CASES = {
    "0.3 % and 0.2 %": (world([0.003, 0.002], COIN), {}, 60_000),
    "0.1 % and 0.1 %": (world([0.001, 0.001], COIN), {}, 60_000),
    "within half of 0.1 %": (world([0.003, 0.002], COIN), {"epsilon": 0.0005}, 60_000),
    "2 % and 4 % within 1 %": (world([0.02, 0.04], COIN), {"epsilon": 0.01}, 20_000),
    "ten of 5 %": (world([0.05] * 10, COIN), {}, 10_000),
    "ten of 5 %, δ = 0.01": (world([0.05] * 10, COIN), {"delta": 0.01}, 10_000),
    "ten of 5 %, δ = 0.5": (world([0.05] * 10, COIN), {"delta": 0.5}, 5_000),
    "two of 5 %, δ = 0.0001": (world([0.05] * 2, COIN), {"delta": 1e-4}, 10_000),
    "thirty of 1 %": (world([0.01] * 30, COIN), {}, 10_000),
    "4, 1, 0.5 and 0.1 %": (world([0.01, 0.04, 0.005, 0.001], COIN), {}, 8_000),
    "4 % and nothing": (world([0.04, 0.0], COIN), {}, 4_000),
    "a burst": (world([0.0, 0.0], NORMAL, Burst()), {}, 4_000),
    "a late burst": (world([0.0] * 5, NORMAL, Burst(1500)), {}, 4_000),
    "stakes that rise": (world([0.0] * 3, NORMAL, Rising()), {}, 1_500),
    "stakes that double": (world([0.0] * 3, NORMAL, Rising(2.0, 1e12)), {}, 1_000),
    "a gambler": (world([0.0] * 3, NORMAL, Gambler()), {}, 1_000),
    "heavy tails": (world([0.0] * 5, StudentT(3.0)), {}, 6_000),
    "normal noise": (world([0.0] * 5, NORMAL), {}, 6_000),
}


def check(name, goal, most, shorter=1):
    environment, own, horizon = CASES[name]
    policy = AnytimeElimination(**{"delta": 0.05, "goal": goal} | own)

    def failures(first, runs):
        settings = {"horizon": horizon // shorter, "replications": runs, "seed": 17, "first": first}
        return int(np.count_nonzero(misses(policy, environment, **settings).first >= 0))

    assert_kept(policy.delta, failures, most, false_alarm=FALSE_ALARM)


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("0.3 % and 0.2 %", "identify"),
        ("within half of 0.1 %", "identify"),
        ("ten of 5 %", "earn"),
        ("4 % and nothing", "identify"),
        ("a burst", "earn"),
        ("stakes that rise", "identify"),
    ],
)
def test_no_claim_is_made_before_it_may_be_made(name, goal):
    check(name, goal, 60, shorter=4)


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("name", CASES)
def test_no_claim_is_made_before_it_may_be_made_in_long_runs(name, goal):
    check(name, goal, 500)


def ever_wrong(p, rates, rng, rounds=20_000, alpha=0.05):
    """Tell whether an interval of the difference of two arms is ever wrong, looked at 60 times."""
    arms, p, rates = ArmSet.one_hot(2), np.array(p), np.array(rates)
    noise = float(np.sqrt(rates @ p))
    sequence = ContrastSequence.start(arms, [[0, 1]], delta=alpha, noise=noise, rounds=rounds)
    ends = np.unique(np.geomspace(20, rounds, 60).astype(int))
    for size in np.diff(ends, prepend=0):
        drawn = (rng.random(size) < p[1]).astype(int)
        rewards = (rng.random(size) < rates[drawn]).astype(float)
        sequence = sequence.add(Plan(p, size), Tally.of(drawn, rewards, 2))
        (low,), (high,) = sequence.intervals()
        if not low <= rates[0] - rates[1] <= high:
            return True
    return False


@pytest.mark.parametrize("rates", [(0.02, 0.02), (0.01, 0.02), (0.002, 0.02)])
def test_intervals_under_a_lopsided_plan_rarely_ever_miss(rates):
    rng = np.random.default_rng(23)
    failed = sum(ever_wrong((0.95, 0.05), rates, rng) for _ in range(200))
    assert failed <= binom.isf(FALSE_ALARM, 200, 0.05)


@pytest.mark.parametrize(
    ("truth", "rewarded"),
    [
        (-5.0, lambda rng, drawn: 5.0 * drawn + rng.standard_normal(len(drawn))),
        (-2.0, lambda rng, drawn: 2.0 * drawn + rng.standard_normal(len(drawn))),
        (-0.8, lambda rng, drawn: (rng.random(len(drawn)) < 0.1 + 0.8 * drawn).astype(float)),
    ],
)
def test_an_arm_that_was_hardly_drawn_says_nothing_yet(truth, rewarded):
    # One round in a hundred goes to an arm that is far better: before that, all looks calm.
    rng, arms, p, failed = np.random.default_rng(29), ArmSet.one_hot(2), np.array([0.99, 0.01]), 0
    for _ in range(100):
        sequence = ContrastSequence.start(arms, [[0, 1]], rounds=3000)
        for size in np.diff(np.unique(np.geomspace(20, 3000, 40).astype(int)), prepend=0):
            drawn = (rng.random(size) < p[1]).astype(int)
            sequence = sequence.add(Plan(p, size), Tally.of(drawn, rewarded(rng, drawn), 2))
            (low,), (high,) = sequence.intervals()
            if not low <= truth <= high:
                failed += 1
                break
    assert failed <= binom.isf(FALSE_ALARM, 100, 0.05)


@pytest.mark.parametrize(("chance", "rounds"), [(0.05, 400), (0.1, 300)])
def test_a_plan_at_the_end_does_not_hide_what_all_plans_rest_on(chance, rounds):
    # Both arms earn 1 on average, one of them rarely and much; it has had a few draws when plans change.
    # Rounds of other arms have shown how large residuals are.
    rng, arms, failed = np.random.default_rng(47), ArmSet.one_hot(4), 0
    phases = [([0.0, 0.0, 0.5, 0.5], 80), ([0.05, 0.95, 0.0, 0.0], rounds), ([0.8, 0.2, 0.0, 0.0], 5)]
    for _ in range(300):
        sequence = ContrastSequence.start(arms, [[0, 1]])
        for p, size in phases:
            drawn = rng.choice(4, size, p=p)
            rare = (rng.random(size) < chance) / chance - 1.0
            residuals = np.where(drawn == 0, rare, 0.3 * rng.choice([-1.0, 1.0], size))
            sequence = sequence.add(Plan(p, size), Tally.of(drawn, residuals, 4))
        (low,), (high,) = sequence.intervals()
        failed += not low <= 0.0 <= high
    assert failed <= binom.isf(FALSE_ALARM, 300, 0.05)


def drops_a_new_arm(goal, rng, rounds=1500):
    """Tell whether the best arm, added when the pilot has just ended, is ever dropped or bounded wrongly."""
    means = np.array([10.0] + [0.0] * 9 + [11.0])
    every = ArmSet(np.eye(11))
    policy = AnytimeElimination(goal=goal, baseline=RunningMean())
    state, forecaster = policy.start(ArmSet(np.eye(11)[:10])), policy.baseline.forecaster()
    while int(state.rounds) < rounds and int(state.declared) < 0:
        if int(state.stage) == 2 and len(state.arms) < 11:
            state = policy.extend(state, every)
        plan = policy.plan(state)
        count = len(plan.probabilities)
        drawn = rng.choice(count, int(min(plan.rounds, rounds - state.rounds)), p=plan.probabilities)
        rewards = means[drawn] + rng.standard_normal(len(drawn))
        residuals = np.empty(len(drawn))
        for t, (arm, reward) in enumerate(zip(drawn, rewards, strict=True)):
            forecast = forecaster.forecast(int(state.rounds) + t)
            residuals[t] = plan.residuals([arm], [reward], [forecast.value])[0]
            forecaster.learn(forecast, reward - plan.values[arm])
        state = policy.observe(state, plan, Tally.of(drawn, residuals, count))
        bounds = policy.upper_bounds(state)[-1]
        if count == 11 and (not state.active[10] or np.any(11.0 - means > bounds + 1e-12)):
            return True
    return False


@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_an_arm_that_comes_late_and_is_far_better_is_not_dropped(goal):
    rng = np.random.default_rng(31)
    failed = sum(drops_a_new_arm(goal, rng) for _ in range(60))
    assert failed <= binom.isf(FALSE_ALARM, 60, 0.05)
