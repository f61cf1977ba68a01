"""What is known: the report, the certificate, and every proposal as a table."""

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from orthobandit.service.api.base import READS, Key, documented, experiment_of
from orthobandit.service.api.responses import ReportAnswer
from orthobandit.service.http.auth import needs
from orthobandit.service.http.etags import tagged

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


@router.get("/report", summary="What to do now", response_model=ReportAnswer, responses=PAGE)
def report(key: Key, request: Request) -> Response:
    """Say what is known now, as JSON, or as a page for browsers (``Accept: text/html``)."""
    found = experiment_of(request, key).report()
    accepted = request.headers.get("accept", "")
    if "text/html" in accepted and "application/json" not in accepted:
        answer = tagged(request, found.to_html().encode(), "text/html")
        answer.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
        return answer
    return tagged(request, ReportAnswer.of(found).model_dump_json().encode())


@router.get("/certificate", summary="What the decision rests on", response_model=dict[str, Any])
def certificate(key: Key, request: Request) -> Response:
    """Give plans, tallies and the claim, for ``orthobandit verify``; no user's data are in it."""
    document = experiment_of(request, key).certificate().document
    return tagged(request, json.dumps(document, allow_nan=False).encode())


@router.get(
    "/export",
    summary="Every proposal as a table",
    response_class=FileResponse,
    responses=FILES | documented(501),
)
def export(
    key: Key, request: Request, kind: Annotated[Literal["csv", "parquet"], Query(alias="format")] = "csv"
) -> FileResponse:
    """Give every proposal with its probabilities, forecasts and rewards as CSV or Parquet."""
    experiment = experiment_of(request, key)
    folder = Path(mkdtemp(prefix="orthobandit-"))
    path = folder / f"export.{kind}"
    try:
        experiment.export(path)
    except BaseException:
        _remove(folder)
        raise
    # Removed once it is sent.
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
