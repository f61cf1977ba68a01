"""The contract of stores as a test suite for any store."""

from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import Any

import numpy as np

from orthobandit.errors import (
    ClosedError,
    ConflictError,
    ExperimentExistsError,
    InputError,
    ParameterError,
    UnknownExperimentError,
    UnknownProposalError,
)
from orthobandit.experiment.ledger.entries import Asked, Entry, Noted, Told, encode_entry
from orthobandit.experiment.store.contract import Store
from orthobandit.testing._play import require

__all__ = ["check_store"]

SETTINGS = {"window": 60.5, "metrics": ["signup", "revenue"], "deep": {"empty": [], "none": None}}


def check_store(make_store: Callable[[], Store]) -> None:
    """Check every clause of :class:`Store`; raise :class:`AssertionError` with the broken one.

    Failures that need another process or a broken disk are not checked.

    Parameters
    ----------
    make_store : function
        Returns a new store at each call, on which :meth:`Store.create` was not called yet.

    Examples
    --------
    >>> from orthobandit.experiment.store import MemoryStore
    >>> check_store(MemoryStore)
    """
    if not callable(make_store):
        raise ParameterError(f"make_store={make_store!r} is not a function that returns a store")
    _check_beginning(make_store())
    for check in CHECKS:
        store = make_store()
        store.create(SETTINGS)
        try:
            check(store)
        finally:
            store.close()


def _check_beginning(store: Store) -> None:
    """Check a store without an experiment, a new one, and a closed one."""
    for call in (store.settings, lambda: list(store.entries()), store.snapshot, lambda: list(store.table())):
        _raises(UnknownExperimentError, call, "a store without experiment answers")
    _raises(UnknownExperimentError, lambda: _append(store, []), "a store without experiment is written to")
    store.create(SETTINGS)
    _raises(ExperimentExistsError, lambda: store.create({}), "an experiment is created twice")
    require(store.settings() == SETTINGS, "settings are not what create was given")
    # Settings are deep copies.
    store.settings()["deep"]["none"] = 1
    require(store.settings() == SETTINGS, "settings can be changed through what was returned")
    require(not list(store.entries()) and not list(store.table()), "a new experiment has entries")
    require(store.snapshot() is None, "a new experiment has a snapshot")
    store.close()
    store.close()
    _raises(ClosedError, store.settings, "a closed store answers")
    _raises(ClosedError, lambda: list(store.entries()), "a closed store answers")
    _raises(ClosedError, lambda: _append(store, []), "a closed store is written to")


def _check_sameness(store: Store) -> None:
    """Check that entries come back unchanged and in order, once their block has ended."""
    entries = _history()
    with store.exclusive() as writer:
        require(writer.last() == 0, "an empty log has a last entry")
        require(writer.append(entries[:3]) == 3, "append returns something else than the last seq")
        require(writer.append([]) == 3, "appending nothing changes the last seq")
        _same(writer.entries(), entries[:3], "a writer does not see what it appended")
        require(not list(store.entries()), "entries are seen before their block has ended")
    # One block each: numbering continues from one transaction to the next.
    for number, entry in enumerate(entries[3:], 4):
        require(_append(store, [entry]) == number, "seq does not go on in the next block")
    for after in (0, 1, 5, len(entries) - 1, len(entries), len(entries) + 7):
        message = f"entries(after={after}) differ from what was appended"
        _same(store.entries(after), entries[after:], message, first=after + 1)
        with store.exclusive() as writer:
            _same(writer.entries(after), entries[after:], message, first=after + 1)


def _check_atomicity(store: Store) -> None:
    """Check that an error inside a block leaves nothing of it behind."""
    entries = _history()
    _append(store, entries[:4], keep=4)
    # KeyboardInterrupt is not an Exception: a store that catches only those would commit half a block.
    for error in (ValueError("left"), KeyboardInterrupt()):
        seen = None
        try:
            with store.exclusive() as writer:
                writer.append(entries[4:])
                writer.keep(6, {"of": "a block that fails"})
                raise error
        except (ValueError, KeyboardInterrupt) as caught:
            seen = caught
        _same(store.entries(), entries[:4], "an error left entries of its block behind")
        require(seen is error, "an error does not leave the block")
    require(store.snapshot() == (4, {"after": 4}), "an error left a snapshot of its block behind")
    require(len(list(store.table())) == 3, "an error left proposals of its block behind")
    with store.exclusive() as writer:
        require(writer.last() == 4, "an error changed the last seq")
        require(writer.known(["dan"]) == {}, "an error left units of its block behind")
    _append(store, entries[4:])
    _same(store.entries(), entries, "a store cannot be used as before after an error")


def _check_order(store: Store) -> None:
    """Check that entries which contradict the log are refused, and everything appended with them."""
    entries = _history()
    _append(store, entries)
    last = entries[-1].at
    wrong: list[tuple[Entry, type[Exception], str]] = [
        (Noted(last - 1.0, "tick", {}), InputError, "an entry is earlier than the one before"),
        (_asked(last, 9), InputError, "numbers of proposals have a gap"),
        (_asked(last, 1), InputError, "a proposal is numbered twice"),
        (_asked(last, 7, metrics=1), InputError, "the number of metrics changes"),
        (Told(last, "signup", np.array([7]), np.array([1.0])), UnknownProposalError, "a reward of nothing"),
    ]
    for entry, error, what in wrong:
        with store.exclusive() as writer:
            # A good entry before the bad one: neither may remain.
            good = Noted(last, "tick", {})
            _raises(error, lambda: writer.append([good, entry]), what)  # noqa: B023
            require(writer.last() == len(entries), "a refused append has left something")
    _same(store.entries(), entries, "a refused append has left something")


def _check_rows(store: Store) -> None:
    """Check proposals by number, and the first proposal of each unit."""
    entries = _history()
    _append(store, entries)
    rows = store.proposals([5, 1, 3, 5])
    require([row.number for row in rows] == [5, 1, 3, 5], "proposals are not in the order asked for")
    given = {"age": 0.1, "größe": -0.0}
    require(rows[1] == (1, 10.0, "ann", 2, 1, 1, False, (0.1, 1e-300), given), "a row is wrong")
    require(rows[2] == (3, 12.0, None, 0, 1, 2, True, (1 / 3, -2.5), None), "a row is wrong")
    require(store.proposals([]) == [], "no proposals are asked for, some come")
    for number in (0, 7, -1):
        _raises(UnknownProposalError, lambda: store.proposals([1, number]), f"proposal {number} is known")  # noqa: B023
    with store.exclusive() as writer:
        require(writer.known([]) == {}, "no units are asked for, some come")
        units = ["bob", "ann", "eve", "dan", *(f"unit {index}" for index in range(40)), "ann"]
        require(writer.known(units) == {"bob": 2, "ann": 1, "dan": 4}, "units have other first proposals")


def _check_table(store: Store) -> None:
    """Check the table of all proposals with their rewards."""
    _append(store, _history())
    table = list(store.table())
    require([outcome.proposal.number for outcome in table] == [1, 2, 3, 4, 5, 6], "the table lacks order")
    rows = [outcome.proposal for outcome in table]
    require(rows == store.proposals([1, 2, 3, 4, 5, 6]), "rows of the table differ from proposals")
    require(table[0].rewards == {"signup": 1.0, "revenue": (0.1 + 0.2) + 0.3}, "rewards are not summed")
    require(table[0].told == {"signup": 13.0, "revenue": 16.0}, "the last time of a reward is wrong")
    require((table[3].rewards, table[3].told) == ({}, {}), "a silent proposal has rewards")


def _check_snapshots(store: Store) -> None:
    """Check that the newest snapshot is returned, whatever is written after it."""
    _append(store, _history())
    state = {"sums": [0.1, -1e-320, 1e308], "infinite": float("inf"), "deep": {"none": None}}
    with store.exclusive() as writer:
        writer.keep(2, {"first": True})
        writer.keep(5, state)
        _raises(InputError, lambda: writer.keep(99, {}), "a snapshot is of a state beyond the log")
    require(store.snapshot() == (5, state), "the newest snapshot is not what was kept")
    with store.exclusive() as writer:
        # One is written again, as after a crash, and an older one comes late, from a slow writer.
        writer.keep(5, {"again": 1})
        writer.keep(3, {"older": 1})
    require(store.snapshot() == (5, {"again": 1}), "an older snapshot hides a newer one")


def _check_requests(store: Store) -> None:
    """Check that answers to requests are remembered with their block, and forgotten by age."""
    with store.exclusive() as writer:
        require(writer.recall("one") is None, "a request is remembered that never was")
        writer.remember("one", 1.0, "π\n1")
        require(writer.recall("one") == "π\n1", "a request is not remembered in its block")
    try:
        with store.exclusive() as writer:
            writer.remember("two", 2.0, "2")
            raise ValueError
    except ValueError:
        pass
    with store.exclusive() as writer:
        require(writer.recall("one") == "π\n1", "a request is not remembered as it was")
        require(writer.recall("two") is None, "an error left a request of its block behind")
        writer.remember("two", 2.0, "2")
        writer.forget(2.0)
        require(writer.recall("one") is None, "an old request is not forgotten")
    with store.exclusive() as writer:
        require((writer.recall("one"), writer.recall("two")) == (None, "2"), "the wrong request is forgotten")


def _check_blocks(store: Store) -> None:
    """Check that blocks do not nest, that writers end with them, and that slow readers block nobody."""
    with store.exclusive() as writer:
        _raises(ConflictError, lambda: _append(store, []), "a thread has two blocks open")
        writer.append([Noted(0.0, "tick", {"still": "open"})])
    _raises(ClosedError, writer.last, "a writer can be used after its block")
    _raises(ClosedError, lambda: writer.append([]), "a writer can be used after its block")
    _raises(ClosedError, lambda: writer.known(["ann"]), "a writer can be used after its block")
    # A reader that is slow or was abandoned must neither block writers nor outlive the store.
    unfinished = store.entries()
    next(unfinished)
    _append(store, [Noted(1.0, "tick", {})])
    require(len(list(store.entries())) == 2, "a generator holds up writers")
    store.close()
    _raises(ClosedError, lambda: list(unfinished), "a generator reads on after the store is closed")


def _check_threads(store: Store) -> None:
    """Check that threads which write at once lose no entries and number them without gaps."""
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for count in range(20):
                with store.exclusive() as writer:
                    before = writer.last()
                    after = writer.append([Noted(0.0, "tick", {"by": name, "count": count})] * 2)
                    require(after == before + 2, "two threads write at once")
                require(len(list(store.entries(before))) >= 2, "a thread does not see what it wrote")
        # An exception ends only its own thread, so the main one raises it below.
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    found = [(seq, entry.data) for seq, entry in store.entries() if isinstance(entry, Noted)]
    require([seq for seq, _ in found] == list(range(1, 161)), "seq has gaps with several threads")
    for name in range(4):
        counts = [data["count"] for _, data in found if data["by"] == name]
        require(counts == [count // 2 for count in range(40)], "entries of a thread are lost")


CHECKS = (
    _check_sameness,
    _check_atomicity,
    _check_order,
    _check_rows,
    _check_table,
    _check_snapshots,
    _check_requests,
    _check_blocks,
    _check_threads,
)


def _history() -> list[Entry]:
    """Return a short log of values that are hard to store exactly."""
    # Thirds, quotes, a zero byte and whole numbers beyond 64 bits: column types may change them.
    ugly = {"number": 1, "probabilities": [1 / 3, 2 / 3], "text": 'π "quoted" \\ \n \x00', "big": 2**70}
    first = Asked(
        10.0, 1, 1, 1, _whole(2, 1), np.array([[0.1, 0.2], [1e-300, 5e-324]]), ("ann", "bob"), _mask(0, 0),
        ({"age": 0.1, "größe": -0.0}, {}),
    )  # fmt: skip
    return [
        Noted(9.5, "plan", ugly),
        first,
        Noted(11.25, "distribution", {"number": 2, "plan": 1}),
        Asked(12.0, 3, 1, 2, _whole(0), np.array([[1 / 3], [-2.5]]), (), _mask(1)),
        Told(13.0, "signup", _whole(2, 1), np.array([-0.0, 1.0])),
        Asked(13.0, 4, 2, 3, _whole(1, 0, 2), np.zeros((2, 3)), ("dan", None, "ann"), _mask(0, 1, 0)),
        Told(14.0, "revenue", _whole(1, 5, 1), np.array([0.1, 1.7976931348623157e308, 0.2])),
        Told(16.0, "revenue", _whole(1), np.array([0.3])),
        Noted(16.000000000000004, "stop", {}),
    ]


def _asked(at: float, first: int, metrics: int = 2) -> Asked:
    return Asked(at, first, 1, 1, _whole(0), np.zeros((metrics, 1)), (), _mask(0))


def _whole(*values: int) -> Any:
    return np.array(values, np.int64)


def _mask(*values: int) -> Any:
    return np.array(values, np.bool_)


def _append(store: Store, entries: Sequence[Entry], keep: int | None = None) -> int:
    with store.exclusive() as writer:
        last = writer.append(entries)
        if keep is not None:
            writer.keep(keep, {"after": keep})
    return last


def _same(found: Iterator[tuple[int, Entry]], wanted: Sequence[Entry], message: str, first: int = 1) -> None:
    pairs = list(found)
    require([seq for seq, _ in pairs] == list(range(first, first + len(wanted))), message)
    require([encode_entry(entry) for _, entry in pairs] == [encode_entry(entry) for entry in wanted], message)


def _raises(error: type[Exception], call: Callable[[], object], message: str) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"{message}; {error.__name__} should be raised")
