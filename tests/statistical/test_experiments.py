"""Claims of live experiments under delay and silence that depend on arm and reward, for every policy.

Half of the rewards are late, beyond the batch that they were drawn in; three in ten never come. Each test has
the most failures that a failure probability of δ exceeds with probability at most 10⁻⁹; all together raise a
false alarm less than once in 10⁶.
"""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from experiment_samples import ledger_of
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.policy import POLICIES, named_policy

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-9
DELTA = 0.1
WINDOW = 12.0
SOON = WINDOW - 1.0  # what takes longer comes too late, when time goes in steps of 1
LOOKS = 4  # steps between two looks
BATCH = 10


@dataclass
class World:
    """Visitors who convert or not; how many do moves, and how soon they say so depends on the arm."""

    means: np.ndarray
    rng: np.random.Generator
    now: float = 0.0

    def __call__(self):
        return self.now

    def outcomes(self, arms):
        """Return rewards (n,) and when each is told, +inf for never."""
        shift = 0.15 * np.sin(self.now / 7.0)
        rewards = (self.rng.random(len(arms)) < self.means[arms] + shift).astype(float)
        delay = self.rng.exponential(1.0 + 3.0 * arms + 4.0 * rewards, len(arms))
        # No conversion is no news; some of the conversions get lost as well, whatever the arm.
        silent = (rewards == 0.0) & (self.rng.random(len(arms)) < 0.6)
        return rewards, np.where(silent | (delay >= SOON), np.inf, self.now + delay)


def played(policy, world, steps, look):
    """Play an experiment; return whether `look` ever finds something wrong."""
    arms = ArmSet.one_hot(len(world.means))
    confidence = getattr(policy, "confidence", None)
    rewards = (0.0, 1.0)
    if confidence is not None:  # the policy has its own, and was told what is known
        rewards = None if confidence.is_exact else "unknown"
    experiment = Experiment.memory(
        arms, policy, rewards=rewards, window=WINDOW, silence="zero", clock=world, key="07" * 16
    )
    awaited = []
    for step in range(steps):
        world.now += 1.0
        due = [one for one in awaited if one[0] <= world.now]
        awaited = [one for one in awaited if one[0] > world.now]
        if due:
            experiment.tell_many([number for _, number, _ in due], [reward for _, _, reward in due])
        proposals = experiment.ask_many(BATCH)
        rewards, times = world.outcomes(np.array([one.arm for one in proposals]))
        awaited += [
            (at, one.id, reward)
            for one, at, reward in zip(proposals, times, rewards, strict=True)
            if np.isfinite(at)
        ]
        if step % LOOKS == LOOKS - 1 and look(ledger_of(experiment)):
            return True, experiment
    return False, experiment


NEEDED = {"horizon": 1000, "budget": 200, "gap": 0.2, "epoch": 20, "period": 20}


def policy_of(name):
    if name == "anytime":
        return AnytimeElimination(DELTA, rewards=(0.0, 1.0))
    if name == "explore":
        return named_policy(name, rounds=200)
    asked = inspect.signature(POLICIES[name]).parameters.values()
    needed = {one.name: NEEDED[one.name] for one in asked if one.default is one.empty}
    return named_policy(name, **needed)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_runs_live_and_its_gaps_are_covered(name):
    # All arms are alike but for how soon they tell. What comes too late counts as nothing: a conversion does
    # with probability exp(−SOON/mean of the delay), and the level, which moves by 0.15, with it.
    runs, failed, lost = 5, 0, np.exp(-SOON / (1.0 + 3.0 * np.arange(3) + 4.0))
    truth, room = 0.4 * (lost[0] - lost), 0.15 * (lost - lost[0])

    def wrong(ledger):
        _, low, high = ledger.gap_intervals[0].intervals(ledger.feed.plans)
        return bool(np.any((truth < low - room) | (truth > high + room)))

    for run in range(runs):
        world = World(np.full(3, 0.4), np.random.default_rng([1, run]))
        bad, experiment = played(policy_of(name), world, 40, wrong)
        failed += bad
    assert failed <= binom.isf(FALSE_ALARM, runs, 0.05)
    assert experiment.replay().is_equal
    assert experiment.audit().passed


def error_rate(policy, runs, steps, seed):
    """Return how many runs ever drop the best arm or bound it wrongly; late rewards are cut for all alike."""
    failed, declared = 0, 0
    for run in range(runs):
        world = World(np.array([0.3, 0.3, 0.5]), np.random.default_rng([seed, run]))
        world.outcomes = lambda arms, world=world: alike(world, arms)
        gaps = world.means[2] - world.means

        def wrong(ledger, gaps=gaps):
            state = ledger.feed.state
            bounds = ledger.feed.policy.upper_bounds(state)[2]
            return bool(not state.active[2] or np.any(gaps > bounds + 1e-12))

        bad, experiment = played(policy, world, steps, wrong)
        failed += bad
        declared += int(ledger_of(experiment).feed.state.declared) >= 0
    return failed, declared


def alike(world, arms):
    """Return outcomes that come within the window, sooner for some arms and rewards than for others."""
    shift = 0.15 * np.sin(world.now / 7.0)
    rewards = (world.rng.random(len(arms)) < world.means[arms] + shift).astype(float)
    delay = world.rng.random(len(arms)) * np.where(rewards > 0, 0.9 * WINDOW * (1 + arms) / 3.0, 1.0)
    silent = (rewards == 0.0) & (world.rng.random(len(arms)) < 0.5)
    return rewards, np.where(silent, np.inf, world.now + delay)


MODES = {
    "exact": AnytimeElimination(DELTA, rewards=(0.0, 1.0)),
    "exact, earning": AnytimeElimination(DELTA, rewards=(0.0, 1.0), goal="earn"),
    "asymptotic": AnytimeElimination(DELTA),
}


@pytest.mark.parametrize("mode", MODES)
def test_late_and_silent_rewards_do_not_fool_it(mode):
    failed, _ = error_rate(MODES[mode], 12, 60, 2)
    assert failed <= binom.isf(FALSE_ALARM, 12, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_late_and_silent_rewards_do_not_fool_it_in_long_runs(mode):
    failed, declared = error_rate(MODES[mode], 300, 300, 3)
    assert failed <= binom.isf(FALSE_ALARM, 300, DELTA)
    assert declared > 200


def test_counting_rewards_as_they_arrive_would_be_fooled():
    # Two arms alike; one tells its conversions sooner. In the order of arrivals it looks better, for ever.
    rng = np.random.default_rng(4)
    sums, counts = np.zeros(2), np.zeros(2)
    for now in range(4000):
        arm = int(rng.random() < 0.5)
        reward = float(rng.random() < 0.3)
        delay = rng.exponential((5.0, 2000.0)[arm]) if reward else 0.0
        if now + delay <= 4000:
            sums[arm] += reward
            counts[arm] += 1
    naive = sums[0] / counts[0] - sums[1] / counts[1]
    assert naive > 0.05
