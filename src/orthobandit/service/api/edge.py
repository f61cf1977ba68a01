"""Draws at the edge: the plan that clients draw from by themselves, and the exposures they post."""

import re
from importlib.resources import files
from typing import Annotated

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from orthobandit.errors import ParameterError
from orthobandit.experiment.draw.exposures import Exposed
from orthobandit.experiment.ledger.personal_feed import PLAN_SECONDS
from orthobandit.service.api.operations import Opened, Resource
from orthobandit.service.api.shared import (
    READS,
    WRITES,
    Body,
    Covariates,
    Key,
    Name,
    RefusedAnswer,
    experiment_of,
    send_tagged,
)
from orthobandit.service.http.limits import MAX_ASKED, MAX_ID

Known = Annotated[list[float | None], Field(min_length=1, max_length=MAX_ASKED)]
edge = Resource("/v1/experiments/{key}", tag="at the edge", role="edge")
script = Resource(tag="at the edge", takes_any_query=True)
SOURCE = files("orthobandit.service.client") / "edge.js"


class ExposuresBody(Body):
    """Draws under one plan, and what is known of their rewards: numbers, or lists of metrics by name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"plan": 1, "units": ["user-17", "user-18"], "arms": [2, 0], "rewards": [1.0, None]},
            ]
        }
    )

    plan: Annotated[int, Field(ge=1, le=MAX_ID, description="The number of the plan")]
    units: Annotated[list[Name], Field(min_length=1, max_length=MAX_ASKED)]
    arms: Annotated[
        list[Annotated[int, Field(ge=0, le=MAX_ID)]],
        Field(min_length=1, max_length=MAX_ASKED, description="Numbers of the arms that were drawn"),
    ]
    rewards: Annotated[
        Known | Annotated[dict[Name, Known], Field(max_length=101)] | None,
        Field(description="`null` where nothing is known yet"),
    ] = None
    covariates: Annotated[
        list[Covariates] | None, Field(max_length=MAX_ASKED, description="One object for each unit")
    ] = None
    context: Annotated[
        list[Covariates] | None,
        Field(max_length=MAX_ASKED, description="What a personalised plan was drawn by, one for each unit"),
    ] = None


class HandedPlanAnswer(BaseModel):
    """Computes the distribution of each visitor of a personalised experiment."""

    arms: list[int] = Field(description="Numbers of the arms on offer")
    columns: list[str] = Field(description="Of the context")
    features: list[list[float]] = Field(description="Of the arms on offer, to be crossed with the context")
    scale: list[float] = Field(description="Crossed features are multiplied by it")
    theta: list[float] = Field(description="Estimated coefficients")
    inverse: list[list[float]] = Field(description="Inverse of the information about them")
    radius: float
    explore: float = Field(description="Share of visitors who are drawn uniformly")


class PlanAnswer(BaseModel):
    """The current plan, for clients that draw by themselves."""

    plan: int
    labels: list[str] = Field(description="Of the arms")
    probabilities: list[float] = Field(description="What arms are drawn from, in their order")
    thresholds: list[float] = Field(
        description="A unit has the first arm whose threshold lies beyond the unit's position"
    )
    salt: str = Field(description="Secret: positions are keyed hashes by it")
    holdout: float = Field(description="Share of units that have the reference arm, whatever the plan")
    holdout_salt: str
    reference: int
    lasts: float = Field(description="Seconds after which to ask for the plan again")
    personal: HandedPlanAnswer | None = Field(
        None, description="Of a personalised experiment, which has no probabilities and thresholds for all"
    )


class ExposedAnswer(BaseModel):
    """The result of posting exposures."""

    taken: int = Field(description="Exposures that are new")
    known: int = Field(description="Exposures that were posted before")
    told: int = Field(description="Rewards that were taken, or had been told before")
    refused: list[RefusedAnswer]

    @classmethod
    def of(cls, exposed: Exposed, *, is_named: bool) -> "ExposedAnswer":
        """Return the result as plain values; `is_named` says whether rewards had names."""
        refused = []
        for refusal in exposed.refused:
            # A personalised plan cannot be drawn from for a context that does not fit it.
            part = "context" if isinstance(refusal.error, ParameterError) else "arms"
            refused.append(RefusedAnswer.of(refusal, part, is_named=is_named))
        return cls(taken=exposed.taken, known=exposed.known, told=exposed.told, refused=refused)


def minify(source: str) -> str:
    r"""Return a script without comments and needless space; its strings must contain neither.

    Examples
    --------
    >>> minify('// Twice.\nconst twice = (x) => {\n  return 2 * x\n}\n')
    'const twice=(x)=>{return 2*x}'
    """
    lines = [line.strip() for line in source.splitlines() if not line.strip().startswith("//")]
    dense = re.sub(r" *([-+*/%=<>|&^?:;,{}()\[\]]) *", r"\1", "\n".join(filter(None, lines)))
    return re.sub(r"\n(?=[})\]])|(?<=[,({\[])\n", "", dense)


SCRIPT = minify(SOURCE.read_text(encoding="utf-8"))


@edge.get("/plan", summary="What to draw from", response_model=PlanAnswer, responses=READS)
def plan(key: Key, request: Request) -> Response:
    """Return the current plan, and the secret salt that assigns units to arms under it."""
    found = experiment_of(request, key).edge_plan()
    content = PlanAnswer.model_validate(found, from_attributes=True).model_dump_json().encode()
    answer = send_tagged(request, content)
    # Clients keep the plan until it is time to ask again; no proxy may, since it holds a secret.
    answer.headers["Cache-Control"] = f"private, max-age={PLAN_SECONDS:.0f}"
    return answer


@edge.post(
    "/exposures",
    summary="What was drawn, and what came of it",
    response_model=ExposedAnswer,
    responses=WRITES,
    is_hot=True,
)
async def exposures(experiment: Opened, body: ExposuresBody) -> bytes:
    """Recompute every draw, record those that match, and say what is wrong with the others.

    A unit that was posted before is the same exposure; post it again when its reward is known.
    """
    exposed = await experiment.expose(
        body.plan,
        body.units,
        body.arms,
        body.rewards,
        covariates=body.covariates,
        context=body.context,
    )
    answer = ExposedAnswer.of(exposed, is_named=isinstance(body.rewards, dict))
    return answer.model_dump_json().encode()


@script.get(
    "/edge.js",
    summary="A client in JavaScript",
    response_class=Response,
    responses={200: {"description": "The script", "content": {"text/javascript": {}}}},
)
async def edge_js() -> Response:
    """Return the client that draws by itself, as a JavaScript module."""
    return Response(SCRIPT, media_type="text/javascript", headers={"Cache-Control": "max-age=3600"})
