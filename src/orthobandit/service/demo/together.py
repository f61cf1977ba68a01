"""A server and its made-up visitors at once, for a first look."""

import multiprocessing
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from orthobandit.errors import ParameterError, ServiceError
from orthobandit.service.client.client import Client
from orthobandit.service.demo.traffic import Traffic
from orthobandit.service.demo.visitors import Visitors
from orthobandit.service.serving import serve

HOST = "127.0.0.1"
TRIES = 60  # while the server begins


def show(
    visitors: Visitors,
    *,
    port: int = 8000,
    seconds: float | None = None,
    say: Callable[[str], None] = print,
    is_kept: bool = True,
) -> None:
    """Serve a new file, and play visitors against it until an arm is declared; then serve on.

    Parameters
    ----------
    visitors : Visitors
    port : int
        On loopback; without tokens, since nobody else can reach it.
    seconds : float, optional
        How long visitors come at most.
    say : function
        Shows a line.
    is_kept : bool
        Whether to serve on when no more visitors come, until Ctrl-C.

    Raises
    ------
    ParameterError
        If somebody else listens there: the visitors would go to them.
    """
    _check_free(port)
    with tempfile.TemporaryDirectory(prefix="orthobandit-demo-") as folder:
        where = Path(folder) / "demo.db"
        options = {"host": HOST, "port": port, "with_tokens": False, "say": _quiet}
        # Not forked: this process may have threads.
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(where,), kwargs=options)
        process.start()
        try:
            with Client(f"http://{HOST}:{port}", retries=TRIES) as client:
                say(f"dashboard: http://{HOST}:{port}/ (Ctrl-C ends it)")
                Traffic(client, visitors, say=say).play(seconds)
            if is_kept:
                say(f"the server goes on at http://{HOST}:{port}/ until Ctrl-C")
                process.join()
                raise ServiceError(f"the server ended by itself, with code {process.exitcode}")
        finally:
            process.terminate()
            process.join()


def _check_free(port: int) -> None:
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise ParameterError(f"port={port!r} is taken ({error.strerror}); give another") from None


def _quiet(_: str) -> None:
    """Say nothing: what the server says is said here."""
