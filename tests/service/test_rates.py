"""Requests that come too fast: 429 and when to try again, each token and address for itself."""

import asyncio

import pytest

from orthobandit.cli import main
from orthobandit.service.http.limits import FIRST_GUESSES, STRANGERS, Pace, Rates
from service_samples import TWO, is_problem, served


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
    """An application that knows one token, behind a limit and a clock of ours."""

    def __init__(self, **options):
        self.now, self.seen = 100.0, 0
        self.rates = Rates(self, clock=lambda: self.now, **options)

    async def __call__(self, scope, _, send):
        self.seen += 1
        headers = dict(scope["headers"])
        status = 200 if headers.get(b"authorization", b"Bearer good") == b"Bearer good" else 401
        await send({"type": "http.response.start", "status": status, "headers": []})

    def get(self, **given):
        return played(self.rates, **given)


def test_a_token_has_its_rate_and_its_burst():
    server = Server(rate=2.0)
    server.get(headers=bearer(b"good"))  # known from now on
    assert [server.get(headers=bearer(b"good"))[0] for _ in range(4)] == [200] * 4
    assert server.get(headers=bearer(b"good")) == (429, b"1")
    server.now += 0.5
    assert server.get(headers=bearer(b"good"))[0] == 200
    assert server.get(headers=bearer(b"good"))[0] == 429
    assert server.seen == 6


def test_strangers_have_less_and_do_not_use_up_what_tokens_have():
    server = Server(rate=1e6)
    server.get(headers=bearer(b"good"))
    statuses = [server.get()[0] for _ in range(int(2 * STRANGERS) + 5)]
    assert statuses.count(429) == 6  # with the token's first request
    assert server.get(headers=bearer(b"good"))[0] == 200
    assert server.get(client=("10.0.0.2", 1))[0] == 200


def test_who_guesses_tokens_is_soon_refused():
    server = Server(rate=1e6)
    for number in range(FIRST_GUESSES):
        assert server.get(headers=bearer(b"%d" % number))[0] == 401
    seen = server.seen
    assert server.get(headers=bearer(b"another")) == (429, b"6")
    assert server.get(headers=bearer(b"good")) == (429, b"6")  # nobody can tell it from a guess
    assert server.seen == seen
    assert server.get(headers=bearer(b"good"), client=("10.0.0.2", 1))[0] == 200
    server.now += 6.1
    assert server.get(headers=bearer(b"good"))[0] == 200
    assert server.get(headers=bearer(b"wrong"))[0] == 401
    assert server.get(headers=bearer(b"wrong"))[0] == 429
    assert server.get(headers=bearer(b"good"))[0] == 200  # proven before


def test_forms_with_wrong_tokens_are_guesses_as_well():
    class Strict(Server):
        async def __call__(self, _scope, _receive, send):
            await send({"type": "http.response.start", "status": 401, "headers": []})

    server = Strict(rate=1e6)
    assert [server.get(method="POST", path="/login")[0] for _ in range(FIRST_GUESSES)] == [
        401
    ] * FIRST_GUESSES
    assert server.get(method="POST", path="/login")[0] == 429
    assert server.get(method="GET", path="/login")[0] == 401


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
