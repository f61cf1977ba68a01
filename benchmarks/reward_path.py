"""How many files a reward passes through, from its draw to the declared arm.

Run by `python -m benchmarks.reward_path`. Counted are files of the package in which a function is called:
while the last batch is played, while the policy observes it, and while it decides. Nothing is compiled, so
that compiled functions count as well.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import orthobandit
from orthobandit import SBE, AnytimeElimination, Policy, simulate
from orthobandit.simulation import one_hot
from orthobandit.simulation.player import Player

ROOT = Path(orthobandit.__file__).parent
CALL = "from benchmarks.reward_path import main; main()"


class Passed:
    """The files of what is called within some functions, since the first of them was last entered."""

    def __init__(self, *functions: Any) -> None:
        self._entries = [function.__code__ for function in functions]
        self._open: list[FrameType] = []
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call or return, as `sys.setprofile` tells it."""
        if event == "call" and frame.f_code in self._entries:
            if frame.f_code is self._entries[0]:
                self.files = set()
            self._open.append(frame)
        if event == "call" and self._open and frame.f_code.co_filename.startswith(str(ROOT)):
            self.files.add(str(Path(frame.f_code.co_filename).relative_to(ROOT)))
        if event == "return" and self._open and frame is self._open[-1]:
            self._open.pop()


def files_of(policy: Policy[Any]) -> set[str]:
    """Return the files that the last rewards of an experiment with three arms pass through."""
    passed = Passed(Player.play, type(policy).observe, type(policy).decide)
    environment = one_hot([0.0, 0.0, 2.0])
    sys.setprofile(passed)
    try:
        found = simulate(policy, environment, horizon=20_000, replications=1, seed=1, stop_when_declared=True)
    finally:
        sys.setprofile(None)
    assert found.declared[0] == environment.best
    return passed.files


def main() -> None:
    """Print the files by policy; in a process without compiled functions."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        subprocess.run([sys.executable, "-c", CALL], check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
        return
    warnings.simplefilter("ignore", RuntimeWarning)  # whole numbers that wrap around, as they should
    for policy in (SBE(delta=0.1), AnytimeElimination(delta=0.1)):
        files = files_of(policy)
        print(f"{type(policy).__name__}: {len(files)} files")
        for name in sorted(files):
            print(f"  {name}")


if __name__ == "__main__":
    main()
