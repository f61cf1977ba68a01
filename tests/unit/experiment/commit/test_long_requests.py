"""Requests that take long are done before the file is locked, and are still done once, in order."""

import threading

import pytest

from experiment_samples import ledger_of
from inside.experiment import SharedLedger
from orthobandit import ArmSet, Experiment
from orthobandit.errors import ConflictError, RewardError
from orthobandit.experiment.commit import group_commit

ARMS = ArmSet.one_hot(3)


@pytest.fixture
def where(tmp_path, monkeypatch):
    """Return a file whose experiments take all requests for long ones."""
    monkeypatch.setattr("inside.experiment.MANY_ARMS", 0)
    return tmp_path / "live.db"


def count_locked(monkeypatch):
    """Return a list that grows by one with every commit that is done while the file is locked."""
    found = []
    locked = SharedLedger._commit_locked

    def noted(self, jobs):
        found.append(len(jobs))
        locked(self, jobs)

    monkeypatch.setattr(SharedLedger, "_commit_locked", noted)
    return found


def play(live):
    """Use every kind of request; return what can be compared."""
    shown = [live.ask(unit=f"user-{number}") for number in range(5)]
    again = live.ask(unit="user-3")
    shown += live.ask_many(30)
    with pytest.raises(RewardError):
        live.tell(1, 7.0)
    live.tell_many([one.id for one in shown], [float(one.arm == 1) for one in shown])
    once = [live.once("key").ask().id for _ in range(2)]
    with pytest.raises(ConflictError):
        live.once("key", "other words").ask()
    plan = live.edge_plan()
    drawn = plan.draw("edge")
    exposed = live.expose(plan.plan, ["edge", "edge"], [drawn.arm, drawn.arm], [1.0, 1.0])
    live.retire(2)
    return (
        [one.arm for one in shown],
        again.id,
        once,
        exposed.taken,
        live.report().arms,
        live.known("user-2").id,
    )


def test_what_is_done_before_the_lock_is_what_is_done_in_it(where, tmp_path, monkeypatch):
    with Experiment.create(where, ARMS, rewards=(0, 1), key="3" * 64, clock=lambda: 5.0) as live:
        locked = count_locked(monkeypatch)
        prepared = play(live)
        assert not locked
        assert live.audit().passed
        assert live.replay().is_equal
    monkeypatch.setattr("inside.experiment.MANY_ARMS", 99)
    other = Experiment.create(tmp_path / "b.db", ARMS, rewards=(0, 1), key="3" * 64, clock=lambda: 5.0)
    with other:
        assert play(other) == prepared
        assert locked


def test_whoever_was_beaten_does_it_again(where, monkeypatch):
    with (
        Experiment.create(where, ARMS, rewards=(0, 1)) as one,
        Experiment.open(where) as other,
    ):
        locked = count_locked(monkeypatch)
        numbers = []

        def clock_of(writer):
            def clock():
                if len(numbers) < 1:
                    numbers.append(0)
                    numbers[0] = writer.ask(unit="ann").id  # while the file is not locked
                return 0.0

            return clock

        one._methods._clock = clock_of(other)
        assert one.ask(unit="ann").id == numbers[0] == 1
        assert locked == [1]
        numbers.clear()

        def told():
            if not numbers:
                numbers.append(0)
                other.tell(1, 1.0)
            return 0.0

        one._methods._clock = told
        with pytest.raises(ConflictError):  # judged by what the other told first
            one.tell(1, 0.0)
        assert one.ask(unit="bob").id == 2
        assert other.report().proposals == 2
        assert one.replay().is_equal


def test_a_key_that_another_remembered_meanwhile_is_done_once(where):
    with (
        Experiment.create(where, ARMS, rewards=(0, 9), window="1d", add=True) as one,
        Experiment.open(where) as other,
    ):
        number = one.ask().id
        done = []

        def clock():
            if not done:
                done.append(0)
                other.once("sale").tell(number, 5.0)
            return one._now_at

        one._now_at = other._methods._clock()
        one._methods._clock = clock
        one.once("sale").tell(number, 5.0)
        assert ledger_of(one).waiting.provisional(0)[1].tolist() == [5.0]


def test_a_long_request_holds_up_no_other_experiment(where):
    is_planning = threading.Event()
    may_end = threading.Event()
    with (
        Experiment.create(where, ARMS, rewards=(0, 1), name="large") as large,
        Experiment.create(where, ARMS, rewards=(0, 1), name="small") as small,
    ):

        def plan(turn):
            is_planning.set()
            assert may_end.wait(10)
            return turn.ledger.note(0.0, "pause")

        thread = threading.Thread(target=large._do, args=(plan,))
        thread.start()
        assert is_planning.wait(10)
        assert small.ask().id == 1
        may_end.set()
        thread.join(10)
        assert large.report().status == "paused"


def test_few_arms_and_rows_are_done_while_the_file_is_locked(tmp_path, monkeypatch):
    with Experiment.create(tmp_path / "a.db", ARMS, rewards=(0, 1)) as live:
        locked = count_locked(monkeypatch)
        live.ask_many(group_commit.MANY_ROWS)
        assert len(locked) == 1
        live.ask_many(group_commit.MANY_ROWS + 1)
        assert len(locked) == 1
