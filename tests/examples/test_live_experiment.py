"""The live experiment finds the best page, from nothing but what it has written down."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "live_experiment.py"


def test_the_best_page_is_declared_and_every_day_says_more(capsys):
    runpy.run_path(str(SCRIPT))["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert 2 <= len(lines) <= 30
    assert all("leads; better than it by at most" in line for line in lines[:-1])
    assert lines[-1].endswith("'short form + video' is the best, with 95% certainty (bounded rewards)")
