"""What can be taken away: the report, the data, the certificate."""

import json

from fastapi import Request
from fastapi.responses import Response

from orthobandit.service.api.base import Key, experiment_of
from orthobandit.service.api.reports import export
from orthobandit.service.api.responses import ReportAnswer
from orthobandit.service.dashboard.pages import HEADERS
from orthobandit.service.dashboard.routes.base import pages
from orthobandit.service.dashboard.viewer import Looks

router = pages("/experiments/{key}")


@router.get("/report.html")
def report_page(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give the report as a page that needs nothing from anywhere."""
    return _file(experiment_of(request, key).report().to_html(), f"{key}-report.html", "text/html")


@router.get("/report.json")
def report_json(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give the report for programs."""
    answer = ReportAnswer.of(experiment_of(request, key).report())
    return _file(answer.model_dump_json(indent=2), f"{key}-report.json", "application/json")


@router.get("/certificate.json")
def certificate(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give what the decision rests on, for ``orthobandit verify``."""
    document = experiment_of(request, key).certificate().document
    return _file(json.dumps(document, allow_nan=False), f"{key}-certificate.json", "application/json")


@router.get("/data.csv")
def data_csv(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give every proposal as CSV."""
    return export(key, request, "csv")


@router.get("/data.parquet")
def data_parquet(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give every proposal as Parquet."""
    return export(key, request, "parquet")


def _file(content: str, name: str, media_type: str) -> Response:
    """Return a file to keep; keys have no signs that a file's name could not have."""
    safe = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_.") else "_" for sign in name)
    headers = HEADERS | {"Content-Disposition": f'attachment; filename="{safe}"'}
    return Response(content, headers=headers, media_type=media_type)
