"""What is compiled before a server answers."""

import gc

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from orthobandit import ArmSet, Experiment
from orthobandit.service import preparing
from orthobandit.service.preparing import prepare, samples


def compiled():
    """Return how many versions of functions are compiled by now."""
    return {
        (one.py_func.__module__, one.py_func.__qualname__, one.signatures[place])
        for one in gc.get_objects()
        if isinstance(one, Dispatcher) and one.py_func.__module__.startswith("orthobandit")
        for place in range(len(one.signatures))
    }


@pytest.mark.parametrize("rewards", [(0, 1), None])
@pytest.mark.parametrize("arms", [ArmSet.one_hot(7), ArmSet(np.random.default_rng(3).normal(size=(9, 4)))])
def test_no_visitor_waits_for_a_compiler(arms, rewards):
    prepare()
    before = compiled()
    made = Experiment.memory(arms, rewards=rewards)
    for count in (1, 70, 400, 1, 900):
        shown = made.ask(count)
        made.tell_many([one.id for one in shown], [float(one.arm == 2) for one in shown])
    made.report()
    made.glance()
    made.certificate()
    made.retire(1)
    assert compiled() == before


def test_one_of_each_kind_is_run():
    found = samples()
    assert {one.goal for one in found} == {"identify", "earn"}
    assert {one.rewards is None for one in found} == {True, False}
    assert {isinstance(one.arms[0], str) for one in found} == {True, False}
    assert any(one.covariates for one in found)
    assert any(one.guardrails for one in found)


def test_it_is_done_once_and_says_so_only_if_slow(monkeypatch):
    said = []
    prepare(said.append)
    monkeypatch.setattr(preparing, "samples", lambda: pytest.fail("it was prepared before"))
    prepare(said.append)
    assert said in ([], [preparing.WORDS])
