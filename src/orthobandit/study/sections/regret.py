"""Cumulative regret of several policies, each at its best tuning: the paper's first two figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit.study.cells import Cell
from orthobandit.study.sections.base import Chart, Data, Grid, Scope, Verdict
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, grouped, where

PAPER = "The paper"
SCALES = (1, 2, 4, 8)
DELTA = 0.05


@dataclass(frozen=True)
class Contender:
    """A policy of the comparison: kind, settings, and what to run it for."""

    kind: str
    settings: Mapping[str, Any]
    is_ours: bool = False
    seconds_a_round: float = 1e-6
    most_runs: int = 1000


@dataclass(frozen=True)
class Size:
    """Arms of the comparison and how long they are played."""

    dimension: int
    count: int
    quick: int
    full: int

    @property
    def label(self) -> str:
        """The paper's (d, K)."""
        return f"({self.dimension}, {self.count})"


@dataclass(frozen=True)
class RegretFigure:
    """Figure 1 or 2: one shift, all sizes, every policy tuned over c ∈ {1, 2, 4, 8}."""

    name: str
    title: str
    shift: str
    contenders: Mapping[str, Contender]
    sizes: tuple[Size, ...]
    reported: str
    reference: str = "SBE"
    group: str = PAPER

    @property
    def claims(self) -> str:
        """What the paper says of the figure."""
        return (
            "SBE has less cumulative regret than BOSE and Semiparametric-TS, each at its best c, and its curve"
            f" becomes flat: the best arm has been identified. {self.reported}"
        )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        rounds = " and ".join(f"{scope.pick(s.quick, s.full):,} rounds at {s.label}" for s in self.sizes)
        runs = scope.pick(*RUNS)
        return (
            f"Random unit arms with gap Δ = ½, noise σ = 1, δ = {DELTA}; {rounds}; up to {runs} runs for each"
            " policy and c. The paper gives neither its arms nor its horizon."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every policy at every c and size."""
        return [
            cell
            for size in self.sizes
            for label, contender in self.contenders.items()
            for scale in SCALES
            for cell in self._sweep(size, label, contender, scale, scope)
        ]

    def _sweep(self, size: Size, label: str, contender: Contender, scale: int, scope: Scope) -> list[Cell]:
        horizon = scope.pick(size.quick, size.full)
        runs = min(scope.pick(*RUNS), contender.most_runs)
        instance = {"dimension": size.dimension, "count": size.count, "gap": 0.5, "seed": scope.seed}
        settings = {**contender.settings, "scale": float(scale), "delta": DELTA}
        sweep = Sweep(
            policies={label: Part(contender.kind, settings)},
            instances={size.label: Part("exact-gap", instance)},
            shifts={self.shift: Part(self.shift)},
            horizon=horizon,
            replications=runs,
            seeds=(scope.seed,),
            checkpoints=tuple(horizon * step // MARKS for step in range(1, MARKS + 1)),
            batch=runs if contender.seconds_a_round < 1e-5 else 1,
            labels={"scale": scale},
            seconds_a_round=contender.seconds_a_round * size.dimension * size.count,
        )
        return sweep.cells()

    def verdicts(self, data: Data) -> list[Verdict]:
        """Return whether SBE beats each rival, becomes flat, and what the exact design gains."""
        found = []
        for (size,) in distinct(data["curves"], "instance"):
            curves = where(data["curves"], instance=size)
            best = {label: tuned(curves, label) for (label,) in distinct(curves, "policy")}
            final = {label: mean[-1] for label, (_, _, mean, _) in best.items()}
            own = final[self.reference]
            for label, value in final.items():
                if label == self.reference:
                    continue
                is_ours = self.contenders[label].is_ours
                found.append(
                    Verdict(
                        name=f"{size} against {label}",
                        claim=f"at {size}, the {label} has no more regret than SBE"
                        if is_ours
                        else f"at {size}, SBE has less regret than {label}",
                        source="here" if is_ours else "paper",
                        statistic=f"final regret, {label} / SBE"
                        if is_ours
                        else f"final regret, SBE / {label}",
                        value=value / own if is_ours else own / value,
                        relation="≤",
                        bound=1.0,
                    )
                )
            found.append(self._flat(size, best[self.reference][2]))
        return found

    def _flat(self, size: str, mean: Any) -> Verdict:
        tenth = len(mean) // 10
        late, early = mean[-1] - mean[-1 - tenth], mean[tenth - 1]
        return Verdict(
            name=f"{size} flat",
            claim=f"at {size}, the curve of SBE becomes flat",
            source="paper",
            statistic="regret in the last tenth of the rounds / in the first tenth",
            value=late / early,
            relation="≤",
            bound=0.1,
        )

    def grids(self, data: Data) -> list[Grid]:
        """Return final regret for every c, the tuned one marked, and how often the best arm was declared."""
        rows = []
        for size, label in distinct(data["runs"], "instance", "policy"):
            chosen = tuned(where(data["curves"], instance=size), label)[0]
            cells = []
            for scale in SCALES:
                regret = where(data["runs"], instance=size, policy=label, scale=scale)["regret"]
                cells.append(f"{regret.mean():,.0f}{' ←' if scale == chosen else ''}")
            runs = where(data["runs"], instance=size, policy=label, scale=chosen)
            share = f"{np.mean(runs['is_correct']):.0%}"
            rows.append([size, label, *cells, share, str(len(runs["regret"]))])
        head = ["(d, K)", "policy", *(f"c = {scale}" for scale in SCALES), "best arm declared", "runs"]
        return [Grid("Mean cumulative regret at the horizon; ← marks the tuned c.", head, rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return one panel a size."""
        from orthobandit.study.charts import draw_regret

        panels = {}
        for (size,) in distinct(data["curves"], "instance"):
            curves = where(data["curves"], instance=size)
            panels[f"(d, K) = {size}"] = {
                label: tuned(curves, label) for (label,) in distinct(curves, "policy")
            }
        caption = "Cumulative regret: mean over runs, band from the 10 % to the 90 % quantile; tuned c in the legend."
        return [Chart(self.name, caption, lambda: draw_regret(panels))]


# Runs of the quick and of the full form; points of a curve.
RUNS = (20, 50)
MARKS = 100


def tuned(curves: Columns, label: str) -> tuple[int, Any, Any, Any]:
    """Return the c of least mean final regret, its rounds (C,), mean curve (C,) and band (2, C)."""
    best: tuple[int, Any, Any, Any] | None = None
    for (scale,) in distinct(where(curves, policy=label), "scale"):
        rounds, regret = grouped(where(curves, policy=label, scale=scale), "round", "regret")
        mean = regret.mean(axis=1)
        if best is None or mean[-1] < best[2][-1]:
            best = (int(scale), rounds, mean, np.quantile(regret, [0.1, 0.9], axis=1))
    if best is None:
        raise KeyError(label)
    return best
