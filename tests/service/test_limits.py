"""What is refused before a route sees it."""

import asyncio

import pytest

from orthobandit.service.http.request_checks import OWN_LIMIT, RequestChecks

JSON = [(b"content-type", b"application/json")]


def played(messages, headers=JSON, own=None, **options):
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
    if own is not None:
        scope[OWN_LIMIT] = own
    asyncio.run(RequestChecks(route, **options)(scope, receive, send))
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


def test_large_bodies_have_room_for_some_at_a_time():
    """Two bodies of 100 kB fit; a third is refused until one of them has been worked on."""
    statuses = []

    async def play():
        inside = asyncio.Event()

        async def route(scope, receive, send):
            await receive()
            await inside.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        limits = RequestChecks(route, body_limit=100_000, room=200_000)

        async def post(size):
            async def receive():
                return part(b" " * size)

            async def send(message):
                if "status" in message:
                    statuses.append((size, message["status"]))

            await limits({"type": "http", "method": "POST", "path": "/", "headers": JSON}, receive, send)

        async with asyncio.TaskGroup() as group:
            group.create_task(post(100_000))
            group.create_task(post(100_000))
            await asyncio.sleep(0)
            await post(100_000)
            group.create_task(post(1_000))  # small ones need no room
            inside.set()
        await post(100_000)

    asyncio.run(play())
    assert statuses[0] == (100_000, 503)
    assert sorted(statuses[1:]) == [(1_000, 200), *[(100_000, 200)] * 3]


def test_a_request_may_have_a_limit_of_its_own():
    assert played([part(b" " * 11)], own=10) == ([], [413])
    assert played([part(b" " * 10)], own=10) == ([b" " * 10], [200])


@pytest.mark.parametrize(
    ("host", "is_known"), [(b"[::1]:80", True), (b"here:80", True), (b"there", False), (b"", False)]
)
def test_hosts_are_compared_without_their_port(host, is_known):
    seen, statuses = played([part(b"{}")], [*JSON, (b"host", host)], hosts={"here", "[::1]"})
    assert (len(seen), statuses) == ((1, [200]) if is_known else (0, [400]))
