"""What every section of a report is: cells to run, claims, and the numbers that decide them."""

from typing import Protocol

from orthobandit.reproduction.measured import LEVEL, Fit, Measured, signed
from orthobandit.reproduction.section import (
    ANSWERS,
    CLAIMS,
    KINDS,
    Chart,
    Data,
    Grid,
    Judgement,
    Scope,
    tally,
)
from orthobandit.study.cells import Cell

__all__ = [
    "ANSWERS",
    "CLAIMS",
    "KINDS",
    "LEVEL",
    "Chart",
    "Data",
    "Fit",
    "Grid",
    "Judgement",
    "Measured",
    "Scope",
    "signed",
    "tally",
]
# The paper's shifts as it writes them.
FORMULAS = {"sine": "ν¹ = 1 + sin 2t", "log-alternating": "ν² = ±max(log(t+1)/5, 2)"}


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
        """The heading, without jargon."""
        ...

    @property
    def plain(self) -> str:
        """What the section finds out, in one sentence for anybody."""
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

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return what was shown, what was refuted and what the runs leave undecided."""
        ...

    def grids(self, data: Data) -> list[Grid]:
        """Return tables for people."""
        ...

    def charts(self, data: Data) -> list[Chart]:
        """Return the figures."""
        ...
