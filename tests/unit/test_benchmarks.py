"""The runner of the benchmarks: what it finds, what it reports."""

import runpy
from pathlib import Path

import numpy as np
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


def test_a_package_that_is_not_installed_is_a_sentence(runner, capfd):
    folder = runner.__globals__["HERE"]
    (folder / "bench_peer.py").write_text("def main():\n    import no_such_peer.part\n")
    assert runner(["peer"]) == 0
    printed = capfd.readouterr()
    assert printed.out == "== peer\nskipped: no_such_peer is not installed (pip install no_such_peer)\n"
    assert printed.err == ""


def test_a_missing_extra_is_said_in_its_own_words(runner, capfd):
    folder = runner.__globals__["HERE"]
    code = "from orthobandit.errors import MissingExtraError\n"
    code += "def main():\n    raise MissingExtraError('get it')\n"
    (folder / "bench_extra.py").write_text(code)
    assert runner(["extra"]) == 0
    assert capfd.readouterr().out == "== extra\nskipped: get it\n"


@pytest.mark.parametrize("broken", ["import orthobandit.nothing", "from orthobandit import nothing"])
def test_a_part_of_the_package_that_is_missing_is_a_failure(runner, capfd, broken):
    folder = runner.__globals__["HERE"]
    (folder / "bench_broken.py").write_text(f"def main():\n    {broken}\n")
    assert runner(["broken"]) == 1
    assert "nothing" in capfd.readouterr().err


def test_a_missing_peer_is_named_with_the_way_to_get_it(capsys):
    has_peer = runpy.run_path(str(RUNNER.parent / "__init__.py"))["has_peer"]
    assert has_peer("numpy")
    assert capsys.readouterr().out == ""
    assert not has_peer("numpy", "no_such_peer")
    assert capsys.readouterr().out == (
        "skipped beside no_such_peer: not installed (pip install no_such_peer)\n"
    )


def test_the_ratio_of_means_counts_what_runs_have_in_common():
    ratio_of_means = runpy.run_path(str(RUNNER.parent / "bench_power.py"))["ratio_of_means"]
    before = np.array([100.0, 200.0, 300.0, 400.0])
    # Runs that all shrink by a fifth leave no doubt about the ratio, however much they differ.
    assert ratio_of_means(0.8 * before, before) == pytest.approx((0.8, 0.0))
    # By hand: residuals 0.8·(±10) around 0, over √4 and a mean of 250.
    after = 0.8 * before + np.array([8.0, -8.0, -8.0, 8.0])
    error = np.sqrt(4 * 8.0**2 / 3) / 2 / 250
    assert ratio_of_means(after, before) == pytest.approx((0.8, error))


def test_a_checkout_without_the_package_is_refused(tmp_path):
    measure_tree = runpy.run_path(str(RUNNER.parent / "bench_power.py"))["measure_tree"]
    with pytest.raises(SystemExit, match="has no src/orthobandit"):
        measure_tree(tmp_path, 1, 0)


def test_lines_that_mutants_break_are_in_their_files_and_so_are_their_tests():
    mutants = runpy.run_path(str(RUNNER.parent / "mutants.py"))
    root = mutants["ROOT"]
    for mutant in mutants["MUTANTS"]:
        text = (root / "src" / "orthobandit" / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, (mutant.file, mutant.old)
        assert all((root / name).exists() for name in (*mutant.tests, *mutant.long)), mutant.file


def test_mutants_are_made_in_a_copy_of_all_sources():
    mutants = runpy.run_path(str(RUNNER.parent / "mutants.py"))
    for folder in (mutants["ROOT"] / "src", *(mutants["ROOT"] / "src").rglob("*")):
        if folder.is_dir() and folder.name != "__pycache__":
            names = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
            assert mutants["LEFT_OUT"](str(folder), names) == set(), folder
