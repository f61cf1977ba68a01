"""Logs of a numerator and a denominator from worlds in which ratios are easily wrong, with their truth."""

import numpy as np

from inside.estimate import Measure
from log_worlds import cells_from
from orthobandit import Asymptotic

HOURS = 40


def measure(**settings):
    given = {"covariates": (), "confidence": Asymptotic(), "delta": 0.05, "baseline": "auto", "reference": 0}
    return Measure(**({"column": 0, "denominator": 1} | given | settings))


def ramp(low=0.1, high=0.5):
    """Return plans, one an hour: the share of the new arm rises."""
    share = np.linspace(low, high, HOURS)
    return np.column_stack([1.0 - share, share])


def drawn(rng, plans, rows):
    """Return hour and arm of rows; the plan is that of the hour."""
    hour = np.repeat(np.arange(HOURS), rows)
    edges = np.cumsum(plans, axis=1)[hour, :-1]
    return hour, (rng.random(len(hour))[:, np.newaxis] > edges).sum(axis=1)


def cells_of_ratio(hour, arm, above, below, plans):
    return cells_from(hour, hour, arm, np.column_stack([above, below]).astype(float), plans)


def noisy(rng, ratio, below):
    """Return a numerator that is `ratio` of the denominator on average."""
    return ratio * below + np.sqrt(below) * rng.standard_normal(len(below))


def ramped(rng, rows=400):
    """Ramp up an arm with twice the denominator; the ratio of both arms is 1, and later 2."""
    plans = ramp()
    hour, arm = drawn(rng, plans, rows)
    below = rng.poisson(np.where(arm == 1, 10.0, 5.0)).astype(float)
    above = noisy(rng, np.where(hour < HOURS // 2, 1.0, 2.0), below)
    return cells_of_ratio(hour, arm, above, below, plans), np.zeros((HOURS, 1))


def even(rng, rows=400):
    """Keep the split and the ratio constant."""
    plans = np.tile([0.5, 0.5], (HOURS, 1))
    hour, arm = drawn(rng, plans, rows)
    below = rng.poisson(5.0, len(hour)).astype(float)
    return cells_of_ratio(hour, arm, noisy(rng, 1.0, below), below, plans), np.zeros((HOURS, 1))


def heavy(rng, rows=400):
    """Lognormal denominators, of which numerators are a lognormal multiple."""
    plans = ramp(0.2)
    hour, arm = drawn(rng, plans, rows)
    below = np.exp(rng.standard_normal(len(hour))) * np.where(arm == 1, 1.5, 1.0)
    above = below * (1.0 + 0.5 * np.sin(hour / 6.0)) * np.exp(0.5 * rng.standard_normal(len(hour)))
    return cells_of_ratio(hour, arm, above, below, plans), np.zeros((HOURS, 1))


def opposed(rng, rows=400):
    """Numerators are large where denominators are small."""
    plans = ramp()
    hour, arm = drawn(rng, plans, rows)
    z = 0.8 * rng.standard_normal(len(hour))
    above = np.exp(-z) * (1.0 + 0.5 * np.sin(hour / 5.0))
    return cells_of_ratio(hour, arm, above, np.exp(z), plans), np.zeros((HOURS, 1))


def sparse(rng, rows=400):
    """Denominators that are mostly 0, as clicks of visits."""
    plans = ramp()
    hour, arm = drawn(rng, plans, rows)
    below = (rng.random(len(hour)) < np.where(arm == 1, 0.06, 0.03)).astype(float)
    above = below * rng.gamma(2.0, np.where(hour < HOURS // 2, 0.5, 1.0))
    return cells_of_ratio(hour, arm, above, below, plans), np.zeros((HOURS, 1))


def three(rng, rows=400):
    """Three arms with their own denominators, while the ratio of all rises."""
    share = np.linspace(0.1, 0.3, HOURS)
    plans = np.column_stack([1.0 - 2.0 * share, share, share])
    hour, arm = drawn(rng, plans, rows)
    below = rng.poisson(np.array([5.0, 10.0, 3.0])[arm]).astype(float)
    return cells_of_ratio(hour, arm, noisy(rng, 1.0 + hour / 20.0, below), below, plans), np.zeros((HOURS, 2))


def shifting(rng, rows=400):
    """Double the denominator of the new arm when the ratio of both doubles: its average ratio is larger."""
    plans = ramp()
    hour, arm = drawn(rng, plans, rows)
    is_late = hour >= HOURS // 2
    below = rng.poisson(np.where((arm == 1) & is_late, 10.0, 5.0)).astype(float)
    above = noisy(rng, np.where(is_late, 2.0, 1.0), below)
    late = np.arange(1, HOURS) >= HOURS // 2  # the first hour does not count
    ratio, mine = np.where(late, 2.0, 1.0), np.where(late, 10.0, 5.0)
    truth = np.cumsum(ratio * mine) / np.cumsum(mine) - np.cumsum(ratio) / np.arange(1, HOURS)
    return cells_of_ratio(hour, arm, above, below, plans), np.append(0.0, truth)[:, np.newaxis]


def few(rng, rows=400):
    """Return some thirty clicks of the new arm, each worth a lognormal amount."""
    plans = np.tile([0.9, 0.1], (HOURS, 1))
    hour, arm = drawn(rng, plans, rows)
    below = (rng.random(len(hour)) < 0.02).astype(float)
    above = below * np.exp(rng.standard_normal(len(hour)))
    return cells_of_ratio(hour, arm, above, below, plans), np.zeros((HOURS, 1))


RATIO_WORLDS = {
    world.__name__: world for world in (ramped, even, heavy, opposed, sparse, three, shifting, few)
}


def lifted(rng, *, lift=0.2, rows=400, of_coins=False):
    """Multiply a metric by arm, while its level trebles and the split ramps."""
    plans = ramp()
    hour, arm = drawn(rng, plans, rows)
    level = np.where(hour < HOURS // 2, 1.0, 3.0) * (1.0 + lift * arm)
    if of_coins:
        reward = (rng.random(len(hour)) < 0.1 * level).astype(float)
    else:
        reward = level + rng.standard_normal(len(hour))
    return cells_from(hour, hour, arm, reward[:, np.newaxis], plans)
