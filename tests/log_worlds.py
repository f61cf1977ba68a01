"""Logs from worlds in which intervals are easily wrong: each with its true gaps and its mode."""

import numpy as np
from scipy.stats import norm

from inside.estimate import Cells
from orthobandit import ArmSet, Asymptotic, Bounded, Experiment


def cells_from(bucket, plan, arm, values, plans):
    """Return the cells of rows whose columns are `values` (n, q), all at once."""
    count, (plans_count, arms) = values.shape[1], plans.shape
    key, index = np.unique((bucket * plans_count + plan) * arms + arm, return_inverse=True)
    low, high = np.full((len(key), count), np.inf), np.full((len(key), count), -np.inf)
    np.minimum.at(low, index, values)
    np.maximum.at(high, index, values)
    sums = np.zeros((len(key), count))
    np.add.at(sums, index, values)
    products = np.zeros((len(key), count, count))
    np.add.at(products, index, values[:, :, np.newaxis] * values[:, np.newaxis])
    none = np.zeros((len(key), count), dtype=np.int64)
    return Cells(
        arms=ArmSet.one_hot(arms),
        plans=plans,
        times=3600.0 * np.arange(int(bucket.max()) + 1),
        width=3600.0,
        is_clock=True,
        segments=("",),
        columns=("reward", "before")[:count],
        offset=np.zeros(count),
        bucket=key // (plans_count * arms),
        plan=key // arms % plans_count,
        arm=key % arms,
        segment=none[:, 0],
        counts=np.bincount(index),
        missing=none,
        dropped=none[:, 0],
        sums=sums,
        products=products,
        low=low,
        high=high,
        capped=none,
    )


def fixed(rng, p, rows, hours):
    """Return hour and arm of rows that are all drawn from p."""
    return np.arange(rows) * hours // rows, rng.choice(len(p), rows, p=p)


def plain(hour, arm, reward, p):
    return cells_from(hour, 0 * hour, arm, np.asarray(reward, dtype=float)[:, np.newaxis], np.array([p]))


def thompson(rng):
    """Probabilities follow the pooled means of the arms, while a season moves all of them."""
    counts, sums, plans, parts = np.zeros(2), np.zeros(2), [], []
    for hour in range(100):
        spread = np.sqrt((1 / np.maximum(counts, 1)).sum())
        share = np.clip(norm.cdf(np.diff(sums / np.maximum(counts, 1))[0] / spread), 0.01, 0.99)
        share = share if hour else 0.5
        plans.append([1 - share, share])
        arm = (rng.random(100) < share).astype(int)
        reward = np.cos(4 * np.pi * hour / 100) + 0.1 * arm + rng.standard_normal(100)
        counts += np.bincount(arm, minlength=2)
        sums += np.bincount(arm, reward, minlength=2)
        parts.append((np.full(100, hour), arm, reward))
    hour, arm, reward = (np.concatenate(part) for part in zip(*parts, strict=True))
    return cells_from(hour, hour, arm, reward[:, np.newaxis], np.array(plans)), [0.1], Asymptotic(), ()


def rare(rng, mode=None):
    """Three sales in a thousand visits against two."""
    hour, arm = fixed(rng, [0.5, 0.5], 40_000, 200)
    reward = rng.random(40_000) < np.array([0.002, 0.003])[arm]
    return plain(hour, arm, reward, [0.5, 0.5]), [0.001], mode or Asymptotic(), ()


def rare_exact(rng):
    """Rare sales in the exact mode."""
    return rare(rng, Bounded(0.0, 1.0))


def nothing_and_four(rng):
    """One arm never sells, the other in four visits of a hundred."""
    hour, arm = fixed(rng, [0.5, 0.5], 6000, 120)
    reward = rng.random(6000) < np.array([0.0, 0.04])[arm]
    return plain(hour, arm, reward, [0.5, 0.5]), [0.04], Asymptotic(), ()


def skewed(rng):
    """Rare sales under a lopsided plan."""
    hour, arm = fixed(rng, [0.95, 0.05], 20_000, 200)
    return plain(hour, arm, rng.random(20_000) < 0.02, [0.95, 0.05]), [0.0], Asymptotic(), ()


def burst(rng):
    """One hour in which everything is larger by a thousand."""
    p = [0.5, 0.3, 0.2]
    hour, arm = fixed(rng, p, 10_000, 200)
    reward = rng.standard_normal(10_000) + 1000.0 * (hour == 60) + np.array([0.0, 0.1, 0.0])[arm]
    return plain(hour, arm, reward, p), [0.1, 0.0], Asymptotic(), ()


def gambler(rng):
    """Stakes rise: the level swings fifty times as far whenever the estimate is behind."""
    hour, arm = fixed(rng, [0.9, 0.1], 8000, 400)
    reward, total, weight = 0.1 * rng.standard_normal(8000), 0.0, np.array([-1 / 0.9, 1 / 0.1])
    for now in range(400):
        mine = slice(20 * now, 20 * now + 20)
        reward[mine] += (50.0 if total < 0 else 1.0) * np.sin(now / 3.0)
        total += float((weight[arm[mine]] * reward[mine]).sum())
    return plain(hour, arm, reward, [0.9, 0.1]), [0.0], Asymptotic(), ()


def lognormal(rng):
    """Heavy tails to one side, under a lopsided plan and a season of the spread."""
    hour, arm = fixed(rng, [0.9, 0.1], 10_000, 200)
    reward = np.exp(1.5 * rng.standard_normal(10_000)) * (1 + 0.5 * np.sin(hour / 20.0))
    return plain(hour, arm, reward, [0.9, 0.1]), [0.0], Asymptotic(), ()


def own_plans(rng):
    """Every row has its own probabilities, which go along with its level, and a covariate."""
    share = 0.02 + 0.96 * rng.random(4000)
    hour, arm = np.arange(4000) // 40, (rng.random(4000) < share).astype(int)
    before = rng.standard_normal(4000)
    reward = 2 * np.sin(hour / 9.0) + 0.2 * arm + 3 * before + rng.standard_normal(4000) + 5 * (share - 0.5)
    plans = np.column_stack([1 - share, share])
    cells = cells_from(hour, np.arange(4000), arm, np.column_stack([reward, before]), plans)
    return cells, [0.2], Asymptotic(), (1,)


def ten_equal(rng):
    """Ten arms that sell in five visits of a hundred, all of them."""
    hour, arm = fixed(rng, np.full(10, 0.1), 30_000, 200)
    return plain(hour, arm, rng.random(30_000) < 0.05, np.full(10, 0.1)), np.zeros(9), Asymptotic(), ()


WORLDS = {
    world.__name__: world
    for world in (
        thompson,
        rare,
        rare_exact,
        nothing_and_four,
        skewed,
        burst,
        gambler,
        lognormal,
        own_plans,
        ten_equal,
    )
}


def paid_late(rng, proposals, *, silence="zero", key="0" * 32):
    """Return an experiment whose arms pay alike, 'a' at once and 'b' after 9.5 of 10 hours of waiting.

    The rewards of the last proposals are still awaited.
    """
    now = [1_760_000_000.0]
    pages = Experiment.memory(
        ArmSet.one_hot(2, labels=["a", "b"]),
        rewards=(0, 2),
        add=True,
        window="10h",
        silence=silence,
        key=key,
        clock=lambda: now[0],
    )
    awaited = []
    for _ in range(proposals):
        now[0] += 48.0
        while awaited and awaited[0][0] <= now[0]:
            pages.tell(awaited.pop(0)[1], 1.0)
        one = pages.ask()
        if rng.random() < 0.5:
            if one.label == "a":
                pages.tell(one.id, 1.0)
            else:
                awaited.append((now[0] + 9.5 * 3600.0, one.id))
    return pages
