"""Run benchmarks, each in a process of its own so that peak memory is its own: `make bench [NAMES="a b"]`."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CALL = "import importlib, sys; importlib.import_module(sys.argv[1]).main()"


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
