"""What requests hold. Text that looks like a number is text, and unknown fields are refused."""

from typing import Annotated, Any, Literal

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

from orthobandit.experiment.settings import (
    REWARDS_REMEDY,
    UNKNOWN,
    Guardrail,
    Metric,
    Options,
    Silence,
    Unknown,
)
from orthobandit.policy import AnytimeElimination

MOST_ARMS = 1_000
MOST_FEATURES = 1_000
MOST_ASKED = 10_000
MOST_TOLD = 100_000
LARGEST_ID = 2**63 - 1
LONGEST_NAME = 200

# No control characters: databases differ in what they make of them.
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]+$"),
    Field(examples=["a"]),
]
Slug = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,99}$"),
    Field(description="Small letters, digits, `-`, `_` and `.`", examples=["signup-page"]),
]
Number = Annotated[int, Field(ge=1, le=LARGEST_ID, description="The `id` of a proposal")]
Covariates = Annotated[dict[Name, float], Field(max_length=1_000)]


class Body(BaseModel):
    """What all bodies share."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Arm(Body):
    """An arm that is described by features."""

    label: Name
    features: Annotated[list[float], Field(min_length=1, max_length=MOST_FEATURES)]


Arms = list[Name] | list[Arm]
Range = Annotated[list[float], Field(min_length=2, max_length=2, examples=[[0, 1]])]
_RANGE: TypeAdapter[list[float]] = TypeAdapter(Range, config=ConfigDict(strict=True, allow_inf_nan=False))


def _range_or_unknown(given: Any, check: ValidatorFunctionWrapHandler) -> list[float] | Unknown:
    """Return a range of rewards or "unknown"; whatever else is given, or nothing, names both options."""
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
    """Another number that is told of proposals; see `orthobandit.Metric`."""

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
    """An experiment to begin, with the settings of `orthobandit.Experiment.create`."""

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
            max_length=MOST_ARMS,
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
    covariates: Annotated[
        list[Name] | None, Field(min_length=1, max_length=100, description="Names that forecasts use")
    ] = None
    window: Annotated[Annotated[str, StringConstraints(max_length=40)] | float | None, _setting("window")] = (
        Options.window
    )
    silence: Annotated[Silence, _setting("silence")] = Options.silence
    sticky: Annotated[bool, _setting("sticky")] = Options.sticky
    reference: Annotated[Name | None, Field(description="A label; the first arm by default")] = None
    holdout: Annotated[float, _setting("holdout")] = Options.holdout
    objective: Annotated[Name, _setting("objective")] = Options.objective
    add: Annotated[bool, _setting("add")] = Options.add
    metrics: Annotated[list[MetricBody], Field(max_length=100), _setting("metrics")] = []
    guardrails: Annotated[list[GuardrailBody], Field(max_length=100), _setting("guardrails")] = []

    @model_validator(mode="before")
    @classmethod
    def _check_rewards_said(cls, data: Any) -> Any:
        """Let the check of `rewards` see that it is missing: it says more than that a field is required."""
        return {"rewards": None} | data if isinstance(data, dict) else data


class AskBody(Body):
    """For whom an arm is asked for, and what can be shown."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"unit": "user-17"}]})

    unit: Annotated[Name | None, Field(description="Gets the same proposal whenever it comes again")] = None
    available: Annotated[list[Name] | None, Field(min_length=1, max_length=MOST_ARMS)] = None
    covariates: Covariates | None = None


class AskManyBody(Body):
    """For whom arms are asked for: a count, or units."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"units": ["user-17", "user-18"]}]})

    count: Annotated[int | None, Field(ge=1, le=MOST_ASKED)] = None
    units: Annotated[list[Name] | None, Field(min_length=1, max_length=MOST_ASKED)] = None
    available: Annotated[list[Name] | None, Field(min_length=1, max_length=MOST_ARMS)] = None
    covariates: Annotated[
        list[Covariates] | None, Field(max_length=MOST_ASKED, description="One object for each proposal")
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


Values = Annotated[list[float], Field(min_length=1, max_length=MOST_TOLD)]


class TellManyBody(Body):
    """Rewards of several proposals, or lists of several metrics by name; all are taken or none."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [1, 2], "rewards": [1.0, 0.0]}]})

    ids: Annotated[list[Number], Field(min_length=1, max_length=MOST_TOLD)]
    rewards: Values | Annotated[dict[Name, Values], Field(min_length=1, max_length=101)]


Known = Annotated[list[float | None], Field(min_length=1, max_length=MOST_ASKED)]


class ExposuresBody(Body):
    """Draws under one plan, and what is known of their rewards: numbers, or lists of metrics by name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"plan": 1, "units": ["user-17", "user-18"], "arms": [2, 0], "rewards": [1.0, None]},
            ]
        }
    )

    plan: Annotated[int, Field(ge=1, le=LARGEST_ID, description="The number of the plan")]
    units: Annotated[list[Name], Field(min_length=1, max_length=MOST_ASKED)]
    arms: Annotated[
        list[Annotated[int, Field(ge=0, le=LARGEST_ID)]],
        Field(min_length=1, max_length=MOST_ASKED, description="Numbers of the arms that were drawn"),
    ]
    rewards: Annotated[
        Known | Annotated[dict[Name, Known], Field(max_length=101)] | None,
        Field(description="`null` where nothing is known yet"),
    ] = None
    covariates: Annotated[
        list[Covariates] | None, Field(max_length=MOST_ASKED, description="One object for each unit")
    ] = None


class ArmsBody(Body):
    """Arms to add, described as those so far: by labels, or by labels and features."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arms": ["newest"]}]})

    arms: Annotated[Arms, Field(min_length=1, max_length=MOST_ARMS)]


class EmptyBody(Body):
    """Nothing; the request must say that it is JSON all the same."""


class StopBody(Body):
    """Why an experiment is ended."""

    reason: Annotated[str, StringConstraints(max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""


class EvaluateBody(BaseModel):
    """A context of OpenFeature: who it is about, and attributes that covariates are taken from."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"context": {"targetingKey": "user-17"}}]})

    context: dict[str, Any] = {}


class TrackBody(Body):
    """An event of a unit; its name is that of a metric."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"unit": "user-17", "event": "reward", "value": 1.0}]}
    )

    unit: Name
    event: Annotated[Name, Field(description="The name of a metric, `reward` where there is no other")]
    value: float = 1.0
    experiment: Annotated[Name | None, Field(description="Its key; all by default")] = None


class TokenBody(Body):
    """A token to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "ask-tell", "name": "web servers"}]})

    role: Literal["admin", "ask-tell", "read", "edge"]
    name: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
