"""What is done on pages is done once, can be undone in time, and is on record."""

import re

import pytest

from dashboard_samples import in_words, visiting
from experiment_samples import Clock
from inside.service import BLANK, Registry
from orthobandit import AnytimeElimination, ArmSet
from orthobandit.errors import ClosedError, StorageError
from orthobandit.service.dashboard.actions import ELSEWHERE, RETRY_SECONDS, UNDO_SECONDS, Actions, steps

LABELS = ["a", "b", "c"]


@pytest.fixture
def clock():
    return Clock(1e9)


@pytest.fixture
def registry(tmp_path):
    found = Registry(tmp_path / "all.db")
    found.create("page", ArmSet.one_hot(3, LABELS), AnytimeElimination(rewards=(0, 1)))
    yield found
    found.close()


def status(registry):
    return registry.get("page").report().status


def trail(registry, actions):
    return [(step.words, step.by) for step in steps(registry, "page", LABELS, actions.of("page"))]


def test_what_can_be_taken_back_is_done_at_once(registry, clock):
    actions = Actions(registry, clock)
    actions.do("page", "pause", "ann")
    assert status(registry) == "paused"
    actions.do("page", "resume", "bob")
    assert status(registry) == "open"
    assert {one.state for one in actions.of("page")} == {"done"}


def test_what_cannot_waits_and_is_undone_in_time(registry, clock):
    actions = Actions(registry, clock)
    stop = actions.ask("page", "stop", "ann", reason="enough")
    assert actions.do_due() == {"page": f" {stop.id}"}
    assert status(registry) == "open"
    clock.now += UNDO_SECONDS - 1
    assert actions.undo("page", stop.id)
    assert not actions.undo("page", stop.id)
    clock.now += 2
    assert actions.do_due() == {}
    assert status(registry) == "open"
    retire = actions.ask("page", "retire", "ann", arm="b")
    clock.now += UNDO_SECONDS
    assert actions.do_due() == {}
    assert not actions.undo("page", retire.id)
    assert [arm.is_retired for arm in registry.get("page").report().arms] == [False, True, False]


def test_an_action_of_another_experiment_is_not_undone(registry, clock):
    actions = Actions(registry, clock)
    stop = actions.ask("page", "stop", "ann")
    assert not actions.undo("other", stop.id)
    assert actions.waiting("page") == [stop]


def test_two_servers_do_it_once_and_one_follows_another_that_died(registry, clock, tmp_path, monkeypatch):
    other = Registry(tmp_path / "all.db")
    here, there = Actions(registry, clock), Actions(other, clock)
    here.ask("page", "stop", "ann", reason="enough")
    clock.now += UNDO_SECONDS
    with monkeypatch.context() as patch:  # it dies after it has claimed the action, before it is done
        patch.setattr(Registry, "get", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            here.do_due()
    there.do_due()
    assert status(other) == "open"  # the other may be about to do it
    clock.now += RETRY_SECONDS
    there.do_due()
    here.do_due()
    assert status(registry) == "stopped"
    done = [step for step in trail(registry, here) if step[0] == "stopped: enough"]
    assert done == [("stopped: enough", "ann")]
    other.close()


def test_while_the_database_is_away_it_waits(registry, clock, monkeypatch):
    actions = Actions(registry, clock)
    actions.ask("page", "stop", "ann")
    clock.now += UNDO_SECONDS
    with monkeypatch.context() as patch:
        patch.setattr(Registry, "get", lambda *_: (_ for _ in ()).throw(StorageError("away")))
        actions.do_due()
        with pytest.raises(StorageError):
            actions.do("page", "pause", "ann")
    assert status(registry) == "open"
    actions.do_due()
    assert status(registry) == "stopped"
    assert [one.kind for one in actions.of("page")] == ["stop"]  # who asked to pause was told that it is not


def test_what_is_refused_is_said_and_on_record(registry):
    actions = Actions(registry)
    registry.get("page").stop()
    with pytest.raises(ClosedError):
        actions.do("page", "pause", "ann")
    (words, by), before, _ = trail(registry, actions)
    assert words.startswith("asked to pause, refused: the experiment was stopped")
    assert by == "ann"
    assert before == ("stopped", ELSEWHERE)


def test_the_trail_says_who(registry):
    actions, page = Actions(registry), registry.get("page")
    actions.do("page", "pause", "ann")
    page.resume()
    actions.do("page", "pause", "bob")
    undone = actions.ask("page", "stop", "eve")
    actions.undo("page", undone.id)
    assert trail(registry, actions) == [
        ("asked to stop, undone", "eve"),
        ("paused", "bob"),
        ("resumed", ELSEWHERE),
        ("paused", "ann"),
        ("begun", ELSEWHERE),
    ]


def test_pages_ask_before_and_undo_after(tmp_path):
    with visiting(tmp_path / "all.db") as visitor:
        visitor.get("/new")
        visitor.post("/new", do="begin", **(BLANK | {"key": "page", "arms": "a\nb & c"}))
        assert "Resume" in in_words(visitor.post("/experiments/page/pause"))
        assert "Pause" in in_words(visitor.post("/experiments/page/resume"))
        question = visitor.get("/experiments/page/retire", params={"arm": "b & c"})
        assert "Retire “b &amp; c”?" in question.text
        waits = visitor.page = visitor.post("/experiments/page/retire", arm="b & c")
        assert "b &amp; c is about to be retired" in in_words(waits)
        twice = visitor.post("/experiments/page/retire", arm="b & c")
        assert twice.text.count('action="/dashboard/experiments/page/undo"') == 1
        number = re.search(r'name="id" value="(\w+)"', waits.text)[1]
        assert "about to be" not in in_words(visitor.post("/experiments/page/undo", id=number))
        late = visitor.post("/experiments/page/undo", id=number)
        assert late.status_code == 409
        assert "It was done already" in in_words(late)
        for arm in ("nosuch", ""):
            assert visitor.post("/experiments/page/retire", arm=arm).status_code == 404
        assert visitor.post("/experiments/nosuch/pause").status_code == 404
        words = in_words(visitor.get("/experiments/page/trail", params={"check": "draws"}))
        assert "Yes: all 0 draws are what the key" in words
        assert "asked to retire" in words
        assert re.search(r"begun token \w+", words)
