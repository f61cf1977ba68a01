"""The tool that breaks lines: what it says of a line that tests notice, miss, or that is gone."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "benchmarks" / "mutants.py"
CODE = "def double(x):\n    return 2 * x\n\n\ndef unseen(x):\n    return x + 1\n"
TESTS = """
import importlib.util
from pathlib import Path

def test_double():
    path = Path(__file__).parent / "src" / "orthobandit" / "sample.py"
    spec = importlib.util.spec_from_file_location("sample", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.double(3) == 6
"""


@pytest.fixture
def tool(monkeypatch):
    spec = importlib.util.spec_from_file_location("mutants", TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "noticed"),
    [("2 * x", "3 * x", "test_sample.py::test_double"), ("x + 1", "x - 1", ""), ("x + 7", "x - 7", None)],
)
def test_a_broken_line_is_noticed_missed_or_gone(tool, tmp_path, old, new, noticed):
    path = tmp_path / "src" / "orthobandit" / "sample.py"
    path.parent.mkdir(parents=True)
    path.write_text(CODE)
    (tmp_path / "test_sample.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    mutant = tool.Mutant("sample.py", old, new, ("test_sample.py",))
    assert tool.notices(tmp_path, mutant, mutant.tests, "not long") == noticed
    assert path.read_text() == CODE
