"""What is noted of every request: an id, how long it took, and what came of it."""

import logging
import re
from itertools import count
from secrets import token_hex
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.service.http.limits import HEADERS
from orthobandit.service.http.metrics import Metrics
from orthobandit.service.http.problems import SILENT, problem
from orthobandit.service.http.request_log import REQUEST, REQUESTS, token_id

LOG = logging.getLogger("orthobandit.service")
GONE = 499  # what is noted where the caller did not wait for the answer
PLAIN = re.compile(rb"[\w.-]{8,64}")


class Observed:
    """Give every request an id, count it, and write a line of it; errors nobody expected are answered here.

    The id is the caller's ``X-Request-Id`` if that is plain, and is in the answer's header. Of what was asked
    for, nothing but the route's template is noted: paths and queries may hold what is not for a log.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        # Random once and counted then: randomness for each would take as long as all the rest.
        self._prefix = token_hex(4)
        self._numbers = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, and note what came of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = perf_counter()
        status = 0
        seconds = 0.0
        given, authorization = _headers(scope)
        is_plain = given and PLAIN.fullmatch(given)
        request = given.decode() if is_plain else f"{self._prefix}{next(self._numbers):08x}"
        REQUEST.set(request)
        name = (b"x-request-id", request.encode())

        async def noted(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                # Not the end: a stream of events may last for hours.
                status = message["status"]
                seconds = perf_counter() - start
                message["headers"] = [*message.get("headers", ()), name]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            LOG.error("%s %s failed", scope["method"], template(scope), exc_info=error)
            if status:
                raise  # half an answer was sent: the connection must break
            answer = problem("internal", SILENT["internal"])
            answer.raw_headers.extend(HEADERS)
            await answer(scope, receive, noted)
        finally:
            route = template(scope)
            self._metrics.count(scope["method"], route, status or GONE, seconds or perf_counter() - start)
            if REQUESTS.isEnabledFor(logging.INFO):
                fields = {
                    "request": request,
                    "method": scope["method"],
                    "route": route,
                    "status": status or GONE,
                    "ms": round(1000 * seconds, 2),
                    "token": token_id(authorization) if status != 401 else None,
                }
                REQUESTS.info("", extra={"fields": fields})


def template(scope: Scope) -> str:
    """Return the path of the route that took a request, with names for its values; "none" if none did."""
    return str(getattr(scope.get("route"), "path", "none"))


def _headers(scope: Scope) -> tuple[bytes, bytes]:
    """Return the request's id and its token, as the caller gave them."""
    given = authorization = b""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given = value
        elif name == b"authorization":
            authorization = value
    return given, authorization
