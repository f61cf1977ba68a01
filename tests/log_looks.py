"""Logs that are looked at while they grow, and experiments whose reports are."""

import numpy as np

from log_worlds import cells_from
from orthobandit import AnytimeElimination, ArmSet, Experiment

DAYS, HOURS, ROWS = 6, 24, 20  # a log of six days, with so many rows an hour
PLANS = np.array([[0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])  # the split moves after three days
GAPS = np.array([0.0, 0.0, 0.15])
BEST = 2
# Six arms, of which some get one visitor in fifty or thirty, others half of them; the split is turned round.
SIX_PLANS = np.array([[0.5, 0.25, 0.12, 0.06, 0.05, 0.02], [0.03, 0.05, 0.07, 0.15, 0.3, 0.4]])
SIX_GAPS = np.array([0.0, 0.0, 0.15, 0.14, -0.1, 0.05])


def growing_log(rng, is_binary, gaps=GAPS, plans=PLANS):
    """Return (hour, plan, arm, reward) of rows in the order of time, whose level drifts and has a season."""
    hour = np.repeat(np.arange(DAYS * HOURS), ROWS)
    plan = (hour >= 3 * HOURS).astype(int)
    arm = (rng.random(len(hour))[:, np.newaxis] > np.cumsum(plans[:, :-1], axis=1)[plan]).sum(axis=1)
    walk = np.cumsum(rng.standard_normal(DAYS * HOURS)) / np.sqrt(DAYS * HOURS)
    level = 0.15 * np.sin(2.0 * np.pi * hour / HOURS) + 0.1 * np.clip(walk, -2.0, 2.0)[hour]
    mean = 0.4 + level + gaps[arm]
    if is_binary:
        return hour, plan, arm, (rng.random(len(hour)) < mean).astype(float)
    return hour, plan, arm, mean + 0.5 * rng.standard_normal(len(hour))


def looks(rng):
    """Return how many rows there are at each look: daily, at any minute of the hour."""
    ends = np.arange(1, DAYS + 1) * HOURS * ROWS
    return [*(ends[:-1] + rng.integers(0, 3 * ROWS, DAYS - 1)).tolist(), int(ends[-1])]


def first_rows(log, count, plans=PLANS):
    """Return the cells of the first rows of a log."""
    hour, plan, arm, reward = (part[:count] for part in log)
    return cells_from(hour, plan, arm, reward[:, np.newaxis], plans)


def reports(seed, rounds=960, step=80):
    """Yield the reports of an experiment of two or three arms under a season, and the true gaps."""
    rng = np.random.default_rng([29, seed])
    count = int(rng.integers(2, 4))
    means = 0.3 + np.sort(rng.choice([0.0, 0.1, 0.25], count))[rng.permutation(count)]
    bounds = (0.0, 1.0) if rng.random() < 0.5 else None
    goal = str(rng.choice(["identify", "earn"]))
    policy = AnytimeElimination(delta=0.1, goal=goal, rewards=bounds)
    rewards = "unknown" if bounds is None else bounds
    experiment = Experiment.memory(
        ArmSet.one_hot(count), policy, rewards=rewards, reference=0, key=f"{seed:032x}"
    )
    for first in range(0, rounds, step):
        proposals = experiment.ask_many(step)
        arms = np.array([one.arm for one in proposals])
        level = 0.2 * np.sin((first + np.arange(step)) / 150.0)
        values = (rng.random(step) < means[arms] + level).astype(float)
        experiment.tell_many([one.id for one in proposals], {"reward": values})
        yield experiment.report(), means - means[0]


def reports_of_six(seed, rounds=1600, step=160):
    """Yield the reports of six arms whose level wanders, and the true gaps; plans are uneven.

    Every other batch is asked for with two arms out of stock, another two each time: what is left of the plan
    is drawn from. Two arms lead, 0.02 or 0.2 apart, and the reference arm is any.
    """
    rng = np.random.default_rng([33, seed])
    means = np.array([0.5, 0.5 - rng.choice([0.02, 0.2]), 0.3, 0.3, 0.2, 0.1])[rng.permutation(6)]
    bounds = (0.0, 1.0) if rng.random() < 0.5 else None
    reference = int(rng.integers(6))
    policy = AnytimeElimination(delta=0.1, goal=str(rng.choice(["identify", "earn"])), rewards=bounds)
    experiment = Experiment.memory(
        ArmSet.one_hot(6),
        policy,
        rewards="unknown" if bounds is None else bounds,
        reference=reference,
        key=f"{seed:032x}",
    )
    walk = np.cumsum(rng.standard_normal(rounds)) / np.sqrt(rounds)
    level = 0.1 * np.sin(np.arange(rounds) / 100.0) + 0.1 * np.clip(walk, -2.0, 2.0)
    for number, first in enumerate(range(0, rounds, step)):
        stocked = sorted(rng.choice(6, 4, replace=False).tolist()) if number % 2 else None
        proposals = experiment.ask_many(step, available=stocked)
        arms = np.array([one.arm for one in proposals])
        mean = np.clip(means[arms] + level[first : first + step], 0.0, 1.0)
        experiment.tell_many([one.id for one in proposals], (rng.random(step) < mean).astype(float))
        yield experiment.report(), means - means[reference]
