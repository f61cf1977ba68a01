"""The service as a process: where it listens, what it prints at the start, and how it ends."""

import asyncio
import errno
import gc
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import uvicorn

from orthobandit._foundation.checks import check_whole
from orthobandit.errors import ParameterError
from orthobandit.experiment.store.sql.dialects import address, file_of
from orthobandit.service.admin.database import make_private
from orthobandit.service.app import create_app
from orthobandit.service.http.auth import Tokens
from orthobandit.service.http.limits import BODY_LIMIT, RATE
from orthobandit.service.http.observability import configure_logging
from orthobandit.service.registry import Registry
from orthobandit.service.warm_up import Preparing

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BACKLOG = 2048  # connections that may wait
FAILED = 3  # exit code of a server that could not start
SOON = 0.2  # seconds between two looks at whether a server that warms up was told to stop
GRACE = 20  # seconds that open requests have to finish after the server was told to stop
FIRST = 10_000  # net allocations before the youngest generation is collected


def serve(
    where: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    with_tokens: bool = True,
    body_limit: int = BODY_LIMIT,
    rate: float = RATE,
    open_metrics: bool = False,
    webhooks_anywhere: bool = False,
    log: str = "none",
    say: Callable[[str], None] = print,
) -> None:
    """Serve the experiments of a database until the process is told to end (SIGTERM, Ctrl-C).

    Before it ends, open requests are answered and states are saved.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database; made if there is none.
    host, port : str, int
        Where to listen.
    with_tokens : bool
        Whether callers need a token. The first start makes one for an admin, and prints it once.
    body_limit, rate, open_metrics, webhooks_anywhere
        As for :func:`~orthobandit.service.create_app`.
    log : {"json", "text", "none"}
        What to write to stderr: a line for each request, as JSON or as text, or errors only.
    say : function
        Prints a line for whoever started the server.

    Raises
    ------
    ParameterError
        If other machines could reach a server without tokens, or the port is taken.
    """
    check_whole("port", port, least=0, most=65535)
    if host not in LOOPBACK and not with_tokens:
        raise ParameterError(
            f"host={host!r} lets other machines in, and without tokens everybody is an admin; leave"
            " --no-auth out, or listen on 127.0.0.1"
        )
    with _listen(host, port) as listener:
        make_private(where)
        first = _make_first_token(where, host) if with_tokens else None
        shown = f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        words = [f"orthobandit serves {_hide_password(where)} at http://{shown}"]
        if first is not None:
            words.append(f"token of an admin, shown only now: {first}")
        # Browsers keep what stands behind # to themselves: the token gets into no log.
        words.append(f"dashboard: http://{shown}/dashboard" + ("" if first is None else f"/login#{first}"))
        # A page of another site could otherwise reach this machine through a name of its own.
        hosts = None if with_tokens else {*LOOPBACK, "[::1]"}
        app = create_app(
            where,
            with_tokens=with_tokens,
            hosts=hosts,
            body_limit=body_limit,
            rate=rate,
            open_metrics=open_metrics,
            webhooks_anywhere=webhooks_anywhere,
        )
        configure_logging(log)
        app.state.preparing.say = say
        config = uvicorn.Config(
            app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=GRACE
        )
        server = _Server(config, app.state.preparing, partial(_say_all, say, words))
        with suppress(KeyboardInterrupt):  # raised again once the server has ended
            server.run(sockets=[listener])
    if not server.started or app.state.preparing.has_failed:
        sys.exit(FAILED)  # it has said why


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, preparing: Preparing, say: Callable[[], None]) -> None:
        super().__init__(config)
        self._preparing = preparing
        self._say = say

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, wait for the warm-up, and print the address once requests are answered."""
        await super().startup(sockets)
        while self.started and not self.should_exit and not self._preparing.is_done:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._preparing.wait(), SOON)
        if self._preparing.has_failed:
            self.should_exit = True
        elif self._preparing.is_done:
            spare_collector()
            self._say()


def _say_all(say: Callable[[str], None], lines: list[str]) -> None:
    for line in lines:
        say(line)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; connections wait in its queue until the server answers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            remedy = "another program listens there: end it, or choose another port"
        else:
            remedy = f"nothing can listen there: {error.strerror or error}"
        raise ParameterError(f"port={port} of {host}: {remedy}") from None


def _make_first_token(where: str | Path, host: str) -> str | None:
    """Make and return the first token, only on loopback: whoever started the server reads it."""
    registry = Registry(where)
    try:
        tokens = Tokens(registry)
        if host not in LOOPBACK and not tokens.all():
            raise ParameterError(
                f"host={host!r} lets other machines in, and there is no token yet; start on 127.0.0.1 first,"
                " which makes one"
            )
        return tokens.first()
    finally:
        registry.close()


def _hide_password(where: str | Path) -> str:
    """Return a file or URL without its password."""
    url = address(where)
    return str(file_of(url) or url)


def spare_collector() -> None:
    """Leave everything allocated so far out of later garbage collections.

    Packages and routes are half a million objects that live as long as the process. A full collection walks
    through all of them. That takes 0.1 s in which nobody is answered, about once a second under load.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(FIRST, *gc.get_threshold()[1:])
