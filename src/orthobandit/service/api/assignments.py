"""Assignments: ask which arm to show, and report the reward."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_json

from orthobandit.experiment import Proposal
from orthobandit.service.api.operations import Opened, Resource
from orthobandit.service.api.shared import (
    WRITES,
    Body,
    Covariates,
    Name,
    Number,
    RefusedAnswer,
)
from orthobandit.service.http.limits import MAX_ARMS, MAX_ASKED, MAX_TOLD

Row = Annotated[list[float], Field(min_length=1, max_length=1_000)]
Features = Annotated[dict[Name, Row], Field(max_length=MAX_ARMS)]
Values = Annotated[list[float], Field(max_length=MAX_TOLD)]
NO_PROBABILITIES = '"probabilities":[]'
assignments = Resource(
    "/v1/experiments/{key}", tag="ask and tell", role="ask-tell", responses=WRITES, is_hot=True
)


class AskBody(Body):
    """Who an arm is for, and which arms can be shown."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"unit": "user-17"}]})

    unit: Annotated[Name | None, Field(description="Gets the same proposal whenever it comes again")] = None
    available: Annotated[list[Name] | None, Field(min_length=1, max_length=MAX_ARMS)] = None
    covariates: Covariates | None = None
    context: Annotated[
        Covariates | None,
        Field(description="What is known of the visitor, if the experiment is personalised"),
    ] = None
    features: Annotated[
        Features | None,
        Field(description="Of each arm on offer by label, if visitors bring features"),
    ] = None


class AskManyBody(Body):
    """Who arms are for: a count, or units."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"units": ["user-17", "user-18"]}]})

    count: Annotated[int | None, Field(ge=1, le=MAX_ASKED)] = None
    units: Annotated[list[Name] | None, Field(min_length=1, max_length=MAX_ASKED)] = None
    available: Annotated[list[Name] | None, Field(min_length=1, max_length=MAX_ARMS)] = None
    covariates: Annotated[
        list[Covariates] | None, Field(max_length=MAX_ASKED, description="One object for each proposal")
    ] = None
    context: Annotated[
        list[Covariates] | None,
        Field(max_length=MAX_ASKED, description="One object for each visitor of a personalised experiment"),
    ] = None
    features: Annotated[
        list[Features] | None, Field(max_length=MAX_ASKED, description="One object for each visitor")
    ] = None

    @model_validator(mode="after")
    def _check(self) -> "AskManyBody":
        if (self.count is None) == (self.units is None):
            raise ValueError("give one of count and units")
        return self


class TellBody(Body):
    """The reward of a proposal, or several metrics of it by name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": 1, "reward": 1.0}, {"id": 1, "reward": {"sale": 1, "seconds": 2.5}}]
        }
    )

    id: Number
    reward: float | Annotated[dict[Name, float], Field(min_length=1, max_length=101)]


class TellManyBody(Body):
    """Rewards of several proposals, or lists of several metrics by name; each row is taken or refused.

    Empty lists are fine, and change nothing.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [1, 2], "rewards": [1.0, 0.0]}]})

    ids: Annotated[list[Number], Field(max_length=MAX_TOLD)]
    rewards: Values | Annotated[dict[Name, Values], Field(min_length=1, max_length=101)]


class ProposalAnswer(BaseModel):
    """An arm to show, with the probabilities and the baseline that were fixed before it was drawn."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 1,
                    "arm": 2,
                    "label": "with video",
                    "plan": 1,
                    "probabilities": [0.25, 0.25, 0.5],
                    "baseline": 0.12,
                    "held": False,
                }
            ]
        }
    )

    id: int = Field(description="What to tell its reward by")
    arm: int
    label: str
    plan: int
    probabilities: list[float] = Field(description="What the arm was drawn from, in the order of arms")
    baseline: float
    held: bool

    @classmethod
    def of(cls, proposal: Proposal, probabilities: list[float] | None = None) -> "ProposalAnswer":
        """Return a proposal as plain values, or with other probabilities."""
        # Not validated: the values are our own, and this is called thousands of times a second.
        return cls.model_construct(
            id=proposal.id,
            arm=proposal.arm,
            label=proposal.label,
            plan=proposal.plan,
            probabilities=proposal.probabilities.tolist() if probabilities is None else probabilities,
            baseline=float(proposal.baseline),
            held=bool(proposal.held),
        )


class ProposalsAnswer(BaseModel):
    """Several proposals, in the order of the request."""

    proposals: list[ProposalAnswer]


class ToldAnswer(BaseModel):
    """The number of rewards recorded; those recorded before count too."""

    told: int


class ToldManyAnswer(BaseModel):
    """The number of rewards recorded, those recorded before included, and what was refused."""

    told: int = Field(description="Proposals whose rewards were taken, or had been told before")
    refused: list[RefusedAnswer]


def dump_proposals(proposals: Sequence[Proposal]) -> bytes:
    """Return a :class:`ProposalsAnswer` as JSON.

    Proposals of one plan share their probabilities, which are serialised once: a thousand times a thousand
    numbers would block all other requests for a second.
    """
    texts = dict[int, str]()
    parts = []
    for one in proposals:
        shared = texts.get(id(one.probabilities))
        if shared is None:
            shared = f'"probabilities":{to_json(one.probabilities.tolist()).decode()}'
            texts[id(one.probabilities)] = shared
        # A label cannot hold this text: its quotes are written with a backslash.
        parts.append(ProposalAnswer.of(one, []).model_dump_json().replace(NO_PROBABILITIES, shared, 1))
    return f'{{"proposals":[{",".join(parts)}]}}'.encode()


@assignments.post("/ask", summary="Which arm to show", response_model=ProposalAnswer)
async def ask(experiment: Opened, body: AskBody) -> bytes:
    """Draw an arm; a unit that has asked before gets its first arm again."""
    proposal = await experiment.ask(
        unit=body.unit,
        available=body.available,
        covariates=body.covariates,
        context=body.context,
        features=body.features,
    )
    return ProposalAnswer.of(proposal).model_dump_json().encode()


@assignments.post("/tell", summary="What came of a proposal", response_model=ToldAnswer)
async def tell(experiment: Opened, body: TellBody) -> bytes:
    """Record the reward of a proposal; the same reward again changes nothing."""
    await experiment.tell(body.id, body.reward)
    return ToldAnswer(told=1).model_dump_json().encode()


@assignments.post("/ask-many", summary="Which arms to show to several", response_model=ProposalsAnswer)
async def ask_many(experiment: Opened, body: AskManyBody) -> bytes:
    """Draw several arms from the current plan."""
    proposals = await experiment.ask_many(
        body.count,
        units=body.units,
        available=body.available,
        covariates=body.covariates,
        context=body.context,
        features=body.features,
    )
    return dump_proposals(proposals)


@assignments.post("/tell-many", summary="What came of several proposals", response_model=ToldManyAnswer)
async def tell_many(experiment: Opened, body: TellManyBody) -> bytes:
    """Record the rewards of several proposals, and say what is wrong with those that were refused."""
    refused = await experiment.tell_many(body.ids, body.rewards)
    is_named = isinstance(body.rewards, dict)
    answer = ToldManyAnswer(
        told=len(body.ids) - len(refused),
        refused=[RefusedAnswer.of(refusal, "ids", is_named=is_named) for refusal in refused],
    )
    return answer.model_dump_json().encode()
