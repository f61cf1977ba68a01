"""Types of a report as plain values: what :meth:`Report.to_json` returns and clients receive."""

from typing import TypedDict


class ArmData(TypedDict):
    """One arm of a report; see :class:`~orthobandit.experiment.report.report.ArmReport`."""

    label: str
    settled: int
    silent: int
    probability: float
    is_active: bool
    is_retired: bool
    gap: float | None
    low: float | None
    high: float | None
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    lift: float | None
    lift_low: float | None
    lift_high: float | None


class MetricData(TypedDict):
    """One metric of a report; see :class:`~orthobandit.experiment.report.report.MetricReport`."""

    name: str
    mode: str
    certainty: float
    gaps: list[list[float | None]]
    provisional: int
    stood_in: int
    is_share: bool
    rates: list[list[float | None]]
    lifts: list[list[float | None]]


class ReportData(TypedDict):
    """A report; see :class:`~orthobandit.experiment.report.report.Report`."""

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
    joint: float
    reference: str
    arms: list[ArmData]
    metrics: list[MetricData]
    holdout: list[list[str | int | float | None]]
    unused: int
    warnings: list[str]
    alarms: list[str]
    retirements: list[list[str]]
    held: str | None
    guardrails: list[str]
    head: str | None
    outlook: str
    expected: float | None
    is_early: bool
    name: str
    at: float | None
    personal: dict[str, object] | None
