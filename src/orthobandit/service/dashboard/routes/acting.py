"""Pause, resume, stop, retire: with a question before, and a way back after."""

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from orthobandit.experiment.ledger.ledger import STOPPED
from orthobandit.experiment.report.report import Report
from orthobandit.service.api.base import Key
from orthobandit.service.dashboard.actions import GRACE, Actions
from orthobandit.service.dashboard.forms import Filled
from orthobandit.service.dashboard.pages import page, see
from orthobandit.service.dashboard.routes.base import address_of, pages, sight_of
from orthobandit.service.dashboard.viewer import Acts, Viewer
from orthobandit.service.http.problems import Problem

router = pages("/experiments/{key}")
LONGEST = 1_000  # characters of a reason


def _actions(request: Request) -> Actions:
    found: Actions = request.app.state.dashboard.actions
    return found


@router.post("/pause")
def pause(key: Key, request: Request, viewer: Acts, _fields: Filled) -> Response:
    """Pause; `resume` is the way back."""
    sight_of(request, key)
    _actions(request).do(key, "pause", viewer.name)
    return see(address_of(key))


@router.post("/resume")
def resume(key: Key, request: Request, viewer: Acts, _fields: Filled) -> Response:
    """Go on after a pause."""
    sight_of(request, key)
    _actions(request).do(key, "resume", viewer.name)
    return see(address_of(key))


@router.get("/stop")
def ask_to_stop(key: Key, request: Request, viewer: Acts) -> Response:
    """Ask whether to stop."""
    _running(request, key)
    return _question(request, viewer, key, "")


@router.post("/stop")
def stop(key: Key, request: Request, viewer: Acts, fields: Filled) -> Response:
    """Stop, after a while in which it can be undone."""
    _running(request, key)
    reason = " ".join(fields.get("reason", "").split())[:LONGEST]
    _once(request, key, "stop", viewer, reason=reason)
    return see(address_of(key))


@router.get("/retire")
def ask_to_retire(
    key: Key, request: Request, viewer: Acts, arm: Annotated[str, Query(max_length=200)]
) -> Response:
    """Ask whether to retire an arm."""
    _in_play(_running(request, key), arm)
    return _question(request, viewer, key, arm)


@router.post("/retire")
def retire(key: Key, request: Request, viewer: Acts, fields: Filled) -> Response:
    """Retire an arm, after a while in which it can be undone."""
    arm = _in_play(_running(request, key), fields.get("arm", ""))
    _once(request, key, "retire", viewer, arm=arm)
    return see(address_of(key))


@router.post("/undo")
def undo(key: Key, request: Request, _viewer: Acts, fields: Filled) -> Response:
    """Take back what has not been done yet."""
    if not _actions(request).undo(key, fields.get("id", "")):
        raise Problem("closed", f"it was done already, more than {GRACE:g} seconds ago, or undone before")
    return see(address_of(key))


def _question(request: Request, viewer: Viewer, key: str, arm: str) -> Response:
    more: dict[str, Any] = {"arm": arm, "grace": GRACE, "longest": LONGEST}
    return page(request, "confirm.html", viewer, key=key, address=address_of(key), **more)


def _once(request: Request, key: str, kind: str, viewer: Viewer, *, arm: str = "", reason: str = "") -> None:
    """Write an action down, unless the same one waits already."""
    actions = _actions(request)
    if not any((one.kind, one.arm) == (kind, arm) for one in actions.waiting(key)):
        actions.ask(key, kind, viewer.name, arm=arm, reason=reason)


def _running(request: Request, key: str) -> Report:
    report = sight_of(request, key).glance.report
    if report.status == STOPPED:
        raise Problem("closed", f"{key!r} was stopped before; its page says what it found")
    return report


def _in_play(report: Report, label: str) -> str:
    """Return an arm that can be retired."""
    left = [arm.label for arm in report.arms if not arm.is_retired]
    if label not in left:
        raise Problem("not-found", f"no arm {label!r} can be retired; those in play: {', '.join(left)}")
    if len(left) == 1:
        raise Problem("conflict", f"{label!r} is the last arm; stop the experiment instead")
    return label
