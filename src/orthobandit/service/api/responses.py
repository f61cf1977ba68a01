"""What answers hold."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from orthobandit.experiment import Experiment, Proposal
from orthobandit.experiment.draw.exposures import Exposed, Refusal
from orthobandit.experiment.report.report import Report
from orthobandit.service.http.problem_kinds import PREFIX, kind_of


class ProposalAnswer(BaseModel):
    """An arm to show, with what was fixed before it was drawn."""

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
    def of(cls, proposal: Proposal) -> "ProposalAnswer":
        """Return a proposal as plain values."""
        return cls.model_construct(
            id=proposal.id,
            arm=proposal.arm,
            label=proposal.label,
            plan=proposal.plan,
            probabilities=proposal.probabilities.tolist(),
            baseline=float(proposal.baseline),
            held=bool(proposal.held),
        )


class ProposalsAnswer(BaseModel):
    """Several proposals, in the order that they were asked for in."""

    proposals: list[ProposalAnswer]


class ToldAnswer(BaseModel):
    """How many proposals were told of; what had been told before counts as told."""

    told: int


class PlanAnswer(BaseModel):
    """The plan in force, for those who draw without asking."""

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


class RefusedAnswer(BaseModel):
    """An exposure that was not taken, or one of its rewards."""

    index: int = Field(description="Its place among the units")
    pointer: str = Field(description="What is wrong: a JSON pointer into the body")
    type: str = Field(description="The kind of problem")
    detail: str


class ExposedAnswer(BaseModel):
    """What came of exposures."""

    taken: int = Field(description="Exposures that are new")
    known: int = Field(description="Exposures that were posted before")
    told: int = Field(description="Rewards that were taken, or had been told before")
    refused: list[RefusedAnswer]

    @classmethod
    def of(cls, exposed: Exposed, *, is_named: bool) -> "ExposedAnswer":
        """Return what came of exposures as plain values; `is_named` says whether rewards had names."""
        refused = [
            RefusedAnswer(
                index=one.index,
                pointer=_pointer(one, is_named=is_named),
                type=PREFIX + kind_of(one.error),
                detail=str(one.error),
            )
            for one in exposed.refused
        ]
        return cls(taken=exposed.taken, known=exposed.known, told=exposed.told, refused=refused)


def _pointer(one: Refusal, *, is_named: bool) -> str:
    if one.metric is None:
        return f"#/arms/{one.index}"
    name = one.metric.replace("~", "~0").replace("/", "~1")
    return f"#/rewards/{name}/{one.index}" if is_named else f"#/rewards/{one.index}"


class ExperimentAnswer(BaseModel):
    """An experiment: what it was set up with, and how far it is."""

    key: str
    status: str
    arms: list[str]
    retired: list[str]
    reference: str
    metrics: list[str] = Field(description="Names, the objective first")
    window: float | None = Field(description="Seconds; null without one")
    silence: str
    sticky: bool
    holdout: float
    proposals: int
    settled: int
    awaited: int
    leader: str
    declared: str | None
    advice: str

    @classmethod
    def of(cls, key: str, experiment: Experiment) -> "ExperimentAnswer":
        """Return what is known of an experiment now. Its draws' key is left out: it is a secret."""
        settings = experiment.settings
        report = experiment.report()
        return cls(
            key=key,
            status=report.status,
            arms=[arm.label for arm in report.arms],
            retired=[arm.label for arm in report.arms if arm.is_retired],
            reference=report.reference,
            metrics=list(settings.names),
            window=settings.window if np.isfinite(settings.window) else None,
            silence=settings.silence,
            sticky=settings.sticky,
            holdout=settings.holdout,
            proposals=report.proposals,
            settled=report.settled,
            awaited=report.awaited,
            leader=report.leader,
            declared=report.declared,
            advice=report.advice,
        )


class ExperimentsAnswer(BaseModel):
    """Keys of experiments, in order."""

    keys: list[str]
    next: str | None = Field(description="Give it as `after` for those that follow; null at the end")


class ArmAnswer(BaseModel):
    """One arm of a report."""

    label: str
    settled: int
    silent: int
    probability: float
    is_active: bool
    is_retired: bool
    gap: float | None
    low: float | None
    high: float | None


class MetricAnswer(BaseModel):
    """One metric of a report: gap, low and high of each arm."""

    name: str
    mode: str
    certainty: float
    gaps: list[list[float | None]]
    provisional: int
    stood_in: int


class ReportAnswer(BaseModel):
    """What is known now, and what to do; see `orthobandit.experiment.report.report.Report`."""

    advice: str
    status: str
    proposals: int
    settled: int
    awaited: int
    leader: str
    declared: str | None
    epsilon: float | None
    certainty: float
    mode: str
    joint: float = Field(description="Probability that claims and the objective's intervals hold together")
    reference: str
    arms: list[ArmAnswer]
    metrics: list[MetricAnswer]
    holdout: list[list[str | float | None]]
    unused: int
    warnings: list[str]
    alarms: list[str] = Field(
        description="Why claims cannot be believed: contradiction, sample-ratio, missing, drift"
    )
    retirements: list[list[str]] = Field(description="Arms that were taken out, and why")
    held: str | None = Field(description="The arm that won while a guardrail has not cleared it")
    guardrails: list[str] = Field(description="What each guardrail does and knows")
    head: str | None = Field(None, description="Hash over the log so far, which certificates must go on from")

    @classmethod
    def of(cls, report: Report) -> "ReportAnswer":
        """Return a report as plain values."""
        return cls.model_validate(report.to_json())


class TokenAnswer(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    role: str
    at: float = Field(description="When it was made, in seconds since the epoch")


class NewTokenAnswer(TokenAnswer):
    """A token that was just made; its text is never shown again."""

    token: str


class TokensAnswer(BaseModel):
    """All tokens, the oldest first."""

    tokens: list[TokenAnswer]


class HealthAnswer(BaseModel):
    """Whether the server is well."""

    status: str


class FlagAnswer(BaseModel):
    """A flag of OFREP that was evaluated."""

    key: str
    value: str = Field(description="The label of the arm")
    reason: str
    variant: str
    metadata: dict[str, bool | int | str] = Field(description="The proposal's `id` and its plan's number")


class FlagProblem(BaseModel):
    """Why a flag of OFREP cannot be evaluated."""

    key: str | None = None
    errorCode: str  # noqa: N815
    errorDetails: str  # noqa: N815


class BulkAnswer(BaseModel):
    """All flags of OFREP that can be evaluated."""

    flags: list[FlagAnswer | FlagProblem]


class TrackAnswer(BaseModel):
    """Which experiments took an event, and why others refused it."""

    told: list[str]
    refused: dict[str, str]


class FieldProblem(BaseModel):
    """A value that cannot be used."""

    pointer: str = Field(description="Where it is: a JSON pointer into the body, or a parameter")
    detail: str


class ProblemAnswer(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(
        title="Problem",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:orthobandit:problem:closed",
                    "title": "It is too late, or the experiment does not take this now",
                    "status": 409,
                    "detail": "the experiment is paused; call `resume` first",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None
    instance: str | None = Field(None, description="Which request it was, by its `X-Request-Id`")
