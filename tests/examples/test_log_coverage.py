"""The table of coverages in the page on logs is what the example prints."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_says_what_the_example_prints(capsys):
    runpy.run_path(str(ROOT / "examples" / "log_coverage.py"))["main"]()
    assert capsys.readouterr().out in (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
