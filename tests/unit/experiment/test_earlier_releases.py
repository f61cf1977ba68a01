"""Experiments that earlier releases wrote, closed or killed: opened, played on, checked and restored."""

import pytest

from inside.service import check
from orthobandit import Experiment
from orthobandit.errors import ParameterError
from orthobandit.service.admin.backup import back_up, restore
from orthobandit.verify import RULES_OF_0_3, verify
from stored_releases import (
    AWAITED,
    ENDS,
    NAMES,
    QUIET,
    RELEASES,
    REWARDS,
    TOLD,
    Clock,
    World,
    ask_units,
    unpack,
)

# One of each in the tests that everybody runs: the killed one is the harder.
DATABASES = [
    pytest.param(release, end, marks=() if (release, end) == ("0.2.0", "killed") else pytest.mark.slow)
    for release in RELEASES
    for end in ENDS
]
# Their plans were made by rules that this release does not recompute.
UNCERTIFIED = [one for one in DATABASES if one.values[0] != "0.3.0"]
CERTIFIED = [one for one in DATABASES if one.values[0] == "0.3.0"]
CHECKED = "which this release cannot re-derive; draws, tallies and claims check"
LATER = 1_700_100_000.0  # seconds, after all that was stored


def opened(path, name):
    return Experiment.open(path, name=name, clock=Clock(LATER))


def check_kept(experiment, name, release, end):
    """Check that every unit and reward is there."""
    rows = [row for row in experiment._store.table() if "later" not in (row.proposal.unit or "")]
    told = [row.rewards["reward"] for row in rows if row.rewards]
    assert len(rows) == TOLD + AWAITED * (end == "killed")
    assert len(told) == TOLD
    assert sum(told) == pytest.approx(REWARDS[release][name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("release", "end"), DATABASES)
def test_it_opens_and_plays_on(tmp_path, release, end, name):
    path = unpack(release, end, tmp_path)
    with opened(path, name) as experiment:
        check_kept(experiment, name, release, end)
        settled = experiment._now().waiting.first
        declared = experiment.report().declared
        units = [row.proposal.unit for row in experiment._store.table()][:3]
        first = [experiment.known(unit).arm for unit in units]
        assert [one.arm for one in ask_units(experiment, units)] == first  # nobody is drawn anew
        world = World(name)
        world.play(experiment, 10_000, 40)
        assert experiment.audit().proposals == TOLD + AWAITED * (end == "killed") + world.told
    with opened(path, name) as experiment:
        assert experiment.audit().passed
        assert experiment.replay().passed
        # Proposals that are awaited hold up those after them, unless there is a window.
        assert experiment._now().waiting.first == settled + (0 if end == "killed" else world.told) or (
            name == "guarded"
        )
        assert name != "declared" or declared == experiment.report().declared == "1"


@pytest.mark.parametrize(("release", "end"), UNCERTIFIED)
def test_certificates_are_refused_in_a_sentence_that_says_what_holds(tmp_path, release, end):
    path = unpack(release, end, tmp_path)
    for name in ("exact", "declared", "unknown", "guarded"):
        with (
            opened(path, name) as experiment,
            pytest.raises(ParameterError, match="experiments that this release begins can be cert"),
        ):
            experiment.certificate()


@pytest.mark.parametrize("name", ["exact", "declared", "unknown", "guarded", QUIET])
@pytest.mark.parametrize(("release", "end"), CERTIFIED)
def test_what_0_3_began_goes_on_by_its_rules_and_is_certified(tmp_path, release, end, name):
    path = unpack(release, end, tmp_path)
    with opened(path, name) as experiment:
        if end == "killed" and name != "guarded":  # where a window gives them up
            awaited = ask_units(experiment, [f"{name} awaited {number}" for number in range(AWAITED)])
            experiment.tell_many([one.id for one in awaited], [0.0] * AWAITED)
        World(name).play(experiment, 10_000, 200)
        certificate = experiment.certificate()
        assert certificate.document["settings"]["rules"] == RULES_OF_0_3
        assert verify(certificate.document).valid
        replay = experiment.replay()
        assert replay.is_equal, replay
        assert replay.planned_by == ()
    with opened(path, name) as experiment:
        assert experiment.certificate().document["claim"] == certificate.document["claim"]


@pytest.mark.parametrize(("release", "end"), DATABASES)
def test_a_copy_is_restored_and_checked_and_says_who_planned(tmp_path, release, end):
    path = unpack(release, end, tmp_path)
    copy = tmp_path / "copy.jsonl.gz"
    restored = tmp_path / "restored.sqlite"
    back_up(path, copy)
    restore(copy, restored)
    lines = []
    assert check(restored, lines.append) == []
    assert len(lines) == len(REWARDS[release])
    if release == "0.3.0":
        assert all(line.endswith(": as it should be") for line in lines), lines
    if release == "0.2.0":
        assert f"exact: planned by 0.2.0, {CHECKED}" in lines
