"""Whether the server is well."""

from fastapi import APIRouter, Request

from orthobandit.service.api.base import documented, registry_of
from orthobandit.service.api.responses import HealthAnswer
from orthobandit.service.http.problems import Problem
from orthobandit.service.warm_up import Preparing

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> HealthAnswer:
    """Answer, whatever the database does."""
    return HealthAnswer(status="alive")


@router.get("/readyz", summary="Can experiments be asked and told?", responses=documented(503))
def readyz(request: Request) -> HealthAnswer:
    """Answer once all is compiled that draws and plans, and the database answers."""
    preparing: Preparing = request.app.state.preparing
    if preparing.has_failed:
        raise Problem("unavailable", "not ready: what draws and plans could not be compiled; see the log")
    if not preparing.is_done:
        raise Problem("unavailable", "not ready: what draws and plans is compiled, which may take a minute")
    registry_of(request).check()
    return HealthAnswer(status="ready")
