"""Every Python example of the README and the documentation runs and prints what stands below it."""

import contextlib
import io
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page):
    """Return the Python blocks of a page, each with the text block that follows it or None."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        (code, output if kind == "text" else None)
        for (language, code), (kind, output) in pairwise([*blocks, ("", "")])
        if language == "python"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    module = ModuleType("example")  # a module that can be found again: classes of examples are pickled
    monkeypatch.setitem(sys.modules, "example", module)
    for code, output in examples(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), module.__dict__)
        assert output is None or printed.getvalue() == output


def test_the_readme_has_an_example_with_output():
    assert any(output for _, output in examples(ROOT / "README.md"))
