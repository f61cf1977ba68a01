"""Run as many of the long tests as time allows: `long.py SECONDS [PYTEST ARGUMENTS…]`.

What recent commits touched comes first. The order of the others is drawn anew for every commit, so that each
gets its turn.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECENT_COMMITS = 10
# Tests of these folders are long; in the others, those of files with such a mark.
FOLDERS = ("browser", "docs", "examples", "faults", "paper", "statistical")
MARKS = ("mark.slow", "mark.statistical")
# Which long tests protect what: the first part of a changed path, and that of the tests.
PROTECTS = {
    "src/orthobandit/design": ("tests/statistical", "tests/paper"),
    "src/orthobandit/estimate": ("tests/statistical", "tests/paper"),
    "src/orthobandit/peers": ("tests/statistical", "tests/paper"),
    "src/orthobandit/policy": ("tests/statistical", "tests/paper"),
    "src/orthobandit/simulation": ("tests/statistical", "tests/paper", "tests/examples"),
    "src/orthobandit/experiment": (
        "tests/statistical/test_experiments",
        "tests/faults",
        "tests/unit/experiment",
    ),
    "src/orthobandit/logs": ("tests/statistical/test_log", "tests/examples/test_log", "tests/unit/logs"),
    "src/orthobandit/service": ("tests/service", "tests/faults", "tests/browser"),
    "src/orthobandit/study": ("tests/paper", "tests/unit/study"),
    "src/orthobandit/reproduction": ("tests/paper",),
    "docs": ("tests/docs",),
    "examples": ("tests/examples",),
    "README.md": ("tests/docs",),
    "CONTRIBUTING.md": ("tests/docs",),
}


def long_files() -> list[str]:
    """Return the files that hold long tests, in alphabetical order."""
    found = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = path.relative_to(ROOT / "tests").parts[0]
        if folder in FOLDERS or any(mark in path.read_text(encoding="utf-8") for mark in MARKS):
            found.append(path.relative_to(ROOT).as_posix())
    return sorted(found)


def put_in_order(files: Iterable[str], changed: Iterable[str], seed: str) -> list[str]:
    """Return the files in the order in which they run: what changed first, else as the seed draws it."""
    names = list(changed)
    starts = [start for start in PROTECTS if any(name.startswith(start) for name in names)]
    touched = tuple(target for start in starts for target in PROTECTS[start])
    drawn = sorted(files)
    random.Random(seed).shuffle(drawn)  # noqa: S311 - an order, no secret
    # A sort keeps the drawn order of equals.
    return sorted(drawn, key=lambda file: not (file in names or file.startswith(touched)))


def git(*arguments: str) -> str:
    """Return what git prints; nothing where there is no history."""
    done = subprocess.run(  # noqa: S603
        ["git", *arguments],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def main(seconds: float, arguments: list[str]) -> int:
    """Run the files in their order until the time is over; return pytest's exit status."""
    changed = set(git("log", f"-{RECENT_COMMITS}", "--name-only", "--format=").split())
    files = put_in_order(long_files(), changed, seed=git("rev-parse", "HEAD"))
    print(f"long tests for {seconds:.0f} s, in this order:", *files, sep="\n  ", flush=True)
    chosen = ["-m", "long", "--dist", "loadfile", "--no-loadscope-reorder", "--durations", "15"]
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pytest", *chosen, *arguments, *files],
        cwd=ROOT,
        env={**os.environ, "ORTHOBANDIT_TESTS_UNTIL": str(time.time() + seconds)},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
