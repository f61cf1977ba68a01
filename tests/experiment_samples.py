"""Entries for tests of stores, other processes that write to them, and what experiments keep."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from inside.experiment import Asked, Noted, Told, encode_entry

HERE = str(Path(__file__).parent)


class Clock:
    """Seconds, as the test says."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def store_of(experiment):
    """Return what keeps an experiment's log; tests look into experiments by these functions alone."""
    return experiment._store


def entries_of(experiment):
    """Return the entries of an experiment's log, each with its number."""
    return list(experiment._store.entries())


def outcomes_of(experiment):
    """Return what is on disk of each proposal and its rewards."""
    return list(experiment._store.table())


def ledger_of(experiment):
    """Return the state that follows from the log."""
    return experiment._now()


def asked(first, count=1, at=0.0, units=(), metrics=1, covariates=()):
    arms = np.arange(first, first + count) % 5
    forecasts = np.outer(np.arange(1, metrics + 1), np.sqrt(np.arange(first, first + count)))
    return Asked(at, first, 1, 1, arms, forecasts, units, arms == 4, covariates)


def told(first, count=1, at=0.0, metric="signup"):
    numbers = np.arange(first, first + count)
    return Told(at, metric, numbers, np.cos(numbers))


def next_block(last, first):
    """Return what is appended to a log that ends with entry `last`, if `first` is the next proposal."""
    entries = []
    for count in range(1, 2 + last % 3):
        entries += [asked(first, count, float(last)), told(first, count, float(last))]
        first += count
    return entries, first


def long_log(rng, length):
    """Return entries of all kinds and many sizes, some with units and covariates."""
    entries, last = [], 0
    for at in range(length):
        kind = rng.integers(3) if last else 0
        if kind == 0:
            count = int(rng.integers(1, 30))
            units = tuple(f"unit {last + index}" for index in range(count)) if rng.random() < 0.2 else ()
            given = tuple({"age": rng.normal()} for _ in range(count)) if rng.random() < 0.2 else ()
            entries.append(asked(last + 1, count, float(at), units, metrics=2, covariates=given))
            last += count
        elif kind == 1:
            numbers = rng.integers(1, last + 1, rng.integers(1, 60))
            metric = "signup" if rng.random() < 0.7 else "revenue"
            entries.append(Told(float(at), metric, numbers, rng.normal(size=numbers.size)))
        else:
            entries.append(Noted(float(at), "tick", {"at": at}))
    return entries


def append(store, entries):
    with store.exclusive() as writer:
        return writer.append(entries)


def texts(store, after=0):
    return [encode_entry(entry) for _, entry in store.entries(after)]


def python(script, *arguments, **options):
    """Start a process that runs the script with this folder on its path."""
    path = f"import sys; sys.path.insert(0, {HERE!r})\n"
    command = [sys.executable, "-c", path + script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)  # noqa: S603


def exposure_counts(exposed):
    """Return how many exposures were taken, known before, told, and refused."""
    return exposed.taken, exposed.known, exposed.told, len(exposed.refused)
