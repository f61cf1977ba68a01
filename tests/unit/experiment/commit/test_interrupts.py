"""An interrupt at any instruction of a caller leaves an experiment usable, and loses nothing acknowledged."""

import copy
import pickle
import sys
import threading

import pytest

from experiment_samples import outcomes_of
from orthobandit import ArmSet, Experiment
from orthobandit.errors import CopyError
from orthobandit.experiment import AsyncExperiment

ARMS = ArmSet.one_hot(3)
ROOM = "orthobandit/experiment/"


class Interrupter:
    """Raises KeyboardInterrupt before the n-th instruction that this thread runs in `experiment/`."""

    def __init__(self, position):
        self.left = position
        self.has_struck = False

    def __call__(self, frame, event, _):
        if ROOM not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not self.has_struck:
            self.left -= 1
            if self.left < 0:
                self.has_struck = True
                raise KeyboardInterrupt
        return self


def interrupt(position, call):
    """Call with an interrupt at a position; return whether the call was interrupted, and what it returned."""
    before = sys.gettrace()
    tracer = Interrupter(position)
    sys.settrace(tracer)
    try:
        return tracer.has_struck, call()
    except KeyboardInterrupt:
        return True, None
    finally:
        sys.settrace(before)


def within_5_seconds(call):
    """Return what a call in a thread of its own returns; fail if it hangs."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(5)
    assert found, "the experiment hangs"
    return found[0]


def count_instructions(call):
    counter = Interrupter(10**9)
    before = sys.gettrace()
    sys.settrace(counter)
    try:
        call()
    finally:
        sys.settrace(before)
    return 10**9 - counter.left


def play(live):
    """Interrupt asks and tells at every instruction; return what was acknowledged."""
    asked, told = set(), {}
    number = live.ask().id
    asked.add(number)
    asks = count_instructions(lambda: asked.add(live.ask().id))
    tells = count_instructions(lambda: live.tell(number, 1.0))
    told[number] = 1.0
    assert min(asks, tells) > 50
    for position in range(asks):
        is_interrupted, found = interrupt(position, live.ask)
        if not is_interrupted:
            asked.add(found.id)
        number = within_5_seconds(live.ask).id
        asked.add(number)
        is_interrupted, _ = interrupt(min(position, tells - 1), lambda number=number: live.tell(number, 0.0))
        if not is_interrupted:
            told[number] = 0.0
        within_5_seconds(lambda number=number: (live.tell(number, 0.0),))  # a second time changes nothing
        told[number] = 0.0
    return asked, told


@pytest.mark.slow
def test_an_interrupt_anywhere_leaves_a_file_usable(tmp_path):
    with Experiment.create(tmp_path / "live.db", ARMS, rewards=(0, 1)) as live:
        asked, told = play(live)
    with Experiment.open(tmp_path / "live.db") as live:
        rewards = {one.proposal.number: one.rewards for one in outcomes_of(live)}
        assert asked <= rewards.keys()
        assert {number: rewards[number]["reward"] for number in told} == told
        assert live.audit().passed
        assert live.replay().is_equal


def test_an_interrupt_anywhere_leaves_one_in_memory_usable():
    live = Experiment.memory(ARMS, rewards=(0, 1))
    asked, told = play(live)
    rewards = {one.proposal.number: one.rewards for one in outcomes_of(live)}
    assert asked <= rewards.keys()
    assert {number: rewards[number]["reward"] for number in told} == told
    assert live.replay().is_equal


@pytest.mark.slow
def test_an_interrupted_close_closes(tmp_path):
    made = Experiment.create(tmp_path / "live.db", ARMS, rewards=(0, 1))
    made.close()
    count = count_instructions(Experiment.open(tmp_path / "live.db").close)
    for position in range(0, count, 5):
        live = Experiment.open(tmp_path / "live.db")
        number = live.ask().id
        interrupt(position, live.close)
        within_5_seconds(lambda live=live: (live.close(),))
        with Experiment.open(tmp_path / "live.db") as again:
            assert again.report().proposals == number


def test_closing_twice_is_fine(tmp_path):
    for live in (
        Experiment.memory(ARMS, rewards=(0, 1)),
        Experiment.create(tmp_path / "a.db", ARMS, rewards=(0, 1)),
    ):
        live.close()
        live.close()
        live.once("key").close()


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_whoever_copies_or_pickles_is_told_to_open_by_path(copied):
    live = Experiment.memory(ARMS, rewards=(0, 1))
    for one in (live, AsyncExperiment(live)):
        with pytest.raises(CopyError, match=r"cannot be pickled or copied.*open\(path, name="):
            copied(one)
    assert live.ask().id == 1


def test_a_clock_that_uses_the_experiment_is_told_so():
    experiment = []

    def clock():
        if experiment:
            experiment[0].ask()
        return 0.0

    live = Experiment.memory(ARMS, rewards=(0, 1), clock=clock)
    experiment.append(live)
    with pytest.raises(Exception, match="wait for itself"):
        live.ask()
    experiment.clear()
    assert live.ask().id == 1
