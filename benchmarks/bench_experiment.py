"""Speed and memory of live experiments, beside Optuna's ask and tell on SQLite in the same run.

``make bench NAMES=experiment`` prints the table; ``python -m benchmarks.bench_experiment --quick`` has a
tenth of the work. A row is what was measured, the target, and whether it is met. Rates are per second of the
clock, the best of a few runs, and beside it per second of the processor, which other work on the machine
disturbs less. A pair is one ask and one tell.
"""

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import has_peer
from orthobandit import ArmSet, Experiment
from orthobandit.policy import UniformAllocation

PAIRS = 200_000  # in batches, a run; a tenth of them one by one, and in a file
PROPOSALS = 10_000_000  # of the run that is weighed
THREADS = 8
ARMS = ArmSet.one_hot(4)
ROOT = Path(__file__).parents[1]


def report(name: str, value: float, target: float, note: str = "", *, least: bool = True) -> None:
    """Print one row; the target is the least that will do, or the most."""
    is_met, sign = (value >= target, "≥") if least else (value <= target, "≤")
    verdict = "met" if is_met else "MISSED"
    print(f"{name:<58} {value:>12,.0f}   {sign} {target:<9,.0f} {verdict}  {note}", flush=True)


def rates(work: Callable[[int], None], pairs: int, repeats: int = 5) -> tuple[float, float]:
    """Return the most pairs per second of the clock, and per second of the processor."""
    work(max(pairs // 20, 1))
    found = []
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        work(pairs)
        found.append((time.perf_counter() - clock, time.process_time() - processor))
    return pairs / min(one for one, _ in found), pairs / min(one for _, one in found)


def batches(experiment: Experiment, pairs: int, size: int) -> None:
    """Ask and tell so many at a time."""
    rewards = np.random.default_rng(0).random(size)  # all alike would take no room
    for _ in range(max(pairs // size, 1)):
        experiment.tell_many([one.id for one in experiment.ask_many(size)], rewards)


def singles(experiment: Experiment, pairs: int) -> None:
    """Ask and tell one by one."""
    for _ in range(pairs):
        experiment.tell(experiment.ask().id, 1.0)


def threaded(work: Callable[[int], None], pairs: int) -> None:
    """Share work among several threads."""
    share = max(pairs // THREADS, 1)
    threads = [threading.Thread(target=work, args=(share,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_memory(pairs: int) -> None:
    """Time a fixed plan in memory: batches of 100, then one by one."""
    live = Experiment.memory(ARMS, UniformAllocation(), rewards="unknown")
    clock, processor = rates(lambda count: batches(live, count, 100), pairs // 5)
    report("memory, batches of 100: pairs/s", clock, 100_000, f"{processor:,.0f} a second of the processor")
    live = Experiment.memory(ARMS, UniformAllocation(), rewards="unknown")
    clock, processor = rates(lambda count: singles(live, count), pairs // 20)
    report("memory, one by one: pairs/s", clock, 5_000, f"{processor:,.0f} a second of the processor")


def on_disk(pairs: int) -> None:
    """Time a SQLite file, eight threads and one, one by one; then Optuna's SQLite, the same way."""
    with tempfile.TemporaryDirectory() as folder:
        with Experiment.create(f"{folder}/live.db", ARMS, UniformAllocation(), rewards="unknown") as live:
            ours = partial(singles, live)
            eight, processor = rates(lambda count: threaded(ours, count), pairs // 100, repeats=3)
            alone, _ = rates(ours, pairs // 1000, repeats=3)
        commit = commit_seconds(Path(folder))
        note = f"{processor:,.0f} a second of the processor; a bare commit takes {1e3 * commit:.1f} ms here"
        report(f"SQLite, {THREADS} threads, one by one: pairs/s", eight, 2_000, note)
        if not has_peer("optuna"):
            return
        theirs, count = optuna_pairs(Path(folder)), THREADS * max(pairs // 80_000, 1)
        eight_there, _ = rates(lambda count: threaded(theirs, count), count, repeats=3)
        alone_there, _ = rates(theirs, count, repeats=3)
    note = f"{eight_there:,.1f} pairs/s there"
    report(f"SQLite, {THREADS} threads: times Optuna's ask and tell", eight / eight_there, 20, note)
    note = f"{alone:,.0f} against {alone_there:,.1f} pairs/s, each commit waiting for the disk"
    report("SQLite, one thread: times Optuna's ask and tell", alone / alone_there, 1, note)


def commit_seconds(folder: Path, commits: int = 100) -> float:
    """Return how long the disk takes: one row and one commit of plain SQLite, with the settings used here."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE numbers (number INTEGER)")
    start = time.perf_counter()
    for number in range(commits):
        connection.execute("INSERT INTO numbers VALUES (?)", (number,))
    elapsed = time.perf_counter() - start
    connection.close()
    return elapsed / commits


def optuna_pairs(folder: Path) -> Callable[[int], None]:
    """Return what asks and tells Optuna, with its random sampler: one arm of four, one number back."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    patient = {"connect_args": {"timeout": 60.0}}  # its threads wait for each other as ours do
    study = optuna.create_study(
        storage=optuna.storages.RDBStorage(f"sqlite:///{folder / 'optuna.db'}", engine_kwargs=patient),
        sampler=optuna.samplers.RandomSampler(seed=0),
        direction="maximize",
    )

    def work(pairs: int) -> None:
        for _ in range(pairs):
            trial = study.ask()
            trial.suggest_categorical("arm", list(ARMS.labels))
            study.tell(trial, 1.0)

    return work


def weigh(proposals: int) -> None:
    """Ask and tell in batches of 1000, and print how many megabytes the process took at its peak."""
    live = Experiment.memory(ARMS, UniformAllocation(), rewards="unknown")
    batches(live, proposals, 1000)
    settled = live.report().settled
    assert settled == proposals, f"{settled} of {proposals} are settled"
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)


def memory(proposals: int) -> None:
    """Weigh a process of its own."""
    call = f"from benchmarks.bench_experiment import weigh; weigh({proposals})"
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", call],
        cwd=ROOT,
        env={**os.environ, **single},
        capture_output=True,
        text=True,
        check=True,
    )
    report(f"memory, {proposals:,} proposals told: peak MB", float(done.stdout), 500, least=False)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    share = 10 if "--quick" in (arguments or []) else 1
    in_memory(PAIRS // share)
    on_disk(PAIRS // share)
    memory(PROPOSALS // share)


if __name__ == "__main__":
    main(sys.argv[1:])
