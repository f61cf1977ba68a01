"""Threads that write to several experiments of one file take turns."""

import os
from threading import Event, Thread

import pytest

from experiment_samples import asked
from inside.experiment import SQLStore, address, turns_of
from orthobandit.errors import StorageError


@pytest.fixture
def stores(tmp_path):
    """Return two experiments of one file, one of them by another name of the file."""
    (tmp_path / "link.db").symlink_to(tmp_path / "log.db")
    made = [SQLStore(tmp_path / "log.db", "a"), SQLStore(tmp_path / "link.db", "b", patience=0.2)]
    for one in made:
        one.create({})
    yield made
    for one in made:
        one.close()


def test_one_waits_for_the_other_without_asking_the_file(stores, monkeypatch):
    one, other = stores
    begun, may_end, order = Event(), Event(), []

    def first():
        with one.exclusive() as writer:
            begun.set()
            assert may_end.wait(10)
            writer.append([asked(1)])
            order.append("one")

    thread = Thread(target=first)
    thread.start()
    begun.wait(10)
    monkeypatch.setattr(other, "_patience", 10.0)
    later = Thread(target=lambda: _appended(other, order))
    later.start()
    may_end.set()
    thread.join(10)
    later.join(10)
    assert order == ["one", "other"]


def _appended(store, order):
    with store.exclusive() as writer:
        writer.append([asked(1)])
        order.append("other")


def test_whoever_waits_too_long_is_told(stores):
    one, other = stores
    late = r"link\.db: another thread holds it; try again"
    with one.exclusive(), pytest.raises(StorageError, match=late), other.exclusive():
        pass
    with other.exclusive() as writer:  # all is well again
        writer.append([asked(1)])


def test_turns_are_of_a_file_and_a_process(tmp_path, monkeypatch):
    mine = turns_of(address(tmp_path / "a.db"))
    assert turns_of(address(tmp_path / "a.db")) is mine
    assert turns_of(address(tmp_path / "b.db")) is not mine
    assert turns_of(address("postgresql+psycopg://host/name")) is None
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert turns_of(address(tmp_path / "a.db")) is not mine
