"""The runner of the benchmarks: what it finds, what it reports."""

import runpy
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[2] / "benchmarks" / "__main__.py"


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Point the runner at a folder with one benchmark that succeeds and one that fails."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "bench_good.py").write_text("def main():\n    print('measured')\n")
    (folder / "bench_bad.py").write_text("def main():\n    raise RuntimeError\n")
    (folder / "helper.py").write_text("raise RuntimeError\n")
    main = runpy.run_path(str(RUNNER))["main"]
    monkeypatch.setitem(main.__globals__, "HERE", folder)
    return main


def test_the_named_benchmark_runs_in_its_own_process(runner, capfd):
    assert runner(["good"]) == 0
    assert capfd.readouterr().out == "== good\nmeasured\n"


def test_all_benchmarks_run_although_one_fails(runner, capfd):
    assert runner([]) == 1
    printed = capfd.readouterr()
    assert printed.out == "== bad\n== good\nmeasured\n"
    assert printed.err.endswith("failed: bad\n")


def test_an_unknown_benchmark_is_named_beside_the_known(runner, capfd):
    assert runner(["good", "fast"]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == "no benchmark fast; there are: bad, good\n"
