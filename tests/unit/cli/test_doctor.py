"""`orthobandit doctor`: problems are found, and are what ends with 1."""

import json
import os

import pytest

from orthobandit import Bounded
from orthobandit.cli import doctor, main


def look(capsys):
    code = main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    return code, {one["name"]: (one["status"], one["words"]) for one in report["findings"]}


def test_a_machine_that_works_is_told_so(capsys):
    code, found = look(capsys)
    assert code == 0
    assert all(status != "problem" for status, _ in found.values())
    assert found["a known design"][1].startswith("right, in")
    assert {f"extra {name}" for name in doctor.EXTRAS} <= set(found)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.endswith("\neverything works\n")


def test_an_extra_that_is_missing_is_a_note_with_the_remedy(capsys, monkeypatch):
    monkeypatch.setitem(doctor.EXTRAS, "plots", (("no_such_module",), "plots"))
    code, found = look(capsys)
    assert code == 0
    assert found["extra plots"] == (
        "note",
        "not there: plots; pip install '.[plots]' in orthobandit's folder",
    )


def test_wrong_numbers_are_a_problem(capsys, monkeypatch):
    monkeypatch.setattr("inside.cli.INTERVALS", ((Bounded(0.0, 1.0), 0.3),))
    code, found = look(capsys)
    assert code == 1
    status, words = found["a known interval"]
    assert status == "problem"
    assert words == "bounded rewards: -0.192939 to 0.592939 instead of -0.100000 to 0.500000"


def test_too_little_room_is_a_problem(capsys, monkeypatch):
    monkeypatch.setattr("inside.cli.MIN_BYTES", 2**60)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "too little; make room" in said
    assert said.endswith("\n3 problems\n")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be written to here")
def test_a_folder_that_cannot_be_written_to_is_a_problem(capsys, monkeypatch, tmp_path):
    tmp_path.chmod(0o500)
    monkeypatch.chdir(tmp_path)
    code, found = look(capsys)
    assert code == 1
    assert found["this folder"][0] == "problem"
