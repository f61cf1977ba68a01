"""Ask which arm to show, and tell what came of it."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from orthobandit.experiment.async_experiment import AsyncExperiment
from orthobandit.service.api.base import WRITES, Key
from orthobandit.service.api.requests import AskBody, AskManyBody, TellBody, TellManyBody
from orthobandit.service.api.responses import ProposalAnswer, ProposalsAnswer, ToldAnswer
from orthobandit.service.http.auth import needs
from orthobandit.service.http.fast_path import hot, opened
from orthobandit.service.http.idempotency import Once

ROLE = "ask-tell"
router = APIRouter(
    prefix="/v1/experiments/{key}",
    tags=["ask and tell"],
    dependencies=[Depends(needs(ROLE))],
    responses=WRITES,
)


def sent(content: bytes) -> Response:
    """Return an answer as it is: to check it against its model again takes as long as to make it."""
    return Response(content, media_type="application/json")


async def _asked(experiment: AsyncExperiment, body: AskBody) -> bytes:
    proposal = await experiment.ask(unit=body.unit, available=body.available, covariates=body.covariates)
    return ProposalAnswer.of(proposal).model_dump_json().encode()


async def _asked_many(experiment: AsyncExperiment, body: AskManyBody) -> bytes:
    found = await experiment.ask_many(
        body.count, units=body.units, available=body.available, covariates=body.covariates
    )
    proposals = [ProposalAnswer.of(one) for one in found]
    return ProposalsAnswer.model_construct(proposals=proposals).model_dump_json().encode()


async def _told(experiment: AsyncExperiment, body: TellBody) -> bytes:
    await experiment.tell(body.id, body.reward)
    return ToldAnswer(told=1).model_dump_json().encode()


async def _told_many(experiment: AsyncExperiment, body: TellManyBody) -> bytes:
    await experiment.tell_many(body.ids, body.rewards)
    return ToldAnswer(told=len(body.ids)).model_dump_json().encode()


@router.post("/ask", summary="Which arm to show", response_model=ProposalAnswer)
@hot(ROLE, AskBody, _asked)
async def ask(key: Key, body: AskBody, request: Request, keyed: Once) -> Response:
    """Draw an arm, or give a unit that has come before its first one."""
    return sent(await _asked(await opened(request, key, keyed, body), body))


@router.post("/ask-many", summary="Which arms to show to several", response_model=ProposalsAnswer)
@hot(ROLE, AskManyBody, _asked_many)
async def ask_many(key: Key, body: AskManyBody, request: Request, keyed: Once) -> Response:
    """Draw several arms from what is known now."""
    return sent(await _asked_many(await opened(request, key, keyed, body), body))


@router.post("/tell", summary="What came of a proposal", response_model=ToldAnswer)
@hot(ROLE, TellBody, _told)
async def tell(key: Key, body: TellBody, request: Request, keyed: Once) -> Response:
    """Take in the reward of a proposal; the same again changes nothing."""
    return sent(await _told(await opened(request, key, keyed, body), body))


@router.post("/tell-many", summary="What came of several proposals", response_model=ToldAnswer)
@hot(ROLE, TellManyBody, _told_many)
async def tell_many(key: Key, body: TellManyBody, request: Request, keyed: Once) -> Response:
    """Take in the rewards of several proposals: all, or none if one is wrong."""
    return sent(await _told_many(await opened(request, key, keyed, body), body))
