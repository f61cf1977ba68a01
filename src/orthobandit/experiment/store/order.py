"""The order that every store keeps: of times, of numbers, and of rewards after what they belong to."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orthobandit._foundation.json_arrays import json_text
from orthobandit.errors import ParameterError, UnknownProposalError
from orthobandit.experiment.ledger.entries import Asked, Entry, Told


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
    """Refuse the number of a proposal that was not drawn; `last` is the newest number."""
    if not 1 <= number <= last:
        drawn = f"1 to {last} were drawn" if last else "none was drawn yet"
        raise UnknownProposalError(f"there is no proposal {number}; {drawn}")


def check_snapshot(seq: int, last: int) -> None:
    """Refuse a snapshot of a state beyond the log."""
    if not 0 <= seq <= last:
        raise ParameterError(f"seq={seq} of a snapshot must lie between 0 and {last}, the newest entry")


def as_json(what: str, data: Mapping[str, Any]) -> str:
    """Return settings or a state as JSON; infinities are allowed, states of policies have them."""
    try:
        return json_text(data, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"{what} cannot be kept as JSON: {error}; give plain values") from None
