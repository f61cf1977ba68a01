"""Does the memory of a server grow? Load on one for a while, with memory written down as it goes.

    python -m benchmarks.soak --minutes 10

A server of its own, in a temporary file, is asked and told by some threads while its reports are looked at.
The first third is left out: caches fill, and the interpreter grows to its size. A straight line through the
rest must not rise by more than `ALLOWED` a minute; the exit code is 1 if it does.
"""

import argparse
import multiprocessing
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np

from orthobandit.service import Client
from orthobandit.service.serving import serve

WRITERS, BATCH, PAUSE = 3, 20, 0.05
ALLOWED = 1.0  # MiB a minute, beyond what the experiments themselves hold
EVERY = 5.0  # seconds between two readings
MIB, PAGE = 2**20, resource.getpagesize()


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


def slope(minutes: list[float], memory: list[float]) -> float:
    """Return by how many MiB a minute a straight line through the last two thirds rises.

    Examples
    --------
    >>> round(slope([0, 1, 2, 3, 4, 5], [9, 50, 50, 51, 52, 53]), 1)
    1.0
    """
    first = len(minutes) // 3
    return float(np.polyfit(minutes[first:], memory[first:], 1)[0])


def soaked(minutes: float) -> float:
    """Run, print the memory each minute, and return its slope."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    address, is_over, counts = f"http://127.0.0.1:{port}", Event(), [0] * WRITERS
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        options = {"port": port, "with_tokens": False, "say": str}
        process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(Path(folder) / "soak.db",), kwargs=options
        )
        process.start()
        threads = [Thread(target=written, args=(address, n, is_over, counts)) for n in range(WRITERS)]
        threads.append(Thread(target=looked, args=(address, is_over)))
        try:
            with Client(address, retries=60) as client:
                for number in range(4):
                    client.create(f"page-{number}", ["a", "b", "c"], rewards=[0, 1])
            for thread in threads:
                thread.start()
            return _watched(Path(f"/proc/{process.pid}/statm"), minutes, counts)
        finally:
            is_over.set()
            for thread in threads:
                if thread.is_alive():
                    thread.join()
            process.terminate()
            process.join()


def _watched(statm: Path, minutes: float, counts: list[int]) -> float:
    at: list[float] = []
    memory: list[float] = []
    start, shown = time.monotonic(), -60.0
    print("minute  MiB  proposals")
    while (now := time.monotonic() - start) < 60 * minutes:
        at.append(now / 60)
        memory.append(int(statm.read_text().split()[1]) * PAGE / MIB)
        if now - shown >= 60:
            shown = now
            print(f"{at[-1]:6.1f} {memory[-1]:4.0f}  {sum(counts)}", flush=True)
        time.sleep(EVERY)
    print(f"{at[-1]:6.1f} {memory[-1]:4.0f}  {sum(counts)}")
    return slope(at, memory)


def main(arguments: list[str]) -> int:
    """Soak, and say whether memory grows."""
    parser = argparse.ArgumentParser(description="Does the memory of a server grow?")
    parser.add_argument("--minutes", type=float, default=10.0)
    found = soaked(parser.parse_args(arguments).minutes)
    verdict = "grows" if found > ALLOWED else "does not grow"
    print(f"memory {verdict}: {found:+.2f} MiB a minute, {ALLOWED:g} allowed")
    return 1 if found > ALLOWED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
