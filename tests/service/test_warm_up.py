"""What is compiled before a server answers."""

import gc
import logging
import subprocess
import sys
import threading
import time
from typing import Any, ClassVar

import httpx
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from inside.service import FAILED
from orthobandit import ArmSet, Experiment
from orthobandit.service import create_app, serving
from orthobandit.service import warm_up as preparing
from orthobandit.service.warm_up import prepare, samples
from service_samples import TWO, is_problem, running, token_of


def compiled():
    """Return which versions of functions are compiled by now."""
    gc.unfreeze()  # what is frozen is not listed
    found = {
        (one.py_func.__module__, one.py_func.__qualname__, one.signatures[place])
        for one in gc.get_objects()
        # Not isinstance, which would ask what a weak reference stands for.
        if issubclass(type(one), Dispatcher) and one.py_func.__module__.startswith("orthobandit")
        for place in range(len(one.signatures))
    }
    assert found
    return found


@pytest.mark.parametrize("rewards", [(0, 1), "unknown"])
@pytest.mark.parametrize("arms", [ArmSet.one_hot(7), ArmSet(np.random.default_rng(3).normal(size=(9, 4)))])
def test_no_visitor_waits_for_a_compiler(arms, rewards):
    prepare()
    before = compiled()
    made = Experiment.memory(arms, rewards=rewards)
    for count in (1, 70, 400, 1, 900):
        shown = made.ask_many(count)
        made.tell_many([one.id for one in shown], [float(one.arm == 2) for one in shown])
    made.report()
    made.glance()
    made.certificate()
    made.retire(1)
    assert compiled() == before


def test_one_of_each_kind_is_run():
    found = samples()
    assert {one.goal for one in found} == {"identify", "earn"}
    assert {one.rewards == "unknown" for one in found} == {True, False}
    assert {isinstance(one.arms[0], str) for one in found} == {True, False}
    assert any(one.covariates for one in found)
    assert any(one.guardrails for one in found)


def test_it_is_done_once_and_says_so_only_if_slow(monkeypatch):
    said = []
    prepare(said.append)
    monkeypatch.setattr("inside.service.samples", lambda: pytest.fail("it was prepared before"))
    prepare(said.append)
    assert said in ([], [preparing.WORDS])


class Slow:
    """Stands for what compiles, until it is let go."""

    def __init__(self, monkeypatch, error=None):
        self.may_end, self._error = threading.Event(), error
        monkeypatch.setattr("inside.service._IS_DONE", threading.Event())
        monkeypatch.setattr("inside.service.samples", self)

    def __call__(self):
        assert self.may_end.wait(20)
        if self._error is not None:
            raise self._error
        return []


def test_a_server_that_compiles_is_alive_and_not_ready(tmp_path, monkeypatch):
    where = tmp_path / "all.db"
    token = token_of(where, "admin")
    slow = Slow(monkeypatch)
    headers, found = {"Authorization": f"Bearer {token}"}, []
    with (
        running(create_app(where)) as address,
        httpx.Client(base_url=address, headers=headers, timeout=20) as http,
    ):
        assert http.get("/healthz").json() == {"status": "alive"}
        answer = http.get("/readyz")
        assert is_problem(answer, 503, "unavailable")
        assert "not ready: the numerical code is being compiled" in answer.json()["detail"]
        assert int(answer.headers["retry-after"]) > 0
        waiting = threading.Thread(target=lambda: found.append(http.post("/v1/experiments", json=TWO)))
        waiting.start()
        assert http.get("/readyz").status_code == 503
        assert not found
        slow.may_end.set()
        waiting.join(20)
        assert found[0].status_code == 201
        assert http.get("/readyz").json() == {"status": "ready"}


def test_a_server_that_cannot_compile_says_so(tmp_path, monkeypatch):
    slow = Slow(monkeypatch, ValueError("no compiler"))
    slow.may_end.set()
    with running(create_app(tmp_path / "all.db", with_tokens=False)) as address:
        httpx.get(f"{address}/v1/experiments")  # waits until it has failed
        answer = httpx.get(f"{address}/readyz")
        assert is_problem(answer, 503, "unavailable")
        assert "could not be compiled" in answer.json()["detail"]


@pytest.mark.parametrize("error", [None, ValueError("no compiler")])
def test_an_address_is_said_only_when_it_answers(tmp_path, monkeypatch, error):
    slow, said, log = Slow(monkeypatch, error), [], logging.getLogger("orthobandit").handlers
    monkeypatch.setattr("inside.service.spare_collector", lambda: None)
    server = threading.Thread(target=lambda: ends.append(_ended(tmp_path, said)), daemon=True)
    ends = []
    server.start()
    while not Telling.servers or not Telling.servers[-1].started:
        time.sleep(0.01)
    assert not said
    slow.may_end.set()
    if error is None:
        while len(said) < 2:
            time.sleep(0.01)
        assert "serves" in said[0]
        Telling.servers[-1].should_exit = True
    server.join(20)
    assert ends == [0 if error is None else FAILED]
    assert bool(said) == (error is None)
    logging.getLogger("orthobandit").handlers = log


class Telling(serving._Server):
    """A server that can be told to end from here, as there are no signals in a thread."""

    servers: ClassVar[list[Any]] = []

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.servers.append(self)


def _ended(folder, said):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inside.service._Server", Telling)
        try:
            serving.serve(folder / "all.db", port=0, with_tokens=False, say=said.append)
        except SystemExit as end:
            return end.code
    return 0


@pytest.mark.slow
def test_the_warm_up_can_be_imported_before_the_application():
    subprocess.run([sys.executable, "-c", "import orthobandit.service.warm_up"], check=True)
