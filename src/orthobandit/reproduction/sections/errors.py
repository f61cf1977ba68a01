"""The estimation error of pure exploration over time: the paper's last two figures."""

from dataclasses import asdict, dataclass
from math import log, sqrt

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.reproduction.charts import Series, error_panels
from orthobandit.reproduction.sections.base import FORMULAS, Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.study.cells import Cell
from orthobandit.study.tables import distinct, grouped, where

TASK = "orthobandit.reproduction.tasks:track_error"
DESIGNS = {"anchor": "DEO (the paper's)", "centred": "exact centred design"}
RUNS = 10  # as in the paper
ROUNDS = (1_000_000, 10_000_000)
LATE = 7  # checkpoints at the end, where the ridge no longer matters
FACTOR = 10.0  # of the claimed bound: the paper draws its level at 10√(d log K)
DELTA = 0.05


def level(dimension: int, count: int) -> float:
    """Return 10√(d log K), the level that the paper's curves stay below."""
    return FACTOR * sqrt(dimension * log(count))


@dataclass(frozen=True)
class ErrorFigure:
    """Figure 3 or 4: √t·eₜ under one shift for several (d, K), with the paper's design and the exact one."""

    name: str
    title: str
    group: str
    plain: str
    shift: str
    sizes: tuple[tuple[int, int], ...]

    claims = (
        "With eₜ = max_i |(x_i − x_1)ᵀ(θ̂_t − θ)|, √t·eₜ ≤ 10√(d log K) for all t: exploring with the design"
        " of Algorithm 1 (DEO) is √t-consistent at the dimension-optimal rate."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        return (
            f"{scope.pick(*ROUNDS):,} rounds from one fixed design, {RUNS} runs as in the paper; random unit"
            f" arms with gap ½, σ = 1, shift {FORMULAS[self.shift]}; θ̂ by orthogonalised regression with"
            " ridge log(t/δ), δ = 0.05."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return one cell for each size and design."""
        marks = np.unique(np.geomspace(10, scope.pick(*ROUNDS), 25).round().astype(int)).tolist()
        return [
            Exploration(self.shift, d, count, design).cell(marks, RUNS, scope.seed)
            for d, count in self.sizes
            for design in DESIGNS
        ]

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether runs stay below the level, and what the exact design gains."""
        found = []
        gains = []
        for d, count in distinct(data["errors"], "dimension", "count"):
            tops = [_scaled(data, d, count, design, "error")[1].max(axis=0) for design in DESIGNS]
            pairs = {design: _scaled(data, d, count, design, "pair_error")[1] for design in DESIGNS}
            # Averaged over several times, which says more of a run than its last moment.
            late = {design: values[-LATE:].mean(axis=0) for design, values in pairs.items()}
            gains.append(np.log(late["centred"] / late["anchor"]))
            found.append(
                Judgement(
                    name=f"({d}, {count}) level",
                    claim=f"at ({d}, {count}), √t·eₜ ≤ 10√(d log K) at all times",
                    source="paper",
                    statistic="highest √t·eₜ of a run, mean over runs, the worse of both designs",
                    measured=Measured.largest([Measured.mean(top, among=len(tops)) for top in tops]),
                    relation="≤",
                    bound=level(d, count),
                )
            )
        exact = Judgement(
            name="exact design",
            claim="the exact centred design has a smaller error over all pairs of arms than DEO",
            source="here",
            statistic="late error of the worst pair, exact / DEO, geometric mean over sizes and runs",
            measured=Measured.mean(np.mean(gains, axis=0)).exponentiated(),
            relation="≤",
            bound=1.0,
        )
        return [*found, exact]

    def grids(self, data: Data) -> list[Grid]:
        """Return √t·eₜ at the end and at its highest."""
        rows = []
        for d, count, design in distinct(data["errors"], "dimension", "count", "design"):
            rounds, values = _scaled(data, d, count, design, "error")
            last = f"{values[-1].mean():.1f} ± {values[-1].std(ddof=1):.1f}"
            row = [f"({d}, {count})", DESIGNS[design], last, f"{values.max():.1f}", f"{level(d, count):.1f}"]
            rows.append(row)
        head = ["(d, K)", "design", f"√t·eₜ at t = {rounds[-1]:,}", "highest of any run", "10√(d log K)"]
        return [Grid("√t·eₜ over 10 runs, mean ± standard deviation.", head, rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return one panel a size."""
        panels = {}
        for d, count in distinct(data["errors"], "dimension", "count"):
            lines = []
            for design, name in DESIGNS.items():
                rounds, values = _scaled(data, d, count, design, "error")
                spread = values.std(axis=1, ddof=1)
                lines.append(Series(name, rounds.astype(float), values.mean(axis=1), spread))
            panels[f"(d, K) = ({d}, {count})"] = (lines, level(d, count), "10√(d log K)")
        caption = (
            "√t·eₜ against t: mean of 10 runs, bars of one standard deviation; dashed, the claimed level."
        )
        return [Chart.of_panels("error", caption, error_panels, panels)]


def _scaled(data: Data, dimension: int, count: int, design: str, column: str) -> tuple[Whole, Array]:
    """Return rounds (C,) and √t times a column (C, runs)."""
    columns = where(data["errors"], dimension=dimension, count=count, design=design)
    rounds, errors = grouped(columns, "round", column)
    return rounds, errors * np.sqrt(rounds)[:, np.newaxis]


@dataclass(frozen=True)
class Exploration:
    """What is explored, and with which design."""

    shift: str
    dimension: int
    count: int
    design: str

    def cell(self, marks: list[int], runs: int, seed: int) -> Cell:
        """Return the cell that follows the error of so many runs at `marks`."""
        shape = {"dimension": self.dimension, "count": self.count, "gap": 0.5, "seed": seed}
        settings = {
            "instance": {"kind": "exact-gap", "settings": shape},
            "shift": {"kind": self.shift, "settings": {}},
            "noise": {"kind": "gaussian", "settings": {}},
            "design": self.design,
            "delta": DELTA,
            "checkpoints": marks,
            "replications": runs,
            "seed": seed,
        }
        return Cell(TASK, settings, asdict(self), cost=0.2 + 4e-8 * marks[-1] * runs)
