"""The tables of README and docs/measured.md hold the numbers of the stored run."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("headlines", ROOT / "docs" / "headlines.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored(script):
    return json.loads(script.STORED.read_text(encoding="utf-8"))


def test_readme_is_what_the_stored_run_says(script, stored):
    text = script.README.read_text(encoding="utf-8")
    assert script.rewrite(text, script.summary(stored)) == text


def test_the_full_table_is_what_the_stored_run_says(script, stored):
    text = script.MEASURED.read_text(encoding="utf-8")
    assert script.rewrite(text, script.table(stored)) == text


def test_readme_is_short(script):
    assert len(script.README.read_text(encoding="utf-8").splitlines()) <= 150


def test_a_changed_number_changes_readme_between_the_markers_only(script, stored):
    text = script.README.read_text(encoding="utf-8")
    changed = {**stored, "rows": [{**stored["rows"][0], "here": "1 ± 1"}, *stored["rows"][1:]]}
    new = script.rewrite(text, script.summary(changed))
    assert new != text
    assert "| 1 ± 1 |" in new
    assert new.partition(script.BEGIN)[0] == text.partition(script.BEGIN)[0]
    assert new.partition(script.END)[2] == text.partition(script.END)[2]


def test_readme_without_markers_is_refused(script, stored):
    with pytest.raises(SystemExit, match="the page needs the lines"):
        script.rewrite("# orthobandit\n", script.summary(stored))


def test_peers_below_ours_are_named(script, stored):
    assert "BOSE at (5, 10)" in script.table({**stored, "below": ["BOSE at (5, 10)"]})
    assert "No peer tuned in hindsight has less regret than ours." in script.table({**stored, "below": []})


def test_the_stored_run_says_which_run_it_is(stored):
    assert stored["command"].startswith("orthobandit reproduce --")
    assert stored["tally"]["refuted"] == len(stored["refuted"])
    for row in stored["rows"]:
        assert {"what", "measure", "here", "peers", "runs", "version", "command"} == set(row)
        assert row["version"]


def test_averages_say_which_they_are(script, stored):
    measures = {row["measure"] for row in stored["rows"]}
    assert measures <= {script.MEAN, script.GEOMETRIC, "share of runs"}


def test_sbe_says_which_phases_it_runs(script, stored):
    rows = [row for row in stored["rows"] if row["what"] == script.SAMPLES["small-gap-10"]]
    assert rows
    for row in rows:
        assert "SBE, SP-BAI's author's phases" in row["peers"]
    text = script.table(stored)
    assert f"{script.PAPERS_SBE}: {stored['sbe'][script.GEOMETRIC]}" in text


def test_what_nobody_claimed_is_not_listed_as_refuted(script, stored):
    text = script.table({**stored, "refuted": [f"A is less than B, both {script.WIDER}", "C is less than D"]})
    assert "Refuted: C is less than D." in text
    assert "A is less than B" not in text
