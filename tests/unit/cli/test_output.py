"""Where output goes: closed pipes, full disks, results that cannot be stored, workers that must not stay."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inside.reproduction import SECTIONS, Judgement, Measured
from orthobandit.cli import main
from orthobandit.study import Part, Sweep
from processes import has_members

COMMAND = [sys.executable, "-c", "import sys; from orthobandit.cli import main; sys.exit(main())"]
FAST = ["simulate", "--dimension", "2", "--arms", "4", "--horizon", "200", "--replications", "4"]
SPEC = """\
horizon = {horizon}
replications = 8
batch = 1
shifts = ["sine"]
[policies.uniform]
kind = "uniform"
[instances.two]
kind = "one-hot"
means = [0.0, 1.0]
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("page,price,colour\nplain,0,0\nbold,1,0\nsale,0,1\nboth,1,1\n")
    return str(path)


@pytest.fixture
def full_disk(monkeypatch):
    """Let every file end in "No space left on device" halfway through."""

    def fail(path, *_, **__):
        with path.open("w") as file:
            file.write("half of ")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    monkeypatch.setattr(Path, "write_bytes", fail)
    monkeypatch.setattr("pyarrow.parquet.write_table", lambda table, path: fail(path))


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def run(*arguments, **options):
    command = [*COMMAND, *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)  # noqa: S603


@pytest.mark.skipif(os.name == "nt", reason="pipes differ")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["design", "{}", "--runs", "0"], marks=pytest.mark.slow),
        ["simulate", "--help"],
        pytest.param(FAST, marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_goes_away_is_no_error(arguments, table):
    read, write = os.pipe()
    os.close(read)
    done = run(*(argument.format(table) for argument in arguments), stdout=write)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_output_to_a_full_device_is_named(table):
    with Path("/dev/full").open("w") as full:
        done = run("design", table, "--runs", "0", stdout=full)
    assert done.stderr == "orthobandit: [Errno 28] No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_a_design_is_printed_even_if_it_cannot_be_stored(table, tmp_path, capsys, full_disk, suffix):
    out = tmp_path / "out" / f"design.{suffix}"
    assert main(["design", table, "--runs", "0", "--out", str(out)]) == 2
    shown = capsys.readouterr()
    assert "centred design of 4 arms" in shown.out
    assert shown.err == f"orthobandit design: {out} cannot be written: No space left on device\n"
    assert not files_in(out.parent)


def test_a_simulation_is_printed_even_if_it_cannot_be_stored(tmp_path, capsys, full_disk):
    out = tmp_path / "out"
    assert main([*FAST, "--json", "--out", str(out)]) == 2
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert report["policies"][0]["policy"] == "sbe"
    assert report["files"] == []
    assert f"{out / 'sbe.parquet'} cannot be written: No space left on device" in shown.err
    assert not files_in(out)


def test_a_run_whose_parts_cannot_be_kept_goes_on(tmp_path, capsys, full_disk):
    assert main([*FAST, "--resume", str(tmp_path / "parts")]) == 0
    shown = capsys.readouterr()
    assert "sbe" in shown.out
    assert shown.err.count("No space left on device; the run goes on without keeping parts") == 1
    assert not files_in(tmp_path)


def test_a_study_is_printed_even_if_it_cannot_be_stored(tmp_path, capsys, monkeypatch):
    spec = tmp_path / "study.toml"
    spec.write_text(SPEC.format(horizon=50))

    def fail(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    monkeypatch.setattr("pyarrow.parquet.write_table", lambda table, path: fail(path))
    out = tmp_path / "out"
    assert main(["sweep", str(spec), "--out", str(out), "--jobs", "1"]) == 2
    shown = capsys.readouterr()
    assert "none declared" in shown.out
    assert shown.err.count("the study goes on without keeping cells") == 1
    assert f"{out / 'curves.parquet'} cannot be written: No space left on device" in shown.err
    assert not files_in(out)


class Tiny:
    """A section with one cell, whose claim is refuted."""

    name, title, group, plain, claims = "tiny", "Tiny", "Tests", "It is tiny.", "Two runs are at most one."

    def setting(self, scope):
        return f"seed {scope.seed}."

    def cells(self, scope):  # noqa: ARG002
        return Sweep(
            policies={"uniform": Part("uniform")},
            instances={"two": Part("one-hot", {"means": [0.0, 1.0]})},
            shifts={"none": Part("none")},
            horizon=20,
            replications=2,
        ).cells()

    def verdicts(self, data):
        runs = len(data["runs"]["regret"])
        return [Judgement("runs", "there is one run", "here", "runs", Measured.exactly(runs), "≤", 1)]

    def grids(self, data):  # noqa: ARG002
        return []

    charts = grids


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_verdicts_are_printed_even_if_the_report_cannot_be_stored(
    tmp_path, capsys, monkeypatch, full_disk, form
):
    monkeypatch.setitem(SECTIONS, "tiny", Tiny())
    out = tmp_path / "report"
    assert main(["reproduce", "--only", "tiny", "--out", str(out), "--jobs", "1", *form]) == 2
    shown = capsys.readouterr()
    if form:
        assert json.loads(shown.out)["tally"] == {
            "refuted": 1,
            "undecided": 0,
            "shown": 0,
            "no": 0,
            "open": 0,
            "yes": 0,
        }
    else:
        assert "  REFUTED      there is one run (2, computed exactly, needed ≤ 1)" in shown.out
        assert "1 claim: 0 shown, 0 undecided, 1 refuted" in shown.out
        assert "report:" not in shown.out
    assert shown.err.count("the study goes on without keeping cells") == 1
    assert f"{out / 'data' / 'tiny' / 'curves.parquet'} cannot be written: No space left" in shown.err
    assert not files_in(out)


def test_verdicts_are_printed_if_the_folder_goes_while_cells_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SECTIONS, "tiny", Tiny())
    out = tmp_path / "report"

    def verdicts(self, data):
        found = verdict_of(self, data)
        shutil.rmtree(out)
        out.write_text("a file stands in the way")
        return found

    verdict_of = Tiny.verdicts
    monkeypatch.setattr(Tiny, "verdicts", verdicts)
    assert main(["reproduce", "--only", "tiny", "--out", str(out), "--jobs", "1"]) == 2
    shown = capsys.readouterr()
    assert "REFUTED" in shown.out
    assert "curves.parquet cannot be written: Not a directory" in shown.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
def test_a_study_that_is_ended_leaves_no_workers(tmp_path, end):
    spec = tmp_path / "study.toml"
    spec.write_text(SPEC.format(horizon=10**12))
    command = [*COMMAND, "sweep", str(spec), "--out", str(tmp_path / "out"), "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    if children.exists():
        # Two workers and the process that tracks what they share.
        while len(children.read_text().split()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
    time.sleep(2)  # for the workers to be at work
    assert process.poll() is None
    os.kill(process.pid, end)
    process.communicate(timeout=60)
    while has_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    remain = has_members(process.pid)
    if remain:
        os.killpg(process.pid, signal.SIGKILL)
    assert not remain
