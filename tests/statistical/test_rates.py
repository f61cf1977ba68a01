"""Rates and lifts of live experiments hold at all times at once, together with the gaps."""

import numpy as np
import pytest
from scipy.stats import binom

from inside.estimate import LEVEL_SHARE, GapIntervals, rates_of
from orthobandit import ArmSet, Asymptotic, Bounded, Plan

pytestmark = pytest.mark.statistical
FALSE_ALARM = 1e-6
GAPS = np.array([0.0, 0.05, -0.04])
ROUNDS = 3_000
LOOKS = 30


def ever_outside(confidence, delta, seed):
    """Play rounds whose level moves and whose split follows the past; tell whether any end was ever wrong."""
    rng = np.random.default_rng(seed)
    followed = GapIntervals(confidence, ArmSet.one_hot(3), 0, delta)
    shares = np.full(3, 1.0 / 3.0)
    plans = {}
    levels = []
    rewards = np.zeros(0)
    for look in range(LOOKS):
        count = ROUNDS // LOOKS
        plans[look] = Plan(shares, count, number=look)
        level = 0.3 + 0.15 * np.sin(np.arange(look * count, (look + 1) * count) / 200.0)
        levels.append(level)
        arms = rng.choice(3, count, p=shares)
        forecast = float(rewards.mean()) if len(rewards) else 0.5
        rewards = (rng.random(count) < level + GAPS[arms]).astype(float)
        forecasts = np.full(count, forecast)
        followed.add(look, arms, followed.centre.residuals(arms, rewards, forecasts), forecasts)
        gaps = followed.intervals(plans)
        average = followed.average(plans)
        found = rates_of(average, gaps, 0, confidence.range)
        truth = np.mean(np.concatenate(levels)) + GAPS
        lifts = GAPS / truth[0]
        wrong = (
            (truth < found.low) | (truth > found.high) | (lifts < found.lift_low) | (lifts > found.lift_high)
        )
        if wrong.any() or np.any((gaps[1] > GAPS) | (gaps[2] < GAPS)):
            return True
        shares = np.array([0.2, 0.6, 0.2]) if gaps[0][1] > 0 else np.array([0.6, 0.2, 0.2])
        followed.flush(plans)
    return False


@pytest.mark.parametrize("confidence", [Bounded(0.0, 1.0), Asymptotic()], ids=lambda one: one.name)
def test_rates_lifts_and_gaps_hold_together(confidence):
    runs, delta = 150, 0.2
    failed = sum(ever_outside(confidence, delta, [3, run]) for run in range(runs))
    assert failed <= binom.isf(FALSE_ALARM, runs, delta)


def average_missed(seed, delta, width):
    """Tell whether the average reward, with a narrower interval, was ever wrong at one of the looks."""
    rng = np.random.default_rng(seed)
    followed = GapIntervals(Bounded(0.0, 1.0), ArmSet.one_hot(3), 0, 0.5)
    followed.delta = delta / LEVEL_SHARE  # so that the average alone has all of δ
    plans = {0: Plan(np.full(3, 1.0 / 3.0), ROUNDS, number=0)}
    arms = rng.integers(0, 3, ROUNDS)
    means = 0.3 + 0.15 * np.sin(np.arange(ROUNDS) / 200.0) + GAPS[arms]
    rewards = (rng.random(ROUNDS) < means).astype(float)
    for part in np.array_split(np.arange(ROUNDS), LOOKS):
        residuals = followed.centre.residuals(arms[part], rewards[part], 0.3)
        followed.add(0, arms[part], residuals, np.full(len(part), 0.3))
        found = followed.average(plans)
        truth = means[: part[-1] + 1].mean()
        if (
            not width * (found.low - found.estimate)
            <= truth - found.estimate
            <= width * (found.high - found.estimate)
        ):
            return True
    return False


def test_the_average_is_covered_and_a_narrower_interval_is_not():
    runs, delta = 200, 0.2
    failed = sum(average_missed([5, run], delta, 1.0) for run in range(runs))
    assert failed <= binom.isf(FALSE_ALARM, runs, delta)
    narrow = sum(average_missed([5, run], delta, 0.4) for run in range(runs))
    assert narrow > binom.isf(FALSE_ALARM, runs, delta)
