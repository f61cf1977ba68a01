"""CI runs the long tests that a change concerns first, and the others in turn."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    "tests/docs/test_pages.py",
    "tests/faults/test_kills.py",
    "tests/statistical/test_anytime.py",
    "tests/statistical/test_logs.py",
]
SAMPLE = """
def test_one():
    pass

def test_two():
    assert False
"""


@pytest.fixture(scope="module")
def long():
    spec = importlib.util.spec_from_file_location("long", ROOT / ".ci" / "long.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("docs/logs.md", {"tests/docs/test_pages.py"}),
        ("src/orthobandit/logs/analysis.py", {"tests/statistical/test_logs.py"}),
        ("src/orthobandit/service/app.py", {"tests/faults/test_kills.py"}),
        ("src/orthobandit/policy/sbe.py", set(FILES[2:])),
        ("tests/faults/test_kills.py", {"tests/faults/test_kills.py"}),
    ],
)
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_what_a_change_concerns_comes_first(long, changed, first, seed):
    ordered = long.put_in_order(FILES, [changed], seed)
    assert set(ordered[: len(first)]) == first
    assert sorted(ordered) == FILES


def test_every_file_has_its_turn_and_a_commit_its_order(long):
    ordered = [long.put_in_order(FILES, [], str(seed)) for seed in range(50)]
    assert {order[0] for order in ordered} == set(FILES)
    assert long.put_in_order(FILES, [], "7") == ordered[7]


def test_files_of_long_tests_are_found_by_folder_and_by_mark(long):
    found = long.long_files()
    assert "tests/statistical/test_guarantees.py" in found
    assert "tests/unit/experiment/store/test_crash.py" in found
    assert "tests/unit/test_linalg.py" not in found


def test_the_folders_are_those_of_the_suite(long):
    text = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    assert text.count("LONG_FOLDERS = {" + ", ".join(f'"{name}"' for name in sorted(long.FOLDERS)) + "}") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("until", "outcome", "status"), [("0", "2 skipped", 0), ("inf", "1 failed, 1 passed", 1)]
)
def test_no_test_begins_when_time_is_over_and_what_is_left_is_said(
    tmp_path, monkeypatch, until, outcome, status
):
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    monkeypatch.setenv("ORTHOBANDIT_TESTS_UNTIL", until)
    settings = ["-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, "-c", "/dev/null"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *settings,
        "--confcutdir",
        tmp_path,
        "-p",
        "conftest",
        tmp_path,
    ]
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)  # noqa: S603
    assert outcome in done.stdout
    assert done.returncode == status
    assert ("test_sample.py: 2 tests" in done.stdout) == (until == "0")
