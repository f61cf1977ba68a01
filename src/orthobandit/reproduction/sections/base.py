"""What every section of a report is: cells to run, claims, and the numbers that decide them.

A :class:`Measured` number carries limits of its error; a :class:`Fit` is a power law through such numbers; a
:class:`Judgement` holds one of them against a bound that was fixed before the runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from orthobandit.reproduction.measured import LEVEL, Fit, Measured, signed
from orthobandit.study.cells import Cell
from orthobandit.study.tables import Columns

__all__ = ["LEVEL", "Fit", "Measured", "signed"]

Data = dict[str, Columns]

# The paper's shifts as it writes them.
FORMULAS = {"sine": "ν¹ = 1 + sin 2t", "log-alternating": "ν² = ±max(log(t+1)/5, 2)"}

# What a claim can be, in the order in which a reader wants to know; and the answer to a question, which is
# asked by the report and claimed by nobody.
CLAIMS = ("refuted", "undecided", "shown")
ANSWERS = ("no", "open", "yes")
KINDS = (*CLAIMS, *ANSWERS)


@dataclass(frozen=True)
class Scope:
    """How much to run: the quick form or the full one, from which seed."""

    is_quick: bool = True
    seed: int = 1

    def pick(self, quick: int, full: int) -> int:
        """Return the size for this scope."""
        return quick if self.is_quick else full


@dataclass(frozen=True)
class Judgement:
    """One claim and the number that decides it.

    Attributes
    ----------
    name : str
        Unique within its section.
    claim : str
        What is claimed, in words.
    source : {"paper", "figure", "question", "successor", "here"}
        Who claims it; a question is asked by the report, and nobody claims the answer.
    statistic : str
        What was measured, in words.
    measured : Measured
    relation, bound
        The claim is that the truth behind `measured` is ``relation bound``, one of "≤" and "≥".

    Examples
    --------
    >>> Judgement("error", "it errs rarely", "here", "share", Measured.share(11, 40), "≤", 0.1).kind
    'undecided'
    >>> Judgement("error", "it errs rarely", "here", "share", Measured.share(0, 100), "≤", 0.1).kind
    'shown'
    """

    name: str
    claim: str
    source: str
    statistic: str
    measured: Measured
    relation: str
    bound: float

    @property
    def kind(self) -> str:
        """Return "shown" if both limits are on the right side, "refuted" if both are on the wrong one.

        Questions are answered by "yes", "no" or, where the limits do not decide, "open".
        """
        refuted, undecided, shown = ANSWERS if self.source == "question" else CLAIMS
        least, most = self.measured.low, self.measured.high
        if self.relation == "≥":
            least, most = -most, -least
        bound = self.bound if self.relation == "≤" else -self.bound
        if most <= bound:
            return shown
        return refuted if least > bound else undecided

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "claim": self.claim,
            "source": self.source,
            "statistic": self.statistic,
            **self.measured.to_json(),
            "relation": self.relation,
            "bound": float(self.bound),
            "kind": self.kind,
        }


def tally(verdicts: Iterable[Judgement]) -> dict[str, int]:
    """Return how many claims, and how many questions, are of each kind."""
    kinds = [verdict.kind for verdict in verdicts]
    return {kind: kinds.count(kind) for kind in KINDS}


@dataclass(frozen=True)
class Chart:
    """A figure: its name within the section, what it shows in words, and how it is drawn.

    `parts` draws its panels one by one: a page sets them beside or below each other, as there is room.
    """

    name: str
    caption: str
    draw: Callable[[], Any]
    parts: Sequence[Callable[[], Any]] = ()

    @classmethod
    def of_panels(
        cls, name: str, caption: str, draw: Callable[[Any], Any], panels: Mapping[str, Any]
    ) -> "Chart":
        """Return a chart of panels by title, which `draw` can draw together or alone."""
        alone = [partial(draw, {title: panel}) for title, panel in panels.items()]
        return cls(name, caption, partial(draw, panels), alone)


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
