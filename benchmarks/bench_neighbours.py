"""How long an experiment's asks wait while another experiment of the same SQLite file plans for 1,000 arms.

``python -m benchmarks.bench_neighbours`` prints the longest ask of a small experiment while nothing else
happens, while a large one is created, asked for and told in batches, reported, and closed: through the
service in a process of its own, and for two Experiment objects in this process, which share the interpreter.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread

from benchmarks.bench_service import serving
from orthobandit import ArmSet, Experiment
from orthobandit.service import Client

ARMS = 1_000
BATCHES = 3
ASKED = 200  # by one request: reading more numbers would hold up the asks of this process


class Asker:
    """Asks a small experiment again and again, and notes the longest wait."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask
        self._is_over = Event()
        self._longest = 0.0
        self._count = 0
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            start = time.perf_counter()
            self._ask()
            self._longest = max(self._longest, time.perf_counter() - start)
            self._count += 1
            time.sleep(0.001)

    def during(self, name: str, work: Callable[[], object]) -> object:
        """Do work, and print the longest ask meanwhile."""
        self._longest = 0.0
        self._count = 0
        start = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - start
        time.sleep(0.05)  # an ask that began during the work is counted
        longest = f"longest of {self._count:>5,} asks {1e3 * self._longest:7.1f} ms"
        print(f"  {name:<10} took {seconds:7.2f} s; {longest}")
        return found

    def stop(self) -> None:
        """End asking."""
        self._is_over.set()
        self._thread.join()


def measure_service(arms: int, folder: str) -> None:
    """Measure through the service."""
    print("service:")
    with serving(folder + "/service.db") as server, Client(server.address, timeout=300) as client:
        client.create("small", ["a", "b", "c"], rewards=(0, 1))
        asking = Client(server.address, timeout=300)
        asker = Asker(lambda: asking.ask("small"))
        try:
            asker.during("nothing", lambda: time.sleep(2))
            labels = [f"arm {number}" for number in range(arms)]
            asker.during("create", lambda: client.create("large", labels, rewards=(0, 1)))
            for _ in range(BATCHES):
                shown = asker.during("ask", lambda: client.ask_many("large", ASKED))
                ids = [one.id for one in shown]  # type: ignore[attr-defined]
                values = [float(number % 2) for number in ids]
                asker.during("tell", partial(client.tell_many, "large", ids, values))
            asker.during("report", lambda: client.report("large"))
        finally:
            asker.stop()
            asking.close()


def measure_objects(arms: int, folder: str) -> None:
    """Measure two objects that share a file and an interpreter."""
    print("objects in one process:")
    where = folder + "/objects.db"
    small = Experiment.create(where, ArmSet.one_hot(3), rewards=(0, 1), name="small")
    asker = Asker(small.ask)
    try:
        asker.during("nothing", lambda: time.sleep(2))
        large: Experiment = asker.during(  # type: ignore[assignment]
            "create", lambda: Experiment.create(where, ArmSet.one_hot(arms), rewards=(0, 1), name="large")
        )
        for _ in range(BATCHES):
            shown = asker.during("ask", lambda: large.ask_many(2 * arms))
            ids = [one.id for one in shown]  # type: ignore[attr-defined]
            values = [float(number % 2) for number in ids]
            asker.during("tell", partial(large.tell_many, ids, values))
        asker.during("report", large.report)
        asker.during("close", large.close)
        large = asker.during("open", lambda: Experiment.open(where, name="large"))  # type: ignore[assignment]
        large.close()
    finally:
        asker.stop()
        small.close()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=ARMS)
    arms = parser.parse_args().arms
    with tempfile.TemporaryDirectory() as folder:
        measure_objects(arms, folder)
        measure_service(arms, folder)


if __name__ == "__main__":
    main()
