"""Routes that are asked thousands of times a second: good requests take a short way to their answer.

What is in order is recognised by the same models and tokens, and answered; whatever is not goes the way of
all other requests, which words what is wrong. So both ways take the same, and the long one documents it.
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
from orthobandit.service.http.auth import ROLES, Tokens
from orthobandit.service.http.idempotency import Keyed
from orthobandit.service.http.problems import problem_of
from orthobandit.service.registry import Registry

PATH = "/v1/experiments/"  # of what is hot, before the key
BEARER = b"bearer "
Answer = Callable[[AsyncExperiment, Any], Awaitable[bytes]]


class _Hot(NamedTuple):
    route: APIRoute
    role: str
    model: type[BaseModel]
    answer: Answer


def hot(role: str, model: type[BaseModel], answer: Answer) -> Callable[..., Any]:
    """Return a decorator of endpoints whose good requests take the short way.

    Parameters
    ----------
    role : str
        That a token needs.
    model : type
        Of the body.
    answer : function
        Answers a body that is in order, in JSON.
    """

    def marked(endpoint: Callable[..., Any]) -> Callable[..., Any]:
        endpoint.__dict__["hot"] = (role, model, answer)
        return endpoint

    return marked


class Hot:
    """Answer good requests of hot routes, and hand on all others.

    Parameters
    ----------
    app : ASGI application
    routers : iterable of APIRouter
        Whose endpoints may be :func:`hot`.
    """

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self._app = app
        self._routes = dict[str, _Hot]()
        for router in routers:
            for route in router.routes:
                if isinstance(route, APIRoute) and hasattr(route.endpoint, "hot"):
                    last = route.path.removeprefix(PATH + "{key}/")
                    self._routes[last] = _Hot(route, *route.endpoint.hot)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        found = self._found(scope)
        if found is None:
            await self._app(scope, receive, send)
            return
        way, experiment = found
        message = await receive()
        body = _body(way.model, message)
        if body is None:
            await self._app(scope, _again(message, receive), send)
            return
        scope["route"] = way.route
        try:
            content = await way.answer(experiment, body)
        except OrthobanditError as error:
            await problem_of(error)(scope, receive, send)
            return
        length = b"%d" % len(content)
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _found(self, scope: Scope) -> tuple[_Hot, AsyncExperiment] | None:
        """Return where a request belongs, if its route is hot, its experiment open and its token good."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or not path.startswith(PATH):
            return None
        key, _, last = path[len(PATH) :].partition("/")
        way = self._routes.get(last)
        if way is None:
            return None
        state = scope["app"].state
        token = b""
        for name, value in scope["headers"]:
            if name == b"idempotency-key":
                return None
            if name == b"authorization":
                token = value
        registry: Registry = state.registry
        experiment = registry.found(key)
        if experiment is None or not _may(state.tokens, way.role, token):
            return None
        return way, AsyncExperiment(experiment)


def _body(model: type[BaseModel], message: Message) -> BaseModel | None:
    """Return the body of a request, if it is whole and in order."""
    if message["type"] != "http.request" or message.get("more_body", False):
        return None
    try:
        return model.model_validate_json(message["body"])
    except ValidationError:
        return None


def _may(tokens: Tokens | None, role: str, token: bytes) -> bool:
    """Tell whether a token that was looked up lately has a role."""
    if tokens is None:
        return True
    if token[: len(BEARER)].lower() != BEARER:
        return False
    found = tokens.remembered(token[len(BEARER) :].decode("latin-1"))
    return found is not None and role in ROLES[found.role]


def _again(message: Message, receive: Receive) -> Receive:
    """Return what gives a message that was taken, and then those that follow it."""
    taken = [message]

    async def again() -> Message:
        return taken.pop() if taken else await receive()

    return again


async def opened(request: Request, key: str, keyed: Keyed, body: BaseModel) -> AsyncExperiment:
    """Return an experiment for one write, opened if it is not open yet."""
    registry: Registry = request.app.state.registry
    experiment = registry.found(key)
    if experiment is None:
        experiment = await run_in_threadpool(registry.get, key)
    return AsyncExperiment(keyed.once(experiment, body))
