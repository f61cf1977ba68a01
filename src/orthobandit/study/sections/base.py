"""What every section of a report is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from orthobandit.study.cells import Cell
from orthobandit.study.tables import Columns

Data = dict[str, Columns]

# Bounds may be met from either side; the sign is what a reader and a machine see.
RELATIONS: dict[str, Callable[[float, float], bool]] = {"≤": float.__le__, "≥": float.__ge__}


@dataclass(frozen=True)
class Scope:
    """How much to run: the quick form or the full one, from which seed."""

    is_quick: bool = True
    seed: int = 1

    def pick(self, quick: int, full: int) -> int:
        """Return the size for this scope."""
        return quick if self.is_quick else full


@dataclass(frozen=True)
class Verdict:
    """One claim and the number that decides it.

    Attributes
    ----------
    name : str
        Unique within its section.
    claim : str
        What is claimed, in words.
    source : {"paper", "figure", "successor", "here"}
        Who claims it.
    statistic : str
        What `value` measures, in words.
    value, relation, bound
        The claim holds where ``value relation bound``.
    """

    name: str
    claim: str
    source: str
    statistic: str
    value: float
    relation: str
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the claim holds."""
        return RELATIONS[self.relation](float(self.value), float(self.bound))

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "claim": self.claim,
            "source": self.source,
            "statistic": self.statistic,
            "value": float(self.value),
            "relation": self.relation,
            "bound": float(self.bound),
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Chart:
    """A figure: its name within the section, what it shows in words, and how it is drawn."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Grid:
    """A table for people; numbers are already written out, after so many columns of words."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 2


class Section(Protocol):
    """One figure or table: cells to run, and what their numbers say.

    Everything after :meth:`cells` is a function of the joined tables alone, so it can be derived again
    from the Parquet files.
    """

    @property
    def name(self) -> str:
        """What ``--only`` calls it, e.g. ``figure-1``."""
        ...

    @property
    def title(self) -> str:
        """The heading."""
        ...

    @property
    def group(self) -> str:
        """The part of the report that it belongs to."""
        ...

    @property
    def claims(self) -> str:
        """What is claimed, and by whom, in a sentence or two."""
        ...

    def setting(self, scope: Scope) -> str:
        """Return what is run, in a sentence or two."""
        ...

    def cells(self, scope: Scope) -> list[Cell]:
        """Return the work."""
        ...

    def verdicts(self, data: Data) -> list[Verdict]:
        """Return what holds."""
        ...

    def grids(self, data: Data) -> list[Grid]:
        """Return tables for people."""
        ...

    def charts(self, data: Data) -> list[Chart]:
        """Return the figures."""
        ...
