"""Cumulative regret of several policies, each at its best tuning: the paper's first two figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthobandit.study.cells import Cell
from orthobandit.study.charts import regret_panels
from orthobandit.study.figures import Curve
from orthobandit.study.sections.base import Chart, Data, Grid, Scope, Verdict
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, grouped, where

SCALES = (1, 2, 4, 8)
REFERENCE = "SBE"
MARKS = 100  # points of a curve
BAND = (0.1, 0.9)
FLAT = 0.1
UNTUNED = 0  # stands for c where a policy has none


@dataclass(frozen=True)
class Contender:
    """A policy of the comparison: kind, settings (and cheaper ones), runs on each arm set, and its speed.

    One of ours has a `margin`: the claim is that its regret is at most so many times that of SBE.
    """

    kind: str
    settings: Mapping[str, Any]
    runs: tuple[int, int]
    quick: Mapping[str, Any] = field(default_factory=dict)
    seconds_a_round: float = 1e-7  # at (d, K) = (20, 30)
    scales: tuple[int, ...] = SCALES
    margin: float | None = None

    def settings_at(self, scale: int) -> dict[str, Any]:
        """Return the settings with this c; one without c has the scale UNTUNED."""
        return dict(self.settings) if scale == UNTUNED else {**self.settings, "scale": float(scale)}


@dataclass(frozen=True)
class Size:
    """Arms of the comparison: how many random sets, so that nothing hangs on one, and for how long."""

    dimension: int
    count: int
    sets: tuple[int, int]
    rounds: tuple[int, int]

    @property
    def label(self) -> str:
        """The paper's (d, K)."""
        return f"({self.dimension}, {self.count})"


@dataclass(frozen=True)
class RegretFigure:
    """Figure 1 or 2: one shift, all sizes, every policy tuned over c ∈ {1, 2, 4, 8}."""

    name: str
    title: str
    group: str
    shift: str
    contenders: Mapping[str, Contender]
    sizes: tuple[Size, ...]
    reported: str

    @property
    def claims(self) -> str:
        """What the paper says of the figure."""
        return (
            "The curve of SBE becomes flat: the best arm has been identified. The comparison with BOSE and"
            " Semiparametric-TS, each at its best c, is left to the figure; it is read here as saying that"
            f" SBE has the least regret. {self.reported}"
        )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        rounds = " and ".join(
            f"{scope.pick(*size.rounds):,} rounds on {scope.pick(*size.sets)} arm sets at {size.label}"
            for size in self.sizes
        )
        return (
            f"{rounds}; random unit arms with gap Δ = ½, σ = 1.{self._cheaper(scope)} The paper gives neither"
            " its arms nor its horizon, so levels of regret are not comparable: shapes and order are."
        )

    def _cheaper(self, scope: Scope) -> str:
        changed = [(label, *item) for label, its in self.contenders.items() for item in its.quick.items()]
        said = (f" {label} with {name} = {value}." for label, name, value in changed)
        return "".join(said) if scope.is_quick else ""

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every policy at every c and size."""
        return [
            cell
            for size in self.sizes
            for label, contender in self.contenders.items()
            for scale in contender.scales
            for cell in self._sweep(size, label, contender, scale, scope).cells()
        ]

    def _sweep(self, size: Size, label: str, contender: Contender, scale: int, scope: Scope) -> Sweep:
        horizon, runs = scope.pick(*size.rounds), scope.pick(*contender.runs)
        shape = {"dimension": size.dimension, "count": size.count, "gap": 0.5}
        settings = contender.settings_at(scale) | (dict(contender.quick) if scope.is_quick else {})
        seconds = contender.seconds_a_round * size.dimension * size.count / 600
        return Sweep(
            policies={label: Part(contender.kind, settings)},
            instances={
                f"arms {number + 1}": Part("exact-gap", shape | {"seed": 1000 * scope.seed + number})
                for number in range(scope.pick(*size.sets))
            },
            shifts={self.shift: Part(self.shift)},
            horizon=horizon,
            replications=runs,
            seeds=(scope.seed,),
            checkpoints=tuple(horizon * step // MARKS for step in range(1, MARKS + 1)),
            batch=runs,
            seconds_a_round=seconds,
            labels={"size": size.label, "scale": scale},
        )

    def verdicts(self, data: Data) -> list[Verdict]:
        """Return whether SBE beats each rival, becomes flat, and what the exact design costs."""
        found = []
        for (size,) in distinct(data["curves"], "size"):
            curves = where(data["curves"], size=size)
            best = {label: tuned(curves, label) for (label,) in distinct(curves, "policy")}
            own = best[REFERENCE][1].mean
            found += [
                self._compared(size, label, float(curve.mean[-1] / own[-1]))
                for label, (_, curve) in best.items()
                if label != REFERENCE
            ]
            found.append(_flat(size, own))
        return found

    def _compared(self, size: str, label: str, ratio: float) -> Verdict:
        margin = self.contenders[label].margin
        if margin is not None:
            more = f", but for {margin - 1:.0%}" if margin > 1 else ""
            claim = f"at {size}, {label} has no more regret than SBE{more}"
            name, statistic = f"{size} {label} as good as SBE", f"final regret, {label} / SBE"
            return Verdict(name, claim, "here", statistic, ratio, "≤", margin)
        claim = f"at {size}, SBE has less regret than {label}"
        name, statistic = f"{size} SBE below {label}", f"final regret, SBE / {label}"
        return Verdict(name, claim, "figure", statistic, 1 / ratio, "≤", 1.0)

    def grids(self, data: Data) -> list[Grid]:
        """Return final regret for every c, the tuned one marked, and how often the best arm was declared."""
        rows = []
        for size, label in distinct(data["runs"], "size", "policy"):
            chosen = tuned(where(data["curves"], size=size), label)[0]
            of_policy = where(data["runs"], size=size, policy=label)
            found = {scale: where(of_policy, scale=scale)["regret"] for scale in (UNTUNED, *SCALES)}
            means = {
                scale: f"{values.mean():,.0f}" if values.size else "–" for scale, values in found.items()
            }
            runs = where(of_policy, scale=chosen)
            rows.append(
                [
                    size,
                    label,
                    means.pop(UNTUNED),
                    *(f"{mean}{' ←' if scale == chosen else ''}" for scale, mean in means.items()),
                    f"{np.mean(runs['is_correct']):.0%}",
                    str(len(runs["regret"])),
                ]
            )
        by_scale = ["without c", *(f"c = {scale}" for scale in SCALES)]
        head = ["(d, K)", "policy", *by_scale, "best arm declared", "runs"]
        return [Grid("Mean cumulative regret at the horizon; ← marks the tuned c.", head, rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return one panel a size."""
        panels = {}
        for (size,) in distinct(data["curves"], "size"):
            curves = where(data["curves"], size=size)
            best = [tuned(curves, label) for (label,) in distinct(curves, "policy")]
            panels[f"(d, K) = {size}"] = [curve for _, curve in best]
        caption = (
            "Cumulative regret of each policy at its tuned c: mean over all runs, and a band from the"
            f" {BAND[0]:.0%} to the {BAND[1]:.0%} quantile."
        )
        return [Chart("regret", caption, lambda: regret_panels(panels))]


def tuned(curves: Columns, label: str) -> tuple[int, Curve]:
    """Return the c of least mean final regret, and its curve."""
    found: dict[int, Curve] = {}
    of_policy = where(curves, policy=label)
    for (scale,) in distinct(of_policy, "scale"):
        rounds, regret = grouped(where(of_policy, scale=scale), "round", "regret")
        low, high = np.quantile(regret, BAND, axis=1)
        name = label if scale == UNTUNED else f"{label}, c = {scale}"
        found[scale] = Curve(name, rounds, regret.mean(axis=1), low, high)
    best = min(found, key=lambda scale: float(found[scale].mean[-1]))
    return best, found[best]


def _flat(size: str, mean: Any) -> Verdict:
    tenth = len(mean) // 10
    return Verdict(
        name=f"{size} SBE becomes flat",
        claim=f"at {size}, the curve of SBE becomes flat",
        source="paper",
        statistic="regret of SBE in the last tenth of the rounds / in the first tenth",
        value=float((mean[-1] - mean[-1 - tenth]) / mean[tenth - 1]),
        relation="≤",
        bound=FLAT,
    )
