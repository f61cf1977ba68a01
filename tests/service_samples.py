"""A server on loopback for tests, in a thread or in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from threading import Thread

import httpx
import uvicorn

from inside.service import Registry, Tokens, prepare
from orthobandit.service import create_app

TWO = {"key": "page", "arms": ["old", "new"], "rewards": [0, 1]}


def token_of(where, role="admin"):
    registry = Registry(where)
    try:
        return Tokens(registry).make(role)[1]
    finally:
        registry.close()


@contextmanager
def running(app):
    """Serve an application on a free port of loopback; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def served(where, role="admin", **options):
    """Serve a database; yields an HTTP client with a token of this role."""
    prepare()  # so that it is ready at once
    headers = {"Authorization": f"Bearer {token_of(where, role)}"} if role else {}
    with (
        running(create_app(where, **options)) as address,
        httpx.Client(base_url=address, headers=headers, timeout=60) as client,
    ):
        yield client


def is_problem(response, status, kind):
    """Tell whether an answer is a whole problem document of this kind."""
    if response.headers["content-type"] != "application/problem+json":
        return False
    data = response.json()
    return (
        response.status_code == data["status"] == status
        and data["type"] == f"urn:orthobandit:problem:{kind}"
        and bool(data["title"])
        and bool(data["detail"])
    )


def started(where, *arguments, port=None):
    """Start `orthobandit serve` as a process; returns it and its address, where it will answer."""
    prepare()  # so that what is compiled is in its cache, and the process answers soon
    if port is None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
    script = "import sys; from orthobandit.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "serve", "--db", str(where), "--port", str(port), *arguments]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return process, f"http://127.0.0.1:{port}"


def ready(address):
    """Wait until the server answers."""
    for _ in range(600):
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{address} does not answer")


def ended(process, how=signal.SIGTERM):
    """End a process that was started here; returns its exit code."""
    os.kill(process.pid, how)
    code = process.wait(timeout=60)
    process.stdout.close()
    return code
