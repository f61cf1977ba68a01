"""Ask which arm to show, and tell what came of it."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel

from orthobandit.service.answers import ProposalAnswer, ProposalsAnswer, ToldAnswer
from orthobandit.service.auth import needs
from orthobandit.service.idempotency import Once
from orthobandit.service.models import AskBody, AskManyBody, TellBody, TellManyBody
from orthobandit.service.routes.base import WRITES, Key, experiment_of

# Routes that wait for the disk are no coroutines: each has its thread, and threads share commits.
router = APIRouter(
    prefix="/v1/experiments/{key}",
    tags=["ask and tell"],
    dependencies=[Depends(needs("ask-tell"))],
    responses=WRITES,
)


def _sent(answer: BaseModel) -> Response:
    """Return an answer as it is: to check it against its model again takes as long as to make it."""
    return Response(answer.model_dump_json(), media_type="application/json")


@router.post("/ask", summary="Which arm to show", response_model=ProposalAnswer)
def ask(key: Key, body: AskBody, request: Request, keyed: Once) -> Response:
    """Draw an arm, or give a unit that has come before its first one."""
    proposal = keyed.once(experiment_of(request, key), body).ask(
        unit=body.unit, available=body.available, covariates=body.covariates
    )
    return _sent(ProposalAnswer.of(proposal))


@router.post("/ask-many", summary="Which arms to show to several", response_model=ProposalsAnswer)
def ask_many(key: Key, body: AskManyBody, request: Request, keyed: Once) -> Response:
    """Draw several arms from what is known now."""
    found = keyed.once(experiment_of(request, key), body).ask(
        body.count, units=body.units, available=body.available, covariates=body.covariates
    )
    return _sent(ProposalsAnswer.model_construct(proposals=[ProposalAnswer.of(one) for one in found]))


@router.post("/tell", summary="What came of a proposal", response_model=ToldAnswer)
def tell(key: Key, body: TellBody, request: Request, keyed: Once) -> Response:
    """Take in the reward of a proposal; the same again changes nothing."""
    keyed.once(experiment_of(request, key), body).tell(body.id, body.reward)
    return _sent(ToldAnswer(told=1))


@router.post("/tell-many", summary="What came of several proposals", response_model=ToldAnswer)
def tell_many(key: Key, body: TellManyBody, request: Request, keyed: Once) -> Response:
    """Take in the rewards of several proposals: all, or none if one is wrong."""
    keyed.once(experiment_of(request, key), body).tell_many(body.ids, body.rewards)
    return _sent(ToldAnswer(told=len(body.ids)))
