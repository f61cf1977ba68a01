"""Begin an experiment from a form, after a preview."""

from time import time
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from orthobandit.errors import ExperimentExistsError
from orthobandit.service.dashboard.draft import BLANK, DraftError, body_of
from orthobandit.service.dashboard.forecast import preview
from orthobandit.service.dashboard.forms import Filled
from orthobandit.service.dashboard.pages import page, see
from orthobandit.service.dashboard.routes.base import address_of, pages
from orthobandit.service.dashboard.viewer import Acts, Viewer
from orthobandit.service.making import begin
from orthobandit.service.routes.base import registry_of

router = pages("/new")


@router.get("")
def blank(request: Request, viewer: Acts) -> Response:
    """Show the form."""
    return _form(request, viewer, dict(BLANK))


@router.post("")
def filled_in(request: Request, viewer: Acts, given: Filled) -> Response:
    """Show a preview of what the form describes, or begin it."""
    fields = {name: given.get(name, "") for name in BLANK}
    if given.get("file", "").strip():
        fields["arms"] = given["file"]
    try:
        body, notes = body_of(fields)
        if given.get("do") == "begin":
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
    values = {"wrong": {}, "notes": [], "shown": None} | more
    return page(request, "new.html", viewer, 422 if values["wrong"] else 200, fields=fields, **values)
