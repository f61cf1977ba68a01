"""Cells made from rows by a plain loop, and logs of rows to make them from."""

from dataclasses import dataclass

import numpy as np

from inside.estimate import Cells, Measure
from inside.logs import follow_metric
from orthobandit import ArmSet, Asymptotic


@dataclass
class Rows:
    """A log: bucket, plan, arm, reward and perhaps segment and loss of every row (n,); plans (P, K)."""

    plans: np.ndarray
    bucket: np.ndarray
    plan: np.ndarray
    arm: np.ndarray
    reward: np.ndarray
    segment: np.ndarray | None = None
    lost: np.ndarray | None = None

    @property
    def probability(self):
        """Of the arm that was drawn (n,)."""
        return self.plans[self.plan, self.arm]


def drawn(rng, plans, plan, bucket, levels=0.0, gaps=None, noise=1.0):
    """Return rows whose arms are drawn from their plans; the baseline of a row is `levels`."""
    plans = np.asarray(plans, dtype=float)
    plan, bucket = np.asarray(plan), np.asarray(bucket)
    arm = (rng.random(len(plan))[:, np.newaxis] > np.cumsum(plans, axis=1)[plan]).sum(axis=1)
    arm = np.minimum(arm, plans.shape[1] - 1)
    gap = np.zeros(plans.shape[1]) if gaps is None else np.asarray(gaps)
    return Rows(plans, bucket, plan, arm, levels + gap[arm] + noise * rng.standard_normal(len(plan)))


def cells_of(rows, offset=0.0, arms=None, segments=("",), columns=("reward",)):
    """Return the cells of rows, group by group."""
    count = len(rows.arm)
    segment = np.zeros(count, dtype=int) if rows.segment is None else rows.segment
    lost = np.zeros(count, dtype=bool) if rows.lost is None else rows.lost
    keys = np.stack([rows.bucket, rows.plan, rows.arm, segment], axis=1)
    groups, index = np.unique(keys, axis=0, return_inverse=True)
    parts = {name: [] for name in ("counts", "dropped", "sums", "squares", "low", "high")}
    for group in range(len(groups)):
        mine = index.ravel() == group
        values = rows.reward[mine & ~lost] - offset
        parts["counts"].append(len(values))
        parts["dropped"].append(int((mine & lost).sum()))
        parts["sums"].append(values.sum())
        parts["squares"].append((values**2).sum())
        parts["low"].append(values.min(initial=np.inf) if len(values) else 0.0)
        parts["high"].append(values.max(initial=-np.inf) if len(values) else 0.0)
    dropped = np.array(parts["dropped"], dtype=np.int64)
    return Cells(
        arms=ArmSet.one_hot(rows.plans.shape[1]) if arms is None else arms,
        plans=np.asarray(rows.plans, dtype=float),
        times=np.arange(rows.bucket.max() + 1) * 3600.0,
        width=3600.0,
        is_clock=True,
        segments=tuple(segments),
        columns=tuple(columns),
        offset=np.array([offset]),
        bucket=groups[:, 0].astype(np.int64),
        plan=groups[:, 1].astype(np.int64),
        arm=groups[:, 2].astype(np.int64),
        segment=groups[:, 3].astype(np.int64),
        counts=np.array(parts["counts"], dtype=np.int64),
        missing=dropped[:, np.newaxis],
        dropped=dropped,
        sums=np.array(parts["sums"])[:, np.newaxis],
        products=np.array(parts["squares"])[:, np.newaxis, np.newaxis],
        low=np.array(parts["low"])[:, np.newaxis],
        high=np.array(parts["high"])[:, np.newaxis],
        capped=np.zeros((len(groups), 1), dtype=np.int64),
    )


def follow(cells, aims=(), **settings):
    """Return the reward of cells as it is followed: asymptotic, by a running mean, against arm 0."""
    given = {"confidence": Asymptotic(), "delta": 0.05, "baseline": "mean", "reference": 0} | settings
    return follow_metric(cells, Measure(0, None, (), **given), aims)
