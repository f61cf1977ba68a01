"""The page of one experiment, what its charts show, and the stream that says when to look again."""

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response, StreamingResponse

from orthobandit.service.api.base import Key, experiment_of
from orthobandit.service.dashboard.live import Sight
from orthobandit.service.dashboard.pages import HEADERS, page
from orthobandit.service.dashboard.routes.base import address_of, pages
from orthobandit.service.dashboard.viewer import Looks
from orthobandit.service.dashboard.words import (
    advice_of,
    arms_of,
    example_of,
    interval,
    metrics_of,
    some,
    state_of,
)

router = pages("/experiments")


@router.get("/{key}")
def shown(
    key: Key, request: Request, viewer: Looks, part: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show an experiment; `part=live` gives only what changes.

    The whole page settles what a window has settled by now. Parts do not: they are asked for whenever
    something has changed, and must not change anything themselves.
    """
    if part != "live":
        experiment_of(request, key).report()
    live = request.app.state.dashboard.live
    sight = live.newest(key) if part == "live" else live.look(key)
    name = "live.html" if part == "live" else "experiment.html"
    return page(request, name, viewer, **_values(request, key, sight))


def _values(request: Request, key: str, sight: Sight) -> dict[str, Any]:
    settings = experiment_of(request, key).settings
    dashboard = request.app.state.dashboard
    report = sight.glance.report
    return {
        "key": key,
        "address": address_of(key),
        "version": sight.version,
        "glance": sight.glance,
        "report": report,
        "state": state_of(report),
        "advice": advice_of(report),
        "rows": arms_of(sight.glance),
        "metrics": metrics_of(report, settings.guardrails),
        "window": settings.window,
        "silence": settings.silence,
        "waiting": dashboard.actions.waiting(key),
        "charts": dashboard.history.charts(key, report),
        "interval": interval,
        "some": some,
        "origin": str(request.base_url).rstrip("/"),
        "example": example_of(settings.metrics),
    }


@router.get("/{key}/charts")
def charts(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give the numbers of the charts."""
    report = request.app.state.dashboard.live.newest(key).glance.report
    return JSONResponse(request.app.state.dashboard.history.charts(key, report), headers=HEADERS)


@router.get("/{key}/events")
async def events(
    key: Key, request: Request, _viewer: Looks, known: Annotated[str, Query(max_length=40)] = ""
) -> Response:
    """Say whenever the page has changed, as server-sent events."""
    await run_in_threadpool(experiment_of, request, key)
    known = request.headers.get("last-event-id", known)
    stream = request.app.state.dashboard.live.stream(key, known)
    headers = HEADERS | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
