"""Stored states: described by format, refused if newer."""

import json

import pytest

from inside._foundation import STATE_FORMAT
from orthobandit import SBE, AnytimeElimination, ArmSet, __version__
from orthobandit.errors import VersionError
from state_formats import FILE, described


def test_the_format_rises_when_stored_states_change():
    kept = json.loads(FILE.read_text())
    assert kept.get(str(STATE_FORMAT)) == json.loads(json.dumps(described())), (
        "stored states have changed: if a release has this format, raise STATE_FORMAT in"
        " _foundation/release.py and let earlier states be read; then run `python tests/state_formats.py`"
    )


@pytest.mark.parametrize("policy", [AnytimeElimination(), AnytimeElimination(pairs="leader"), SBE()])
def test_states_of_policies_say_their_format_and_refuse_a_newer_one(policy):
    arms = ArmSet.one_hot(3)
    kept = policy.dump(policy.start(arms))
    assert (kept["format"], kept["release"]) == (STATE_FORMAT, __version__)
    newer = {**kept, "format": STATE_FORMAT + 1, "release": "9.1.0"}
    with pytest.raises(
        VersionError, match=r"written by release 9\.1\.0 .* `pip install 'orthobandit>=9\.1\.0'`"
    ):
        policy.load(arms, newer)
