"""One suite for `Experiment` and `AsyncExperiment`: the same names, arguments, answers and errors."""

import asyncio
import inspect

import numpy as np
import pytest

from blocking import Maker
from experiment_samples import Clock
from orthobandit import ArmSet, Experiment, Metric
from orthobandit.errors import ClosedError, ConflictError, ParameterError, RewardError, UnknownProposalError
from orthobandit.experiment import AsyncExperiment

ARMS = ArmSet.one_hot(3, ["a", "b", "c"])
KEY = "4" * 64


@pytest.fixture(params=["threads", "coroutines"])
def kind(request):
    """Yield what makes experiments: the class itself, or what waits for its twin's coroutines."""
    if request.param == "threads":
        yield Experiment
        return
    with asyncio.Runner() as runner:
        yield Maker(AsyncExperiment, runner)


@pytest.fixture
def live(kind, tmp_path):
    clock = Clock()
    made = kind.create(
        tmp_path / "live.db", ARMS, rewards=(0, 1), window=60.0, metrics=[Metric("x")], key=KEY, clock=clock
    )
    made.__dict__["clock"] = clock
    yield made
    made.close()


def arms_of(experiment):
    """Return the arms by now: a property of one twin, a method of the other."""
    return experiment.arms if isinstance(experiment, Experiment) else experiment.arms()


def test_proposals_are_asked_for_one_by_one_or_together(live):
    one = live.ask("ann")
    assert live.ask(unit="ann").id == one.id == live.known("ann").id == 1
    assert live.known("bob") is None
    assert [two.id for two in live.ask_many(2)] == [2, 3]
    assert [two.id for two in live.ask_many(units=["ann", "bob"])] == [1, 4]
    assert live.ask(available=["b"]).label == "b"


@pytest.mark.parametrize("ids", [[], (), np.zeros(0), np.zeros(0, dtype=np.int64)], ids=repr)
@pytest.mark.parametrize("rewards", [[], {"x": []}, {"reward": np.zeros(0), "x": []}], ids=repr)
def test_an_empty_batch_of_rewards_changes_nothing(live, ids, rewards):
    live.ask_many(2)
    before = live.report()
    assert live.tell_many(ids, rewards) == ()
    assert live.report() == before


def test_an_empty_batch_is_checked_like_any_other(live):
    live.ask()
    with pytest.raises(RewardError, match="'y' is not a metric"):
        live.tell_many([], {"y": []})
    with pytest.raises(RewardError, match="1 values for 0 proposals"):
        live.tell_many([], [1.0])
    with pytest.raises(RewardError, match="0 values for 1 proposals"):
        live.tell_many([1], [])
    with pytest.raises(ParameterError, match="must be numbers of proposals"):
        live.tell_many([[]], [])


def test_rewards_are_told_and_reported(live):
    ids = [one.id for one in live.ask_many(3)]
    live.tell(ids[0], {"reward": 1.0, "x": 2.0})
    live.tell_many(ids[1:], {"reward": [0.0, 1.0], "x": [1.0, 1.0]})
    report = live.report()
    assert (report.proposals, report.settled) == (3, 3)
    assert live.glance().report.settled == 3
    with pytest.raises(ConflictError, match="the first value is final"):
        live.tell(ids[0], 0.0)
    with pytest.raises(UnknownProposalError):
        live.tell(99, 1.0)


def test_one_late_reward_of_many_does_not_lose_the_others(live):
    early = live.ask()
    live.clock.now += 61.0
    ids = [one.id for one in live.ask_many(300)]
    values = {"reward": [1.0] * 301, "x": [0.0] * 301}
    [late] = live.tell_many([early.id, *ids], values)
    assert (late.index, late.metric, type(late.error)) == (0, None, ClosedError)
    assert "its window of 1 minute has passed" in str(late.error)
    report = live.report()
    assert (report.settled, report.refused) == (301, {"late": 1})
    assert "1 reward was refused: 1 after their proposal was settled" in report.warnings
    key = live.once("batch")
    assert live.once("batch").tell_many([early.id], [1.0])[0].index == 0
    assert str(key.tell_many([early.id], [1.0])[0].error) == str(late.error)  # answered as before
    assert live.report().refused == {"late": 2}


def test_the_clock_settles_what_is_silent(live):
    live.ask_many(5)
    live.clock.now += 61.0
    live.tick()
    assert live.glance().report.settled == 5


def test_draws_of_others_are_taken_in(live):
    plan = live.edge_plan()
    drawn = plan.draw("ann")
    exposed = live.expose(plan.plan, [drawn.unit], [drawn.arm], [1.0])
    assert (exposed.taken, exposed.told) == (1, 1)


def test_arms_come_and_go_and_the_experiment_is_paused_and_stopped(live):
    live.retire("b")
    live.extend(ArmSet.one_hot(4, ["a", "b", "c", "d"]))
    assert arms_of(live).labels == ("a", "b", "c", "d")
    live.extend(lambda arms: ArmSet.one_hot(len(arms) + 1, [*arms.labels, "e"]))
    assert len(arms_of(live)) == 5
    live.pause()
    with pytest.raises(ClosedError, match="paused"):
        live.ask()
    live.resume()
    live.ask()
    live.stop("enough")
    assert live.report().status == "stopped"


def test_what_is_done_once_is_not_done_again(live):
    first = live.once("visit").ask()
    assert live.once("visit").ask().id == first.id
    assert live.report().proposals == 1


def test_the_log_is_checked_exported_and_opened_again(live, kind, tmp_path):
    for one in live.ask_many(20):
        live.tell(one.id, {"reward": float(one.arm == 0), "x": 1.0})
    assert live.audit().passed
    assert live.replay().is_equal
    assert live.certificate().verdict.valid
    live.export(tmp_path / "all.csv")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 21
    again = kind.open(tmp_path / "live.db", clock=live.clock)
    assert (again.settings.key, again.report().proposals) == (KEY, 20)
    again.close()


def test_a_program_that_is_run_again_goes_on(kind, tmp_path):
    proposals = []
    for _ in range(3):
        pages = kind.open_or_create(tmp_path / "signup.db", ARMS, rewards=(0, 1), window="7d", silence="zero")
        proposals.append(pages.ask(unit="user-17").id)
        pages.ask()
        pages.close()
    assert proposals == [1, 1, 1]
    with pytest.raises(ConflictError, match=r"window is 604800\.0 there and 86400\.0 here"):
        kind.open_or_create(tmp_path / "signup.db", ARMS, rewards=(0, 1), window="1d")
    again = kind.open(tmp_path / "signup.db")
    assert again.report().proposals == 4
    again.close()


def test_the_same_key_draws_the_same_arms(kind):
    made = kind.memory(ARMS, rewards="unknown", key=KEY)
    twin = Experiment.memory(ARMS, rewards="unknown", key=KEY)
    drawn = [one.arm for one in made.ask_many(30)]
    assert drawn == [one.arm for one in twin.ask_many(30)]
    made.close()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one: one.ask(3), "unit=3 must be text.*ask_many"),
        (lambda one: one.ask(["ann", "bob"]), "must be text.*ask_many"),
        (lambda one: one.ask(""), "unit='' must be text"),
        (lambda one: one.ask_many(), "give one of count and units, not neither"),
        (lambda one: one.ask_many(2, units=["ann"]), "give one of count and units, not both"),
        (lambda one: one.ask_many(0), "count=0 must be a whole number"),
        (lambda one: one.ask_many(["ann", "bob"]), r"count=\['ann', 'bob'\] must be .* units="),
        (lambda one: one.ask_many(units="ann"), "units='ann' must be a list of text"),
        (lambda one: one.ask_many(units=[]), "units is empty"),
        (lambda one: one.ask_many(units=["ann", 17]), "unit=17 must be text"),
    ],
)
def test_common_slips_are_named_with_their_remedy(live, call, words):
    with pytest.raises(ParameterError, match=words):
        call(live)
    assert live.report().proposals == 0


def parameters(function):
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def test_the_twins_have_the_same_methods_with_the_same_arguments():
    def public(kind):
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(AsyncExperiment) == public(Experiment)
    properties = {"arms", "settings"}
    for name in public(Experiment) - properties:
        one, twin = getattr(Experiment, name), getattr(AsyncExperiment, name)
        assert parameters(one) == parameters(twin), name
        # `once` only remembers the key: there is nothing to wait for.
        assert inspect.iscoroutinefunction(twin) == (name != "once"), name
        answer, other = inspect.signature(one).return_annotation, inspect.signature(twin).return_annotation
        assert str(other).replace("AsyncExperiment", "Experiment") == str(answer), name
