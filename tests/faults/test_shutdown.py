"""A server that is told to end answers what has begun, and takes nothing new."""

import json
import os
import signal
import socket
import time
from contextlib import ExitStack, suppress
from threading import Thread

import httpx
import pytest

from experiment_samples import store_of
from orthobandit import Experiment
from service_samples import TWO, ended, ready, started


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_what_has_begun_is_answered(tmp_path, how):
    where = tmp_path / "all.db"
    process, address = started(where, "--no-auth")
    try:
        ready(address)
        httpx.post(f"{address}/v1/experiments", json=TWO)
        proposal = httpx.post(f"{address}/v1/experiments/page/ask", json={}).json()
        body = json.dumps({"id": proposal["id"], "reward": 1}).encode()
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as half:
            head = (
                f"POST /v1/experiments/page/tell HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            half.sendall(head.encode() + body[:5])
            time.sleep(0.5)  # it has begun to read
            os.kill(process.pid, how)
            while is_listening(port):
                time.sleep(0.05)
            half.sendall(body[5:])
            answer = half.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b'{"told":1}')
        assert process.wait(timeout=60) in (0, -how, 130)
    finally:
        if process.poll() is None:
            ended(process)
        else:
            process.stdout.close()
    with Experiment.open(where, name="page") as page:
        assert page.report().settled == 1
        assert store_of(page).snapshot() is not None  # its state was kept


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.slow
def test_no_peer_can_hold_the_end_up(tmp_path):
    """Half a body, a receiver that never ends its answer, and somebody who does not read theirs."""
    process, address = started(tmp_path / "all.db", "--no-auth")
    port = int(address.rpartition(":")[2])
    try:
        ready(address)
        httpx.post(f"{address}/v1/experiments", json=TWO)
        with socket.create_server(("127.0.0.1", 0)) as receiver, ExitStack() as stack:
            url = f"http://127.0.0.1:{receiver.getsockname()[1]}/"
            made = httpx.post(f"{address}/v1/webhooks", json={"url": url}).json()
            sender = {"url": f"{address}/v1/webhooks/{made['id']}/test", "json": {}, "timeout": 60}
            Thread(target=lambda: suppressed(httpx.post, **sender), daemon=True).start()
            called, _ = receiver.accept()
            stack.enter_context(called).sendall(b"HTTP/1.1 2")  # and no more
            head = "POST /v1/experiments HTTP/1.1\r\nContent-Type: application/json\r\n"
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            half.sendall(head.encode() + b"Content-Length: 9\r\n\r\n{")
            deaf = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            deaf.sendall(b"GET /openapi.json HTTP/1.1\r\n\r\n" * 16)
            time.sleep(0.5)
            begin = time.monotonic()
            os.kill(process.pid, signal.SIGTERM)
            process.wait(timeout=60)
            assert time.monotonic() < begin + 20
    finally:
        if process.poll() is None:
            ended(process, signal.SIGKILL)
        else:
            process.stdout.close()


def suppressed(function, *arguments, **options):
    with suppress(httpx.TransportError):
        function(*arguments, **options)
