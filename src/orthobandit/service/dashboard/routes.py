"""The routes of the dashboard: pages to look at, then pages that change something.

To look at: the login, all experiments, one experiment, its audit trail and its downloads. To change: create
an experiment; pause, resume and stop it, retire an arm, and undo.
"""

import json
from importlib.util import find_spec
from threading import Lock
from time import time
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from orthobandit.errors import ExperimentExistsError, OrthobanditError
from orthobandit.experiment.ledger.ledger import STOPPED
from orthobandit.experiment.report.render import (
    guarantee_words,
    holdout_means,
    lift_bars,
    personal_tables,
    rate_name,
    rates_words,
)
from orthobandit.experiment.report.report import Report
from orthobandit.service.api.experiments import begin_experiment
from orthobandit.service.api.operations import Resource
from orthobandit.service.api.reports import answer_of, export
from orthobandit.service.api.shared import Key, experiment_of, registry_of
from orthobandit.service.dashboard.access import (
    SESSION_SECONDS,
    Acts,
    Filled,
    Looks,
    Viewer,
    set_secret_cookie,
)
from orthobandit.service.dashboard.actions import UNDO_SECONDS, Actions, steps
from orthobandit.service.dashboard.create_form import (
    BLANK,
    FIELDS,
    MAX_METRIC_ROWS,
    PARTS,
    DraftError,
    body_of,
    count_of,
    fields_of,
    label_of,
    preview,
)
from orthobandit.service.dashboard.live import Live, Sight
from orthobandit.service.dashboard.pages import (
    HEADERS,
    address_of,
    dashboard_pages,
    describe_error,
    redirect,
    render_page,
    sight_of,
)
from orthobandit.service.dashboard.words import (
    advice_of,
    arms_of,
    example_of,
    interval,
    line_of,
    metrics_of,
    outlook_of,
    some,
    state_of,
)
from orthobandit.service.http.auth import ROLES, SESSION_COOKIE, allows, check_key
from orthobandit.service.http.problems import Problem
from orthobandit.showing.html import PageTable

root = Resource(tag="pages", include_in_schema=False, takes_any_query=True)
pages = dashboard_pages()
others = dashboard_pages()  # apart, since it takes every address and has to come last
MAX_REASON_CHARACTERS = 1_000
EXPERIMENTS_PER_PAGE = 50  # experiments on one page of the list
_ONE = Lock()  # one audit at a time, so that visitors are served meanwhile


@root.get("/")
async def home() -> RedirectResponse:
    """Redirect the bare address to the dashboard."""
    return RedirectResponse("/dashboard", 303)


@pages.get("/login")
async def ask(request: Request, to: Annotated[str, Query(max_length=500)] = "/dashboard") -> Response:
    """Ask for a token."""
    if request.app.state.tokens is None:
        return redirect("/dashboard")
    return render_page(request, "login.html", None, to=_own(to), problem="")


@pages.post("/login")
async def begin(request: Request, fields: Filled) -> Response:
    """Begin a session, if the token is known and may read."""
    tokens = request.app.state.tokens
    to = _own(fields.get("to", ""))
    if tokens is None:
        return redirect("/dashboard")
    token = await tokens.find(fields.get("token", "").strip())
    if token is None or "read" not in ROLES[token.role]:
        problem = (
            "This token is not known: it was revoked, or is mistyped."
            if token is None
            else f"This token has the role {token.role!r}, which sees no pages; use one for admin or read."
        )
        answer = render_page(
            request, "login.html", None, 401 if token is None else 403, to=to, problem=problem
        )
        if token is None:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer
    secret = await run_in_threadpool(request.app.state.dashboard.sessions.begin, token)
    entered = redirect(to)
    set_secret_cookie(entered, request, SESSION_COOKIE, secret, int(SESSION_SECONDS))
    return entered


@pages.post("/logout")
async def end(request: Request, _viewer: Looks, _fields: Filled) -> Response:
    """End the session, on all servers."""
    secret = request.cookies.get(SESSION_COOKIE, "")
    await run_in_threadpool(request.app.state.dashboard.sessions.end, secret)
    answer = redirect("/dashboard/login")
    answer.delete_cookie(SESSION_COOKIE, path="/dashboard", httponly=True, samesite="strict")
    return answer


def _own(to: str) -> str:
    """Return the address if it is on the dashboard, and the dashboard's own otherwise.

    Examples
    --------
    >>> _own("/dashboard/new"), _own("//elsewhere.example/dashboard")
    ('/dashboard/new', '/dashboard')
    """
    # An open redirect would let a link to the login lead to another site: "//" and "\\" name hosts.
    is_own = (to == "/dashboard" or to.startswith("/dashboard/")) and to.isprintable() and "\\" not in to
    return to if is_own else "/dashboard"


@pages.get("")
def listed(
    request: Request,
    viewer: Looks,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")] = "",
) -> Response:
    """List experiments: state, leader, what to do now."""
    keys = registry_of(request).page(EXPERIMENTS_PER_PAGE + 1, after, allows(viewer.token))
    live: Live = request.app.state.dashboard.live
    seen = live.many(keys[:EXPERIMENTS_PER_PAGE])
    rows = [_row(key, seen[key]) for key in keys[:EXPERIMENTS_PER_PAGE]]
    return render_page(
        request,
        "list.html",
        viewer,
        rows=rows,
        after=after,
        more=keys[EXPERIMENTS_PER_PAGE - 1] if keys[EXPERIMENTS_PER_PAGE:] else "",
    )


def _row(key: str, sight: Sight | OrthobanditError) -> dict[str, Any]:
    """Return the line of an experiment in the list."""
    if isinstance(sight, OrthobanditError):
        return {"key": key, "address": address_of(key), "problem": describe_error(sight)[1]}
    return {**line_of(key, sight.glance), "address": address_of(key)}


@pages.get("/experiments/{key}")
def show_experiment(
    key: Key, request: Request, viewer: Looks, part: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show an experiment; `part=live` gives only what changes.

    The whole page settles proposals whose window has passed. Parts do not: they are loaded whenever something
    has changed, and must not change anything themselves.
    """
    if part != "live":
        experiment_of(request, key).report()
    live = request.app.state.dashboard.live
    sight = live.newest(key) if part == "live" else live.look(key)
    name = "live.html" if part == "live" else "experiment.html"
    return render_page(request, name, viewer, **_values(request, key, sight))


def _values(request: Request, key: str, sight: Sight) -> dict[str, Any]:
    """Return the values of the template of an experiment's page."""
    settings = experiment_of(request, key).settings
    dashboard = request.app.state.dashboard
    report = sight.glance.report
    found = dashboard.history.charts(key, report)
    has_lifts = bool(lift_bars(report))
    return {
        "key": key,
        "address": address_of(key),
        "version": sight.version,
        "glance": sight.glance,
        "report": report,
        "state": state_of(report),
        "advice": advice_of(report),
        "rows": arms_of(sight.glance),
        "metrics": metrics_of(report, settings.guardrails),
        "window": settings.window,
        "silence": settings.silence,
        "waiting": dashboard.actions.waiting(key),
        "charts": found,
        "outlook": outlook_of(report, found["baseline"]["at"]),
        "guarantee": guarantee_words(report),
        "has_rates": any(arm.rate is not None for arm in report.arms),
        "rate_name": rate_name(report.metrics[0]),
        "rates_words": rates_words(report),
        "personal": [
            (title, PageTable.of_filled(head, rows)) for title, head, rows in personal_tables(report)
        ],
        "compared": "lift over" if has_lifts else "difference to",
        "compared_by": "lift" if has_lifts else "gap",
        "alarms": [alarm.details for alarm in report.conclusion.alarms],
        "held_up": _held_up(sight),
        "holdout": holdout_means(report),
        "notes": report.notes,
        "interval": interval,
        "some": some,
        "has_parquet": find_spec("pyarrow") is not None,
        "origin": str(request.base_url).rstrip("/"),
        "example": example_of(settings.metrics),
    }


def _held_up(sight: Sight) -> str:
    """Return which proposal holds up others, unless the advice or a note says so already."""
    words = sight.glance.held_up
    report = sight.glance.report
    is_said = any(words in text for text in (report.advice, *report.warnings))
    return "" if is_said else words


@pages.get("/experiments/{key}/charts")
def charts(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give the data of the charts."""
    report = request.app.state.dashboard.live.newest(key).glance.report
    return JSONResponse(request.app.state.dashboard.history.charts(key, report), headers=HEADERS)


@pages.get("/experiments/{key}/events")
async def events(
    key: Key, request: Request, _viewer: Looks, known: Annotated[str, Query(max_length=40)] = ""
) -> Response:
    """Send an event whenever the page has changed."""
    await run_in_threadpool(experiment_of, request, key)
    # Browsers send the last id when they reconnect.
    known = request.headers.get("last-event-id", known)
    stream = request.app.state.dashboard.live.stream(key, known)
    # nginx would hold events back until its buffer is full.
    headers = HEADERS | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@pages.get("/experiments/{key}/trail")
def trail(
    key: Key, request: Request, viewer: Looks, check: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show what was done and by whom; with `check=draws`, recompute every draw."""
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
    return render_page(
        request,
        "trail.html",
        viewer,
        key=key,
        address=address_of(key),
        steps=found,
        audit=audit,
        plan=sight.glance.plan,
        retired=[f"{arm!r} was retired {reason}" for arm, reason in report.retirements],
    )


@pages.get("/experiments/{key}/report.html")
def report_page(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give the report as a page that loads nothing from elsewhere."""
    return _file(experiment_of(request, key).report().to_html(), f"{key}-report.html", "text/html")


@pages.get("/experiments/{key}/report.json")
def report_json(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give the report as JSON."""
    answer = answer_of(experiment_of(request, key).report())
    return _file(answer.model_dump_json(indent=2), f"{key}-report.json", "application/json")


@pages.get("/experiments/{key}/certificate.json")
def certificate(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give what the decision rests on, for ``orthobandit verify``."""
    document = experiment_of(request, key).certificate().document
    return _file(json.dumps(document, allow_nan=False), f"{key}-certificate.json", "application/json")


@pages.get("/experiments/{key}/data.csv")
def data_csv(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give every proposal as CSV."""
    return export(key, request, "csv")


@pages.get("/experiments/{key}/data.parquet")
def data_parquet(key: Key, request: Request, _viewer: Looks) -> Response:
    """Give every proposal as Parquet."""
    return export(key, request, "parquet")


def _file(content: str, name: str, media_type: str) -> Response:
    """Return a file to download; characters that a file name may not have become `_`."""
    safe = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_.") else "_" for sign in name)
    headers = HEADERS | {"Content-Disposition": f'attachment; filename="{safe}"'}
    return Response(content, headers=headers, media_type=media_type)


@pages.get("/new")
def blank(request: Request, viewer: Acts) -> Response:
    """Show the form."""
    return _show_form(request, viewer, dict(BLANK))


@pages.post("/new")
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
    """Show the form with its values, errors by field, notes and a preview."""
    labels = {name: FIELDS[name][1] if name in FIELDS else label_of(name) for name in fields}
    given: dict[str, str] = more.pop("wrong", {})
    wrong = {name: given[name] for name in [*fields, ""] if name in given}  # in the order of the form
    values = {"notes": [], "shown": None} | more
    values |= {"labels": labels, "parts": PARTS, "rows": count_of(fields), "most": MAX_METRIC_ROWS}
    return render_page(
        request, "new.html", viewer, 422 if wrong else 200, fields=fields, wrong=wrong, **values
    )


def _actions(request: Request) -> Actions:
    found: Actions = request.app.state.dashboard.actions
    return found


@pages.post("/experiments/{key}/pause")
def pause(key: Key, request: Request, viewer: Acts, _fields: Filled) -> Response:
    """Pause; `resume` reverses it."""
    sight_of(request, key)
    _actions(request).do(key, "pause", viewer.name)
    return redirect(address_of(key))


@pages.post("/experiments/{key}/resume")
def resume(key: Key, request: Request, viewer: Acts, _fields: Filled) -> Response:
    """Resume after a pause."""
    sight_of(request, key)
    _actions(request).do(key, "resume", viewer.name)
    return redirect(address_of(key))


@pages.get("/experiments/{key}/stop")
def ask_to_stop(key: Key, request: Request, viewer: Acts) -> Response:
    """Ask whether to stop."""
    _check_running(request, key)
    return _ask_to_confirm(request, viewer, key, "")


@pages.post("/experiments/{key}/stop")
def stop(key: Key, request: Request, viewer: Acts, fields: Filled) -> Response:
    """Stop, after a few seconds in which it can be undone."""
    _check_running(request, key)
    reason = " ".join(fields.get("reason", "").split())[:MAX_REASON_CHARACTERS]
    _ask_once(request, key, "stop", viewer, reason=reason)
    return redirect(address_of(key))


@pages.get("/experiments/{key}/retire")
def ask_to_retire(
    key: Key, request: Request, viewer: Acts, arm: Annotated[str, Query(max_length=200)]
) -> Response:
    """Ask whether to retire an arm."""
    _check_in_play(_check_running(request, key), arm)
    return _ask_to_confirm(request, viewer, key, arm)


@pages.post("/experiments/{key}/retire")
def retire(key: Key, request: Request, viewer: Acts, fields: Filled) -> Response:
    """Retire an arm, after a few seconds in which it can be undone."""
    arm = _check_in_play(_check_running(request, key), fields.get("arm", ""))
    _ask_once(request, key, "retire", viewer, arm=arm)
    return redirect(address_of(key))


@pages.post("/experiments/{key}/undo")
def undo(key: Key, request: Request, _viewer: Acts, fields: Filled) -> Response:
    """Undo an action that has not been carried out yet."""
    if not _actions(request).undo(key, fields.get("id", "")):
        raise Problem(
            "closed", f"it was done already, more than {UNDO_SECONDS:g} seconds ago, or undone before"
        )
    return redirect(address_of(key))


def _ask_to_confirm(request: Request, viewer: Viewer, key: str, arm: str) -> Response:
    more: dict[str, Any] = {"arm": arm, "grace": UNDO_SECONDS, "longest": MAX_REASON_CHARACTERS}
    return render_page(request, "confirm.html", viewer, key=key, address=address_of(key), **more)


def _ask_once(
    request: Request, key: str, kind: str, viewer: Viewer, *, arm: str = "", reason: str = ""
) -> None:
    """Record an action, unless the same one is pending already."""
    actions = _actions(request)
    if not any((one.kind, one.arm) == (kind, arm) for one in actions.waiting(key)):
        actions.ask(key, kind, viewer.name, arm=arm, reason=reason)


def _check_running(request: Request, key: str) -> Report:
    report = sight_of(request, key).glance.report
    if report.status == STOPPED:
        raise Problem("closed", f"{key!r} was stopped before; its page says what it found")
    return report


def _check_in_play(report: Report, label: str) -> str:
    """Return the label if its arm can be retired, and raise :class:`Problem` otherwise."""
    left = [arm.label for arm in report.arms if not arm.is_retired]
    if label not in left:
        raise Problem("not-found", f"no arm {label!r} can be retired; those in play: {', '.join(left)}")
    if len(left) == 1:
        raise Problem("conflict", f"{label!r} is the last arm; stop the experiment instead")
    return label


@others.get("/{path:path}")
async def nothing(path: str, _viewer: Looks) -> Response:
    """Answer with a page that says that there is no such page."""
    if not path:
        return redirect("/dashboard")
    raise Problem("not-found", "there is no such page; it may have been moved")
