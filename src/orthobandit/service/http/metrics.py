"""Numbers for Prometheus: requests, how long they took, and how experiments stand."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from orthobandit.experiment.report.report import Report

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ALARMS = ("sample-ratio", "missing", "drift")


class Metrics:
    """What a server has counted. Only its event loop counts requests, so that nothing need be locked.

    Labels are methods, templates of routes, statuses and keys of experiments; never units or tokens.

    Attributes
    ----------
    requests : dict
        How many, by method, route and status.
    webhooks : dict
        Deliveries, by what came of them; counted by the keeper's thread alone.
    is_keeper : bool
        Whether this server does what one does for all.
    """

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = {}
        self.webhooks = {"sent": 0, "failed": 0, "dead": 0}
        self.is_keeper = False
        self._seconds: dict[str, tuple[list[int], list[float]]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request, of which nobody knows more than its route's template."""
        key = (method if method in METHODS else "OTHER", route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        found = self._seconds.get(route)
        if found is None:
            found = self._seconds[route] = ([0] * (len(BOUNDS) + 1), [0.0])
        found[0][bisect_left(BOUNDS, seconds)] += 1
        found[1][0] += seconds

    def families(self) -> Iterator[Metric]:
        """Yield what Prometheus is told of requests and webhooks."""
        requests = CounterMetricFamily(
            "orthobandit_http_requests", "Requests answered", labels=("method", "route", "status")
        )
        for (method, route, status), count in list(self.requests.items()):
            requests.add_metric((method, route, str(status)), count)
        yield requests
        latency = HistogramMetricFamily(
            "orthobandit_http_seconds", "Seconds until an answer began", labels=("route",)
        )
        names = [*(str(bound) for bound in BOUNDS), "+Inf"]
        for route, (counts, total) in list(self._seconds.items()):
            buckets = list(zip(names, map(float, accumulate(counts)), strict=True))
            latency.add_metric((route,), buckets, total[0])
        yield latency
        webhooks = CounterMetricFamily(
            "orthobandit_webhooks", "Attempts to deliver a webhook, by what came of them", labels=("result",)
        )
        for result, count in self.webhooks.items():
            webhooks.add_metric((result,), count)
        yield webhooks
        yield GaugeMetricFamily(
            "orthobandit_keeper",
            "Whether this server does what one does for all",
            value=float(self.is_keeper),
        )


class _Families(Collector):
    """Lets Prometheus's library write what a function yields."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()


def written(*parts: Iterable[Metric]) -> bytes:
    """Return metrics in Prometheus's text format, with those of the process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    for part in parts:
        registry.register(_Families(lambda part=list(part): part))  # type: ignore[misc]
    return generate_latest(registry)


def experiment_families(reports: dict[str, Report] | None, experiments: int) -> Iterator[Metric]:
    """Yield what Prometheus is told of experiments.

    Parameters
    ----------
    reports : dict, optional
        By key; None if the database cannot be read.
    experiments : int
        How many there are, those without a report among them.
    """
    yield GaugeMetricFamily(
        "orthobandit_database_up", "Whether the database answers", value=float(reports is not None)
    )
    if reports is None:
        return
    yield GaugeMetricFamily("orthobandit_experiments", "Experiments in the database", value=experiments)
    label = ("experiment",)
    counters = {
        "proposals": CounterMetricFamily("orthobandit_proposals", "Arms drawn", labels=label),
        "settled": CounterMetricFamily("orthobandit_settled", "Proposals settled", labels=label),
    }
    gauges = {
        "open": GaugeMetricFamily("orthobandit_open", "Whether it takes questions", labels=label),
        "awaited": GaugeMetricFamily("orthobandit_awaited", "Proposals whose reward is out", labels=label),
        "silent": GaugeMetricFamily("orthobandit_silent", "Settled proposals never told of", labels=label),
        "arms": GaugeMetricFamily("orthobandit_arms_left", "Arms that may be the best", labels=label),
        "declared": GaugeMetricFamily("orthobandit_declared", "Whether an arm is declared", labels=label),
    }
    alarms = GaugeMetricFamily(
        "orthobandit_alarm", "Whether claims cannot be believed, by why", labels=("experiment", "alarm")
    )
    for key, report in reports.items():
        for name, counter in counters.items():
            counter.add_metric((key,), getattr(report, name))
        for name, value in _gauges(report).items():
            gauges[name].add_metric((key,), value)
        for alarm in ALARMS:
            alarms.add_metric((key, alarm), float(alarm in report.alarms))
    yield from (*counters.values(), *gauges.values(), alarms)


def _gauges(report: Report) -> dict[str, float]:
    return {
        "open": float(report.status == "open"),
        "awaited": float(report.awaited),
        "silent": float(sum(arm.silent for arm in report.arms)),
        "arms": float(sum(arm.is_active for arm in report.arms)),
        "declared": float(report.declared is not None),
    }
