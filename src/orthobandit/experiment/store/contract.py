"""The contract of stores, and the checks of order that every store makes when entries are appended."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from orthobandit._foundation.json_arrays import json_text
from orthobandit.errors import ParameterError, UnknownProposalError
from orthobandit.experiment.ledger.entries import Asked, Entry, Told


class Row(NamedTuple):
    """One proposal as it was drawn.

    Parameters
    ----------
    number : int
    at : float
        Seconds since the epoch.
    unit : str or None
    arm, plan, distribution : int
    held : bool
    forecasts : tuple of float
        One per metric.
    covariates : mapping or None
        None if nobody gave any.
    """

    number: int
    at: float
    unit: str | None
    arm: int
    plan: int
    distribution: int
    held: bool
    forecasts: tuple[float, ...]
    covariates: Mapping[str, float] | None


class Outcome(NamedTuple):
    """A proposal and its rewards.

    Parameters
    ----------
    proposal : Row
    rewards : dict
        By metric, the sum of its values, added in the order of the log; metrics without a value are absent.
    told : dict
        By metric, the time of its last value.
    """

    proposal: Row
    rewards: dict[str, float]
    told: dict[str, float]


class Writer(Protocol):
    """The methods available in an exclusive block, while nobody else writes; see :class:`Store`."""

    def last(self) -> int:
        """Return the seq of the newest entry, including those of this block; 0 if there is none."""
        ...

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield the same as :meth:`Store.entries`, and what this block has appended so far."""
        ...

    def append(self, entries: Sequence[Entry]) -> int:
        """Append entries in this order and return the seq of the last; all or, after an error, none."""
        ...

    def keep(self, seq: int, state: Mapping[str, Any]) -> None:
        """Store a snapshot: the state after entry `seq`. Older snapshots may be dropped."""
        ...

    def known(self, units: Sequence[str]) -> dict[str, int]:
        """Return the first proposal of each of these units, by unit; new units are absent."""
        ...

    def recall(self, key: str) -> str | None:
        """Return the text stored for the request with this key, in this block or before."""
        ...

    def remember(self, key: str, at: float, text: str) -> None:
        """Store a text for the request with this key, which must not have one yet."""
        ...

    def forget(self, before: float) -> None:
        """Forget requests that were stored before the time `before`."""
        ...


class Store(Protocol):
    """The log of one experiment, its settings and its newest snapshot.

    Order
        Entries have a ``seq``: 1, 2, 3, … without gaps, in the order in which they were appended, over all
        threads and processes. Their times never decrease, proposals are numbered 1, 2, 3, … without gaps,
        and rewards are of proposals that were drawn; an append that breaks this is refused.
    Sameness
        What is read is what was appended: every array bit by bit, grouped as it was.
    Atomicity
        What is done in a block of :meth:`exclusive` is there altogether when the block ends, or not at all
        if an error leaves the block or its process dies. Readers see nothing of it before its end.
    Durability
        When the block has ended, what it did survives the death of the process and, in a file or a
        database, that of the machine.
    Exclusiveness
        At most one block is open, over all threads and processes; others wait. Opening a second one in the
        same thread is an error. A block without appends costs no write.
    Several threads
        All methods may be called from all threads. A generator belongs to the thread that reads it; it may
        be left unfinished, and holds up nobody between two entries.
    Requests
        What is remembered of a request is committed with what the request did, so that one that is repeated
        can be told from a new one, whatever happened in between.
    Versions
        A store written by an older release, 0.5.0 at the oldest, is brought up to date when opened; one of a
        newer release is refused.
    Errors
        Each is an :class:`~orthobandit.errors.ExperimentError` that says what to do, leaves the store as it
        was and lets it be used again: :class:`~orthobandit.errors.StorageError` if it cannot be read or
        written now, :class:`~orthobandit.errors.DamagedStoreError` if what it holds is not what was written,
        :class:`~orthobandit.errors.ClosedError` after :meth:`close`, and those that the methods name.
        Entries that break the order are a :class:`~orthobandit.errors.ParameterError`.
    """

    def create(self, settings: Mapping[str, Any]) -> None:
        """Create the experiment with settings that survive JSON.

        Raises
        ------
        ExperimentExistsError
            If there is one of this name; it is left as it is.
        """
        ...

    def settings(self) -> dict[str, Any]:
        """Return a copy of the settings given to :meth:`create`.

        Raises
        ------
        UnknownExperimentError
            If there is no experiment of this name; so do all methods below.
        """
        ...

    def exclusive(self) -> AbstractContextManager[Writer]:
        """Wait until nobody else writes; commit at the end of the block, or nothing after an error."""
        ...

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield (seq, entry) of all committed entries beyond `after`, in order, in bounded memory."""
        ...

    def snapshot(self) -> tuple[int, dict[str, Any]] | None:
        """Return the newest committed snapshot: a seq and the state after that entry."""
        ...

    def proposals(self, numbers: Sequence[int]) -> list[Row]:
        """Return proposals by number, in the order asked for.

        Raises
        ------
        UnknownProposalError
            If one of them was never drawn.
        """
        ...

    def outcomes(self, numbers: Sequence[int]) -> list[Outcome]:
        """Return proposals by number with their rewards, in the order asked for.

        Raises
        ------
        UnknownProposalError
            If one of them was never drawn.
        """
        ...

    def distribution(self, number: int) -> dict[str, Any]:
        """Return the data of the note of kind "plan" or "distribution" with this number.

        Raises
        ------
        ParameterError
            If there is none.
        """
        ...

    def table(self) -> Iterator[Outcome]:
        """Yield all proposals with their rewards in the order of draws, in bounded memory."""
        ...

    def close(self) -> None:
        """Close files and connections; a second call does nothing."""
        ...


class Head(NamedTuple):
    """Where a log ends: its newest seq, the time of that entry, the newest proposal and its forecasts.

    Parameters
    ----------
    seq : int
    at : float
    number : int
        Of the newest proposal; 0 before the first.
    metrics : int or None
        How many forecasts each proposal has; None before the first.
    """

    seq: int = 0
    at: float = float("-inf")
    number: int = 0
    metrics: int | None = None

    def after(self, entries: Sequence[Entry]) -> "Head":
        """Return the head with these entries appended.

        Raises
        ------
        ParameterError
            If a time or a number is out of order; :class:`UnknownProposalError` if a reward is of a proposal
            that was not drawn.
        """
        _, at, number, metrics = self
        for entry in entries:
            if entry.at < at:
                raise ParameterError(f"at={entry.at!r} is earlier than the entry before, {at!r}; use that")
            at = entry.at
            if isinstance(entry, Asked):
                if entry.first != number + 1:
                    raise ParameterError(f"first={entry.first} must be {number + 1}, the next number to draw")
                if metrics not in (None, len(entry.forecasts)):
                    raise ParameterError(
                        f"forecasts of {len(entry.forecasts)} metrics; before there were {metrics}"
                    )
                number = number + entry.count
                metrics = len(entry.forecasts)
            elif isinstance(entry, Told):
                told = entry.proposals
                check_drawn(int(told.item() if told.size == 1 else told.max()), number)
        return Head(self.seq + len(entries), at, number, metrics)


def check_drawn(number: int, last: int) -> None:
    """Raise an error for the number of a proposal that was not drawn; `last` is the newest number."""
    if not 1 <= number <= last:
        drawn = f"1 to {last} were drawn" if last else "none was drawn yet"
        raise UnknownProposalError(f"there is no proposal {number}; {drawn}")


def check_snapshot(seq: int, last: int) -> None:
    """Raise an error for a snapshot of a state beyond the log."""
    if not 0 <= seq <= last:
        raise ParameterError(f"seq={seq} of a snapshot must lie between 0 and {last}, the newest entry")


def as_json(what: str, data: Mapping[str, Any]) -> str:
    """Return settings or a state as JSON; infinities are allowed, states of policies have them."""
    try:
        return json_text(data, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"{what} cannot be kept as JSON: {error}; give plain values") from None
