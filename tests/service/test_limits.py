"""What is refused before a route sees it."""

import asyncio

import pytest

from orthobandit.service.http.limits import Limits

JSON = [(b"content-type", b"application/json")]


def played(messages, headers=JSON, **options):
    """Send messages of a caller; return the bodies that a route saw, and what was answered."""
    seen, answers, left = [], [], list(messages)

    async def route(scope, receive, send):
        seen.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive():
        return left.pop(0)

    async def send(message):
        answers.append(message.get("status"))

    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    asyncio.run(Limits(route, **options)(scope, receive, send))
    return seen, [status for status in answers if status]


def part(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_body_in_parts_is_put_together():
    assert played([part(b"{", True), part(b"}")]) == ([b"{}"], [200])


def test_half_a_body_is_no_request():
    gone = {"type": "http.disconnect"}
    assert played([part(b'{"id": 1, "reward": 1}', True), gone]) == ([], [])


@pytest.mark.parametrize("size", [9, 10, 11])
def test_the_limit_is_exact(size):
    wanted = ([b" " * size], [200]) if size <= 10 else ([], [413])
    assert played([part(b" " * size)], body_limit=10) == wanted


def test_a_length_that_is_said_is_not_waited_for():
    assert played([], [*JSON, (b"content-length", b"11")], body_limit=10) == ([], [413])


@pytest.mark.parametrize(
    ("host", "is_known"), [(b"[::1]:80", True), (b"here:80", True), (b"there", False), (b"", False)]
)
def test_hosts_are_compared_without_their_port(host, is_known):
    seen, statuses = played([part(b"{}")], [*JSON, (b"host", host)], hosts={"here", "[::1]"})
    assert (len(seen), statuses) == ((1, [200]) if is_known else (0, [400]))
