"""How far a stranger follows a reward: files, Python calls and moves between modules of eight walks.

    python -m benchmarks.reward_path            # the numbers
    python -m benchmarks.reward_path --files    # with the files of each walk, and the calls into each

The walks of a live experiment, kept in a file: ask, tell, a tell that changes the plan, open, and report. Of
a log: one CSV file from its rows to its page. Of the report: one figure, with few rounds, from its cells to
its page. Of a simulation: one batch, played, observed and decided on.

A call counts if its function is written in a file of the package, in whichever thread it runs: experiments
commit in a thread of their own. A move is a call into another file than that of the call before. Neither
imports nor lambdas, comprehensions and templates count. Compiled functions are compiled, as for users, and
what they call does not count; but a simulated batch is interpreted, since nearly all of it is compiled. Of
several asks or tells the most common walk is shown.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from _thread import start_new_thread
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import orthobandit
from orthobandit import SBE, AnytimeElimination, ArmSet, Experiment, Policy, analyse, simulate
from orthobandit.experiment import Proposal
from orthobandit.reproduction.paper import SECTIONS
from orthobandit.reproduction.report import build
from orthobandit.reproduction.section import Scope
from orthobandit.simulation import one_hot
from orthobandit.simulation.player import Player

ROOT = Path(orthobandit.__file__).parent
VISITORS = 900  # enough for several plans to end after the pilot
LATE = 400  # visitors after which a walk counts: those before belong to the warm-up and the pilot
SAMPLES = 9  # of each kind of walk
QUIET_SECONDS = 0.15  # without a call, after which all threads are done
UNCALLED = {"<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"}
INTERPRETED = "--interpreted"  # of the process that simulates


class Walk(NamedTuple):
    """The calls of a walk, in their order, each by the file of its function."""

    calls: tuple[str, ...]

    @property
    def files(self) -> Counter[str]:
        """Calls by file."""
        return Counter(self.calls)

    @property
    def moves(self) -> int:
        """How often a call goes into another file than that of the call before."""
        return sum(before != after for before, after in zip(self.calls, self.calls[1:], strict=False))

    def __str__(self) -> str:
        return f"{len(self.files)} files, {len(self.calls):,} calls, {self.moves:,} moves"


class Trace:
    """Calls into the package, in all threads, while it is on."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_on = False
        self._names: dict[CodeType, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call, as `sys.setprofile` tells it."""
        if event != "call" or not self.is_on:
            return
        code = frame.f_code
        if code not in self._names:
            self._names[code] = name_of(code)
        name = self._names[code]
        if name is not None:
            self.calls.append(name)

    @contextmanager
    def everywhere(self) -> Iterator[None]:
        """Look at this thread, and at all that are started meanwhile, by whichever means."""
        threading.setprofile(self)
        sys.setprofile(self)
        # `threading.setprofile` does not reach threads that are started by `_thread` alone.
        places = [
            (module, name)
            for title, module in list(sys.modules.items())
            if title.partition(".")[0] == "orthobandit"
            for name, value in list(vars(module).items())
            if value is start_new_thread
        ]
        for module, name in places:
            setattr(module, name, self._start_traced)
        try:
            yield
        finally:
            for module, name in places:
                setattr(module, name, start_new_thread)
            sys.setprofile(None)
            threading.setprofile(None)

    def _start_traced(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> int:
        def run() -> None:
            sys.setprofile(self)
            function(*arguments)

        return start_new_thread(run, ())

    def of(self, function: Callable[[], object]) -> Walk:
        """Return the walk of a function, until all threads are done with it."""
        self.calls = []
        self.is_on = True
        function()
        seen = -1
        while len(self.calls) > seen:
            seen = len(self.calls)
            time.sleep(QUIET_SECONDS)
        self.is_on = False
        return Walk(tuple(self.calls))


def name_of(code: CodeType) -> str | None:
    """Return the file of a function of the package; None for others, and for modules as they are imported."""
    # Jinja compiles templates to functions as well; they are not code that anybody reads as such.
    is_ours = code.co_filename.startswith(str(ROOT)) and code.co_filename.endswith(".py")
    return str(Path(code.co_filename).relative_to(ROOT)) if is_ours and code.co_name not in UNCALLED else None


def usual(walks: list[Walk]) -> Walk:
    """Return the walk that is most common, by its calls."""
    return Counter(walks).most_common(1)[0][0]


class Visits:
    """The same visitors, whenever they are played: nothing but watching differs.

    Parameters
    ----------
    where : Path
        File of the experiment.
    trace : Trace
    watched : collection of int
        Numbers of the visitors who are watched.
    """

    def __init__(self, where: Path, trace: Trace, watched: Collection[int] = ()) -> None:
        self.plans: list[int] = []
        self.asks: dict[int, Walk] = {}
        self.tells: dict[int, Walk] = {}
        rng = np.random.default_rng(0)
        policy = AnytimeElimination(rewards=(0, 1))
        self.pages = Experiment.create(where, ArmSet.one_hot(4), policy, window="1d", key="0" * 64)
        for number in range(VISITORS):
            proposals: list[Proposal] = []
            ask = partial(self._ask, f"visitor {number}", proposals)
            if number in watched:
                self.asks[number] = trace.of(ask)
            else:
                ask()
            [proposal] = proposals
            self.plans.append(proposal.plan)
            reward = float(rng.random() < 0.3 + 0.1 * proposal.arm)
            tell = partial(self.pages.tell, proposal.id, reward)
            if number in watched:
                self.tells[number] = trace.of(tell)
            else:
                tell()

    def _ask(self, unit: str, proposals: list[Proposal]) -> None:
        proposals.append(self.pages.ask(unit))

    @property
    def before_changes(self) -> list[int]:
        """Numbers of the visitors after whose reward the plan changed."""
        return [
            number for number in range(LATE, VISITORS - 1) if self.plans[number + 1] != self.plans[number]
        ]


def walk_experiment(folder: Path) -> dict[str, Walk]:
    """Return the walks of an experiment that is kept in a file."""
    trace = Trace()
    with trace.everywhere():
        first = Visits(folder / "first.db", trace)
        first.pages.close()
        changes = first.before_changes[-SAMPLES:]
        ordinary = sorted(set(range(LATE, VISITORS)) - set(first.before_changes))[-SAMPLES:]
        where = folder / "watched.db"
        visits = Visits(where, trace, {*changes, *ordinary})
        report = trace.of(visits.pages.report)
        visits.pages.close()
        opened: list[Experiment] = []
        opening = trace.of(lambda: opened.append(Experiment.open(where)))
        opened[0].close()
    return {
        "ask": usual([visits.asks[number] for number in ordinary]),
        "tell": usual([visits.tells[number] for number in ordinary]),
        "tell that changes the plan": usual([visits.tells[number] for number in changes]),
        "open": opening,
        "report": report,
    }


def walk_log(folder: Path) -> dict[str, Walk]:
    """Return the walk of the rows of a CSV file until they are a page."""
    rng = np.random.default_rng(0)
    rows = [
        f"{hour},{('old', 'new')[arm]},{np.sin(hour / 5) + 0.3 * arm + rng.normal():.4f}"
        for hour in range(100)
        for arm in rng.integers(0, 2, 20)
    ]
    path = folder / "log.csv"
    path.write_text("\n".join(["hour,page,reward", *rows]))
    trace = Trace()
    with trace.everywhere():
        walk = trace.of(lambda: analyse(path, arm="page", reward="reward", time="hour", split="equal").html())
    return {"CSV to page": walk}


def walk_figure(folder: Path) -> dict[str, Walk]:
    """Return the walk of a figure of the paper, from its cells to its page."""
    few_rounds = {"rounds": (20_000, 20_000)}
    figure = replace(SECTIONS["figure-3"], sizes=few_rounds)
    trace = Trace()
    with trace.everywhere():
        walk = trace.of(lambda: build([figure], folder / "report", Scope()))
    return {"reproduced figure": walk}


def walk_batch(policy: Policy[Any]) -> Walk:
    """Return the walk of the last rewards of a simulation with three arms."""
    trace = Trace()
    environment = one_hot([0.0, 0.0, 2.0])
    steps = {Player.play.__code__, type(policy).observe.__code__, type(policy).decide.__code__}
    first = Player.play.__code__

    def look(frame: FrameType, event: str, what: object) -> None:
        # Only within these three: what prepares the simulation and sums it up is no part of a batch.
        if frame.f_code in steps and event == "call":
            if frame.f_code is first:
                trace.calls = []
            trace.is_on = True
        trace(frame, event, what)
        if frame.f_code in steps and event == "return":
            trace.is_on = False

    sys.setprofile(look)
    try:
        result = simulate(
            policy, environment, horizon=20_000, replications=1, seed=1, stop_when_declared=True
        )
    finally:
        sys.setprofile(None)
    assert result.declared[0] == environment.best
    return Walk(tuple(trace.calls))


def show(walks: dict[str, Walk], *, with_files: bool, say: Callable[[str], None] = print) -> None:
    """Print the numbers, and the files if they are wanted."""
    for name, walk in walks.items():
        say(f"{name}: {walk}")
        for file, count in sorted(walk.files.items()) if with_files else ():
            say(f"  {count:6,} {file}")


def main() -> None:
    """Print the walks; those of a simulated batch from a process that compiles nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", action="store_true", help="print the files of each walk")
    parser.add_argument(INTERPRETED, action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.interpreted:
        warnings.simplefilter("ignore", RuntimeWarning)  # whole numbers that wrap around, as they should
        batches = {
            "simulated batch": walk_batch(AnytimeElimination(delta=0.1)),
            "simulated batch of SBE": walk_batch(SBE(delta=0.1)),
        }
        show(batches, with_files=chosen.files)
        return
    with tempfile.TemporaryDirectory() as name:
        walks = walk_experiment(Path(name)) | walk_log(Path(name)) | walk_figure(Path(name))
    show(walks, with_files=chosen.files)
    sys.stdout.flush()
    command = [sys.executable, "-m", "benchmarks.reward_path", INTERPRETED, *sys.argv[1:]]
    subprocess.run(command, check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})


if __name__ == "__main__":
    main()
