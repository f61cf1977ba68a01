"""The example on HeartSteps says what the page on personalised experiments says."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_has_what_the_example_prints(capsys):
    script = runpy.run_path(str(ROOT / "examples" / "heartsteps_rules.py"))
    if not script["DATA"].exists():
        pytest.skip(f"{script['DATA']} is not there; set HEARTSTEPS to the path of heartsteps_v1.csv")
    script["main"]()
    page = (ROOT / "docs" / "contextual.md").read_text(encoding="utf-8").replace("−", "-")
    printed = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(printed) == 10
    assert [line for line in printed[:-1] if line not in page] == []
    assert printed[-1].partition(": ")[2].removesuffix(".") in page.replace("\n", " ")
