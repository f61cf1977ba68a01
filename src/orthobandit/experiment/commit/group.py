"""Requests of one commit that are done as one: drawn, sealed and summed at once, and one entry of the log.

Requests that wait for the same commit came before any of them was answered, so that no order among them is
the right one: rewards are taken in first, and those who ask last get what follows from all others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.commit.transaction import Request, Turn
from orthobandit.experiment.proposal import Proposal

MOST = 64  # rows of a request beyond which it gains nothing by company


@dataclass(frozen=True, eq=False)
class Asking:
    """A request for proposals.

    Attributes
    ----------
    do : function
        Does it in a turn, given all that follows.
    names : sequence of str or None, (n,)
    available : sequence of int or str, optional
    covariates : list of mappings (n,), optional
    """

    do: Callable[..., list[Proposal]]
    names: Sequence[str | None]
    available: Sequence[int | str] | None = None
    covariates: list[Covariates] | None = None

    def __call__(self, turn: Turn) -> list[Proposal]:
        """Draw the proposals."""
        return self.do(turn, self.names, self.available, self.covariates)

    @property
    def kind(self) -> tuple[str, ...] | None:
        """What requests have in common that can be done together; None if this one cannot."""
        if self.available is not None or len(self.names) > MOST:
            return None
        return () if self.covariates is None else ("covariates",)

    @staticmethod
    def together(turn: Turn, requests: Sequence["Asking"]) -> list[list[Proposal]]:
        """Do requests of one kind; return what each would have returned."""
        names = [name for one in requests for name in one.names]
        given = [row for one in requests for row in one.covariates or ()]
        found = requests[0].do(turn, names, None, given or None)
        out = []
        done = 0
        for one in requests:
            out.append(found[done : done + len(one.names)])
            done += len(one.names)
        return out


@dataclass(frozen=True, eq=False)
class Telling:
    """A request to take in rewards.

    Attributes
    ----------
    do : function
        Does it in a turn, given all that follows.
    numbers : sequence of int, (n,)
    values : mapping of str to sequence of float (n,)
        By metric.
    """

    do: Callable[..., None]
    numbers: Sequence[int] | Whole
    values: Mapping[str, Sequence[float] | Array]

    def __call__(self, turn: Turn) -> None:
        """Take them in."""
        self.together(turn, [self])

    @property
    def kind(self) -> tuple[str, ...] | None:
        """What requests have in common that can be done together; None if this one cannot."""
        return None if len(self.numbers) > MOST else tuple(self.values)

    @staticmethod
    def together(turn: Turn, requests: Sequence["Telling"]) -> list[None]:
        """Do requests of one kind; return what each would have returned."""
        first = requests[0]
        numbers = _joined([one.numbers for one in requests], np.int64)
        values = {name: _joined([one.values[name] for one in requests], np.float64) for name in first.values}
        first.do(turn, numbers, values)
        return [None] * len(requests)


def _joined(parts: Sequence[Sequence[float] | Whole | Array], dtype: type) -> Any:
    """Return several sequences of numbers, one after the other, as one array."""
    if len(parts) == 1:
        return np.asarray(parts[0], dtype=dtype)
    return np.array([number for part in parts for number in part], dtype=dtype)


def groups(requests: Iterable[Request]) -> list[list[int]]:
    """Return places of requests that can be done together: rewards, what stands alone, then who asks."""
    asking: dict[tuple[str, ...], list[int]] = {}
    telling: dict[tuple[str, ...], list[int]] = {}
    alone: list[list[int]] = []
    for place, request in enumerate(requests):
        kind = request.kind if isinstance(request, Asking | Telling) else None
        if kind is None:
            alone.append([place])
        else:
            kinds = asking if isinstance(request, Asking) else telling
            kinds.setdefault(kind, []).append(place)
    return [*telling.values(), *alone, *asking.values()]
