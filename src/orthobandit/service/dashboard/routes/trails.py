"""The audit trail of an experiment."""

from threading import Lock
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from orthobandit.service.api.base import Key, experiment_of, registry_of
from orthobandit.service.dashboard.audit_trail import steps
from orthobandit.service.dashboard.pages import page
from orthobandit.service.dashboard.routes.base import address_of, pages, sight_of
from orthobandit.service.dashboard.viewer import Looks

router = pages("/experiments/{key}")
_ONE = Lock()  # every draw of one experiment at a time, so that visitors are served meanwhile


@router.get("/trail")
def trail(
    key: Key, request: Request, viewer: Looks, check: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show what was done and by whom; with `check=draws`, compute every draw again."""
    sight = sight_of(request, key)
    experiment = experiment_of(request, key)
    audit = None
    if check == "draws":
        with _ONE:
            audit = experiment.audit()
    report = sight.glance.report
    found = steps(
        registry_of(request),
        key,
        [arm.label for arm in report.arms],
        request.app.state.dashboard.actions.of(key),
    )
    return page(
        request,
        "trail.html",
        viewer,
        key=key,
        address=address_of(key),
        steps=found,
        audit=audit,
        plan=sight.glance.plan,
        retired=[text for text in report.warnings if "was retired" in text],
    )
