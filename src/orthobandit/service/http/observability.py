"""Observability of requests: ids, log lines, Prometheus counts and latencies, OpenTelemetry.

OpenTelemetry is configured by its own variables, such as ``OTEL_EXPORTER_OTLP_ENDPOINT``. Prometheus needs
none: ``/metrics`` is always there.
"""

import itertools
import json
import logging
import os
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from secrets import token_hex
from time import perf_counter
from typing import Any, TextIO

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.extras import optional_package
from orthobandit.experiment.report.alarms import VIOLATIONS
from orthobandit.experiment.report.report import Report
from orthobandit.service.http.problems import GENERIC_DETAILS, REQUEST_ID, problem
from orthobandit.service.http.request_checks import HEADERS

LOG = logging.getLogger("orthobandit.service")
GONE = 499  # status that is recorded if the caller did not wait for the answer
PLAIN_ID = re.compile(rb"[\w.-]{8,64}")
STYLES = ("json", "text", "none")
REQUESTS = logging.getLogger("orthobandit.requests")
TOKEN = re.compile(rb"bearer ob_([0-9a-f]{12})_", re.IGNORECASE)
LATENCY_BOUNDS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SERVICE_NAME = "orthobandit"
# Modules below `opentelemetry`.
OTEL_FASTAPI = "instrumentation.fastapi"
OTEL_SDK = "sdk"
OTEL_EXPORTER = "exporter.otlp.proto.http"
UNTRACED_ROUTES = "healthz,readyz,metrics"  # routes that are asked every second, and tell nothing


class JSONLines(logging.Formatter):
    """One JSON object a record: time, level, logger, message, request id, and an error's traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        if fields is not None:
            return json.dumps(line | fields)
        line["message"] = record.getMessage()
        if REQUEST_ID.get():
            line["request"] = REQUEST_ID.get()
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """One line of text a record, for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and an error's traceback below it."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")
        fields: dict[str, Any] | None = getattr(record, "fields", None)
        if fields is not None:
            said = " ".join(str(value) for value in fields.values() if value is not None)
            return f"{at} {said}"
        request = f" [{REQUEST_ID.get()}]" if REQUEST_ID.get() else ""
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{at} {record.levelname}{request} {record.getMessage()}{trace}"


def configure_logging(style: str, where: TextIO | None = None) -> None:
    """Write requests and errors of this process to `where`, stderr by default.

    Parameters
    ----------
    style : {"json", "text", "none"}
        With "none", errors only, as text.
    where : file, optional
    """
    check_choice("log", style, STYLES)
    handler = logging.StreamHandler(where or sys.stderr)
    handler.setFormatter(JSONLines() if style == "json" else TextLines())
    for name in ("orthobandit", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.WARNING)
    REQUESTS.setLevel(logging.WARNING if style == "none" else logging.INFO)


def token_id(authorization: bytes) -> str | None:
    """Return the public id in a token, if the header has a token.

    Examples
    --------
    >>> token_id(b"Bearer ob_93f1c2a07be4_secret"), token_id(b"Basic YTpi")
    ('93f1c2a07be4', None)
    """
    match = TOKEN.match(authorization)
    return match[1].decode() if match else None


# Plain counters of prometheus_client take a lock and ten times as long for each request, and add a series of
# creation times that only a switch for the whole process turns off.
class Metrics:
    """Counts and latencies of a server. Only its event loop counts requests, so that no lock is needed.

    Labels are methods, templates of routes, statuses and keys of experiments; never units or tokens.

    Attributes
    ----------
    requests : dict
        How many, by method, route and status.
    webhooks : dict
        Deliveries by result.
    clock_jumps : int
        How often the machine's clock was set by more than a minute.
    is_keeper : bool
        Whether this server is the keeper.
    refused : dict
        Connections that were refused before there was a request, by kind of problem.
    """

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = {}
        self.webhooks = {"sent": 0, "failed": 0, "dead": 0}
        self.is_keeper = False
        self.clock_jumps = 0
        self.refused: dict[str, int] = {}
        self._seconds: dict[str, tuple[list[int], list[float]]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request under its route's template, never its path."""
        key = (method if method in METHODS else "OTHER", route, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        found = self._seconds.get(route)
        if found is None:
            found = self._seconds[route] = ([0] * (len(LATENCY_BOUNDS_SECONDS) + 1), [0.0])
        # Counted per bucket here, and accumulated only when somebody reads the metrics.
        found[0][bisect_left(LATENCY_BOUNDS_SECONDS, seconds)] += 1
        found[1][0] += seconds

    def families(self) -> Iterator[Metric]:
        """Yield the metric families of requests and webhooks."""
        requests = CounterMetricFamily(
            "orthobandit_http_requests", "Requests answered", labels=("method", "route", "status")
        )
        for (method, route, status), count in list(self.requests.items()):
            requests.add_metric((method, route, str(status)), count)
        yield requests
        latency = HistogramMetricFamily(
            "orthobandit_http_seconds", "Seconds until an answer began", labels=("route",)
        )
        names = [*(str(bound) for bound in LATENCY_BOUNDS_SECONDS), "+Inf"]
        for route, (counts, total) in list(self._seconds.items()):
            buckets = list(zip(names, map(float, itertools.accumulate(counts)), strict=True))
            latency.add_metric((route,), buckets, total[0])
        yield latency
        refused = CounterMetricFamily(
            "orthobandit_connections_refused",
            "Connections refused before there was a request, by why",
            labels=("reason",),
        )
        for reason, count in list(self.refused.items()):
            refused.add_metric((reason,), count)
        yield refused
        webhooks = CounterMetricFamily(
            "orthobandit_webhooks", "Attempts to deliver a webhook, by what came of them", labels=("result",)
        )
        for result, count in self.webhooks.items():
            webhooks.add_metric((result,), count)
        yield webhooks
        yield CounterMetricFamily(
            "orthobandit_clock_jumps",
            "How often the clock was set by more than a minute",
            value=self.clock_jumps,
        )
        yield GaugeMetricFamily(
            "orthobandit_keeper",
            "Whether this server does what one does for all",
            value=float(self.is_keeper),
        )


class _Families(Collector):
    """Adapts a function that yields metric families to Prometheus's collectors."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()


def render_metrics(*parts: Iterable[Metric]) -> bytes:
    """Return metrics in Prometheus's text format, with those of the process."""
    # A registry of its own: the process-wide one would mix the metrics of two applications.
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    for part in parts:
        registry.register(_Families(lambda part=list(part): part))  # type: ignore[misc]
    return generate_latest(registry)


def experiment_families(reports: dict[str, Report] | None) -> Iterator[Metric]:
    """Yield the metric families of experiments.

    Parameters
    ----------
    reports : dict, optional
        By key; None if the database cannot be read.
    """
    yield GaugeMetricFamily(
        "orthobandit_database_up", "Whether the database answers", value=float(reports is not None)
    )
    if reports is None:
        return
    yield GaugeMetricFamily("orthobandit_experiments", "Experiments in the database", value=len(reports))
    label = ("experiment",)
    counters = {
        "proposals": CounterMetricFamily("orthobandit_proposals", "Arms drawn", labels=label),
        "settled": CounterMetricFamily("orthobandit_settled", "Proposals settled", labels=label),
    }
    gauges = {
        "open": GaugeMetricFamily("orthobandit_open", "Whether the experiment is open", labels=label),
        "awaited": GaugeMetricFamily("orthobandit_awaited", "Proposals that are not settled", labels=label),
        "silent": GaugeMetricFamily("orthobandit_silent", "Settled proposals without a reward", labels=label),
        "arms": GaugeMetricFamily("orthobandit_arms_left", "Arms that may be the best", labels=label),
        "declared": GaugeMetricFamily("orthobandit_declared", "Whether an arm is declared", labels=label),
    }
    alarms = GaugeMetricFamily(
        "orthobandit_alarm", "Whether claims cannot be believed, by reason", labels=("experiment", "alarm")
    )
    for key, report in reports.items():
        for name, counter in counters.items():
            counter.add_metric((key,), getattr(report, name))
        for name, value in _gauges(report).items():
            gauges[name].add_metric((key,), value)
        for alarm in VIOLATIONS:
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


class Observed:
    """Give every request an id, count it and log it; unexpected errors are answered here.

    The id is the caller's ``X-Request-Id`` if that is plain, and is in the answer's header. Only the route's
    template is recorded: paths and queries may hold what does not belong in a log.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        # Random once, then counted: random bits for each request would double the cost of this class.
        self._prefix = token_hex(4)
        self._numbers = itertools.count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on the request, and record its status and time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = perf_counter()
        status = 0
        seconds = 0.0
        given, authorization = _headers(scope)
        is_plain = given and PLAIN_ID.fullmatch(given)
        request = given.decode() if is_plain else f"{self._prefix}{next(self._numbers):08x}"
        REQUEST_ID.set(request)
        name = (b"x-request-id", request.encode())

        async def noted(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                # Not the end: a stream of events may last for hours.
                status = message["status"]
                seconds = perf_counter() - start
                message["headers"] = [*message.get("headers", ()), name]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            LOG.error("%s %s failed", scope["method"], route_template(scope), exc_info=error)
            if status:
                raise  # half an answer was sent: the connection must break
            answer = problem("internal", GENERIC_DETAILS["internal"])
            answer.raw_headers.extend(HEADERS)
            await answer(scope, receive, noted)
        finally:
            route = route_template(scope)
            self._metrics.count(scope["method"], route, status or GONE, seconds or perf_counter() - start)
            if REQUESTS.isEnabledFor(logging.INFO):
                fields = {
                    "request": request,
                    "method": scope["method"],
                    "route": route,
                    "status": status or GONE,
                    "ms": round(1000 * seconds, 2),
                    "token": token_id(authorization) if status != 401 else None,
                }
                REQUESTS.info("", extra={"fields": fields})


def route_template(scope: Scope) -> str:
    """Return the path template of the route that took a request; "none" if none did."""
    return str(getattr(scope.get("route"), "path", "none"))


def _headers(scope: Scope) -> tuple[bytes, bytes]:
    """Return the request's id and its token, as the caller gave them."""
    given = authorization = b""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value
        elif name == b"authorization":
            authorization = value
    return given, authorization


def check_packages() -> None:
    """Raise :class:`MissingExtraError` if the packages of the extra ``telemetry`` are not installed."""
    for name in (OTEL_FASTAPI, OTEL_SDK, OTEL_EXPORTER):
        _load(name)


def _load(name: str) -> Any:
    return optional_package(f"opentelemetry.{name}", "telemetry", "sending telemetry")


def send_telemetry(app: FastAPI) -> Callable[[], None]:
    """Let an application send traces and metrics; return a function that flushes them at the end.

    Raises
    ------
    MissingExtraError
        If the packages of the extra ``telemetry`` are not installed.
    """
    fastapi = _load(OTEL_FASTAPI)
    trace = _load(f"{OTEL_SDK}.trace")
    trace_export = _load(f"{OTEL_SDK}.trace.export")
    metrics = _load(f"{OTEL_SDK}.metrics")
    metrics_export = _load(f"{OTEL_SDK}.metrics.export")
    resources = _load(f"{OTEL_SDK}.resources")
    spans = _load(f"{OTEL_EXPORTER}.trace_exporter")
    numbers = _load(f"{OTEL_EXPORTER}.metric_exporter")
    # `Resource.create` reads OTEL_SERVICE_NAME, which goes before ours.
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": SERVICE_NAME}
    resource = resources.Resource.create(named)
    tracing = trace.TracerProvider(resource=resource)
    tracing.add_span_processor(trace_export.BatchSpanProcessor(spans.OTLPSpanExporter()))
    reader = metrics_export.PeriodicExportingMetricReader(numbers.OTLPMetricExporter())
    measuring = metrics.MeterProvider(metric_readers=[reader], resource=resource)
    fastapi.FastAPIInstrumentor.instrument_app(
        app,
        tracer_provider=tracing,
        meter_provider=measuring,
        excluded_urls=UNTRACED_ROUTES,
        # A span for every message of a request would be three spans for each.
        exclude_spans=["receive", "send"],
    )

    def end() -> None:
        tracing.shutdown()
        measuring.shutdown()

    return end
