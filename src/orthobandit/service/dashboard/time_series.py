"""Time series for the dashboard's charts: intervals, allocation and baseline.

Plans and forecasts are read from the log. Intervals are not in the log: while a server runs, it stores a
point of them whenever the number of settled proposals has grown by 4 %.
"""

import json
import time
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from orthobandit.experiment.report.report import Report
from orthobandit.experiment.store.sql.schema import EVENTS, EXPERIMENTS, PLANS, PROPOSALS
from orthobandit.experiment.store.sql.service_tables import HISTORY
from orthobandit.service.registry import Registry

# settled proposals of the first point, and by how much the next has more
FIRST_POINT_SETTLED = 10
POINT_GROWTH = 1.04
MAX_LINES = 8  # arms that a chart shows; tables show all
BASELINE_POINTS = 160  # of the baseline
MAX_KEPT_CHARTS = 100  # experiments whose charts are kept for the next who asks


class Head(NamedTuple):
    """Where a log ends: its newest entry, and its newest proposal."""

    seq: int
    proposals: int


class History:
    """Time series of the experiments of a database.

    Parameters
    ----------
    registry : Registry
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._newest: dict[str, int] = {}  # settled proposals of the newest point
        self._charts: dict[str, tuple[Report, dict[str, Any]]] = {}

    def is_due(self, key: str, settled: int) -> bool:
        """Tell whether `settled` has grown enough since the newest point.

        Growth by a share keeps the number of points logarithmic in the number of proposals.
        """
        if key not in self._newest:
            with self._registry.reading() as connection:
                self._newest[key] = connection.execute(_newest(key)).scalar() or 0
        return settled >= max(FIRST_POINT_SETTLED, self._newest[key] * POINT_GROWTH, self._newest[key] + 1)

    def keep(self, key: str, report: Report) -> None:
        """Store a point, if it is due."""
        if not self.is_due(key, report.settled):
            return
        gaps = {arm.label: [arm.gap, arm.low, arm.high] for arm in report.arms}
        row = {"experiment": key, "at": time.time(), "settled": report.settled, "gaps": json.dumps(gaps)}
        with self._registry.writing() as connection:
            # Another server may have been faster.
            self._newest[key] = connection.execute(_newest(key)).scalar() or 0
            if self.is_due(key, report.settled):
                connection.execute(sa.insert(HISTORY).values(**row))
                self._newest[key] = report.settled

    def heads(self, keys: Collection[str]) -> dict[str, Head]:
        """Return where the logs of experiments end, by key."""
        if not keys:
            return {}
        seq = sa.select(sa.func.max(EVENTS.c.seq)).where(EVENTS.c.experiment == EXPERIMENTS.c.id)
        number = sa.select(sa.func.max(PROPOSALS.c.number)).where(PROPOSALS.c.experiment == EXPERIMENTS.c.id)
        query = sa.select(EXPERIMENTS.c.name, seq.scalar_subquery(), number.scalar_subquery())
        with self._registry.reading() as connection:
            found = connection.execute(query.where(EXPERIMENTS.c.name.in_(keys)))
            return {name: Head(seq or 0, number or 0) for name, seq, number in found}

    def charts(self, key: str, report: Report) -> dict[str, Any]:
        """Return the charts' data as plain values; times are in seconds since the epoch."""
        kept = self._charts.get(key)
        if kept is not None and kept[0] is report:
            return kept[1]
        if len(self._charts) >= MAX_KEPT_CHARTS:
            self._charts.clear()
        found = {
            "reference": report.reference,
            "metric": report.metrics[0].name,
            "now": time.time(),
            "places": {arm.label: place for place, arm in enumerate(report.arms)},
            "intervals": self._intervals(key, report),
            "allocation": self._allocation(key, report),
            "baseline": self._baseline(key, report),
        }
        self._charts[key] = (report, found)
        return found

    def _intervals(self, key: str, report: Report) -> dict[str, Any]:
        """Return the stored intervals of the arms over time, and the present ones."""
        query = sa.select(HISTORY.c.at, HISTORY.c.settled, HISTORY.c.gaps)
        with self._registry.reading() as connection:
            rows = connection.execute(query.where(HISTORY.c.experiment == key).order_by(HISTORY.c.at)).all()
        # Two servers may have kept the same point.
        points = list({settled: (at, settled, json.loads(gaps)) for at, settled, gaps in rows}.values())
        if report.settled and (not points or report.settled > points[-1][1]):
            now = {arm.label: [arm.gap, arm.low, arm.high] for arm in report.arms}
            points.append((time.time(), report.settled, now))
        labels = [label for label in labels_shown(report) if label != report.reference]
        none = [None] * 3
        return {
            "at": [at for at, _, _ in points],
            "settled": [settled for _, settled, _ in points],
            "gaps": {label: [gaps.get(label, none) for _, _, gaps in points] for label in labels},
        }

    def _allocation(self, key: str, report: Report) -> dict[str, Any]:
        """Return the shares of the arms under each plan."""
        query = (
            sa.select(EVENTS.c.at, EVENTS.c.data)
            .select_from(EXPERIMENTS)
            .join(PLANS, (PLANS.c.experiment == EXPERIMENTS.c.id) & (PLANS.c.kind == "plan"))
            .join(EVENTS, (EVENTS.c.experiment == EXPERIMENTS.c.id) & (EVENTS.c.seq == PLANS.c.event))
            .where(EXPERIMENTS.c.name == key)
            .order_by(PLANS.c.number)
        )
        with self._registry.reading() as connection:
            rows = connection.execute(query).all()
        shares = [json.loads(data)["plan"]["probabilities"] for _, data in rows]
        places = {arm.label: place for place, arm in enumerate(report.arms)}
        lines = {
            label: [one[places[label]] if places[label] < len(one) else 0.0 for one in shares]
            for label in labels_shown(report)
        }
        return {"at": [at for at, _ in rows], "shares": lines}

    def _baseline(self, key: str, report: Report) -> dict[str, Any]:
        """Return forecasts of the objective's level at some proposals, spread evenly over all."""
        count = min(report.proposals, BASELINE_POINTS)
        numbers = np.unique(np.linspace(1, max(report.proposals, 1), count).round().astype(int)).tolist()
        query = (
            sa.select(PROPOSALS.c.at, PROPOSALS.c.forecasts)
            .join(EXPERIMENTS, EXPERIMENTS.c.id == PROPOSALS.c.experiment)
            .where(EXPERIMENTS.c.name == key, PROPOSALS.c.number.in_(numbers))
            .order_by(PROPOSALS.c.number)
        )
        with self._registry.reading() as connection:
            rows = connection.execute(query).all()
        return {"at": [at for at, _ in rows], "level": [json.loads(one)[0] for _, one in rows]}


def _newest(key: str) -> sa.Select[Any]:
    """Return the query for the number of settled proposals at the newest point."""
    return sa.select(sa.func.max(HISTORY.c.settled)).where(HISTORY.c.experiment == key)


def labels_shown(report: Report) -> list[str]:
    """Return the labels of the arms that charts show, arms in play before others, in the order of arms."""
    order = sorted(report.arms, key=lambda arm: (arm.label != report.reference, not arm.is_active))
    chosen = {arm.label for arm in order[:MAX_LINES]}
    return [arm.label for arm in report.arms if arm.label in chosen]
