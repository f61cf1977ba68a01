"""Stores: entries a second in groups, snapshots, reading back, and the room of many proposals in memory.

`make bench NAMES=store` takes about two minutes. Appending is timed apart from the commit, most of which is
the disk's; a line tells what the disk alone takes.
Targets: eight entries with one row each in well under 1 ms without the commit; in memory, a hundred rows in
under 100 µs; a million proposals with a reward each, one by one, in under 600 MB.
"""

# ruff: noqa: E402 - the number of threads is read when numpy is loaded
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from orthobandit.experiment.ledger.entries import Asked, Entry, Told
from orthobandit.experiment.store import MemoryStore, SQLStore, Store

SECONDS = 3.0  # for each row of the first table
READ = 100_000  # entries to read back
MANY = 1_000_000  # proposals in memory
BATCH = 100


def pairs(rows: int, first: int = 1) -> Iterator[tuple[Entry, Entry]]:
    """Yield what is asked and told for ever, this many rows each."""
    rng = np.random.default_rng(0)
    held = np.zeros(rows, np.bool_)
    while True:
        at = 1.7e9 + first / 100.0
        yield (
            Asked(at, first, 1, 1, rng.integers(0, 5, rows), rng.random((1, rows)), (), held),
            Told(at, "signup", np.arange(first, first + rows), rng.random(rows)),
        )
        first += rows


def group(source: Iterator[tuple[Entry, Entry]], size: int, spare: list[Entry]) -> list[Entry]:
    """Return the next entries; `spare` keeps the half of a pair that is left over."""
    while len(spare) < size:
        spare.extend(next(source))
    taken = spare[:size]
    del spare[:size]
    return taken


def appending(store: Store, label: str, size: int, rows: int = 1) -> None:
    """Print what appending groups of entries takes."""
    store.create({})
    source, spare = pairs(rows), list[Entry]()
    inside = whole = processor = 0.0
    count = 0
    while whole < SECONDS:
        entries = group(source, size, spare)
        start, busy = time.perf_counter(), time.process_time()
        with store.exclusive() as writer:
            begun = time.perf_counter()
            writer.append(entries)
            inside += time.perf_counter() - begun
        whole += time.perf_counter() - start
        processor += time.process_time() - busy
        count += 1
    append, all_, busy = (1e6 * spent / count for spent in (inside, whole, processor))
    print(
        f"{label:<7} {size:>4} entries of {rows:>3} rows: append {append:>6,.0f} µs, begin and commit"
        f" {all_ - append:>6,.0f} µs, processor {busy:>6,.0f} µs; {count * size / whole:>8,.0f} entries/s",
        flush=True,
    )
    store.close()


def disk(folder: Path) -> None:
    """Print what the disk takes to keep a page, whoever writes it."""
    times = []
    with (folder / "page").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    print(f"disk: {1e6 * float(np.median(times)):,.0f} µs to sync a page (median of {len(times)})")


def reading(store: Store, label: str) -> None:
    """Print what reading the log, the table and a snapshot takes."""
    store.create({})
    source, spare = pairs(1), list[Entry]()
    for _ in range(READ // 1000):
        with store.exclusive() as writer:
            writer.append(group(source, 1000, spare))
    start = time.perf_counter()
    assert sum(1 for _ in store.entries()) == READ
    entries = time.perf_counter() - start
    start = time.perf_counter()
    assert sum(1 for _ in store.table()) == READ // 2
    table = time.perf_counter() - start
    state = {"sums": np.random.default_rng(0).random(10_000).tolist()}
    start = time.perf_counter()
    with store.exclusive() as writer:
        writer.keep(READ, state)
    kept = time.perf_counter() - start
    start = time.perf_counter()
    assert store.snapshot() == (READ, state)
    read = time.perf_counter() - start
    print(
        f"{label:<7} {READ:,} entries read in {entries:.2f} s, table of {READ // 2:,} in {table:.2f} s;"
        f" snapshot of 10,000 numbers kept in {1e3 * kept:.1f} ms, read in {1e3 * read:.1f} ms",
        flush=True,
    )
    store.close()


def many(count: int, rows: int) -> None:
    """Print the room of many proposals in memory, each with a reward."""
    store = MemoryStore()
    store.create({})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = pairs(rows)
    start = time.perf_counter()
    for _ in range(count // rows):
        with store.exclusive() as writer:
            writer.append(next(source))
    room = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"memory  {count:,} proposals, {rows} a time, in {time.perf_counter() - start:.0f} s: process grew by"
        f" {room:,.0f} MB, {room * 2**20 / count:.0f} bytes each",
        flush=True,
    )


def main(arguments: list[str] | None = None) -> None:
    """Print all measurements; ``--quick`` keeps a tenth as many proposals in memory."""
    shrink = 10 if "--quick" in (arguments or []) else 1
    many(MANY // shrink, BATCH)
    many(MANY // shrink, 1)
    with tempfile.TemporaryDirectory() as folder:
        disk(Path(folder))
        for size in (1, 8, 100):
            appending(MemoryStore(), "memory", size)
            appending(SQLStore(Path(folder) / f"{size}.db"), "SQLite", size)
        appending(MemoryStore(), "memory", 1, BATCH)
        appending(SQLStore(Path(folder) / "batch.db"), "SQLite", 1, BATCH)
        reading(MemoryStore(), "memory")
        reading(SQLStore(Path(folder) / "read.db"), "SQLite")


if __name__ == "__main__":
    main(sys.argv[1:])
