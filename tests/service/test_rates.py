"""Requests that come too fast: 429 and when to try again, each token and address for itself."""

import asyncio
import re
import time
from secrets import token_hex
from threading import Thread
from types import SimpleNamespace

import httpx
import pytest
import sqlalchemy as sa

from inside.service import Registry, Tokens, prepare
from orthobandit.cli import main
from orthobandit.service import create_app
from orthobandit.service.http.admission import Admission, Pace
from orthobandit.service.http.auth import FRESH_SECONDS
from orthobandit.service.http.limits import STRANGER_RATE, WRONG_TOKEN_BURST
from service_samples import TWO, is_problem, running, served, token_of


def played(rates, **given):
    """Send a request; return the status, and after how many seconds to try again."""
    answers = []

    async def send(message):
        answers.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("10.0.0.1", 1), **given}
    asyncio.run(rates(scope, None, send))
    headers = dict(answers[0]["headers"])
    return answers[0]["status"], headers.get(b"retry-after")


def bearer(text):
    return [(b"authorization", b"Bearer " + text)]


class Server:
    """An application whose pages anybody may see, behind limits, a clock of ours, and one good token."""

    def __init__(self, with_tokens=True, **options):
        self.now = 100.0
        self.seen = 0
        self.looked_up = 0
        self.rates = Admission(self, clock=lambda: self.now, **options)
        preparing = SimpleNamespace(is_done=True)
        self.state = SimpleNamespace(tokens=self if with_tokens else None, preparing=preparing)

    def remembered(self, _text):
        return None  # as if every token had to be looked up each time

    async def find(self, text):
        self.looked_up += 1
        return await self.find_listed(text)

    async def find_listed(self, text):
        return SimpleNamespace(id="1", role="admin") if text == "good" else None

    async def __call__(self, _scope, _receive, send):
        self.seen += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})

    def get(self, **given):
        return played(self.rates, app=self, **given)


def test_a_token_has_its_rate_and_its_burst():
    server = Server(rate=2.0)
    assert [server.get(headers=bearer(b"good"))[0] for _ in range(4)] == [200] * 4
    assert server.get(headers=bearer(b"good")) == (429, b"1")
    server.now += 0.5
    assert server.get(headers=bearer(b"good"))[0] == 200
    assert server.get(headers=bearer(b"good"))[0] == 429
    assert server.seen == 5


def test_strangers_have_less_and_do_not_use_up_what_tokens_have():
    server = Server(rate=1e6)
    statuses = [server.get()[0] for _ in range(int(2 * STRANGER_RATE) + 5)]
    assert statuses.count(429) == 5
    assert server.get(headers=bearer(b"good"))[0] == 200
    assert server.get(client=("10.0.0.2", 1))[0] == 200
    assert server.get(path="/readyz")[0] == 200  # a balancer may come from the same address


@pytest.mark.parametrize("path", ["/edge.js", "/ofrep/v1/evaluate/flags/page", "/v1/experiments", "/nothing"])
def test_who_guesses_tokens_is_soon_refused(path):
    server = Server(rate=1e6)
    for number in range(WRONG_TOKEN_BURST):
        assert server.get(path=path, headers=bearer(b"%d" % number))[0] == 200  # whatever the route answers
    looked_up = server.looked_up
    assert server.get(path=path, headers=bearer(b"another")) == (429, b"6")
    assert server.get(headers=bearer(b"good"))[0] == 200  # never seen before, and no guess
    assert server.looked_up == looked_up  # no wrong token costs a look into the database any more
    assert server.get(headers=bearer(b"wrong"), client=("10.0.0.2", 1))[0] == 200
    server.now += 6.0  # after which there is one guess more
    assert [server.get(headers=bearer(b"%d" % number))[0] for number in range(3)] == [200, 429, 429]
    assert server.get(headers=bearer(b"good"))[0] == 200


def test_a_wrong_token_has_no_more_than_strangers_have():
    server = Server(rate=1e6)
    server.rates._guesses = Pace(1e9, 1e9)
    statuses = [server.get(headers=bearer(b"%d" % number))[0] for number in range(int(2 * STRANGER_RATE) + 5)]
    assert statuses.count(429) == 5


def test_forms_with_wrong_tokens_are_guesses_as_well():
    class Strict(Server):
        status = 401

        async def __call__(self, _scope, _receive, send):
            await send({"type": "http.response.start", "status": self.status, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    server = Strict(rate=1e6)
    login = {"path": "/dashboard/login", "headers": [(b"content-length", b"99")]}
    assert [server.get(method="POST", **login)[0] for _ in range(WRONG_TOKEN_BURST)] == [
        401
    ] * WRONG_TOKEN_BURST
    assert server.get(method="POST", **login) == (429, b"6")
    assert server.get(method="GET", **login)[0] == 401
    server.status = 303
    assert server.get(method="POST", **login)[0] == 303  # the right token, from the same address


def test_what_a_stranger_posts_is_not_read():
    server = Server(rate=1e6)
    assert server.get(method="POST", path="/v1/experiments")[0] == 401  # `receive` is None here
    assert server.get(method="PUT", path="/nothing")[0] == 401
    assert server.seen == 0


def test_requests_in_progress_are_counted():
    inside = []

    class Nested(Server):
        async def __call__(self, _scope, _receive, send):
            if len(inside) < 3:
                inside.append(len(inside))
                answers = []

                async def note(message):
                    answers.append(message)

                scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "app": self}
                await self.rates(scope, None, note)
                inside.append((answers[0]["status"], dict(answers[0]["headers"]).get(b"retry-after")))
            await send({"type": "http.response.start", "status": 200, "headers": []})

    server = Nested(rate=1e6, most_requests=2)
    assert server.get()[0] == 200
    assert inside == [0, 1, (503, b"1"), (200, None)]  # the third is one too many
    assert server.get()[0] == 200  # and all have ended


def test_one_network_of_ipv6_is_one_address():
    server = Server(rate=1.0, with_tokens=False)
    assert [server.get(client=(f"2001:db8::{n}", 1))[0] for n in range(3)] == [200, 200, 429]
    assert server.get(client=("2001:db8:0:1::1", 1))[0] == 200


def test_memory_is_bounded():
    pace = Pace(rate=1.0, burst=2.0, most=10)
    for number in range(1000):
        assert pace.wait(str(number), 0.0) == 0.0
    assert len(pace._full) <= 10
    assert pace.wait("999", 0.0) == 0.0
    assert pace.wait("999", 0.0) == 1.0  # the newest are remembered


def test_no_more_than_the_rate_over_any_time():
    pace, taken = Pace(rate=5.0, burst=10.0), 0
    for step in range(2000):
        taken += pace.wait("ann", step / 100) == 0.0
    assert taken == 10 + 5 * 20 - 1


def test_a_server_refuses_with_a_problem_document(tmp_path):
    with served(tmp_path / "all.db", rate=1.0) as http:
        answers = [http.get("/v1/experiments") for _ in range(5)]
        refused = answers[-1]
        assert is_problem(refused, 429, "too-many")
        assert refused.headers["retry-after"] == "1"
        assert "x-request-id" in refused.headers
        assert refused.headers["x-content-type-options"] == "nosniff"
    with served(tmp_path / "all.db", rate=0) as http:
        assert http.post("/v1/experiments", json=TWO).status_code == 201
        assert {http.get("/v1/experiments").status_code for _ in range(50)} == {200}


def test_a_negative_rate_is_refused(tmp_path, capsys):
    assert main(["serve", "--db", str(tmp_path / "all.db"), "--rate", "-1"]) == 2
    assert "--rate -1.0 must be" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        Pace(rate=0.0, burst=1.0)


def test_a_pause_earns_no_more_than_a_burst():
    pace = Pace(rate=2.0, burst=3)
    assert pace.wait("ann", 0.0) == 0.0
    assert [pace.wait("ann", 1000.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


def flood(address, seconds, statuses):
    """Send a wrong token after the other, each another one."""
    with httpx.Client(base_url=address, timeout=60) as http:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            wrong = {"Authorization": f"Bearer ob_{token_hex(6)}_{token_hex(32)}"}
            statuses.append(http.get("/v1/experiments", headers=wrong).status_code)


@pytest.mark.parametrize("login", [False, True], ids=["header", "form"])
def test_a_valid_token_is_answered_while_others_at_its_address_send_wrong_ones(tmp_path, login):
    where = tmp_path / "all.db"
    valid = [token_of(where) for _ in range(3)]  # which this server has never seen
    prepare()
    statuses = []
    with running(create_app(where)) as address:
        threads = [Thread(target=flood, args=(address, 3.0, statuses)) for _ in range(2)]
        for thread in threads:
            thread.start()
        while 429 not in statuses:
            time.sleep(0.01)
        answers = []
        with httpx.Client(base_url=address, timeout=60) as http:
            while any(thread.is_alive() for thread in threads):
                token = valid[len(answers) % len(valid)]
                if login:
                    http.cookies.clear()
                    form = re.search(r'name="form_token" value="(\w+)"', http.get("/dashboard/login").text)
                    answer = http.post("/dashboard/login", data={"form_token": form[1], "token": token})
                else:
                    answer = http.get("/v1/experiments", headers={"Authorization": f"Bearer {token}"})
                answers.append(answer.status_code)
                time.sleep(0.05)
        for thread in threads:
            thread.join()
    assert len(answers) > 5
    assert set(answers) == {303 if login else 200}
    # One guess in six seconds after the first twenty: all others are refused.
    assert WRONG_TOKEN_BURST <= statuses.count(401) <= WRONG_TOKEN_BURST + 2
    assert set(statuses) == {401, 429}


def test_wrong_tokens_cost_one_look_into_the_database_in_five_seconds(tmp_path):
    where = tmp_path / "all.db"
    text = token_of(where)
    now = [0.0]
    registry = Registry(where)
    tokens = Tokens(registry, lambda: now[0])
    read = []
    sa.event.listen(sa.Engine, "before_cursor_execute", lambda *given: read.append(given[2]))

    async def tried(count):
        texts = [text, *(f"ob_{token_hex(6)}_{token_hex(32)}" for _ in range(count)), "nonsense", ""]
        return await asyncio.gather(*map(tokens.find_listed, texts))

    try:
        for _ in range(3):
            del read[:]
            for _ in range(2):
                found, *others = asyncio.run(tried(500))
                assert found.role == "admin"
                assert others == [None] * 502
            assert len([one for one in read if "tokens" in one]) == 1
            now[0] += FRESH_SECONDS
        tokens.make("read")
        tokens.make("admin")
        tokens.revoke(found.id)
        assert asyncio.run(tokens.find_listed(text)) is None
    finally:
        registry.close()
