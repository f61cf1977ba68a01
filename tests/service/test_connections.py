"""Connections of strangers: long headers, slow ones, too many, and bodies that nobody asked for."""

import json
import socket
import time
from contextlib import ExitStack, contextmanager
from threading import Thread

import pytest
import uvicorn

from orthobandit.service import create_app
from orthobandit.service.http.connections import Guard
from orthobandit.service.http.limits import MAX_HEADERS, MAX_PIPELINED, ConnectionLimits
from orthobandit.service.warm_up import prepare
from service_samples import token_of

SHORT = ConnectionLimits(most=20, head_seconds=0.5, body_seconds=0.5, stall_seconds=0.5)
POST = b"POST /v1/experiments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


class Running:
    """A server whose limits are short, and what was refused by it."""

    def __init__(self, port, guard, token):
        self.port = port
        self.guard = guard
        self.token = token

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def send(self, data):
        """Send something and return everything that comes back until the server ends the connection."""
        with self.connect() as one:
            one.sendall(data)
            return read_all(one)


@contextmanager
def guarded(where, limits=SHORT, **options):
    prepare()
    guard = Guard(limits)
    app = create_app(where, **options)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        config = uvicorn.Config(app, http=guard.make_protocol, log_level="critical", ws="none")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Running(listener.getsockname()[1], guard, token_of(where).encode())
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("guarded") / "all.db") as running:
        yield running


def read_all(one):
    found = b""
    while part := one.recv(2**16):
        found += part
    return found


def is_cut_off(one, data):
    """Send data again and again for at most 15 s; tell whether the server has reset the connection."""
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            if data:
                one.sendall(data)
                time.sleep(0.02)
            elif one.recv(2**16) == b"":
                return True
        except OSError:
            return True
    return False


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


def kind_of(answer):
    """Return the kind of problem of an answer, which has to be whole."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower()
    return json.loads(body)["type"].rpartition(":")[2]


ALIVE = b'{"status":"alive"}'


def alive_from(one):
    """Return the answer of a server that is alive, which may come in parts."""
    answer = b""
    while ALIVE not in answer:
        part = one.recv(2**16)
        assert part, f"the connection was closed after {answer!r}"
        answer += part
    return answer


def test_requests_within_the_limits_are_answered(server):
    with server.connect() as one:
        for _ in range(3):  # on one connection
            one.sendall(GET + b"\r\n")
            assert status_of(alive_from(one)) == 200
        one.sendall(GET + b"X: " + b"a" * 30_000 + b"\r\n\r\n")
        assert status_of(alive_from(one)) == 200
        half = GET + b"Y: b\r\n"
        one.sendall(half[:20])
        time.sleep(0.1)
        one.sendall(half[20:] + b"\r\n")
        assert status_of(alive_from(one)) == 200


@pytest.mark.parametrize(
    "long",
    [
        b"X: " + b"a" * 2_000_000,
        b"X: " + b"a" * 40_000 + b"\r\n\r\n",
        b"".join(b"X%d: a\r\n" % number for number in range(MAX_HEADERS + 1)) + b"\r\n",
    ],
    ids=["one that never ends", "one that does", "many"],
)
def test_long_headers_are_431(server, long):
    answer = server.send(GET + long)
    assert status_of(answer) == 431
    assert kind_of(answer) == "long-headers"


def test_a_long_path_is_431_as_well(server):
    assert status_of(server.send(b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n")) == 431


def test_what_is_not_http_is_a_problem_document(server):
    assert kind_of(server.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")) == "malformed"


def test_an_upgrade_is_answered_as_any_request(server):
    answer = server.send(GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert status_of(answer) == 200
    assert b"connection: close" in answer


def test_slow_headers_and_silent_connections_are_closed(server):
    with ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(10)]
        silent = stack.enter_context(server.connect())
        for one in slow:
            one.sendall(GET)
        assert [kind_of(read_all(one)) for one in slow] == ["too-slow"] * 10
        assert read_all(silent) == b""


def test_headers_that_dribble_are_closed(server):
    with server.connect() as one:
        one.settimeout(0.1)
        answer = b""
        for _ in range(100):  # ten seconds, if nobody closes it
            try:
                one.sendall(b"G"[: not answer])
                answer += one.recv(2**16)
                break
            except TimeoutError:
                pass
    assert kind_of(answer) in ("too-slow", "malformed")


def test_the_second_request_of_a_connection_has_its_deadline_too(server):
    with server.connect() as one:
        one.sendall(GET + b"\r\n" + GET)  # half of the next comes with the first
        assert status_of(one.recv(2**16)) == 200
        assert kind_of(read_all(one)) == "too-slow"


def test_slow_bodies_are_closed(server):
    head = POST + b"Authorization: Bearer " + server.token + b"\r\nContent-Length: 100\r\n\r\n"
    answer = server.send(head + b"{")
    assert kind_of(answer) == "too-slow"
    assert status_of(answer) == 408


def test_a_stranger_is_refused_before_the_body(server):
    with server.connect() as one:
        one.sendall(POST + b"Content-Length: 8000000\r\n\r\n")
        answer = one.recv(2**16)  # though nothing of it was sent
        assert status_of(answer) == 401
        one.sendall(b" " * 8_000_000)  # is thrown away
        assert read_all(one) == b""


@pytest.mark.slow
def test_a_stranger_who_sends_in_pieces_for_ever_is_closed(server):
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with server.connect() as one:
        one.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        assert is_cut_off(one, chunk)


def test_trailers_are_not_kept(server):
    head = POST + b"Authorization: Bearer " + server.token + b"\r\nConnection: close\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    trailers = b"".join(b"T%d: x\r\n" % number for number in range(1000))
    assert status_of(server.send(head + body + trailers + b"\r\n")) == 422


def test_few_requests_may_be_sent_at_once(server):
    with server.connect() as one:
        one.sendall((GET + b"\r\n") * MAX_PIPELINED)
        found = b""
        while found.count(b"alive") < MAX_PIPELINED:
            found += one.recv(2**16)
    with server.connect() as one:
        one.sendall((GET + b"\r\n") * 200)
        assert is_cut_off(one, b"")
        assert server.guard.refused["malformed"] >= 1


@pytest.mark.slow
def test_who_takes_nothing_is_cut_off(server):
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with server.connect() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert is_cut_off(one, request)  # and never reads


def test_idle_connections_make_room_for_others(server):
    with ExitStack() as stack:
        for _ in range(SHORT.most + 10):
            stack.enter_context(server.connect())
        one = stack.enter_context(server.connect())
        one.sendall(GET + b"\r\n")
        assert status_of(one.recv(2**16)) == 200


def test_connections_in_use_make_no_room(tmp_path):
    limits = SHORT._replace(head_seconds=5.0)
    with guarded(tmp_path / "all.db", limits) as server, ExitStack() as stack:
        for _ in range(limits.most):
            one = stack.enter_context(server.connect())
            one.sendall(GET + b"\r\n")
            assert status_of(one.recv(2**16)) == 200
        answer = server.send(GET + b"\r\n")
        assert status_of(answer) == 503
        assert kind_of(answer) == "busy"
        assert b"retry-after: 1\r\n" in answer
        assert server.guard.refused["busy"] == 1
