"""Logs of visitors with a context, with known effects, and the groups of their rules made by hand."""

from dataclasses import dataclass

import numpy as np

from inside.estimate import RuleCells, fourfold_places

ARMS = ("A", "B", "C")
RULES = {
    "B on telephones": "B if mobile >= 0.5 else A",
    "C at night": "C if hour < 8 and mobile < 0.5 else B if hour > 20 else A",
}
# Effects over A where all columns are 0, per mobile, per hour: of A, B and C.
LINES = np.array([[0.0, 0.0, 0.0], [-0.06, 0.15, 0.0], [0.05, 0.0, -0.004]])
BUCKETS = 30
LEVELS = {
    "drift": lambda t, mobile, hour, random: 0.15 * np.sin(t / 4.0) + 0.1 * t / BUCKETS,
    "bursts": lambda t, mobile, hour, random: np.where(t % 7 == 3, 0.25, -0.1),
    "who comes": lambda t, mobile, hour, random: 0.25 * mobile - 0.15 * np.cos(hour / 4.0),
}
PLANS = {
    "even": lambda t, mobile, hour, best: np.tile([1 / 3, 1 / 3, 1 / 3], (len(t), 1)),
    "skewed": lambda t, mobile, hour, best: np.tile([0.98, 0.01, 0.01], (len(t), 1)),
    "own": lambda t, mobile, hour, best: _own(mobile, hour),
    "greedy": lambda t, mobile, hour, best: 0.1 / 3 + 0.9 * np.eye(3)[np.full(len(t), best)],
}


def _own(mobile, hour):
    raw = np.stack([1.0 + mobile, 0.2 + hour / 24.0, 1.2 - hour / 24.0], axis=1)
    return raw / raw.sum(axis=1, keepdims=True)


@dataclass
class World:
    """Rows in the order of time: bucket, context (n, 2), arm, reward, probabilities and effects (n, K)."""

    bucket: np.ndarray
    context: np.ndarray
    arm: np.ndarray
    reward: np.ndarray
    p: np.ndarray
    effects: np.ndarray

    def columns(self):
        """Return them as columns of a log."""
        return {
            "t": self.bucket,
            "page": np.array(ARMS)[self.arm],
            "bought": self.reward,
            "mobile": self.context[:, 0],
            "hour": self.context[:, 1],
            **{f"p:{label}": self.p[:, arm] for arm, label in enumerate(ARMS)},
        }


def make(seed, level, plan, rows=100, noise=None):
    """Return a world of BUCKETS · `rows` visitors; rewards are 0 or 1, or normal with a noise."""
    random = np.random.default_rng([seed, 3])
    parts = []
    best = 0
    for bucket in range(BUCKETS):
        t = np.full(rows, bucket)
        mobile = (random.random(rows) < 0.5).astype(float)
        hour = random.integers(0, 24, rows).astype(float)
        p = PLANS[plan](t, mobile, hour, best)
        arm = (random.random((rows, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        context = np.stack([mobile, hour], axis=1)
        effects = np.column_stack([np.ones(rows), context]) @ LINES.T
        mean = 0.4 + LEVELS[level](t, mobile, hour, random) + effects[np.arange(rows), arm]
        if noise is None:
            reward = (random.random(rows) < mean).astype(float)
        else:
            reward = mean + noise * random.normal(size=rows)
        means = [reward[arm == one].mean() if np.any(arm == one) else -np.inf for one in range(3)]
        best = int(np.argmax(means))
        parts.append(World(t, context, arm, reward, p, effects))
    return World(*(np.concatenate([getattr(one, name) for one in parts]) for name in World.__annotations__))


def choices(world):
    """Return the arm (n, R) that each rule chooses: one arm for all, then RULES, written out."""
    mobile, hour = world.context.T
    night = np.where((hour < 8) & (mobile < 0.5), 2, np.where(hour > 20, 1, 0))
    all_rows = np.ones(len(hour), dtype=int)
    return np.stack([0 * all_rows, all_rows, 2 * all_rows, (mobile >= 0.5).astype(int), night], axis=1)


def gained(world):
    """Return the true gain (n, R) of every rule over A for all, row by row."""
    return np.take_along_axis(world.effects, choices(world), axis=1)


def cells_by_hand(world):
    """Return the groups of a world's rows, one after the other."""
    choice = choices(world)
    keys = np.column_stack([world.bucket, world.arm, choice])
    groups, at = np.unique(keys, axis=0, return_inverse=True)
    at = np.asarray(at).reshape(-1)
    u = np.column_stack([np.ones(len(at)), world.reward, world.context])
    own = world.p[np.arange(len(at)), world.arm]
    size = u.shape[1]
    count = len(ARMS)
    products = np.zeros((len(groups), size, size))
    places = fourfold_places(size)
    fourfold = np.zeros((len(groups), len(places)))
    inverse = np.zeros((len(groups), count, size, size))
    outer = u[:, :, np.newaxis] * u[:, np.newaxis]
    np.add.at(products, at, outer)
    for four, place in places.items():
        np.add.at(fourfold[:, place], at, u[:, list(four)].prod(axis=1) / own**2)
    reach = np.zeros((len(groups), count))
    expected = np.zeros((len(groups), count))
    scatter = np.zeros((len(groups), count))
    for arm in range(count):
        p = world.p[:, arm]
        np.add.at(inverse[:, arm], at, outer / p[:, np.newaxis, np.newaxis])
        np.maximum.at(reach[:, arm], at, 1.0 / p)
        np.add.at(expected[:, arm], at, p)
        np.add.at(scatter[:, arm], at, p * (1.0 - p))
    low = np.full((len(groups), size), np.inf)
    high = np.full((len(groups), size), -np.inf)
    np.minimum.at(low, at, u)
    np.maximum.at(high, at, u)
    return RuleCells(
        labels=ARMS,
        columns=("bought", "mobile", "hour"),
        offset=np.zeros(3),
        times=np.arange(BUCKETS, dtype=float),
        width=1.0,
        is_clock=False,
        bucket=groups[:, 0],
        arm=groups[:, 1],
        choice=groups[:, 2:],
        products=products,
        inverse=inverse,
        fourfold=fourfold,
        reach=reach,
        expected=expected,
        scatter=scatter,
        low=low,
        high=high,
    )
