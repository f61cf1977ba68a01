"""Plans on record that the code which reads them would not have made."""

import json

import numpy as np
import pytest

from experiment_samples import entries_of, ledger_of, store_of
from inside._foundation import STATE_FORMAT, stamp, without_stamp
from inside.experiment import Ledger, Noted, resume
from inside.service import check
from orthobandit import SBE, AnytimeElimination, ArmSet, Experiment, Guardrail, Metric, __version__
from orthobandit.errors import ConflictError, VersionError
from orthobandit.experiment.draw.audit import replay_log
from orthobandit.experiment.ledger.recorded_plans import Differences
from release_samples import Clock, another_release, check_shared, plans_of, visit


def begun(path, policy=None, **more):
    return Experiment.create(
        path, ArmSet.one_hot(3), policy, rewards=(0, 1), clock=Clock(), key="5" * 64, **more
    )


@pytest.mark.parametrize("shortest", [3, 23])  # the other one plans more often, or less
def test_two_releases_share_one_database(tmp_path, shortest):
    path = tmp_path / "shared.sqlite"
    check_shared(path, begun(path), shortest)
    assert check(path) == []


def test_rounds_of_recorded_plans_are_counted_by_who_would_not_have_made_them(tmp_path):
    path = tmp_path / "killed.sqlite"
    with another_release(40):
        old = begun(path)
        for place in range(30):
            visit(old, 10 * place)
        settled = ledger_of(old).feed.now().rounds
    new = Experiment.open(path, clock=Clock())
    feed = ledger_of(new).feed
    assert feed.differences.count
    assert int(feed.now().rounds) == int(settled) == 300
    assert feed.unused == 0
    assert feed.current == store_of(old).distribution(feed.current)["number"]
    assert new.report().unused == 0
    # The plan on record stays until the policy has its next one, which is on record before it is drawn from.
    numbers = [one["number"] for one in plans_of(new)]
    for place in range(30, 45):
        visit(new, 10 * place)
    later = [one for one in plans_of(new) if one["number"] not in numbers]
    assert {one["release"] for one in later} == {__version__}
    assert new.audit().passed
    assert new.replay().passed


def test_a_winner_that_another_release_declared_stays_declared(tmp_path):
    path = tmp_path / "declared.sqlite"
    arms = ArmSet.one_hot(2)
    old = Experiment.create(path, arms, rewards=(0, 1), clock=Clock(), key="5" * 64)
    for place in range(20):
        visit(old, 10 * place, chances=(0.05, 0.95))
    assert old.report().declared == "1"
    with pytest.MonkeyPatch.context() as patch:
        # This release would be in the middle of its first batch.
        patch.setattr("inside.policy.SHORTEST", 10_000)
        new = Experiment.open(path, clock=Clock())
        assert new.report().declared == "1"
        assert {one.arm for one in new.ask_many(20)} == {1}
        assert new.audit().passed
        assert "winner" not in str(new.replay())


def test_an_arm_that_another_release_retired_stays_out(tmp_path):
    path = tmp_path / "guarded.sqlite"
    more = {"metrics": [Metric("seconds", (0, 10))], "guardrails": [Guardrail("seconds")]}
    old = begun(path, **more)
    place = 0
    while not ledger_of(old).feed.retired.any():
        shown = old.ask_many(10)
        values = {"reward": [0.0] * 10, "seconds": [9.0 if one.arm == 2 else 1.0 for one in shown]}
        old.tell_many([one.id for one in shown], values)
        place += 1
    with pytest.MonkeyPatch.context() as patch:
        # A release whose guardrails are slower has not seen it yet.
        patch.setattr("inside.experiment.MIN_BUCKET", 10_000)
        new = Experiment.open(path, clock=Clock())
        assert ledger_of(new).feed.retired.tolist() == [False, False, True]
        assert [arm for arm, _ in ledger_of(new).retirements] == [2]
        assert 2 not in {one.arm for one in new.ask_many(50)}


def test_a_policy_that_cannot_count_rounds_of_others_plans_anew(tmp_path):
    path = tmp_path / "sbe.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SBE, "explore", lambda *given: (np.array([0.5, 0.25, 0.25]), 35))
        old = begun(path, SBE())
        for place in range(12):
            visit(old, 10 * place)
    before = plans_of(old)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SBE, "explore", lambda *given: (np.array([0.25, 0.25, 0.5]), 50))
        new = Experiment.open(path, clock=Clock())
        feed = ledger_of(new).feed
        assert feed.differences.count
        unused = feed.unused
        assert unused == 120  # its regression would be biased by rounds of another distribution
        for place in range(20, 32):
            visit(new, 10 * place)
        made = [one["plan"]["number"] for one in plans_of(new)]
        assert made == list(range(1, len(made) + 1))
        assert len(made) >= len(before) + 3  # one at once, and one after each fifty rounds
        assert ledger_of(new).feed.unused == unused
        assert new.audit().passed
        assert new.replay().passed


def test_rounds_of_a_plan_that_lasts_otherwise_are_not_lost(tmp_path):
    path = tmp_path / "sbe.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SBE, "_phase_rounds", lambda *given: 35)
        old = begun(path, SBE())
        for place in range(12):
            visit(old, 10 * place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SBE, "_phase_rounds", lambda *given: 50)
        feed = ledger_of(Experiment.open(path, clock=Clock())).feed
        assert feed.differences.count
        assert feed.unused == 0  # the distributions are the same


def test_drafts_are_not_part_of_a_snapshot(tmp_path):
    path = tmp_path / "drafts.sqlite"
    with another_release(10_000):
        old = begun(path)
        for place in range(20):
            visit(old, 10 * place)
    on_record = len(plans_of(old))
    with Experiment.open(path, clock=Clock()) as new:
        new.report()
    with Experiment.open(path, clock=Clock()) as new:
        assert ledger_of(new).feed.current == on_record
        visit(new, 1000)
        assert new.audit().passed
        assert new.edge_plan().plan == plans_of(new)[-1]["plan"]["number"]


def test_notes_and_states_of_a_newer_format_are_refused_by_name(tmp_path):
    with begun(tmp_path / "one.sqlite") as experiment:
        state = ledger_of(experiment).to_json()
        settings = experiment.settings
    newer = {"format": STATE_FORMAT + 1, "release": "9.1.0"}
    with pytest.raises(VersionError, match=r"pip install 'orthobandit>=9\.1\.0'"):
        resume(settings, 3, {**state, **newer})
    note = {"number": 2, "plan": {}, **newer}
    with pytest.raises(VersionError, match=r"a 'plan' of the log was written by release 9\.1\.0"):
        Ledger(settings).apply(Noted(1.0, "plan", note))


@pytest.mark.parametrize("mark", [{}, {"format": 3, "release": "0.4.1"}])
def test_notes_and_states_of_releases_before_0_5_are_refused(mark):
    experiment = Experiment.memory(ArmSet.one_hot(3), rewards=(0, 1))
    state = {**without_stamp(ledger_of(experiment).to_json()), **mark}
    with pytest.raises(
        VersionError, match=r"the state of the experiment was written by a release before 0\.5;"
    ):
        resume(experiment.settings, 3, state)
    plan = {"number": 2, "plan": {}, **mark}
    with pytest.raises(
        VersionError, match=r"a 'plan' of the log was written by a release before 0\.5; .*0\.4\.1"
    ):
        Ledger(experiment.settings).apply(Noted(1.0, "plan", plan))


def test_a_state_of_another_release_that_cannot_be_read_is_rebuilt(tmp_path):
    with begun(tmp_path / "one.sqlite") as experiment:
        state = ledger_of(experiment).to_json()
        settings = experiment.settings
    del state["book"]["state"]["totals"]
    with pytest.raises(Exception, match="totals"):
        resume(settings, 3, state)  # of this release: damaged
    seq, ledger = resume(settings, 3, {**state, "release": "0.2.1"})
    assert (seq, int(ledger.feed.state.rounds)) == (0, 0)


def test_a_log_that_contradicts_itself_is_refused():
    experiment = Experiment.memory(ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1)))
    ledger = Ledger(experiment.settings)
    plan = ledger.feed.plan.to_json()
    rest = {**stamp(), "decision": {"declared": None, "retired": []}}
    ledger.apply(Noted(1.0, "plan", {"number": 1, "plan": plan, **rest}))
    with pytest.raises(ConflictError, match="plan 5 of the log comes after number 1; restore a copy"):
        ledger.apply(Noted(1.0, "plan", {"number": 5, "plan": {**plan, "number": 2}, **rest}))
    with pytest.raises(ConflictError, match="plan 1 of the log is there twice, and not the same"):
        ledger.apply(Noted(1.0, "plan", {"number": 1, "plan": {**plan, "rounds": 7}, **rest}))


def test_differences_say_who_planned():
    none = Differences()
    assert str(none) == "all plans are what this release makes of the log"
    some = none.and_one(9, "0.2.0").and_one(12, "9.1.0")
    assert str(some) == f"plan 9 was made by release 0.2.0 and 9.1.0, and {__version__} plans differently"
    assert Differences.from_json(some.to_json()) == some


@pytest.mark.parametrize(("factor", "passes"), [(1 + 1e-13, True), (1 + 1e-3, False)])
def test_a_state_that_another_processor_rounded_is_told_from_one_that_was_changed(factor, passes):
    experiment = Experiment.memory(ArmSet.one_hot(3), AnytimeElimination(rewards=(0, 1)), key="5" * 64)
    rng = np.random.default_rng(3)
    for _ in range(20):
        shown = experiment.ask_many(20)
        experiment.tell_many([one.id for one in shown], rng.random(20).round())
    ledger = ledger_of(experiment)
    state = json.loads(json.dumps(ledger.to_json()))
    values = state["book"]["state"]["values"]
    state["book"]["state"]["values"] = [value * factor for value in values]
    entries = entries_of(experiment)
    found = replay_log(experiment.settings, entries, entries[-1][0], state)
    assert not found.is_equal
    assert (found.passed, found.is_rounding) == (passes, passes)
    assert ("rounding" in str(found)) == passes
