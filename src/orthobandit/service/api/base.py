"""What routes share: the experiment of a path, and the problems that they document."""

from typing import Annotated, Any

from fastapi import Path, Request

from orthobandit.experiment import Experiment
from orthobandit.service.http.problem_kinds import KINDS, PROBLEM_JSON
from orthobandit.service.registry import Registry

Key = Annotated[str, Path(max_length=200, description="The experiment's key", examples=["signup-page"])]


def registry_of(request: Request) -> Registry:
    """Return the experiments of the application."""
    found: Registry = request.app.state.registry
    return found


def experiment_of(request: Request, key: str) -> Experiment:
    """Return an experiment by its key."""
    return registry_of(request).get(key)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of answers that are problem documents, by status."""
    schema = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    titles = {
        status: "; ".join(kind.title for kind in KINDS.values() if kind.status == status)
        for status in statuses
    }
    return {status: {"description": title, "content": schema} for status, title in titles.items()}


NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "What `If-None-Match` names is so still"}
}
READS = documented(400, 401, 403, 404, 409, 422, 500, 503) | NOT_MODIFIED
WRITES = documented(400, 401, 403, 404, 409, 413, 415, 422, 500, 503)
