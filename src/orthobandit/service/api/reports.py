"""Reports, certificates, and every proposal as a table."""

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask

from orthobandit.experiment.report.report import Report
from orthobandit.service.api.shared import READS, Key, document_problems, experiment_of, send_tagged
from orthobandit.service.http.auth import needs

router = APIRouter(
    prefix="/v1/experiments/{key}",
    tags=["reports"],
    dependencies=[Depends(needs("read"))],
    responses=READS,
)
PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {}}}}
TABLES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The table",
        "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in TABLES.values()},
    }
}


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
    rate: float | None = Field(description="What it would have earned on average over all settled proposals")
    rate_low: float | None
    rate_high: float | None
    lift: float | None = Field(description="Its gap divided by the rate of the reference arm")
    lift_low: float | None
    lift_high: float | None


class MetricAnswer(BaseModel):
    """One metric of a report: estimate, low and high end of each arm's gap, rate and lift."""

    name: str
    mode: str
    certainty: float
    gaps: list[list[float | None]]
    provisional: int
    stood_in: int
    is_share: bool
    rates: list[list[float | None]]
    lifts: list[list[float | None]]


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
    head: str | None = Field(description="Hash over the log so far, which certificates must go on from")
    outlook: str = Field(description="When it may end, in one sentence")
    expected: float | None = Field(description="Settled proposals in all after which it may end")
    is_early: bool = Field(description="Whether it is too early to say which arm looks best")
    name: str
    at: float | None = Field(description="Time of the newest entry of the log, seconds since the epoch")
    personal: dict[str, Any] | None = Field(
        description="Rules, effects and who gets what, of a personalised experiment"
    )

    @classmethod
    def of(cls, report: Report) -> "ReportAnswer":
        """Return a report as plain values."""
        return cls.model_validate(report.to_json())


@router.get("/report", summary="What to do now", response_model=ReportAnswer, responses=PAGE)
def report(key: Key, request: Request) -> Response:
    """Give the report as JSON, or as a page for browsers (``Accept: text/html``)."""
    found = experiment_of(request, key).report()
    accepted = request.headers.get("accept", "")
    if "text/html" in accepted and "application/json" not in accepted:
        answer = send_tagged(request, found.to_html().encode(), "text/html")
        # The page needs its own styles and nothing else: labels of arms cannot smuggle in a script.
        answer.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
        return answer
    return send_tagged(request, ReportAnswer.of(found).model_dump_json().encode())


@router.get("/certificate", summary="What the decision rests on", response_model=dict[str, Any])
def certificate(key: Key, request: Request) -> Response:
    """Give plans, tallies and the claim, for ``orthobandit verify``; no user's data are in it."""
    document = experiment_of(request, key).certificate().document
    return send_tagged(request, json.dumps(document, allow_nan=False).encode())


@router.get(
    "/export",
    summary="Every proposal as a table",
    response_class=FileResponse,
    responses=FILES | document_problems(501),
)
def export(
    key: Key,
    request: Request,
    kind: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv",
    raw: Annotated[bool, Query(description="Whether text that looks like a formula is left alone")] = False,
) -> FileResponse:
    """Give every proposal with its probabilities, forecasts and rewards as CSV or Parquet.

    In CSV, text that a spreadsheet would take for a formula gets a `'` in front, unless `raw` is true.
    """
    experiment = experiment_of(request, key)
    # A file, not a stream: an error in the middle must not look like a whole table.
    folder = Path(mkdtemp(prefix="orthobandit-"))
    path = folder / f"export.{kind}"
    try:
        experiment.export(path, raw=raw)
    except BaseException:
        _remove(folder)
        raise
    # The folder is removed once the file is sent.
    return FileResponse(
        path,
        media_type=TABLES[kind],
        filename=f"{key}.{kind}",
        background=BackgroundTask(_remove, folder),
    )


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
