"""Clients say what `Experiment` would, and send again what was lost."""

import asyncio
import pickle

import httpx
import pytest

from orthobandit.errors import (
    ClosedError,
    ConflictError,
    ExperimentExistsError,
    InputError,
    RewardError,
    ServiceError,
    UnknownExperimentError,
    UnknownProposalError,
)
from orthobandit.service import AsyncClient, Client, create_app
from orthobandit.verify import verify
from service_samples import TWO, running, token_of


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    where = tmp_path_factory.mktemp("service") / "all.db"
    with running(create_app(where)) as address:
        yield address, token_of(where)


@pytest.fixture(scope="module")
def client(place):
    with Client(*place) as made:
        made.create(**TWO)
        yield made


def test_a_client_does_what_an_experiment_does(client):
    made = client.create("whole", ["a", "b/c"], rewards=[0, 1], window="7d", metrics=[{"name": "seconds"}])
    assert (made["key"], made["status"]) == ("whole", "open")
    one = client.ask("whole", unit="ann", available=["a"])
    assert (one.id, one.label, one.probabilities.tolist(), one.held) == (1, "a", [1.0, 0.0], False)
    client.tell("whole", 1, {"reward": 1, "seconds": 0.5})
    two = client.ask_many("whole", 2)
    client.tell_many("whole", [one.id for one in two], {"reward": [0, 1], "seconds": [1, 2]})
    assert client.report("whole")["settled"] == 3
    assert [one.id for one in client.ask_many("whole", units=["ann", "bob"])] == [1, 4]
    assert client.add_arms("whole", ["d"])["arms"] == ["a", "b/c", "d"]
    assert client.retire("whole", "b/c")["retired"] == ["b/c"]
    assert client.pause("whole")["status"] == "paused"
    assert client.resume("whole")["status"] == "open"
    assert client.stop("whole", "enough")["status"] == "stopped"
    assert client.experiment("whole")["proposals"] == 4
    assert verify(client.certificate("whole")).valid
    assert client.experiments() == ["page", "whole"]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda c: c.create("page", ["x", "y"], rewards=[0, 1]),
            ExperimentExistsError,
            "there is already an experiment 'page'",
        ),
        (lambda c: c.ask("nobody"), UnknownExperimentError, "there is no experiment 'nobody'"),
        (lambda c: c.tell("page", 99, 1.0), UnknownProposalError, "proposal 99 was never asked for"),
        (lambda c: c.tell("page", 1, 7.0), RewardError, "must be a finite number in the declared range"),
        (lambda c: c.create("q", ["x", "y"], rewards=[0, 1], holdout="all"), InputError, "#/holdout"),
        (lambda c: c.create("q", ["x", "y"]), InputError, r"#/rewards: .*\(low, high\).*'unknown'"),
    ],
)
def test_errors_are_those_of_experiments_in_the_same_words(client, call, error, words):
    client.ask("page", unit="ann")
    with pytest.raises(error, match=words):
        call(client)


def test_conflicts_and_closed_experiments_have_their_errors(client):
    client.create("closed", ["x", "y"], rewards="unknown")
    client.tell("closed", client.ask("closed").id, 1.0)
    with pytest.raises(ConflictError, match="the first value is final"):
        client.tell("closed", 1, 2.0)
    client.pause("closed")
    with pytest.raises(ClosedError, match="the experiment is paused"):
        client.ask("closed")


def test_a_wrong_token_is_a_service_error_with_its_status(place):
    with Client(place[0], "ob_x_y") as client, pytest.raises(ServiceError, match="token") as caught:
        client.experiments()
    assert (caught.value.status, caught.value.kind) == (401, "unauthenticated")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.status, again.kind) == (str(caught.value), 401, "unauthenticated")


def test_a_server_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with (
        Client("http://127.0.0.1:9", retries=2) as client,
        pytest.raises(
            ServiceError, match=r"http://127\.0\.0\.1:9 could not be reached in 3 tries: .*running"
        ),
    ):
        client.experiments()


class Flaky(httpx.HTTPTransport):
    """Loses answers, or is busy, a few times before it goes well."""

    def __init__(self, trouble):
        super().__init__()
        self.trouble, self.keys = list(trouble), []

    def handle_request(self, request):
        self.keys.append(request.headers.get("idempotency-key"))
        trouble = self.trouble.pop(0) if self.trouble else None
        if isinstance(trouble, int):
            return httpx.Response(trouble, text="busy")
        response = super().handle_request(request)
        if trouble is not None:
            response.read()
            raise trouble
        return response


def flaky(place, trouble, **options):
    client = Client(*place, **options)
    client._http._mounts = {}
    client._http._transport = Flaky(trouble)
    return client


def test_a_lost_answer_is_asked_for_again_and_nothing_is_done_twice(place, client, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    client.create("lossy", ["x", "y"], rewards=[0, 10], window="7d", add=True)
    lossy = flaky(place, [httpx.ReadError("gone"), 503, httpx.ReadTimeout("slow")])
    assert lossy.ask("lossy").id == 1
    assert client.report("lossy")["proposals"] == 1
    lossy._http._transport.trouble = [httpx.ReadError("gone")]
    lossy.tell("lossy", 1, 7.0)
    lossy.tell("lossy", 1, 3.0)  # with another key it adds up, to the most that is allowed
    with pytest.raises(RewardError, match=r"reward=10\.5"):
        lossy.tell("lossy", 1, 0.5)
    keys = lossy._http._transport.keys
    assert len(set(keys[:4])) == 1
    assert len(set(keys)) == 4
    lossy.close()


def test_a_busy_server_is_given_up_on_in_the_end(place, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    with flaky(place, [503] * 3, retries=2) as client, pytest.raises(ServiceError, match="503: 'busy'"):
        client.experiments()


def test_coroutines_do_the_same(place, client):
    client.create("async", ["x", "y"], rewards=[0, 1])

    async def play():
        async with AsyncClient(*place) as made:
            await made.create("async-too", ["x", "y"], rewards="unknown")
            proposals = await asyncio.gather(*(made.ask("async", unit=f"u{n}") for n in range(20)))
            await asyncio.gather(*(made.tell("async", one.id, 1.0) for one in proposals))
            many = await made.ask_many("async", 2)
            await made.tell_many("async", [one.id for one in many], [0, 1])
            with pytest.raises(UnknownExperimentError, match="'nobody'"):
                await made.ask("nobody")
            return await made.report("async"), await made.experiment("async-too")

    report, other = asyncio.run(play())
    assert (report["proposals"], report["settled"], other["key"]) == (22, 22, "async-too")


def test_coroutines_give_up_on_a_server_that_is_not_there():
    async def play():
        async with AsyncClient("http://127.0.0.1:9", retries=0) as made:
            await made.report("page")

    with pytest.raises(ServiceError, match="could not be reached in 1 tries"):
        asyncio.run(play())
