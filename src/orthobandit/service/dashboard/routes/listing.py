"""All experiments on one page."""

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from orthobandit.errors import OrthobanditError
from orthobandit.service.api.base import registry_of
from orthobandit.service.dashboard.live import Live, Sight
from orthobandit.service.dashboard.pages import page, said
from orthobandit.service.dashboard.routes.base import address_of, pages
from orthobandit.service.dashboard.viewer import Looks
from orthobandit.service.dashboard.words import advice_of, state_of

router = pages()
SHOWN = 50


@router.get("")
def listed(
    request: Request,
    viewer: Looks,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")] = "",
) -> Response:
    """List experiments: state, leader, what to do now."""
    keys = registry_of(request).page(SHOWN + 1, after)
    live: Live = request.app.state.dashboard.live
    seen = live.many(keys[:SHOWN])
    rows = [_row(key, seen[key]) for key in keys[:SHOWN]]
    return page(
        request, "list.html", viewer, rows=rows, after=after, more=keys[SHOWN - 1] if keys[SHOWN:] else ""
    )


def _row(key: str, sight: Sight | OrthobanditError) -> dict[str, Any]:
    if isinstance(sight, OrthobanditError):
        return {"key": key, "address": address_of(key), "problem": said(sight)[1]}
    report = sight.glance.report
    leader = next(arm for arm in report.arms if arm.label == report.leader)
    return {
        "key": key,
        "address": address_of(key),
        "problem": "",
        "state": state_of(report),
        "leader": report.leader if report.settled else "",
        "share": leader.probability,
        "arms": len(report.arms),
        "active": sum(arm.is_active for arm in report.arms),
        "proposals": report.proposals,
        "settled": report.settled,
        "advice": advice_of(report),
        "is_guarded": any(rail.is_alarm for rail in sight.glance.guardrails),
        "alarms": sum(text.startswith("ALARM") for text in report.warnings),
    }
