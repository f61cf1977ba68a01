"""Operations of the API, each declared once: name, method, path, role, body, answer, and what it does.

A declaration is FastAPI's own, a function whose signature says what it takes and gives, with the role that a
token needs beside it. The route, the description in ``/openapi.json`` and the docs' table follow from it.

Hot operations are called thousands of times a second, and FastAPI takes longer to solve their parameters than
they take to run. They are writes to one experiment, ``(experiment: Opened, body) -> bytes``, and their
parameters are read here instead, by the same models and with the same errors.
"""

import inspect
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send

from orthobandit.experiment.async_experiment import AsyncExperiment
from orthobandit.service.api.shared import Key, Problems, document_problems
from orthobandit.service.http.auth import BEARER, check_token
from orthobandit.service.http.idempotency import IdempotencyKey, Keyed
from orthobandit.service.registry import Registry

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
ErrorWords = Callable[[Request, Exception], Response | None]
KEY_HEADER = b"idempotency-key"
MISSING_BODY = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
TOO_MANY = document_problems(429)  # any request may come too soon
_KEY: TypeAdapter[str] = TypeAdapter(Key)
_IDEMPOTENCY_KEY: TypeAdapter[str | None] = TypeAdapter(IdempotencyKey)


async def _describe_opened(key: Key, idempotency_key: IdempotencyKey = None) -> None:
    """Describe to FastAPI what `Opened` is read from; :meth:`Operation._answer_hot` reads it."""


Opened = Annotated[AsyncExperiment, Depends(_describe_opened)]  # the experiment of a hot operation


class Operation(APIRoute):
    """An operation: FastAPI's route, with the role that it needs.

    Parameters
    ----------
    method, path : str
    endpoint : function
        Its signature and docstring are the rest of the declaration, as for FastAPI.
    role : str, optional
        That a token needs; none by default.
    for_all : bool
        Whether only tokens for all experiments may do it.
    spares : function, optional
        Tells whether a request needs no token.
    is_hot : bool
        Whether it is called thousands of times a second; returns JSON.
    takes_any_query : bool
        Whether query parameters that nobody declared are ignored, because clients and probes of others may
        add some. Otherwise they are refused, so that a mistyped one is noticed.
    show_error : function, optional
        Answers errors in another format than problem documents; returns None for those that it leaves alone.
    options
        Of FastAPI's route.
    """

    def __init__(
        self,
        method: str,
        path: str,
        endpoint: Callable[..., Any],
        *,
        role: str | None = None,
        for_all: bool = False,
        spares: Callable[[Request], bool] | None = None,
        is_hot: bool = False,
        takes_any_query: bool = False,
        show_error: ErrorWords | None = None,
        responses: Problems | None = None,
        **options: Any,
    ) -> None:
        self.method = method
        self.role = role
        self._for_all = for_all
        self._spares = spares
        self.is_hot = is_hot
        self._takes_any_query = takes_any_query
        self._show_error = show_error
        super().__init__(
            path,
            endpoint,
            methods=[method],
            dependencies=[] if role is None else [Depends(BEARER)],  # for the description
            responses=(responses or {}) | TOO_MANY,
            **options,
        )
        self.query_names = [field.alias for field in self.dependant.query_params]
        if is_hot:
            self._model: type[BaseModel] = inspect.get_annotations(endpoint)["body"]
            self.app = self._answer_hot

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()
        show_error = self._show_error

        async def answer(request: Request) -> Response:
            try:
                self._check(request)
                return await handle(request)
            except Exception as error:
                shown = None if show_error is None else show_error(request, error)
                if shown is None:
                    raise
                return shown

        return answer

    def _check(self, request: Request) -> None:
        """Raise an error unless the token has the role, and all query parameters are declared."""
        is_spared = request.app.state.tokens is None or (self._spares is not None and self._spares(request))
        if self.role is not None and not is_spared:
            check_token(request, self.role, for_all=self._for_all)
        if not self._takes_any_query and request.scope.get("query_string"):
            check_query(request, self.query_names)

    async def _answer_hot(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the parameters of a hot operation, and send its answer."""
        state = scope["app"].state
        if state.tokens is not None or scope.get("query_string"):
            self._check(Request(scope))
        sent_key = None
        for name, value in scope["headers"]:
            if name == KEY_HEADER:
                sent_key = value.decode("latin-1")
                break
        content = (await receive())["body"]  # the whole body: `RequestChecks` has put it together
        errors: list[Any] = []
        key: str = _read(_KEY.validate_python, scope["path_params"]["key"], errors, "path", "key")
        body = _read(self._model.model_validate_json, content, errors, "body")
        if not content:
            errors[-1] = MISSING_BODY  # instead of JSON that ends too soon
        if sent_key is not None:
            _read(_IDEMPOTENCY_KEY.validate_python, sent_key, errors, "header", "idempotency-key")
        if errors:
            raise RequestValidationError(errors)
        registry: Registry = state.registry
        experiment = registry.find_open(key)
        if experiment is None:
            experiment = await run_in_threadpool(registry.get, key)  # reading its log takes a while
        if sent_key is not None:
            experiment = Keyed(scope["path"], sent_key).once(experiment, body)
        answer: bytes = await self.endpoint(AsyncExperiment(experiment), body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


class Resource:
    """Operations that share a path and a tag.

    Parameters
    ----------
    prefix : str
        Of the paths.
    tag : str
        In the API's description.
    options
        Of all operations, where they do not say otherwise; see :class:`Operation`.
    """

    def __init__(self, prefix: str = "", *, tag: str, **options: Any) -> None:
        self._prefix = prefix
        self._options = {"tags": [tag], **options}
        self.operations: list[Operation] = []

    def get(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares an operation which changes nothing."""
        return self._declare("GET", path, options)

    def post(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares an operation which changes something."""
        return self._declare("POST", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares an operation which removes something."""
        return self._declare("DELETE", path, options)

    def _declare(self, method: str, path: str, options: dict[str, Any]) -> Callable[[Endpoint], Endpoint]:
        options = self._options | options
        options["responses"] = self._options.get("responses", {}) | options.get("responses", {})

        def declared(endpoint: Endpoint) -> Endpoint:
            self.operations.append(Operation(method, self._prefix + path, endpoint, **options))
            return endpoint

        return declared


def check_query(request: Request, parameters: list[str]) -> None:
    """Raise an error that names each query parameter that an operation does not have, and those it has."""
    known = " and ".join(map(repr, parameters)) or "none"
    errors = [
        {
            "type": "unknown_parameter",
            "loc": ("query", name),
            "msg": f"there is no such parameter; those of this address: {known}",
            "input": request.query_params[name],
        }
        for name in dict.fromkeys(request.query_params)
        if name not in parameters
    ]
    if errors:
        raise RequestValidationError(errors)


def _read(validate: Callable[[Any], Any], value: Any, errors: list[Any], *place: str) -> Any:
    """Return a valid value; add the errors of another to the list, with their place in the request."""
    try:
        return validate(value)
    except ValidationError as error:
        errors += [{**fault, "loc": (*place, *fault["loc"])} for fault in error.errors(include_url=False)]
