"""Would the tests notice? Break one line at a time, and see whether they fail.

    python -m benchmarks.mutants            # with the tests of `make test` that are named beside each line
    python -m benchmarks.mutants --all      # with all tests of `make test`
    python -m benchmarks.mutants --long     # with the long tests that are named
    python -m benchmarks.mutants 3 17       # some of the lines, by their number

Works on a copy; a line that is no longer in its file is named, and counts as not found. Before any line is
broken, all tests of the copy are collected: one that cannot be imported would seem to notice everything.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "_build")


class Mutant(NamedTuple):
    """A line, what it becomes, and the tests that should notice: in `make test`, and long ones."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    long: tuple[str, ...] = ("tests/statistical",)


MUTANTS = (
    Mutant(
        "estimate/tally.py",
        "            self.squares + other.squares,",
        "            self.squares,",
        ("tests/unit/estimate", "tests/property/test_tally.py"),
    ),
    Mutant(
        "estimate/tally.py",
        "np.maximum(self.largest, other.largest)",
        "np.minimum(self.largest, other.largest)",
        ("tests/unit/estimate", "tests/property/test_tally.py"),
    ),
    Mutant(
        "estimate/orthogonal.py",
        "Moments(self.gram + other.gram,",
        "Moments(self.gram - other.gram,",
        ("tests/unit/estimate", "tests/property/test_orthogonal.py"),
    ),
    Mutant(
        "estimate/confidence/boundaries.py",
        "/ (double + np.log1p(double))",
        "/ (double - np.log1p(double))",
        ("tests/unit/estimate", "tests/unit/policy/anytime"),
    ),
    Mutant(
        "estimate/confidence/boundaries.py",
        "+ goal - LOG_TWO - offsets[k]",
        "+ goal - offsets[k]",
        ("tests/unit/estimate",),
    ),
    Mutant(
        "policy/sbe.py",
        "np.ldexp(1.0, -ended.phase)",
        "np.ldexp(1.0, 1 - ended.phase)",
        ("tests/unit/policy/test_sbe.py", "tests/property/test_sbe.py"),
        ("tests/statistical/test_sbe.py",),
    ),
    Mutant(
        "policy/sbe.py",
        "np.ldexp(1.0, 2 - state.phase)",
        "np.ldexp(1.0, 1 - state.phase)",
        ("tests/unit/policy/test_sbe.py", "tests/property/test_sbe.py"),
        ("tests/statistical/test_sbe.py",),
    ),
    Mutant(
        "policy/phases.py",
        "Ahead(ended.arms, ended.phase + 1,",
        "Ahead(ended.arms, ended.phase,",
        ("tests/unit/policy/test_sbe.py", "tests/unit/peers/test_phased.py"),
        ("tests/statistical/test_sbe.py",),
    ),
    Mutant(
        "policy/anytime/delta.py",
        "delta * (1.0 - 1e-12) / np.maximum(used, delta / 2.0)",
        "2.0 * delta / np.maximum(used, delta / 2.0)",
        ("tests/unit/policy/anytime", "tests/unit/estimate/confidence"),
        ("tests/statistical/test_anytime.py",),
    ),
    Mutant(
        "experiment/draw/hashing.py",
        "(words >> np.uint64(11))",
        "(words >> np.uint64(12))",
        ("tests/unit/experiment/draw",),
        ("tests/statistical/test_draws.py",),
    ),
    Mutant(
        "estimate/health/constancy.py",
        "* gaps * 4.0)",
        "* gaps * 2.0)",
        ("tests/unit/estimate/health",),
        ("tests/statistical/test_health.py",),
    ),
    Mutant(
        "experiment/ledger/accounts.py",
        "np.add.at(self.silent, run.arms[silent], 1)",
        "np.add.at(self.silent, run.arms, 1)",
        ("tests/unit/experiment/test_experiment.py",),
        ("tests/statistical/test_health.py",),
    ),
    Mutant(
        "experiment/commit/requests.py",
        "if found.words != words or",
        "if found.words == words or",
        ("tests/unit/experiment/commit",),
        ("tests/faults",),
    ),
    Mutant(
        "experiment/ledger/accounts.py",
        "learn(values - self._values_of(place, plan)[arms]",
        "learn(values + self._values_of(place, plan)[arms]",
        ("tests/unit/experiment",),
        ("tests/statistical/test_experiments.py",),
    ),
    Mutant(
        "logs/effects/effects.py",
        "fixed_low=np.maximum(estimates - below, -widest)",
        "fixed_low=np.maximum(estimates + below, -widest)",
        ("tests/unit/logs/effects/test_effects.py", "tests/unit/logs/test_analysis.py", "tests/unit/logs"),
        ("tests/statistical/test_logs.py",),
    ),
    Mutant(
        "estimate/follow/averages.py",
        "cls(ratio - 1.0, wanted - plans,",
        "cls(ratio, wanted - plans,",
        ("tests/unit/logs/effects/test_value.py",),
        ("tests/statistical/test_logs.py",),
    ),
    Mutant(
        "estimate/follow/averages.py",
        "alpha /= (step + 1) * (step + 2)",
        "alpha /= step + 1",
        ("tests/unit/estimate/follow/test_averages.py",),
        ("tests/statistical/test_logs.py",),
    ),
    Mutant(
        "service/http/admission.py",
        "full = max(full, now) + self._step",
        "full = full + self._step",
        ("tests/service/test_rates.py", "src/orthobandit/service/http/admission.py"),
        ("tests/faults",),
    ),
    Mutant(
        "service/background/webhook_signatures.py",
        "abs(now - at) > TOLERANCE_SECONDS",
        "now - at > TOLERANCE_SECONDS",
        ("tests/service/test_webhooks.py", "src/orthobandit/service/background/webhook_signatures.py"),
        ("tests/faults",),
    ),
    Mutant(
        "service/http/idempotency.py",
        'f"{self._path}\\n{text}"',
        'f"{text}"',
        ("tests/service/test_idempotency.py",),
        ("tests/faults",),
    ),
)


def notices(folder: Path, mutant: Mutant, tests: tuple[str, ...], marks: str) -> str | None:
    """Return the first test that fails with the line changed, "" if none does; None if the line is gone."""
    path = folder / "src" / "orthobandit" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return None
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    there = [name for name in tests if (folder / name).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *there]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        path.write_text(text, encoding="utf-8")
    if done.returncode not in (0, 1, 2):  # neither passed nor failed: there was nothing to run, or no pytest
        raise SystemExit(f"{mutant.file}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[0] if failed else "unnamed" if done.returncode else ""


def collect(folder: Path) -> None:
    """Stop if some test cannot be collected though no line is broken."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the tests cannot be collected: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def main(arguments: list[str] | None = None) -> None:
    """Print which lines would be missed, and how many are noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("numbers", type=int, nargs="*", help="lines to break (default: all)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all tests of `make test`")
    which.add_argument("--long", action="store_true", help="the long tests that are named")
    options = parser.parse_args(arguments)
    chosen = [(n, one) for n, one in enumerate(MUTANTS, 1) if not options.numbers or n in options.numbers]
    found = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folder = Path(temporary) / "copy"
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
        collect(folder)
        for number, mutant in chosen:
            named = mutant.long if options.long else ("tests", "src") if options.all else mutant.tests
            by = notices(folder, mutant, named, "long" if options.long else "not long")
            said = "no longer found" if by is None else f"noticed by {by}" if by else "MISSED"
            print(f"{number:2d} {mutant.file}: {mutant.new.strip()}: {said}", flush=True)
            found.append(by)
    missing = f"; {found.count(None)} lines are no longer found" if None in found else ""
    print(f"{sum(map(bool, found))} of {len(found) - found.count(None)} noticed{missing}")


if __name__ == "__main__":
    main(sys.argv[1:])
