"""Query parameters: one that a route does not have is refused, so that a mistyped one is noticed.

The routes of feature flags, health and metrics take any, because clients and probes of others may add some.
"""

from collections.abc import Iterator

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from orthobandit.service.http.auth import TOKEN


# A coroutine, because FastAPI would run a plain function in a thread.
async def check_query(request: Request) -> None:
    """Refuse query parameters that the route does not have.

    Raises
    ------
    RequestValidationError
        That names each of them, and those that there are.
    """
    if not request.scope.get("query_string"):
        return
    if request.app.state.tokens is not None and request.scope.get(TOKEN) is None:
        return  # whoever has no token is told that first
    route: APIRoute = request.scope["route"]
    known = list(dict.fromkeys(_parameters(route.dependant)))
    there = " and ".join(map(repr, known)) or "none"
    errors = [
        {
            "type": "unknown_parameter",
            "loc": ("query", name),
            "msg": f"there is no such parameter; those of this address: {there}",
            "input": request.query_params[name],
        }
        for name in dict.fromkeys(request.query_params)
        if name not in known
    ]
    if errors:
        raise RequestValidationError(errors)


def _parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the names of the query parameters of a route and of what it depends on."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for other in dependant.dependencies:
        yield from _parameters(other)
