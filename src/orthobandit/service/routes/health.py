"""Whether the server is well."""

from fastapi import APIRouter, Request

from orthobandit.service.answers import HealthAnswer
from orthobandit.service.routes.base import documented, registry_of

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> HealthAnswer:
    """Answer, whatever the database does."""
    return HealthAnswer(status="alive")


@router.get("/readyz", summary="Can the database be used?", responses=documented(503))
def readyz(request: Request) -> HealthAnswer:
    """Answer once the database does."""
    registry_of(request).check()
    return HealthAnswer(status="ready")
