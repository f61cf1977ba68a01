"""The example on where people are says what its page says."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_page_has_what_the_example_prints(capsys):
    script = runpy.run_path(str(ROOT / "examples" / "heartsteps_where.py"))
    if not script["DATA"].exists():
        pytest.skip(f"{script['DATA']} is not there; set HEARTSTEPS to the path of heartsteps_v1.csv")
    script["main"]()
    page = (ROOT / "docs" / "heartsteps.md").read_text(encoding="utf-8").replace("−", "-").replace("\n", " ")
    printed = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(printed) == 14
    assert [line for line in printed if line not in page] == []
