"""Does the memory of a server grow? Load on one for a while, with memory written down as it goes.

    python -m benchmarks.soak --minutes 10

A server of its own, in a temporary file, is asked and told by some threads while its reports are looked at.
The first third is left out: caches fill, and the interpreter grows to its size. A straight line through the
rest must not rise by more than `ALLOWED` a minute; the exit code is 1 if it does.

Memory is what the process takes from the machine. Beside it: what of it is in use, by the C library's count,
and how many objects the interpreter holds. If the first rises and the others do not, it is free space between
things in use.
"""

import argparse
import ctypes
import math
import multiprocessing
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np

from orthobandit.service import Client
from orthobandit.service.serving import serve

WRITERS, BATCH, PAUSE = 3, 20, 0.05
ALLOWED = 1.0  # MiB a minute, beyond what the experiments themselves hold
EVERY = 5.0  # seconds between two readings
MIB, PAGE = 2**20, resource.getpagesize()
FIELDS = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)


def written(address: str, writer: int, is_over: Event, counts: list[int]) -> None:
    """Ask and tell until told to end; all proposals are told, so that none waits."""
    with Client(address, retries=20) as client:
        step = 0
        while not is_over.wait(PAUSE):
            step += 1
            key = f"page-{step % 4}"
            units = [f"{writer}-{step}-{place}" for place in range(BATCH)]
            shown = client.ask_many(key, units=units)
            client.tell_many(key, [one.id for one in shown], [float(one.id % 3 == 0) for one in shown])
            counts[writer] += BATCH


def looked(address: str, is_over: Event) -> None:
    """Look at reports until told to end."""
    with Client(address, retries=20) as client:
        while not is_over.wait(1.0):
            for key in client.experiments():
                client.report(key)


class Heap(ctypes.Structure):
    """What glibc's `mallinfo2` returns."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def in_use() -> float:
    """Return the MiB that are in use by the C library's count; NaN where it does not count."""
    try:
        count = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return math.nan
    count.restype = Heap
    found = count()
    return float(found.uordblks + found.hblkhd) / MIB


def served(where: Path, port: int, inside: Any) -> None:
    """Serve, and write down what only the process itself can know: MiB in use, and objects."""

    def looked_inside() -> None:
        while True:
            inside[0], inside[1] = in_use(), sys.getallocatedblocks()
            time.sleep(EVERY)

    Thread(target=looked_inside, daemon=True).start()
    serve(where, port=port, with_tokens=False, say=lambda _: None)


class Reading(NamedTuple):
    """Memory at some minute: MiB of the process, MiB in use, and objects."""

    minute: float
    taken: float
    used: float
    objects: float

    def __str__(self) -> str:
        return f"{self.minute:6.1f} {self.taken:5.0f} {self.used:7.1f} {self.objects:9,.0f}"


def slope(minutes: list[float], memory: list[float]) -> float:
    """Return by how much a minute a straight line through the last two thirds rises.

    Examples
    --------
    >>> round(slope([0, 1, 2, 3, 4, 5], [9, 50, 50, 51, 52, 53]), 1)
    1.0
    """
    first = len(minutes) // 3
    return float(np.polyfit(minutes[first:], memory[first:], 1)[0])


def slopes(readings: list[Reading]) -> list[float]:
    """Return by how much each kind of memory rises a minute."""
    minutes = [one.minute for one in readings]
    return [slope(minutes, [one[place] for one in readings]) for place in (1, 2, 3)]


def soaked(minutes: float) -> list[Reading]:
    """Run, print the memory each minute, and return it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address, is_over, counts = f"http://127.0.0.1:{port}", Event(), [0] * WRITERS
    context = multiprocessing.get_context("spawn")
    inside = context.Array("d", [math.nan, math.nan])
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        process = context.Process(target=served, args=(Path(folder) / "soak.db", port, inside))
        process.start()
        threads = [Thread(target=written, args=(address, n, is_over, counts)) for n in range(WRITERS)]
        threads.append(Thread(target=looked, args=(address, is_over)))
        try:
            with Client(address, retries=60) as client:
                for number in range(4):
                    client.create(f"page-{number}", ["a", "b", "c"], rewards=[0, 1])
            for thread in threads:
                thread.start()
            return _watched(Path(f"/proc/{process.pid}/statm"), inside, minutes, counts)
        finally:
            is_over.set()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
            process.terminate()
            process.join()


def _watched(statm: Path, inside: Any, minutes: float, counts: list[int]) -> list[Reading]:
    found: list[Reading] = []
    start, shown = time.monotonic(), -60.0
    print("minute   MiB  in use   objects  proposals")
    while (now := time.monotonic() - start) < 60 * minutes:
        taken = int(statm.read_text().split()[1]) * PAGE / MIB
        found.append(Reading(now / 60, taken, *inside[:]))
        if now - shown >= 60:
            shown = now
            print(found[-1], f"{sum(counts):10,}", flush=True)
        time.sleep(EVERY)
    print(found[-1], f"{sum(counts):10,}")
    return found


def main(arguments: list[str]) -> int:
    """Soak, and say whether memory grows."""
    parser = argparse.ArgumentParser(description="Does the memory of a server grow?")
    parser.add_argument("--minutes", type=float, default=10.0)
    readings = soaked(parser.parse_args(arguments).minutes)
    taken, used, objects = slopes(readings)
    verdict = "grows" if taken > ALLOWED or used > ALLOWED else "does not grow"
    print(f"memory {verdict}: {taken:+.2f} MiB a minute, {used:+.2f} of it in use, {ALLOWED:g} allowed;")
    print(f"objects: {objects:+,.0f} a minute")
    half = readings[len(readings) // 3 : 2 * len(readings) // 3], readings[2 * len(readings) // 3 :]
    for name, some in zip(("second", "last"), half, strict=True):
        rise = np.polyfit([one.minute for one in some], [one.taken for one in some], 1)[0]
        print(f"  {name} third: {rise:+.2f} MiB a minute")
    return 0 if verdict == "does not grow" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
