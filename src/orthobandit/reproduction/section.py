"""Sections of a report as data, and the engine that runs, judges, tables and draws them.

A :class:`Section` says which cells it runs, which :class:`Claim` each number decides, and what is tabled and
drawn. Everything after its cells is a function of their joined tables alone, so it can be derived again from
the Parquet files. What several sections have in common is said once: :class:`Groups` of rows, of which the
worst counts, and a power :class:`Law`, which is a claim, a line of a chart and a row of a table.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.errors import StudyError
from orthobandit.reproduction.charts import Dot, Series, scaling_panels, share_rows
from orthobandit.reproduction.measured import Fit, Measured, short
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, distinct, where

Data = dict[str, Columns]
Value = TypeVar("Value")

# What a claim can be, in the order in which a reader wants to know; and the answer to a question, which is
# asked by the report and claimed by nobody.
CLAIMS = ("refuted", "undecided", "shown")
ANSWERS = ("no", "open", "yes")
KINDS = (*CLAIMS, *ANSWERS)


# What is run


@dataclass(frozen=True)
class Scope:
    """How much to run: the quick form or the full one, from which seed."""

    is_quick: bool = True
    seed: int = 1

    def pick(self, quick: Value, full: Value) -> Value:
        """Return the size for this scope."""
        return quick if self.is_quick else full


@dataclass(frozen=True)
class Form:
    """The sizes of a section in one scope, as attributes.

    Examples
    --------
    >>> form = Form(Scope(is_quick=False, seed=3), {"runs": (160, 1000)})
    >>> form.runs, form.seed
    (1000, 3)
    """

    scope: Scope
    sizes: Mapping[str, Sequence[Any]]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.sizes:
            raise AttributeError(name)
        return self.scope.pick(*self.sizes[name])

    @property
    def seed(self) -> int:
        """The seed of the report."""
        return self.scope.seed


Variants = Mapping[Any, Mapping[str, Any]]  # settings by the name that tables give them


def variants(setting: str, values: Mapping[Any, Any]) -> Variants:
    """Return the values of one setting by their names."""
    return {name: {setting: value} for name, value in values.items()}


def task_cells(
    form: Form,
    task: str,
    shared: Mapping[str, Any],
    varied: Mapping[str, Variants],
    cost: Callable[[Mapping[str, Any]], float],
    piece: int | None = None,
) -> list[Cell]:
    """Return the cells of a task of ``reproduction/tasks.py``: every combination of what is varied.

    Parameters
    ----------
    form : Form
        Its seed, and its `runs` as replications, unless settings say otherwise.
    task : str
        The function's name.
    shared : dict
        Settings that all cells have; noise is Gaussian unless they say otherwise.
    varied : dict
        By the label of the tables' column: settings by their names.
    cost : callable
        Seconds of a cell, roughly, of its settings and labels.
    piece : int, optional
        Replications of a cell, where they are cut into several.
    """
    common = {"noise": Part("gaussian"), "seed": form.seed, **shared}
    if "replications" not in common:
        common["replications"] = form.runs
    cells = []
    for combination in product(*(values.items() for values in varied.values())):
        labels = {label: name for label, (name, _) in zip(varied, combination, strict=True)}
        chosen = common
        for _, changes in combination:
            chosen = {**chosen, **changes}
        settings: dict[str, Any] = {
            name: value.plain() if isinstance(value, Part) else value for name, value in chosen.items()
        }
        runs = settings["replications"]
        for first in range(0, runs, piece or runs):
            cut = {"first": first, "replications": min(piece, runs - first)} if piece else {}
            whole = settings | cut
            cells.append(Cell(f"orthobandit.reproduction.tasks:{task}", whole, labels, cost(whole | labels)))
    return cells


# What is claimed


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
    >>> print(Judgement("error", "it errs rarely", "here", "share", Measured.share(11, 40), "≤", 0.1))
    undecided: 0.275, from 0.0838 to 0.554 at level 3·10⁻⁴, needed ≤ 0.1
    >>> print(Judgement("error", "it errs rarely", "here", "share", Measured.share(0, 100), "≤", 0.1))
    shown: 0, from 0 to 0.0769 at level 3·10⁻⁴, needed ≤ 0.1
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

    @property
    def evidence(self) -> str:
        """The number, the interval that decided, and the bound, in words."""
        return f"{self.measured}, needed {self.relation} {short(self.bound)}"

    def __str__(self) -> str:
        return f"{self.kind}: {self.evidence}"

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
            "evidence": self.evidence,
        }


def tally(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Return how many claims, and how many questions, are of each kind."""
    kinds = [judgement.kind for judgement in judgements]
    return {kind: kinds.count(kind) for kind in KINDS}


@dataclass(frozen=True)
class Claim:
    """A claim, the number that decides it, and the bound that was fixed before the runs.

    Attributes
    ----------
    name, claim, statistic, source
        As in :class:`Judgement`; ``{yardstick:.3f}`` in the statistic is the number that the bound is beyond.
    number : callable
        The measured number of the section's data; None where these runs do not tell, and nothing is judged.
    at_most, at_least : float
        The bound, one of them.
    yardstick : callable, optional
        A number of the data, to which the bound is added.
    """

    name: str
    claim: str
    statistic: str
    number: Callable[[Data], Measured | None]
    at_most: float | None = None
    at_least: float | None = None
    source: str = "paper"
    yardstick: Callable[[Data], float] | None = None

    def judge(self, data: Data) -> Judgement | None:
        """Hold the number of these data against the bound."""
        measured = self.number(data)
        if measured is None:
            return None
        relation, bound = ("≤", self.at_most) if self.at_least is None else ("≥", self.at_least)
        if bound is None:
            raise StudyError(f"the claim {self.name!r} has no bound; give at_most or at_least")
        statistic = self.statistic
        if self.yardstick is not None:
            own = self.yardstick(data)
            bound += own
            statistic = statistic.format(yardstick=own)
        return Judgement(self.name, self.claim, self.source, statistic, measured, relation, bound)


# What several claims, tables and charts are about


@dataclass(frozen=True)
class Groups:
    """The rows of a table, apart by the values of some columns; of all rows, or of `only` some."""

    table: str
    by: tuple[str, ...]
    only: Mapping[str, Any] = field(default_factory=dict)

    def of(self, data: Data) -> dict[tuple[Any, ...], Columns]:
        """Return the rows of each group by its values, in the order of first appearance."""
        rows = where(data[self.table], **self.only)
        return {
            values: where(rows, **dict(zip(self.by, values, strict=True)))
            for values in distinct(rows, *self.by)
        }

    def worst_share(self, is_hit: Callable[[Columns], Any]) -> Callable[[Data], Measured]:
        """Return what finds the largest share of hits of any group, with exact limits."""

        def worst(data: Data) -> Measured:
            hits = [np.asarray(is_hit(rows)) for rows in self.of(data).values()]
            return Measured.largest(
                [Measured.share(int(group.sum()), group.size, among=len(hits)) for group in hits]
            )

        return worst


@dataclass(frozen=True)
class Law:
    """A power law that points should follow.

    Attributes
    ----------
    name : str
        Of the line in a chart.
    points : callable
        x (n,) and y (n, runs) of the data.
    is_fitted : bool
        Whether a law is fitted; otherwise the points alone are drawn.
    """

    name: str
    points: Callable[[Data], tuple[Array, Array]]
    is_fitted: bool = True

    def fit(self, data: Data) -> Fit:
        """Fit the law."""
        return Fit.of(*self.points(data))

    def exponent(self, data: Data, among: int = 1) -> Measured:
        """Return the fitted exponent, as the largest of so many."""
        return Measured.exponent(self.fit(data), among)

    def signed(self, data: Data) -> str:
        """Return the exponent with its standard error."""
        fit = self.fit(data)
        return f"{fit.exponent:.3f} ± {fit.error:.3f}".replace("-", "−")

    def series(self, data: Data) -> Series:
        """Return the points with their spread, and the fitted line."""
        x, y = self.points(data)
        mean = y.mean(axis=1)
        spread = y.std(axis=1, ddof=1)
        if not self.is_fitted:
            return Series(self.name, x, mean, spread)
        fit = Fit.of(x, y)
        slope = f"{fit.exponent:.2f}".replace("-", "−")
        return Series(f"{self.name}, slope {slope}", x, mean, spread, fit.values)


def largest_exponent(laws: Collection[Law]) -> Callable[[Data], Measured]:
    """Return what finds the largest of several exponents."""
    return lambda data: Measured.largest([law.exponent(data, among=len(laws)) for law in laws])


# What is tabled and drawn


@dataclass(frozen=True)
class Grid:
    """A table for people; numbers are already written out, after so many columns of words."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 2


@dataclass(frozen=True)
class GroupsTable:
    """A table with a row for each group.

    Attributes
    ----------
    caption : str
    groups : Groups
    columns : dict
        By their heads, what they say of the rows of a group: a function of them, or the name of a column
        that is alike in all of them.
    words : int
    """

    caption: str
    groups: Groups
    columns: Mapping[str, str | Callable[[Columns], str]]
    words: int = 2

    def __call__(self, data: Data) -> Grid:
        """Return the table."""
        rows = [
            [
                str(group[column][0]) if isinstance(column, str) else column(group)
                for column in self.columns.values()
            ]
            for group in self.groups.of(data).values()
        ]
        return Grid(self.caption, list(self.columns), rows, self.words)


@dataclass(frozen=True)
class LawsTable:
    """A table of fitted exponents with their standard errors, behind words about each law."""

    caption: str
    head: Sequence[str]
    laws: Mapping[tuple[str, ...], Law]

    def __call__(self, data: Data) -> Grid:
        """Return the table."""
        rows = [[*words, law.signed(data)] for words, law in self.laws.items()]
        return Grid(self.caption, self.head, rows, words=1)


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


class Panel(NamedTuple):
    """Laws that are drawn together, and what their axes are called."""

    laws: Collection[Law]
    x: str
    y: str


@dataclass(frozen=True)
class LawsChart:
    """A chart of power laws, a panel a title."""

    name: str
    caption: str
    panels: Mapping[str, Panel]

    def __call__(self, data: Data) -> Chart:
        """Return the chart."""
        panels = {
            title: ([law.series(data) for law in panel.laws], panel.x, panel.y)
            for title, panel in self.panels.items()
        }
        return Chart.of_panels(self.name, self.caption, scaling_panels, panels)


@dataclass(frozen=True)
class SharesChart:
    """A chart of shares of failed runs, a row a name, and δ, below which they have to stay."""

    name: str
    caption: str
    delta: float
    rows: Callable[[Data], Mapping[str, Mapping[str, Dot]]]

    def __call__(self, data: Data) -> Chart:
        """Return the chart."""
        rows = self.rows(data)
        draw = partial(share_rows, rows, "share of failed runs", self.delta, "δ")
        return Chart(self.name, self.caption, draw)


@dataclass(frozen=True)
class Section:
    """One figure or table of the report.

    Attributes
    ----------
    name : str
        What ``--only`` calls it, e.g. ``figure-1``.
    title : str
        The heading, without jargon.
    plain : str
        What the section finds out, in one sentence for anybody.
    claims : str
        What is claimed, and by whom, in a sentence or two.
    described : callable
        What is run, in a sentence or two.
    runs : callable
        The work.
    judged : sequence of Claim
    tabled, drawn : sequence of callable
        Tables and figures of the section's data; None where these runs have nothing to show.
    sizes : dict
        By the name of the form's attribute: what the quick form and the full form have.
    group : str
        The part of the report that it belongs to.
    """

    name: str
    title: str
    plain: str
    claims: str
    described: Callable[[Form], str]
    runs: Callable[[Form], list[Cell]]
    judged: Sequence[Claim]
    tabled: Sequence[Callable[[Data], Grid | None]]
    drawn: Sequence[Callable[[Data], Chart | None]]
    sizes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    group: str = ""

    def setting(self, scope: Scope) -> str:
        """Return what is run, in a sentence or two."""
        return self.described(Form(scope, self.sizes))

    def cells(self, scope: Scope) -> list[Cell]:
        """Return the work."""
        return self.runs(Form(scope, self.sizes))

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return what was shown, what was refuted and what the runs leave undecided."""
        return present(claim.judge(data) for claim in self.judged)

    def grids(self, data: Data) -> list[Grid]:
        """Return tables for people."""
        return present(table(data) for table in self.tabled)

    def charts(self, data: Data) -> list[Chart]:
        """Return the figures."""
        return present(figure(data) for figure in self.drawn)


def present(values: Iterable[Value | None]) -> list[Value]:
    """Return the values that are there."""
    return [value for value in values if value is not None]
