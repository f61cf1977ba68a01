import json
import signal
import subprocess
import sys
import time

import pytest

from inside.reproduction import SECTIONS, Judgement, Measured
from orthobandit.cli import main

SPEC = """\
horizon = 300
replications = 4
shifts = ["sine"]
[policies.SBE]
kind = "sbe"
[instances.two]
kind = "one-hot"
means = [0.0, 1.0]
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(SPEC)
    return path


def test_sweep_prints_a_table_and_writes_parquet(spec, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["sweep", str(spec), "--out", str(out), "--jobs", "1"]) == 0
    shown = capsys.readouterr().out
    assert "SBE" in shown
    assert (out / "runs.parquet").is_file()
    assert (out / "curves.parquet").is_file()


def test_a_policy_added_later_is_all_that_is_computed(spec, tmp_path, capsys):
    out = str(tmp_path / "out")
    main(["sweep", str(spec), "--out", out, "--jobs", "1"])
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/cells").rglob("*.json")}
    spec.write_text(SPEC + '[policies.exact]\nkind = "sbe"\ndesign = "centred"\n')
    capsys.readouterr()
    assert main(["sweep", str(spec), "--out", out, "--jobs", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["policy"] for row in rows] == ["SBE", "exact"]
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/cells").rglob("*.json")}
    assert len(after) == 2 * len(before)
    assert all(after[path] == moment for path, moment in before.items())


def test_a_bad_spec_is_refused_before_anything_runs(spec, tmp_path, capsys):
    spec.write_text(SPEC.replace('kind = "sbe"', 'kind = "sbee"'))
    assert main(["sweep", str(spec), "--out", str(tmp_path / "out")]) == 2
    assert "study.toml line 5: unknown policy 'sbee'; did you mean 'sbe'?" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_reproduce_says_what_is_shown_and_where_the_report_is(tmp_path, capsys):
    out = tmp_path / "report"
    arguments = ["reproduce", "--only", "small-gap-20", "--out", str(out), "--jobs", "1", "--seed", "4"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "  shown        SP-BAI needs fewer samples than SBE, successor's phases (" in shown
    assert "claims: " in shown
    assert " 0 refuted" in shown
    assert shown.rstrip().endswith(f"report: {(out / 'index.html').resolve()}")
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "verdicts.json").read_text())


class Wrong:
    """A section without work, whose claim is refuted."""

    name, title, group, plain, claims = "wrong", "Wrong", "Tests", "It is wrong.", "Two is at most one."

    def setting(self, scope):
        return f"seed {scope.seed}."

    def cells(self, scope):  # noqa: ARG002
        return []

    def verdicts(self, data):  # noqa: ARG002
        return [Judgement("two", "two is at most one", "here", "two", Measured.exactly(2), "≤", 1)]

    def grids(self, data):  # noqa: ARG002
        return []

    charts = grids


def test_a_refuted_claim_exits_with_1(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SECTIONS, "wrong", Wrong())
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--only", "wrong", "--jobs", "1"]) == 1
    shown = capsys.readouterr().out
    assert "  REFUTED      two is at most one (2, computed exactly, needed ≤ 1)" in shown
    assert "1 claim: 0 shown, 0 undecided, 1 refuted" in shown
    # Without --out a part goes elsewhere than a whole report.
    assert (tmp_path / "report-wrong" / "index.html").is_file()
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "figure-9"], "--only figure-9 is not one of 'figure-1', 'figure-2'"),
        (["--out", "/dev/null/x", "--only", "scaling"], "--out /dev/null/x cannot be created"),
        (["--seed", "-1", "--only", "scaling"], "reproduce: --seed -1 must be a whole number of at least 0"),
        (["--jobs", "0", "--only", "scaling"], "reproduce: --jobs 0 must be a whole number"),
    ],
)
def test_wrong_input_is_named_and_exits_with_2(tmp_path, capsys, arguments, said):
    assert main(["reproduce", "--out", str(tmp_path / "report"), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_after_ctrl_c_the_same_command_goes_on(spec, tmp_path):
    spec.write_text(SPEC.replace("replications = 4", "replications = 400\nbatch = 1"))
    cells = tmp_path / "out" / "cells"
    command = [sys.executable, "-c", "from orthobandit.cli import main; raise SystemExit(main())"]
    command += ["sweep", str(spec), "--out", str(tmp_path / "out"), "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        while process.poll() is None and len(list(cells.rglob("*.json"))) < 3:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "run the same command again to go on" in said
    kept = {path: path.stat().st_mtime_ns for path in cells.rglob("*.json")}
    assert 3 <= len(kept) < 400
    assert main(["sweep", str(spec), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert len(list(cells.rglob("*.json"))) == 400
    assert all(path.stat().st_mtime_ns == moment for path, moment in kept.items())
