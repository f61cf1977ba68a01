"""The service as a process: where it listens, what it says at the start, and how it ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn

from orthobandit._checks import check_whole
from orthobandit.errors import ParameterError
from orthobandit.experiment.store.dialects import address, file_of
from orthobandit.service.app import create_app
from orthobandit.service.auth import Tokens
from orthobandit.service.registry import Registry
from orthobandit.service.request_log import configure

LOOPBACK = ("127.0.0.1", "::1", "localhost")
GRACE = 20  # seconds that requests have to end after the server was told to


def serve(
    where: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    with_tokens: bool = True,
    log: str = "none",
    say: Callable[[str], None] = print,
    **options: Any,
) -> None:
    """Serve the experiments of a database until the process is told to end (SIGTERM, Ctrl-C).

    Requests that have begun are answered, and states are kept, before it ends.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database; made if there is none.
    host, port : str, int
        Where to listen.
    with_tokens : bool
        Whether callers need a token. The first start makes one for an admin, and says it once.
    log : {"json", "text", "none"}
        What is written to stderr: a line of each request, for machines or for people, or errors alone.
    say : function
        Shows a line to whoever started the server.
    **options
        As for :func:`~orthobandit.service.create_app`.

    Raises
    ------
    ParameterError
        If others than this machine could reach a server without tokens.
    """
    check_whole("port", port, least=0, most=65535)
    if host not in LOOPBACK and not with_tokens:
        raise ParameterError(
            f"host={host!r} lets other machines in, and without tokens everybody is an admin; leave"
            " --no-auth out, or listen on 127.0.0.1"
        )
    first = _first_token(where, host) if with_tokens else None
    shown = f"[{host}]" if ":" in host else host
    say(f"orthobandit serves {_named(where)} at http://{shown}:{port}")
    if first is not None:
        say(f"token of an admin, shown only now: {first}")
    # Browsers keep what stands behind # to themselves: the token gets into no log.
    say(f"dashboard: http://{shown}:{port}/dashboard" + ("" if first is None else f"/login#{first}"))
    # A page of another site could otherwise reach this machine through a name of its own.
    hosts = None if with_tokens else {*LOOPBACK, "[::1]"}
    app = create_app(where, with_tokens=with_tokens, hosts=hosts, **options)
    configure(log)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )


def _first_token(where: str | Path, host: str) -> str | None:
    """Make the first token, on this machine only: it goes to whoever started the server."""
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


def _named(where: str | Path) -> str:
    """Return a file or URL without its password."""
    url = address(where)
    return str(file_of(url) or url)
