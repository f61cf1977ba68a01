"""The live experiment finds the best page, from nothing but its file."""

import re
import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "live_experiment.py"


def test_the_best_page_is_declared_and_every_night_has_a_report(capsys, monkeypatch):
    monkeypatch.setattr(
        "orthobandit.experiment.draw.hashing.token_hex", lambda count: "ab" * count
    )  # the same draws
    runpy.run_path(str(SCRIPT))["main"]()
    nights, report = capsys.readouterr().out.split("\n\n", 1)
    lines = nights.splitlines()
    assert 3 <= len(lines) <= 30
    # With a window of one day, visitors of the first have not settled by its end but for a few.
    assert lines[0].startswith("day 1: ")
    assert ". Too early: " in lines[0]
    assert all(". Go on: " in line for line in lines[1:-1])
    best = "Show 'short form': it is the best (bounded rewards; false winners in at most 5 % of experiments)."
    assert lines[-1].endswith(best)
    assert report.startswith(best)


def test_nothing_private_is_imported():
    imports = re.findall(r"^(?:from|import) .*", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert "from orthobandit import ArmSet, Experiment" in imports
    assert not [line for line in imports if re.search(r"[ .]_", line)]
