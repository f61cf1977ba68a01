"""Begin an experiment from a form, after a preview."""

from time import time
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from orthobandit.errors import ExperimentExistsError
from orthobandit.service.api.base import registry_of
from orthobandit.service.api.creation import begin
from orthobandit.service.dashboard.create_form import BLANK, FIELDS, body_of, fields_of
from orthobandit.service.dashboard.create_metrics import MOST_ROWS, PARTS, count_of, label_of
from orthobandit.service.dashboard.create_preview import preview
from orthobandit.service.dashboard.form_fields import DraftError
from orthobandit.service.dashboard.forms import Filled
from orthobandit.service.dashboard.pages import page, see
from orthobandit.service.dashboard.routes.base import address_of, pages
from orthobandit.service.dashboard.viewer import Acts, Viewer

router = pages("/new")


@router.get("")
def blank(request: Request, viewer: Acts) -> Response:
    """Show the form."""
    return _form(request, viewer, dict(BLANK))


@router.post("")
def filled_in(request: Request, viewer: Acts, given: Filled) -> Response:
    """Show a preview of what the form describes, or begin it; or add and remove a row of it."""
    do = given.get("do", "")
    fields = fields_of(given, do)
    if do.startswith(("add", "remove")):
        return _form(request, viewer, fields)
    try:
        body, notes = body_of(fields)
        if do == "begin":
            # Again, as it is: somebody has pressed the button twice.
            at = time()
            begin(registry_of(request), body, is_repeatable=True)
            request.app.state.dashboard.actions.note(body.key, "begin", viewer.name, at)
            return see(address_of(body.key))
        return _form(request, viewer, fields, notes=notes, shown=preview(body, fields))
    except DraftError as error:
        return _form(request, viewer, fields, wrong=error.wrong)
    except ExperimentExistsError as error:
        return _form(request, viewer, fields, wrong={"key": str(error)})


def _form(request: Request, viewer: Viewer, fields: dict[str, str], **more: Any) -> Response:
    labels = {name: FIELDS[name][1] if name in FIELDS else label_of(name) for name in fields}
    given: dict[str, str] = more.pop("wrong", {})
    wrong = {name: given[name] for name in [*fields, ""] if name in given}  # in the order of the form
    values = {"notes": [], "shown": None} | more
    values |= {"labels": labels, "parts": PARTS, "rows": count_of(fields), "most": MOST_ROWS}
    return page(request, "new.html", viewer, 422 if wrong else 200, fields=fields, wrong=wrong, **values)
