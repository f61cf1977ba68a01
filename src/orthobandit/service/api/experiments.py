"""Experiments: create, list, inspect, pause, resume and stop them."""

from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from orthobandit._foundation.checks import check_delta
from orthobandit.arms import ArmSet
from orthobandit.errors import ExperimentExistsError, FeatureError, ParameterError
from orthobandit.estimate import CovariateRegression
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.experiment import Experiment
from orthobandit.experiment.arguments import settings_of
from orthobandit.experiment.settings import (
    REWARDS_REMEDY,
    UNKNOWN,
    Metric,
    Options,
    RewardRange,
    Silence,
    Unknown,
)
from orthobandit.policy import AnytimeElimination, Policy
from orthobandit.policy.contextual import InformationDirected, Personalised
from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import (
    READS,
    WRITES,
    Arm,
    Arms,
    Body,
    EmptyBody,
    Key,
    Name,
    experiment_of,
    registry_of,
    send_tagged,
    token_of,
)
from orthobandit.service.http.auth import allows, check_key
from orthobandit.service.http.idempotency import Once
from orthobandit.service.http.limits import MAX_ARMS, MAX_PLAIN_ARMS
from orthobandit.service.http.problems import LINE_OR_NOTHING, SLUG
from orthobandit.service.registry import Registry

Slug = Annotated[
    str,
    StringConstraints(pattern=SLUG),
    Field(description="Small letters, digits, `-`, `_` and `.`", examples=["signup-page"]),
]
Range = Annotated[list[float], Field(min_length=2, max_length=2, examples=[[0, 1]])]
_RANGE: TypeAdapter[list[float]] = TypeAdapter(Range, config=ConfigDict(strict=True, allow_inf_nan=False))
experiments = Resource("/v1/experiments", tag="experiments")


def _range_or_unknown(given: Any, check: ValidatorFunctionWrapHandler) -> list[float] | Unknown:
    """Check a range of rewards or "unknown"; the error for anything else names both options."""
    if isinstance(given, list):  # what is wrong with it is then said of the number that is wrong
        return _RANGE.validate_python(given)
    try:
        found: list[float] | Unknown = check(given)
    except ValidationError:
        what = "is not given" if given is None else "is neither a pair of numbers nor 'unknown'"
        raise PydanticCustomError(
            "rewards", "{words}", {"words": f"rewards {what}; {REWARDS_REMEDY}"}
        ) from None
    return found


def _setting(name: str) -> Any:
    """Return the description of a setting in the API's schema."""
    text = Options.help_of(name)
    return Field(description=text[0].upper() + text[1:])


class MetricBody(Body):
    """Another number that is reported for proposals; see `orthobandit.Metric`."""

    name: Name
    rewards: Range | None = None
    add: bool = Metric.add
    delta: float = Metric.delta


class GuardrailBody(Body):
    """Retire an arm once it is proven worse than the reference arm by more than a margin."""

    metric: Name
    margin: float = Guardrail.margin
    worse: Literal["higher", "lower"] = "higher"
    harm: float | None = None


class CreateBody(Body):
    """An experiment to create, with the settings of `orthobandit.Experiment.create`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key": "signup-page",
                    "arms": ["as it is", "short form", "with video"],
                    "rewards": [0, 1],
                    "window": "7d",
                    "silence": "zero",
                }
            ]
        }
    )

    key: Slug
    arms: Annotated[
        Arms,
        Field(
            min_length=2,
            max_length=MAX_ARMS,
            description="Labels, or objects with a label and features, all of one length",
        ),
    ]
    rewards: Annotated[
        Range | Unknown,
        WrapValidator(_range_or_unknown),
        Field(examples=[[0, 1], UNKNOWN]),
        _setting("rewards"),
    ]
    delta: Annotated[float, Field(description="Chance that anything claimed is wrong")] = (
        AnytimeElimination.delta
    )
    epsilon: Annotated[float, Field(description="Declare an arm within this of the best")] = (
        AnytimeElimination.epsilon
    )
    goal: Literal["identify", "earn"] = "identify"
    expect: Annotated[float | None, _setting("expect")] = Options.expect
    covariates: Annotated[
        list[Name] | None, Field(min_length=1, max_length=100, description="Names that forecasts use")
    ] = None
    context: Annotated[
        list[Name] | None,
        Field(
            min_length=1,
            max_length=100,
            description="Columns that effects may depend on; every visitor then gets what serves them",
        ),
    ] = None
    rules: Annotated[
        dict[Name, Annotated[str, StringConstraints(max_length=1_000)]],
        Field(
            max_length=100,
            description="Rules to judge by name, if there is a context",
            examples=[{"video on telephones": "with video if mobile >= 0.5 else as it is"}],
        ),
    ] = {}  # noqa: RUF012 - pydantic copies it
    features: Annotated[
        list[Name],
        Field(max_length=1_000, description="Names of features that visitors bring for each arm"),
    ] = []  # noqa: RUF012 - pydantic copies it
    explore: Annotated[
        float, Field(description="Share of visitors with an arm at random, if there is a context")
    ] = Personalised.explore
    window: Annotated[Annotated[str, StringConstraints(max_length=40)] | float | None, _setting("window")] = (
        Options.window
    )
    silence: Annotated[Silence, _setting("silence")] = Options.silence
    sticky: Annotated[bool, _setting("sticky")] = Options.sticky
    reference: Annotated[Name | None, Field(description="A label; the first arm by default")] = None
    holdout: Annotated[float, _setting("holdout")] = Options.holdout
    objective: Annotated[Name, _setting("objective")] = Options.objective
    add: Annotated[bool, _setting("add")] = Options.add
    metrics: Annotated[list[MetricBody], _setting("metrics")] = Field([], max_length=100)
    guardrails: Annotated[list[GuardrailBody], _setting("guardrails")] = Field([], max_length=100)

    @model_validator(mode="before")
    @classmethod
    def _check_rewards_said(cls, data: Any) -> Any:
        """Let the check of `rewards` report that it is missing, because its message says what to give."""
        return {"rewards": None} | data if isinstance(data, dict) else data


class StopBody(Body):
    """Why an experiment is ended."""

    reason: Annotated[str, StringConstraints(max_length=1_000, pattern=LINE_OR_NOTHING)] = ""


class ExperimentAnswer(BaseModel):
    """An experiment's settings and progress."""

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
    leader: str | None = Field(description="What looks best; null while it is too early to say")
    declared: str | None
    advice: str

    @classmethod
    def of(cls, key: str, experiment: Experiment) -> "ExperimentAnswer":
        """Return an experiment's settings and progress. The key of its draws is secret and left out."""
        settings = experiment.settings
        report = experiment.report()
        return cls(
            key=key,
            status=report.status,
            arms=[arm.label for arm in report.arms],
            retired=[arm.label for arm in report.arms if arm.is_retired],
            reference=report.reference,
            metrics=list(settings.names),
            # JSON has no infinity.
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


def begin_experiment(registry: Registry, body: CreateBody, *, is_repeatable: bool = False) -> Experiment:
    """Create the experiment that a request describes.

    Parameters
    ----------
    registry : Registry
    body : CreateBody
    is_repeatable : bool
        Whether an existing experiment with the same settings is returned instead of an error; if they differ,
        the error says which.
    """
    arms = arms_of(body.arms)
    policy = policy_of(body)
    options = options_of(body)
    try:
        return registry.create(body.key, arms, policy, options)
    except ExperimentExistsError:
        if not is_repeatable:
            raise
        # Whoever repeats a request, its first answer lost, must get the experiment and not a conflict; so
        # must a program that is started again.
        return registry.get_same(body.key, settings_of(arms, policy, options))


def arms_of(given: list[str] | list[Arm]) -> ArmSet:
    """Return the arm set that labels, or labels and features, describe."""
    labels = [arm.label if isinstance(arm, Arm) else arm for arm in given]
    rows = [arm.features for arm in given if isinstance(arm, Arm)]
    if not rows:
        if len(labels) > MAX_PLAIN_ARMS:
            raise ParameterError(
                f"arms are {len(labels):,} labels, and without features at most {MAX_PLAIN_ARMS:,} can be"
                " compared; describe them by features that they share, or compare fewer"
            )
        return ArmSet.one_hot(len(labels), labels)
    for arm, row in zip(labels, rows, strict=True):
        if len(row) != len(rows[0]):
            raise FeatureError(
                f"arms {labels[0]!r} and {arm!r} have {len(rows[0])} and {len(row)} features; give as many"
            )
    return ArmSet(rows, labels)


def policy_of(body: CreateBody) -> Policy[Any]:
    """Return the policy that a request asks for."""
    if body.context is not None or body.features:
        return _personalised(body, body.context or [])
    if body.rules:
        raise ParameterError(
            f"rules={list(body.rules)} are judged in personalised experiments: give `context` as well"
        )
    if "explore" in body.model_fields_set:  # also where it is the default: it would change nothing
        raise ParameterError(
            f"explore={body.explore:g} is for personalised experiments: give `context` as well"
        )
    chosen: dict[str, Any] = {
        "delta": body.delta,
        "epsilon": body.epsilon,
        "goal": body.goal,
        "expect": body.expect,
    }
    if body.covariates is not None:
        chosen["baseline"] = CovariateRegression(names=tuple(body.covariates))
    return AnytimeElimination(rewards=range_of(body.rewards), **chosen)


def _personalised(body: CreateBody, context: list[str]) -> Personalised:
    """Return the policy of a personalised experiment."""
    if body.epsilon != AnytimeElimination.epsilon or body.goal != "identify" or body.expect is not None:
        raise ParameterError("epsilon, goal and expect are for experiments without `context`; leave them out")
    inner = InformationDirected()
    if body.covariates is not None:
        inner = InformationDirected(baseline=CovariateRegression(names=tuple(body.covariates)))
    return Personalised(
        context,
        body.rules,
        rewards=range_of(body.rewards),
        explore=body.explore,
        delta=body.delta,
        policy=inner,
        features=body.features,
    )


def range_of(given: list[float] | Unknown | None) -> RewardRange | None:
    """Return the range of rewards as a pair, or None if it is unknown."""
    if given is None or isinstance(given, str):
        return None
    low, high = given
    if not low < high:
        raise ParameterError(f"rewards=[{low:g}, {high:g}] must be the lowest reward, then the highest")
    return low, high


def options_of(body: CreateBody) -> Options:
    """Return the options of :meth:`Experiment.create` beside arms and policy."""
    return Options(
        rewards=range_of(body.rewards) or UNKNOWN,
        window=body.window,
        silence=body.silence,
        sticky=body.sticky,
        reference=Options.reference if body.reference is None else body.reference,
        holdout=body.holdout,
        objective=body.objective,
        add=body.add,
        metrics=[_metric_of(one) for one in body.metrics],
        guardrails=[_guardrail_of(one) for one in body.guardrails],
    )


def _metric_of(given: MetricBody) -> Metric:
    """Return a further metric; an error says of which, because several may be given."""
    try:
        return Metric(given.name, range_of(given.rewards), given.add, check_delta(given.delta))
    except ParameterError as error:
        raise ParameterError(f"metric {given.name!r}: {error}") from None


def _guardrail_of(given: GuardrailBody) -> Guardrail:
    """Return a guardrail; an error says of which metric, because several may be given."""
    try:
        return Guardrail(**given.model_dump())
    except ParameterError as error:
        raise ParameterError(f"guardrail on {given.metric!r}: {error}") from None


@experiments.post("", status_code=201, summary="Begin an experiment", responses=WRITES, role="admin")
def create(body: CreateBody, request: Request, response: Response, keyed: Once) -> ExperimentAnswer:
    """Create an experiment. With an `Idempotency-Key`, an existing one with the same settings is returned.

    If its settings differ, the problem says which.
    """
    check_key(token_of(request), body.key)
    made = begin_experiment(registry_of(request), body, is_repeatable=keyed.key is not None)
    response.headers["Location"] = f"/v1/experiments/{body.key}"
    return ExperimentAnswer.of(body.key, made)


@experiments.get(
    "", summary="List experiments", response_model=ExperimentsAnswer, responses=READS, role="read"
)
def listed(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")] = "",
) -> Response:
    """List the keys of experiments in order, `limit` at a time."""
    # One more than asked for tells whether there are any left.
    keys = registry_of(request).page(limit + 1, after, allows(token_of(request)))
    more = keys[limit - 1] if len(keys) > limit else None
    return send_tagged(request, ExperimentsAnswer(keys=keys[:limit], next=more).model_dump_json().encode())


@experiments.get(
    "/{key}",
    summary="Look at an experiment",
    response_model=ExperimentAnswer,
    responses=READS,
    role="read",
)
def shown(key: Key, request: Request) -> Response:
    """Give an experiment's settings and progress."""
    answer = ExperimentAnswer.of(key, experiment_of(request, key))
    return send_tagged(request, answer.model_dump_json().encode())


@experiments.post("/{key}/pause", summary="Take no more questions", responses=WRITES, role="admin")
def pause(key: Key, request: Request, keyed: Once, _: EmptyBody | None = None) -> ExperimentAnswer:
    """Draw no more arms until it is resumed; rewards are still accepted."""
    experiment = experiment_of(request, key)
    keyed.once(experiment).pause()
    return ExperimentAnswer.of(key, experiment)


@experiments.post("/{key}/resume", summary="Go on", responses=WRITES, role="admin")
def resume(key: Key, request: Request, keyed: Once, _: EmptyBody | None = None) -> ExperimentAnswer:
    """Resume after a pause."""
    experiment = experiment_of(request, key)
    keyed.once(experiment).resume()
    return ExperimentAnswer.of(key, experiment)


@experiments.post("/{key}/stop", summary="End it by hand", responses=WRITES, role="admin")
def stop(key: Key, request: Request, keyed: Once, body: StopBody | None = None) -> ExperimentAnswer:
    """End the experiment: no more proposals; rewards of open ones are still accepted."""
    experiment = experiment_of(request, key)
    keyed.once(experiment, body).stop("" if body is None else body.reason)
    return ExperimentAnswer.of(key, experiment)
