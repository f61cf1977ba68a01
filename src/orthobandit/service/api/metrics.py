"""Numbers for Prometheus."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from fastapi.security import HTTPAuthorizationCredentials
from prometheus_client import CONTENT_TYPE_LATEST

from orthobandit.service.api.base import documented
from orthobandit.service.background.watch import reports
from orthobandit.service.http.auth import BEARER, needs
from orthobandit.service.http.metrics import experiment_families, written

LOOPBACK = ("127.0.0.1", "::1")
TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


async def may_look(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
) -> None:
    """Let in whoever may read, and this machine if the server was told so."""
    here = request.client is not None and request.client.host in LOOPBACK
    if not (here and request.app.state.open_metrics):
        await needs("read")(request, given)


router = APIRouter(tags=["health"], dependencies=[Depends(may_look)])


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses=TEXT | documented(401, 403, 500),
)
async def metrics(request: Request) -> Response:
    """Give requests, their times, and how experiments stand, in Prometheus's text format."""
    state = request.app.state
    found = await run_in_threadpool(reports, state.looks)
    families = experiment_families(found, len(found or ()))
    return Response(written(state.metrics.families(), families), media_type=CONTENT_TYPE_LATEST)
