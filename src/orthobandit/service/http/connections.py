"""Limits of connections: how many, how slow, and how long their headers may be.

uvicorn's protocol reads headers of any length for any time, and so does the parser below it, whose work grows
with the square of a header's length. Here a connection has a deadline whenever it is the caller's turn:

- until the headers of a request are complete (408, or just closed if nothing came);
- until its body is complete, later for bodies that arrive at a decent speed (408);
- while the caller does not read its answer (the connection is aborted).

Headers beyond a limit are refused while they arrive (431), and so are connections beyond a number (503). An
answer to a request whose body is still arriving ends the connection: the rest is discarded unread.
"""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from math import inf
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from orthobandit.service.http.limits import (
    BODY_BYTES_PER_SECOND,
    MAX_HEADERS,
    MAX_PIPELINED,
    SPARE_CONNECTIONS,
    ConnectionLimits,
)
from orthobandit.service.http.problems import problem

# What a refused caller still sends is thrown away for so long, so that it reads the answer.
LINGER_SECONDS = 3.0
LOOK_SECONDS = 0.5  # between two looks at deadlines
# Stages of a connection.
HEAD = 0  # waits for headers, or for its answer
BODY = 1
REFUSED = 2


class Guard:
    """Makes the connections of a server, and closes those whose time is over.

    Parameters
    ----------
    limits : ConnectionLimits

    Attributes
    ----------
    now : float
        The loop's time at the last look at deadlines. Deadlines are set by it: asking for the time at every
        request would cost more than everything else here.
    refused : dict
        How many connections were refused, by kind of problem.
    """

    def __init__(self, limits: ConnectionLimits = ConnectionLimits()) -> None:  # noqa: B008
        self.limits = limits
        self.now = 0.0
        self.refused: dict[str, int] = {}
        shortest = min(limits.head_seconds, limits.body_seconds, limits.stall_seconds)
        self._pause = min(LOOK_SECONDS, shortest / 4)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: Iterable[Any] = ()

    def make_protocol(self, **options: Any) -> "GuardedProtocol":
        """Return the protocol of a new connection, for ``uvicorn.Config(http=...)``."""
        return GuardedProtocol(self, **options)

    def watch(self, loop: asyncio.AbstractEventLoop, connections: Iterable[Any]) -> None:
        """Start to check the deadlines of these connections, unless they are checked already."""
        if loop is not self._loop:
            self._loop = loop
            self._connections = connections
            self._look()

    def _look(self) -> None:
        assert self._loop is not None  # noqa: S101
        self.now = self._loop.time()
        for connection in list(self._connections):
            connection.check_deadlines(self.now)
        self._loop.call_later(self._pause, self._look)

    def find_idle(self, newest: "GuardedProtocol") -> "GuardedProtocol | None":
        """Return the connection that has waited longest without ever sending a whole request."""
        waiting = [one for one in self._connections if one.has_sent_nothing and one is not newest]
        return min(waiting, key=lambda one: one.due, default=None)

    def count(self, kind: str) -> None:
        """Count a connection that is refused."""
        self.refused[kind] = self.refused.get(kind, 0) + 1


class GuardedProtocol(HttpToolsProtocol):
    """A connection with deadlines and limits.

    Parameters
    ----------
    guard : Guard
    config, server_state, app_state, _loop
        As of uvicorn's protocol.

    Attributes
    ----------
    due : float
        When the caller must have sent what it is to send next.
    """

    def __init__(
        self,
        guard: Guard,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._guard = guard
        self._limits = guard.limits
        self._stage = HEAD
        self._head = 0  # bytes that came while headers were awaited
        self._body = 0  # bytes of the body that have come
        self._body_due = inf  # of a body of which nothing has come
        self._stalled = inf  # when a caller must have taken some of its answer
        self.due = inf

    @property
    def has_sent_nothing(self) -> bool:
        """Whether no whole request has come through this connection."""
        cycle: object | None = self.cycle  # None before the first request, whatever uvicorn's types say
        return self._stage == HEAD and cycle is None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        guard = self._guard
        guard.watch(self.loop, self.connections)
        self.due = guard.now + self._limits.head_seconds
        excess = len(self.connections) - self._limits.most
        if excess <= 0:
            return
        # Whoever holds connections open without using them must not keep others out.
        idle = guard.find_idle(self) if excess == 1 else None
        if idle is not None:
            guard.count("busy")
            idle.transport.abort()
            self.connections.discard(idle)
        elif excess > SPARE_CONNECTIONS:
            guard.count("busy")
            transport.abort()
        else:
            self._refuse("busy", "this server has too many connections; try again after 1 s")

    def data_received(self, data: bytes) -> None:
        """Parse what came, within the limits."""
        if self._stage == REFUSED:
            return
        if self._stage == HEAD:
            self._head += len(data)
        else:
            self._body += len(data)
            self.due = self._body_due + self._body / BODY_BYTES_PER_SECOND
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # nothing is upgraded, and the parser goes no further
        except httptools.HttpParserError:
            if self._stage != REFUSED:
                self._refuse("malformed", "this is not HTTP/1.1")
            return
        if self._stage == HEAD and self._head > self._limits.head_bytes:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin a request; its headers have to come soon."""
        super().on_message_begin()
        if self.due == inf:
            self.due = self._guard.now + self._limits.head_seconds

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; what comes behind a body (trailers) is not kept, as nobody reads it."""
        if self._stage == HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer, if headers are within their limits."""
        if self._stage == REFUSED:
            return
        # Much may have come at once, a body among it: only then are the headers themselves measured.
        if len(self.headers) > MAX_HEADERS or (
            self._head > self._limits.head_bytes and self._head_size() > self._limits.head_bytes
        ):
            self._refuse_head()
            return
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse("malformed", "too many requests were sent before the first was answered")
            return
        self._stage = BODY
        self._head = 0
        self._body = 0
        self._body_due = self.due = self._guard.now + self._limits.body_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body."""
        if self._stage == BODY:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request; from now on it is the server's turn."""
        if self._stage == BODY:
            self._stage = HEAD
            self.due = inf
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or end the connection if a body that nobody wants is on its way."""
        if self._stage == BODY and self.cycle.response_complete and not self.transport.is_closing():
            self.server_state.total_requests += 1
            self._linger()
            return
        if self.cycle.response_complete and self.cycle.body:
            self.cycle.body = bytearray()  # it was not read, and is kept until the next request otherwise
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Note that the caller has stopped reading."""
        self._stalled = self._guard.now + self._limits.stall_seconds
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the caller reads again."""
        self._stalled = inf
        super().resume_writing()

    def check_deadlines(self, now: float) -> None:
        """End the connection if its time is over."""
        if self.transport.is_closing() and self._stalled == inf:
            # The rest of the last answer is still to be taken.
            self._stalled = now + self._limits.stall_seconds
        if now >= self._stalled:
            self._guard.count("too-slow")
            self.transport.abort()
        elif now < self.due:
            return
        elif self._stage == REFUSED:
            self.transport.abort()
        elif self._head == 0 and self.has_sent_nothing:
            self.due = inf
            self.transport.close()  # browsers open connections that they never use
        elif self._stage == HEAD:
            self._refuse("too-slow", f"headers must come within {self._limits.head_seconds:g} s")
        else:
            self._refuse(
                "too-slow", f"a body must come within {self._limits.body_seconds:g} s, or 64 KiB a second"
            )

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse_head(self) -> None:
        most = self._limits.head_bytes
        self._refuse(
            "long-headers", f"headers may have {most} bytes and {MAX_HEADERS} lines; send fewer or shorter"
        )

    def _refuse(self, kind: str, detail: str) -> None:
        """Answer with a problem document, and end the connection."""
        self._guard.count(kind)
        cycle = self.cycle
        is_answering = cycle is not None and not cycle.response_complete
        if is_answering:
            is_own = self._stage == BODY and not cycle.response_started and not self.pipeline
            # Nobody waits for the application's own answer any more.
            cycle.disconnected = True
            cycle.message_event.set()
            if not is_own:
                # The answer to an earlier request is on its way: ours would be taken for that.
                self.transport.abort()
                return
        self.transport.write(write_answer(kind, detail))
        self._linger()

    def _linger(self) -> None:
        """Send the end of the answers, and discard what still arrives.

        Closing at once would make the system reset the connection, and the caller lose the answer.
        """
        self._stage = REFUSED
        self.due = self._guard.now + LINGER_SECONDS
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        if self.cycle is not None:
            self.cycle.body = bytearray()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()


def write_answer(kind: str, detail: str) -> bytes:
    """Return a problem document as a whole answer that ends its connection."""
    answer = problem(kind, detail)
    status = HTTPStatus(answer.status_code)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines.extend(name + b": " + value for name, value in answer.raw_headers)
    lines.append(b"connection: close")
    return b"\r\n".join([*lines, b"", bytes(answer.body)])
