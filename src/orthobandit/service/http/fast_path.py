"""The fast path: routes that are called thousands of times a second skip FastAPI's routing and dependencies.

A route has one meaning and one home: the function that :func:`has_fast_path` names, which stands beside the
route in its resource's file. Both ways call it, with the same body model, role and experiment.

The fast path takes only the plainest requests: the experiment is open here, the token may do it, the body is
valid, and there is neither a query nor an ``Idempotency-Key``. Everything else is handed on untouched, and
FastAPI answers it, errors included. So the API's description holds for both ways.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.errors import OrthobanditError
from orthobandit.experiment.async_experiment import AsyncExperiment
from orthobandit.service.http.auth import ROLES, TOKEN, Token
from orthobandit.service.http.idempotency import Keyed
from orthobandit.service.http.problems import problem_of
from orthobandit.service.registry import Registry

PATH = "/v1/experiments/"  # of every fast route, before the key
MARK = "fast_path"  # attribute of endpoints: role, model and answer
Answer = Callable[[AsyncExperiment, Any], Awaitable[bytes]]


class _FastRoute(NamedTuple):
    route: APIRoute
    role: str
    model: type[BaseModel]
    answer: Answer


def has_fast_path(role: str, model: type[BaseModel], answer: Answer) -> Callable[..., Any]:
    """Return a decorator of endpoints whose valid requests may take the fast path.

    Parameters
    ----------
    role : str
        The role that a token needs.
    model : type
        The model of the body.
    answer : function
        Returns the answer to a valid body, as JSON.
    """

    def marked(endpoint: Callable[..., Any]) -> Callable[..., Any]:
        setattr(endpoint, MARK, (role, model, answer))
        return endpoint

    return marked


class FastPath:
    """Answer valid requests of fast routes, and hand on all others.

    Parameters
    ----------
    app : ASGI application
    routers : iterable of APIRouter
        Their endpoints that are marked by :func:`has_fast_path` are fast.
    """

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._routes = dict[str, _FastRoute]()
        for router in routers:
            for route in router.routes:
                if isinstance(route, APIRoute) and hasattr(route.endpoint, MARK):
                    last = route.path.removeprefix(PATH + "{key}/")
                    self._routes[last] = _FastRoute(route, *getattr(route.endpoint, MARK))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        found = self._find_route(scope)
        if found is None:
            await self._app(scope, receive, send)
            return
        way, experiment = found
        message = await receive()
        body = _read_body(way.model, message)
        if body is None:
            # FastAPI validates it again, and says what is wrong.
            await self._app(scope, _replay(message, receive), send)
            return
        scope["route"] = way.route  # logs and metrics go by the route's template
        try:
            content = await way.answer(experiment, body)
        except OrthobanditError as error:
            await problem_of(error)(scope, receive, send)
            return
        length = b"%d" % len(content)
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _find_route(self, scope: Scope) -> tuple[_FastRoute, AsyncExperiment] | None:
        """Return the route and the experiment, if both are known here and the token may do it."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or not path.startswith(PATH):
            return None
        key, _, last = path[len(PATH) :].partition("/")
        way = self._routes.get(last)
        if way is None:
            return None
        if scope.get("query_string"):
            return None  # there are no parameters, and FastAPI says so
        for name, _ in scope["headers"]:
            if name == b"idempotency-key":
                return None  # rare, and FastAPI checks its form
        state = scope["app"].state
        token: Token | None = scope.get(TOKEN)
        if state.tokens is not None and (
            token is None or way.role not in ROLES[token.role] or not token.is_for(key)
        ):
            return None
        registry: Registry = state.registry
        # Opening an experiment would block the event loop.
        experiment = registry.find_open(key)
        if experiment is None:
            return None
        return way, AsyncExperiment(experiment)


def _read_body(model: type[BaseModel], message: Message) -> BaseModel | None:
    """Return the body of a request, or None if it is incomplete or invalid."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    try:
        return model.model_validate_json(message["body"])
    except ValidationError:
        return None


def _replay(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that repeats a message already received, and then gives those that follow."""
    taken = [message]

    async def again() -> Message:
        return taken.pop() if taken else await receive()

    return again


async def open_for_write(request: Request, key: str, keyed: Keyed, body: BaseModel) -> AsyncExperiment:
    """Return an experiment for one write, in a thread if it has to be opened first."""
    registry: Registry = request.app.state.registry
    experiment = registry.find_open(key)
    if experiment is None:
        experiment = await run_in_threadpool(registry.get, key)
    return AsyncExperiment(keyed.once(experiment, body))
