"""Pages that change something: create an experiment; pause, resume, stop, retire an arm, and undo."""

from time import time
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from orthobandit.errors import ExperimentExistsError
from orthobandit.experiment.ledger.ledger import STOPPED
from orthobandit.experiment.report.report import Report
from orthobandit.service.api.experiments import begin_experiment
from orthobandit.service.api.shared import Key, registry_of
from orthobandit.service.dashboard.access import Acts, Filled, Viewer
from orthobandit.service.dashboard.actions import GRACE, Actions
from orthobandit.service.dashboard.create_form import (
    BLANK,
    FIELDS,
    MOST_ROWS,
    PARTS,
    DraftError,
    body_of,
    count_of,
    fields_of,
    label_of,
    preview,
)
from orthobandit.service.dashboard.pages import address_of, page_router, redirect, render_page, sight_of
from orthobandit.service.http.auth import check_key
from orthobandit.service.http.problems import Problem

router = page_router()
LONGEST = 1_000  # characters of a reason


@router.get("/new")
def blank(request: Request, viewer: Acts) -> Response:
    """Show the form."""
    return _show_form(request, viewer, dict(BLANK))


@router.post("/new")
def filled_in(request: Request, viewer: Acts, given: Filled) -> Response:
    """Show a preview of what the form describes, or begin it; or add and remove a row of it."""
    do = given.get("do", "")
    fields = fields_of(given, do)
    if do.startswith(("add", "remove")):
        return _show_form(request, viewer, fields)
    try:
        body, notes = body_of(fields)
        if do == "begin":
            # Again, as it is: somebody has pressed the button twice.
            at = time()
            check_key(viewer.token, body.key)
            begin_experiment(registry_of(request), body, is_repeatable=True)
            request.app.state.dashboard.actions.note(body.key, "begin", viewer.name, at)
            return redirect(address_of(body.key))
        return _show_form(request, viewer, fields, notes=notes, shown=preview(body, fields))
    except DraftError as error:
        return _show_form(request, viewer, fields, wrong=error.wrong)
    except ExperimentExistsError as error:
        return _show_form(request, viewer, fields, wrong={"key": str(error)})


def _show_form(request: Request, viewer: Viewer, fields: dict[str, str], **more: Any) -> Response:
    labels = {name: FIELDS[name][1] if name in FIELDS else label_of(name) for name in fields}
    given: dict[str, str] = more.pop("wrong", {})
    wrong = {name: given[name] for name in [*fields, ""] if name in given}  # in the order of the form
    values = {"notes": [], "shown": None} | more
    values |= {"labels": labels, "parts": PARTS, "rows": count_of(fields), "most": MOST_ROWS}
    return render_page(
        request, "new.html", viewer, 422 if wrong else 200, fields=fields, wrong=wrong, **values
    )


def _actions(request: Request) -> Actions:
    found: Actions = request.app.state.dashboard.actions
    return found


@router.post("/experiments/{key}/pause")
def pause(key: Key, request: Request, viewer: Acts, _fields: Filled) -> Response:
    """Pause; `resume` is the way back."""
    sight_of(request, key)
    _actions(request).do(key, "pause", viewer.name)
    return redirect(address_of(key))


@router.post("/experiments/{key}/resume")
def resume(key: Key, request: Request, viewer: Acts, _fields: Filled) -> Response:
    """Go on after a pause."""
    sight_of(request, key)
    _actions(request).do(key, "resume", viewer.name)
    return redirect(address_of(key))


@router.get("/experiments/{key}/stop")
def ask_to_stop(key: Key, request: Request, viewer: Acts) -> Response:
    """Ask whether to stop."""
    _check_running(request, key)
    return _ask_to_confirm(request, viewer, key, "")


@router.post("/experiments/{key}/stop")
def stop(key: Key, request: Request, viewer: Acts, fields: Filled) -> Response:
    """Stop, after a while in which it can be undone."""
    _check_running(request, key)
    reason = " ".join(fields.get("reason", "").split())[:LONGEST]
    _ask_once(request, key, "stop", viewer, reason=reason)
    return redirect(address_of(key))


@router.get("/experiments/{key}/retire")
def ask_to_retire(
    key: Key, request: Request, viewer: Acts, arm: Annotated[str, Query(max_length=200)]
) -> Response:
    """Ask whether to retire an arm."""
    _check_in_play(_check_running(request, key), arm)
    return _ask_to_confirm(request, viewer, key, arm)


@router.post("/experiments/{key}/retire")
def retire(key: Key, request: Request, viewer: Acts, fields: Filled) -> Response:
    """Retire an arm, after a while in which it can be undone."""
    arm = _check_in_play(_check_running(request, key), fields.get("arm", ""))
    _ask_once(request, key, "retire", viewer, arm=arm)
    return redirect(address_of(key))


@router.post("/experiments/{key}/undo")
def undo(key: Key, request: Request, _viewer: Acts, fields: Filled) -> Response:
    """Take back what has not been done yet."""
    if not _actions(request).undo(key, fields.get("id", "")):
        raise Problem("closed", f"it was done already, more than {GRACE:g} seconds ago, or undone before")
    return redirect(address_of(key))


def _ask_to_confirm(request: Request, viewer: Viewer, key: str, arm: str) -> Response:
    more: dict[str, Any] = {"arm": arm, "grace": GRACE, "longest": LONGEST}
    return render_page(request, "confirm.html", viewer, key=key, address=address_of(key), **more)


def _ask_once(
    request: Request, key: str, kind: str, viewer: Viewer, *, arm: str = "", reason: str = ""
) -> None:
    """Write an action down, unless the same one waits already."""
    actions = _actions(request)
    if not any((one.kind, one.arm) == (kind, arm) for one in actions.waiting(key)):
        actions.ask(key, kind, viewer.name, arm=arm, reason=reason)


def _check_running(request: Request, key: str) -> Report:
    report = sight_of(request, key).glance.report
    if report.status == STOPPED:
        raise Problem("closed", f"{key!r} was stopped before; its page says what it found")
    return report


def _check_in_play(report: Report, label: str) -> str:
    """Return an arm that can be retired."""
    left = [arm.label for arm in report.arms if not arm.is_retired]
    if label not in left:
        raise Problem("not-found", f"no arm {label!r} can be retired; those in play: {', '.join(left)}")
    if len(left) == 1:
        raise Problem("conflict", f"{label!r} is the last arm; stop the experiment instead")
    return label
