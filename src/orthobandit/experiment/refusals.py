"""Refusals: rows of a batch that were not taken, and why; what is said of all of them in a report."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orthobandit import errors
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    OrthobanditError,
    RewardError,
    UnknownProposalError,
)

UNKNOWN_METRIC = "metric"
# Errors of rewards, by the reason that is counted, and the words of a report.
REASONS: dict[str, tuple[type[OrthobanditError], str]] = {
    "late": (ClosedError, "after their proposal was settled"),
    "unknown": (UnknownProposalError, "for proposals that were never asked for"),
    "conflict": (ConflictError, "against a value that was told before"),
    "invalid": (RewardError, "no finite number in the declared range"),
    UNKNOWN_METRIC: (RewardError, "for a metric that the experiment does not have"),
}


@dataclass(frozen=True)
class Refusal:
    """A row of a batch that was refused: a reward that was told, or an exposure.

    Parameters
    ----------
    index : int
        Its place in the batch.
    metric : str or None
        The metric whose value is wrong; None if no value of the row could be taken.
    error : OrthobanditError
        What is wrong, and what to do.
    """

    index: int
    metric: str | None
    error: OrthobanditError

    def to_json(self) -> tuple[int, str | None, str, str]:
        """Return plain values."""
        return self.index, self.metric, type(self.error).__name__, str(self.error)

    @classmethod
    def from_json(cls, data: Iterable[Any]) -> "Refusal":
        """Invert :meth:`to_json`."""
        index, metric, kind, text = data
        return cls(index, metric, getattr(errors, kind)(text))


def count_reasons(refused: Iterable[Refusal]) -> dict[str, int]:
    """Return how many rewards were refused, by reason.

    Examples
    --------
    >>> count_reasons([Refusal(0, None, ClosedError("too late")), Refusal(3, "sale", RewardError("NaN"))])
    {'late': 1, 'invalid': 1}
    """
    return dict(Counter(_reason_of(refusal.error) for refusal in refused))


def _reason_of(error: OrthobanditError) -> str:
    return next(reason for reason, (kind, _) in REASONS.items() if isinstance(error, kind))


def refused_words(counts: Mapping[str, int]) -> str:
    """Say how many rewards were refused, and why.

    Examples
    --------
    >>> refused_words({"invalid": 1, "late": 1200})
    '1,201 rewards were refused: 1,200 after their proposal was settled, 1 no finite number in the declar...'
    """
    parts = [f"{counts[reason]:,} {words}" for reason, (_, words) in REASONS.items() if counts.get(reason)]
    total = sum(counts.values())
    return f"{total:,} {'reward was' if total == 1 else 'rewards were'} refused: {', '.join(parts)}"
