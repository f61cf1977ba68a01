"""OpenTelemetry: traces and metrics of requests, for those who collect them that way.

Where they go is said by OpenTelemetry's own variables, such as ``OTEL_EXPORTER_OTLP_ENDPOINT``, as for every
other program. Prometheus needs none of this: ``/metrics`` is always there.
"""

import os
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from orthobandit._foundation.files import optional_package

NAME = "orthobandit"
# Modules below `opentelemetry`.
FASTAPI = "instrumentation.fastapi"
SDK = "sdk"
EXPORTER = "exporter.otlp.proto.http"
HEALTH = "healthz,readyz,metrics"  # routes that are asked every second, and tell nothing


def check_packages() -> None:
    """Raise :class:`MissingExtraError` if the packages of the extra ``telemetry`` are not installed."""
    for name in (FASTAPI, SDK, EXPORTER):
        _load(name)


def _load(name: str) -> Any:
    return optional_package(f"opentelemetry.{name}", "telemetry", "sending telemetry")


def send_telemetry(app: FastAPI) -> Callable[[], None]:
    """Let an application send traces and metrics; return what sends the rest at the end.

    Raises
    ------
    MissingExtraError
        If the packages of the extra ``telemetry`` are not installed.
    """
    fastapi = _load(FASTAPI)
    trace = _load(f"{SDK}.trace")
    trace_export = _load(f"{SDK}.trace.export")
    metrics = _load(f"{SDK}.metrics")
    metrics_export = _load(f"{SDK}.metrics.export")
    resources = _load(f"{SDK}.resources")
    spans = _load(f"{EXPORTER}.trace_exporter")
    numbers = _load(f"{EXPORTER}.metric_exporter")
    # `Resource.create` reads OTEL_SERVICE_NAME, which goes before ours.
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": NAME}
    resource = resources.Resource.create(named)
    tracing = trace.TracerProvider(resource=resource)
    tracing.add_span_processor(trace_export.BatchSpanProcessor(spans.OTLPSpanExporter()))
    reader = metrics_export.PeriodicExportingMetricReader(numbers.OTLPMetricExporter())
    measuring = metrics.MeterProvider(metric_readers=[reader], resource=resource)
    fastapi.FastAPIInstrumentor.instrument_app(
        app,
        tracer_provider=tracing,
        meter_provider=measuring,
        excluded_urls=HEALTH,
        # A span for every message of a request would be three spans for each.
        exclude_spans=["receive", "send"],
    )

    def end() -> None:
        tracing.shutdown()
        measuring.shutdown()

    return end
