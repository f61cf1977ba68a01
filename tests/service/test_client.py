"""Clients say what `Experiment` would, and send again what was lost; one suite for both of them."""

import asyncio
import inspect
import pickle
from contextlib import contextmanager

import httpx
import pytest

from blocking import Blocking
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
from orthobandit.service.api import edge, experiments, reports, shared
from orthobandit.service.client import data as client_data
from orthobandit.verify import verify
from service_samples import TWO, running, token_of


@contextmanager
def _opened(kind, *arguments, **options):
    """Give a client, or what waits for the coroutines of one."""
    if kind is Client:
        with Client(*arguments, **options) as made:
            yield made
        return
    with asyncio.Runner() as runner:
        made = Blocking(AsyncClient(*arguments, **options), runner)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module", params=[Client, AsyncClient], ids=["threads", "coroutines"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def place(kind, tmp_path_factory):
    where = tmp_path_factory.mktemp("service") / "all.db"
    with running(create_app(where)) as address:
        yield address, token_of(where)


@pytest.fixture(scope="module")
def client(kind, place):
    with _opened(kind, *place) as made:
        made.create(**TWO)
        yield made


@pytest.fixture
def unhurried(monkeypatch):
    """Let nobody wait before a request is sent again."""
    monkeypatch.setattr(Client, "_pause", lambda *_: 0.0)
    monkeypatch.setattr(AsyncClient, "_pause", lambda *_: 0.0)


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


def test_a_program_that_is_started_again_creates_the_same_experiment_or_hears_what_differs(client):
    for _ in range(2):
        made = client.create("again", ["x", "y"], rewards=[0, 1], window="7d")
        client.ask("again", unit="ann")
    assert made["proposals"] == 1
    words = (
        "there is already an experiment 'again', with other settings: window is 604800.0 there and 60.0 here;"
    )
    with pytest.raises(ExperimentExistsError, match=words):
        client.create("again", ["x", "y"], rewards=[0, 1], window="60 s")
    with pytest.raises(ExperimentExistsError, match="arms are 'x', 'y' there and 'x', 'z' here"):
        client.create("again", ["x", "z"], rewards=[0, 1], window="7d")
    client.add_arms("again", ["z"])
    assert client.create("again", ["x", "y", "z"], rewards=[0, 1], window="7d")["arms"] == ["x", "y", "z"]


def test_refused_rewards_are_those_of_experiments(client):
    client.create("batches", ["x", "y"], rewards=[0, 1])
    client.ask_many("batches", 3)
    assert client.tell_many("batches", [1], [1.0]) == ()
    refused = client.tell_many("batches", [1, 99, 2, 3], {"reward": [0.0, 1.0, 1.0, 7.0]})
    assert [(one.index, one.metric, type(one.error)) for one in refused] == [
        (0, "reward", ConflictError),
        (1, None, UnknownProposalError),
        (3, "reward", RewardError),
    ]
    assert "told 1 for 'reward' before, now 0" in str(refused[0].error)
    assert client.report("batches")["refused"] == {"conflict": 1, "unknown": 1, "invalid": 1}


def test_conflicts_and_closed_experiments_have_their_errors(client):
    client.create("closed", ["x", "y"], rewards="unknown")
    client.tell("closed", client.ask("closed").id, 1.0)
    with pytest.raises(ConflictError, match="the first value is final"):
        client.tell("closed", 1, 2.0)
    client.pause("closed")
    with pytest.raises(ClosedError, match="the experiment is paused"):
        client.ask("closed")


def test_a_wrong_token_is_a_service_error_with_its_status(kind, place):
    with _opened(kind, place[0], "ob_x_y") as client, pytest.raises(ServiceError, match="token") as caught:
        client.experiments()
    assert (caught.value.status, caught.value.kind) == (401, "unauthenticated")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.status, again.kind) == (str(caught.value), 401, "unauthenticated")


def test_a_server_that_is_not_there_is_named(kind, unhurried):
    with (
        _opened(kind, "http://127.0.0.1:9", retries=2) as client,
        pytest.raises(
            ServiceError, match=r"http://127\.0\.0\.1:9 could not be reached in 3 tries: .*running"
        ),
    ):
        client.experiments()


class Trouble:
    """What a transport does before it goes well: loses answers, or is busy."""

    def __init__(self, trouble):
        super().__init__()
        self.trouble, self.keys = list(trouble), []

    def next(self, request):
        self.keys.append(request.headers.get("idempotency-key"))
        return self.trouble.pop(0) if self.trouble else None


class Flaky(Trouble, httpx.HTTPTransport):
    def handle_request(self, request):
        trouble = self.next(request)
        if isinstance(trouble, int):
            return httpx.Response(trouble, text="busy")
        response = super().handle_request(request)
        if trouble is not None:
            response.read()
            raise trouble
        return response


class AsyncFlaky(Trouble, httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        trouble = self.next(request)
        if isinstance(trouble, int):
            return httpx.Response(trouble, text="busy")
        response = await super().handle_async_request(request)
        if trouble is not None:
            await response.aread()
            raise trouble
        return response


@contextmanager
def flaky(kind, place, trouble, **options):
    """Give a client, and the transport that its requests go through."""
    with _opened(kind, *place, **options) as client:
        client._http._mounts = {}
        client._http._transport = Flaky(trouble) if kind is Client else AsyncFlaky(trouble)
        yield client, client._http._transport


def test_a_lost_answer_is_asked_for_again_and_nothing_is_done_twice(kind, place, client, unhurried):
    client.create("lossy", ["x", "y"], rewards=[0, 10], window="7d", add=True)
    trouble = [httpx.ReadError("gone"), 503, httpx.ReadTimeout("slow")]
    with flaky(kind, place, trouble) as (lossy, transport):
        assert lossy.ask("lossy").id == 1
        assert client.report("lossy")["proposals"] == 1
        transport.trouble = [httpx.ReadError("gone")]
        lossy.tell("lossy", 1, 7.0)
        lossy.tell("lossy", 1, 3.0)  # with another key it adds up, to the most that is allowed
        with pytest.raises(RewardError, match=r"reward=10\.5"):
            lossy.tell("lossy", 1, 0.5)
        assert len(set(transport.keys[:4])) == 1
        assert len(set(transport.keys)) == 4


def test_a_busy_server_is_given_up_on_in_the_end(kind, place, unhurried):
    with (
        flaky(kind, place, [503] * 3, retries=2) as (client, _),
        pytest.raises(ServiceError, match="503: 'busy'"),
    ):
        client.experiments()


def test_draws_at_the_edge_are_posted(client):
    client.create("edge", ["x", "y"], rewards=(0, 1))
    plan = client.edge_plan("edge")
    drawn = plan.draw("ann")
    body = {"plan": plan.plan, "units": [drawn.unit], "arms": [drawn.arm], "rewards": [1.0]}
    assert client.expose("edge", body, once="k") == {"taken": 1, "known": 0, "told": 1, "refused": []}
    assert client.expose("edge", body, once="k")["taken"] == 1  # the answer of the first time
    assert client.report("edge")["proposals"] == 1


def test_all_settings_reach_the_server(client):
    made = client.create(
        "chosen",
        [{"label": "x", "features": [0, 1]}, {"label": "y", "features": (1, 0)}],
        rewards=(0, 2),
        delta=0.1,
        epsilon=0.01,
        goal="earn",
        expect=0.2,
        covariates=("hour",),
        window="1h",
        silence="missing",
        sticky=False,
        reference="y",
        holdout=0.1,
        objective="sale",
        add=True,
        metrics=[{"name": "seconds", "rewards": (0, 9)}],
        guardrails=[{"metric": "seconds", "margin": 0.5}],
    )
    assert (made["window"], made["silence"], made["sticky"]) == (3600.0, "missing", False)
    assert (made["reference"], made["holdout"], made["metrics"]) == ("y", 0.1, ["sale", "seconds"])
    assert client.report("chosen")["certainty"] == 0.9
    assert client.ask("chosen", "ann", covariates={"hour": 3.0}).id == 1


def test_clients_have_the_same_methods_with_the_same_arguments_and_answers():
    def public(kind):
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
    for name in public(Client):
        one, twin = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(one) == inspect.signature(twin), name
        assert inspect.iscoroutinefunction(twin), name


@pytest.mark.parametrize(
    ("data", "model"),
    [
        (client_data.ExperimentData, experiments.ExperimentAnswer),
        (client_data.ReportData, reports.ReportAnswer),
        (client_data.ExposedData, edge.ExposedAnswer),
        (client_data.RefusedData, edge.RefusedAnswer),
        (client_data.MetricSettings, experiments.MetricBody),
        (client_data.GuardrailData, experiments.GuardrailBody),
        (client_data.DescribedArm, shared.Arm),
        (client_data.ExposuresData, edge.ExposuresBody),
    ],
)
def test_types_of_clients_have_the_fields_that_the_server_knows(data, model):
    assert set(data.__annotations__) == set(model.model_fields)
    assert data.__required_keys__ == {
        name for name, field in model.model_fields.items() if field.is_required()
    }


def test_create_spells_out_what_the_server_takes():
    names = list(inspect.signature(Client.create).parameters)[1:]
    assert set(names) == set(experiments.CreateBody.model_fields)


def test_many_coroutines_share_a_client(place, client):
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
