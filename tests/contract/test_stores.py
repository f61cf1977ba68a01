"""Every store keeps the contract of stores, and the suite catches those that break it."""

import os
from contextlib import contextmanager
from itertools import count
from uuid import uuid4

import pytest

from inside.experiment import MemoryStore, SQLStore, Told
from orthobandit.testing import check_store


def test_a_store_in_memory_keeps_the_contract():
    check_store(MemoryStore)


def test_a_store_in_a_file_keeps_the_contract(tmp_path):
    numbers = count()
    check_store(lambda: SQLStore(tmp_path / f"{next(numbers)}.db"))


def test_experiments_that_share_a_file_keep_the_contract(tmp_path):
    numbers = count()
    check_store(lambda: SQLStore(tmp_path / "shared.db", f"experiment {next(numbers)}"))


@pytest.mark.skipif("ORTHOBANDIT_DATABASE" not in os.environ, reason="needs the URL of a database server")
def test_experiments_on_a_database_server_keep_the_contract():
    check_store(lambda: SQLStore(os.environ["ORTHOBANDIT_DATABASE"], uuid4().hex))


class Wrapped:
    """A store in memory with one clause broken by a subclass."""

    def __init__(self):
        self.inner = MemoryStore()

    def __getattr__(self, name):
        return getattr(self.inner, name)


class KeepsWhatFailed(Wrapped):
    @contextmanager
    def exclusive(self):
        with self.inner.exclusive() as writer:
            try:
                yield writer
            except (ValueError, KeyboardInterrupt):
                return


class SharesSettings(Wrapped):
    def create(self, settings):
        self.inner.create(settings)
        self.kept = self.inner.settings()

    def settings(self):
        self.inner.settings()
        return self.kept


class Regroups(Wrapped):
    def entries(self, after=0):
        for seq, entry in self.inner.entries(after):
            if isinstance(entry, Told):
                order = entry.proposals.argsort(kind="stable")
                entry = Told(entry.at, entry.metric, entry.proposals[order], entry.values[order])
            yield seq, entry


class ShowsOneTooMany(Wrapped):
    def entries(self, after=0):
        return self.inner.entries(max(after - 1, 0))


class ForgetsSnapshots(Wrapped):
    def snapshot(self):
        self.inner.snapshot()


class LastRewardOnly(Wrapped):
    def table(self):
        for outcome in self.inner.table():
            if "revenue" in outcome.rewards:
                outcome.rewards["revenue"] = 0.3
            yield outcome


class WritesWhenClosed(Wrapped):
    def close(self):
        pass


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (KeepsWhatFailed, "an error left entries of its block behind"),
        (SharesSettings, "settings can be changed"),
        (Regroups, r"entries\(after=0\) differ from what was appended"),
        (ShowsOneTooMany, r"entries\(after=1\) differ"),
        (ForgetsSnapshots, "snapshot"),
        (LastRewardOnly, "rewards are not summed"),
        (WritesWhenClosed, "a closed store answers; ClosedError should be raised"),
    ],
)
def test_the_suite_catches(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_store(broken)
