"""Types of the plain values that clients send and receive; the server's models have the same fields."""

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

from orthobandit.experiment.report.report import ReportData

__all__ = [
    "DescribedArm",
    "ExperimentData",
    "ExposedData",
    "ExposuresData",
    "GuardrailData",
    "MetricSettings",
    "RefusedData",
    "ReportData",
]


class DescribedArm(TypedDict):
    """An arm that is described by features."""

    label: str
    features: Sequence[float]


class MetricSettings(TypedDict):
    """Another number that is reported for proposals; see :class:`orthobandit.Metric`."""

    name: str
    rewards: NotRequired[Sequence[float] | None]
    add: NotRequired[bool]
    delta: NotRequired[float]


class GuardrailData(TypedDict):
    """Retires an arm once it is proven worse; see :class:`orthobandit.Guardrail`."""

    metric: str
    margin: NotRequired[float]
    worse: NotRequired[Literal["higher", "lower"]]
    harm: NotRequired[float | None]


class ExperimentData(TypedDict):
    """An experiment's settings and progress."""

    key: str
    status: str
    arms: list[str]
    retired: list[str]
    reference: str
    metrics: list[str]
    window: float | None
    silence: str
    sticky: bool
    holdout: float
    proposals: int
    settled: int
    awaited: int
    leader: str | None
    declared: str | None
    advice: str


class ExposuresData(TypedDict):
    """Draws under one plan, and what is known of their rewards: numbers, or lists of metrics by name."""

    plan: int
    units: Sequence[str]
    arms: Sequence[int]
    rewards: NotRequired[Sequence[float | None] | dict[str, list[float | None]] | None]
    covariates: NotRequired[Sequence[dict[str, float]] | None]
    context: NotRequired[Sequence[dict[str, float]] | None]


class RefusedData(TypedDict):
    """A row of a batch that was refused, and why."""

    index: int
    metric: str | None
    pointer: str
    type: str
    detail: str


class ExposedData(TypedDict):
    """The result of posting exposures."""

    taken: int
    known: int
    told: int
    refused: list[RefusedData]
