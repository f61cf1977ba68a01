"""Draws that are made elsewhere: the plan to draw from, and the exposures that come back."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from orthobandit.experiment.async_experiment import AsyncExperiment
from orthobandit.experiment.draw.edge_plan import LASTS
from orthobandit.service.api.assignments import sent
from orthobandit.service.api.base import READS, WRITES, Key, experiment_of
from orthobandit.service.api.requests import ExposuresBody
from orthobandit.service.api.responses import ExposedAnswer, PlanAnswer
from orthobandit.service.client.edge_script import SOURCE, shipped
from orthobandit.service.http.auth import needs
from orthobandit.service.http.etags import tagged
from orthobandit.service.http.fast_path import hot, opened
from orthobandit.service.http.idempotency import Once

ROLE = "edge"
router = APIRouter(
    prefix="/v1/experiments/{key}",
    tags=["at the edge"],
    dependencies=[Depends(needs(ROLE))],
)
script = APIRouter(tags=["at the edge"])
SCRIPT = shipped(SOURCE.read_text(encoding="utf-8"))


@router.get("/plan", summary="What to draw from", response_model=PlanAnswer, responses=READS)
def plan(key: Key, request: Request) -> Response:
    """Give the plan in force, and the secret by which units have their arms under it."""
    found = experiment_of(request, key).edge_plan()
    content = PlanAnswer.model_validate(found, from_attributes=True).model_dump_json().encode()
    answer = tagged(request, content)
    answer.headers["Cache-Control"] = f"private, max-age={LASTS:.0f}"
    return answer


async def _exposed(experiment: AsyncExperiment, body: ExposuresBody) -> bytes:
    found = await experiment.expose(
        body.plan, body.units, body.arms, body.rewards, covariates=body.covariates
    )
    answer = ExposedAnswer.of(found, is_named=isinstance(body.rewards, dict))
    return answer.model_dump_json().encode()


@router.post(
    "/exposures",
    summary="What was drawn, and what came of it",
    response_model=ExposedAnswer,
    responses=WRITES,
)
@hot(ROLE, ExposuresBody, _exposed)
async def exposures(key: Key, body: ExposuresBody, request: Request, keyed: Once) -> Response:
    """Compute every draw again, take in those that are right, and say what is wrong with the others.

    A unit that was posted before is the same exposure; post it again when its reward is known.
    """
    return sent(await _exposed(await opened(request, key, keyed, body), body))


@script.get(
    "/edge.js",
    summary="A client in JavaScript",
    response_class=Response,
    responses={200: {"description": "The script", "content": {"text/javascript": {}}}},
)
async def edge_js() -> Response:
    """Give the client that draws without asking, as a module."""
    return Response(SCRIPT, media_type="text/javascript", headers={"Cache-Control": "max-age=3600"})
