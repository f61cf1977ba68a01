"""Run benchmarks, each in a process of its own so that peak memory is its own: `make bench [NAMES="a b"]`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# A package that is not installed is a sentence, unless it is a part of this one.
CALL = """
import importlib, sys
try:
    importlib.import_module(sys.argv[1]).main()
except ImportError as error:
    lacks_extra = type(error).__name__ == "MissingExtraError"
    name = (error.name or "orthobandit").partition(".")[0]
    is_foreign = isinstance(error, ModuleNotFoundError) and name not in ("orthobandit", "benchmarks")
    if not lacks_extra and not is_foreign:
        raise
    print(f"skipped: {error}" if lacks_extra else f"skipped: {name} is not installed (pip install {name})")
"""


def available() -> list[str]:
    """Return the names of all benchmarks, in alphabetical order."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def run(name: str) -> bool:
    """Run one benchmark and tell whether it succeeded."""
    print(f"== {name}", flush=True)
    command = [sys.executable, "-c", CALL, f"benchmarks.bench_{name}"]
    return subprocess.run(command, cwd=HERE.parent, check=False).returncode == 0


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them; return the exit status."""
    known = available()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known) or 'none'}", file=sys.stderr)
        return 2
    failed = [name for name in names or known if not run(name)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
