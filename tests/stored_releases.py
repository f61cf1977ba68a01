"""Databases that earlier releases wrote, for tests of what an upgrade does to them.

``tests/data/RELEASE-closed.sqlite.xz`` was closed cleanly; the process that wrote
``RELEASE-killed.sqlite.xz`` ended by ``os._exit`` while rewards of five proposals of each experiment were
awaited. Each was written with the sources of its release on the path, here of commit 3de0c81, release 0.2.0::

    git archive 3de0c81 | tar -x -C /tmp/old
    PYTHONPATH=/tmp/old/src python tests/stored_releases.py tests/data 0.2.0

"0.2.0-last" in the same way by commit a571137, the last whose states have no number of a format, and "0.3.0"
by commit 09f3dbc.

Experiments of each database: ``exact`` is under way, ``declared`` has found its winner, ``unknown`` makes
asymptotic claims, ``guarded`` has a guardrail, a holdout and a window, ``sbe`` has a policy that makes no
claims. In ``quiet``, which only 0.3.0 has, rewards are 0 or 50 and the first 80 are 0. Of the killed
database, ``exact`` and ``guarded`` were closed half-way and opened again, so that they have a state of then
and entries after it; the others have entries alone.
"""

import hashlib
import lzma
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parent / "data"
RELEASES = ("0.2.0", "0.2.0-last", "0.3.0")
NAMES = ("exact", "declared", "unknown", "guarded", "sbe")
QUIET = "quiet"
ENDS = ("closed", "killed")
TOLD = 200  # proposals of each experiment whose rewards are known
# Sums of the rewards that were told, as the script said when it wrote the databases.
REWARDS = {
    "0.2.0": {"exact": 50.0, "declared": 137.0, "unknown": 453.11, "guarded": 54.0, "sbe": 45.0},
    "0.2.0-last": {"exact": 50.0, "declared": 142.0, "unknown": 453.11, "guarded": 52.0, "sbe": 45.0},
    "0.3.0": {
        "exact": 50.0,
        "declared": 137.0,
        "unknown": 453.11,
        "guarded": 52.0,
        "sbe": 45.0,
        "quiet": 1850.0,
    },
}
AWAITED = 5  # proposals of each experiment of a killed database whose rewards never came


class Clock:
    """A second later each time it is looked at."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def unpack(release: str, end: str, folder: Path) -> Path:
    """Write a database of a release into a folder, and return where it is."""
    path = folder / "experiments.sqlite"
    path.write_bytes(lzma.decompress((DATA / f"{release}-{end}.sqlite.xz").read_bytes()))
    return path


def ask_units(experiment: Any, units: list[str], **more: Any) -> list[Any]:
    """Ask for proposals in whatever way the release has."""
    ask = experiment.ask_many if hasattr(experiment, "ask_many") else experiment.ask
    return list(ask(units=units, **more))


class World:
    """Rewards and metrics of one experiment; the same numbers for the same units."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seed = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
        self.told = 0
        self.rewards = 0.0

    def reward(self, number: int, arm: int) -> dict[str, float]:
        """Return what a unit returns under an arm, by metric."""
        rng = np.random.default_rng((self.seed, number))
        level = 0.1 * np.sin(number / 30.0)
        if self.name == "unknown":
            return {"reward": round(float(rng.normal(2.0 + level + 0.2 * arm)), 2)}
        chances = {"declared": (0.05, 0.9)}.get(self.name, (0.2, 0.3, 0.4))
        won = float(rng.random() < chances[arm] + 0.3 * level)
        if self.name == QUIET:
            return {"reward": 50.0 * won * (number >= 80)}
        if self.name == "guarded":
            return {"reward": won, "seconds": round(float(rng.normal(5.0 + arm)), 1)}
        return {"reward": won}

    def play(self, experiment: Any, first: int, count: int, *, size: int = 10) -> None:
        """Ask for so many units, and tell all of their rewards."""
        for start in range(first, first + count, size):
            units = [f"{self.name} {number}" for number in range(start, start + size)]
            # Every fifth request cannot be shown the last arm.
            more = {"available": [0, 1]} if self.name == "exact" and start // size % 5 == 0 else {}
            found = ask_units(experiment, units, **more)
            values = [self.reward(number, one.arm) for number, one in enumerate(found, start)]
            self.told += size
            self.rewards += sum(value["reward"] for value in values)
            # The newest first: rewards count in the order of draws all the same.
            numbers = [one.id for one in reversed(found)]
            many = {metric: [value[metric] for value in reversed(values)] for metric in values[0]}
            experiment.tell_many(numbers, many)


def create(path: Path, name: str, clock: Callable[[], float]) -> Any:
    """Begin an experiment as every release could."""
    from orthobandit import SBE, AnytimeElimination, ArmSet, Asymptotic, Experiment, Guardrail, Metric

    arms = ArmSet.one_hot(2 if name == "declared" else 3)
    key = hashlib.sha256(name.encode()).hexdigest()
    more: dict[str, Any] = {"name": name, "clock": clock, "key": key}
    if name == "unknown":
        if "rewards" in signature(Experiment.create).parameters:
            more["rewards"] = "unknown"
        return Experiment.create(path, arms, AnytimeElimination(confidence=Asymptotic()), **more)
    if name == "sbe":
        return Experiment.create(path, arms, SBE(), rewards=(0, 1), **more)
    if name == "guarded":
        more["metrics"] = [Metric("seconds")]
        more["guardrails"] = [Guardrail("seconds", margin=0.5)]
        more["holdout"] = 0.1
        more["window"] = 40.0
    range_of_rewards = (0, 50) if name == QUIET else (0, 1)
    return Experiment.create(path, arms, rewards=range_of_rewards, **more)


def write(path: Path, end: str) -> Iterator[str]:
    """Write a database with the release that is on the path; yield what is in it."""
    from orthobandit import Experiment

    for name in (*NAMES, QUIET):
        clock = Clock(1_700_000_000.0)
        world = World(name)
        experiment = create(path, name, clock)
        world.play(experiment, 0, 120)
        if end == "killed" and name in ("exact", "guarded"):
            experiment.close()
            experiment = Experiment.open(path, name=name, clock=clock)
        world.play(experiment, 120, 80)
        if end == "closed":
            experiment.close()
        else:
            ask_units(experiment, [f"{name} awaited {number}" for number in range(AWAITED)])
        yield f"{path.name} {name}: {world.told} told, rewards {world.rewards:.6f}"


def main(folder: str, release: str) -> None:
    """Write both databases of a release, each by a process of its own."""
    for end in ENDS:
        path = Path(folder) / f"{release}-{end}.sqlite"
        if os.fork() == 0:
            try:
                for line in write(path, end):
                    print(line, flush=True)
            except Exception:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)  # nothing is closed, as after `kill -9`
        os.wait()
        # What is in the log beside the file is moved into it, as whoever copies a killed database must do.
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
        connection.close()
        Path(f"{path}.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9))
        path.unlink()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
