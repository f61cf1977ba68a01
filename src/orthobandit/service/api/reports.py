"""Reports, certificates, and every proposal as a table."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any, Literal, get_type_hints

from fastapi import Query, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, Field, create_model
from starlette.background import BackgroundTask

from orthobandit.experiment.report.report import ArmData, MetricData, Report, ReportData
from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import READS, Key, Problems, document_problems, experiment_of, send_tagged

reports = Resource("/v1/experiments/{key}", tag="reports", role="read", responses=READS)
PAGE: Problems = {200: {"content": {"text/html": {}}}}
TABLES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
FILES: Problems = {
    200: {
        "description": "The table",
        "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in TABLES.values()},
    }
}


def _model_of(data: type, about: str, notes: Mapping[str, str], **kinds: Any) -> type[BaseModel]:
    """Return the model of an answer, from the typed dict that clients have of it.

    Parameters
    ----------
    data : typed dict
        The model of ``XData`` is named ``XAnswer``.
    about : str
    notes : mapping of str to str
        What some fields mean.
    kinds
        Types of fields that have a model of their own.
    """
    fields: dict[str, Any] = {
        name: (kinds.get(name, kind), Field(description=notes.get(name)))
        for name, kind in get_type_hints(data).items()
    }
    return create_model(f"{data.__name__.removesuffix('Data')}Answer", __doc__=about, **fields)


ArmAnswer = _model_of(
    ArmData,
    "One arm of a report.",
    {
        "rate": "What it would have earned on average over all settled proposals",
        "lift": "Its gap divided by the rate of the reference arm",
    },
)
MetricAnswer = _model_of(
    MetricData, "One metric of a report: estimate, low and high end of each arm's gap, rate and lift.", {}
)
ReportAnswer = _model_of(
    ReportData,
    "What is known now, and what to do; see `orthobandit.experiment.report.report.Report`.",
    {
        "joint": "Probability that claims and the objective's intervals hold together",
        "alarms": "Why claims cannot be believed: contradiction, sample-ratio, missing, drift",
        "retirements": "Arms that were taken out, and why",
        "held": "The arm that won while a guardrail has not cleared it",
        "guardrails": "What each guardrail does and knows",
        "head": "Hash over the log so far, which certificates must go on from",
        "outlook": "When it may end, in one sentence",
        "expected": "Settled proposals in all before which half of the forecasts end",
        "expected_between": "The same for 5 % and for 80 % of the forecasts; null where it cannot be told",
        "leader": "What looks best; null while it is too early to say",
        "is_early": "Whether it is too early to say which arm looks best",
        "has_rivals": "Whether there are arms that differ, so that one can be found",
        "at": "Time of the newest entry of the log, seconds since the epoch",
        "personal": "Rules, effects and who gets what, of a personalised experiment",
    },
    arms=list[ArmAnswer],  # type: ignore[valid-type]
    metrics=list[MetricAnswer],  # type: ignore[valid-type]
)


def answer_of(report: Report) -> BaseModel:
    """Return a report as the service answers it."""
    return ReportAnswer.model_validate(report.to_json())


@reports.get("/report", summary="What to do now", response_model=ReportAnswer, responses=PAGE)
def report(key: Key, request: Request) -> Response:
    """Give the report as JSON, or as a page for browsers (``Accept: text/html``)."""
    found = experiment_of(request, key).report()
    accepted = request.headers.get("accept", "")
    if "text/html" in accepted and "application/json" not in accepted:
        answer = send_tagged(request, found.to_html().encode(), "text/html")
        # The page needs its own styles and nothing else: labels of arms cannot smuggle in a script.
        answer.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
        return answer
    return send_tagged(request, answer_of(found).model_dump_json().encode())


@reports.get("/certificate", summary="What the decision rests on", response_model=dict[str, Any])
def certificate(key: Key, request: Request) -> Response:
    """Give plans, tallies and the claim, for ``orthobandit verify``; no user's data are in it."""
    document = experiment_of(request, key).certificate().document
    return send_tagged(request, json.dumps(document, allow_nan=False).encode())


@reports.get(
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
