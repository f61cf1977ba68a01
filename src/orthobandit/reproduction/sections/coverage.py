"""How often the claims of anytime elimination ever fail: every mode under every shift."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit.reproduction.charts import Dot, share_rows
from orthobandit.reproduction.sections.base import Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.simulation import SHIFTS
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, distinct, where

TASK = "orthobandit.reproduction.tasks:track_misses"
DELTA = 0.1
LIMIT = 1.0  # of the shift
ROUNDS = (3_000, 100_000)
RUNS = (40, 1000)
PIECE = 250  # runs of a cell
GROWTH = 0.2  # of batches: fewer looks than by default, since every look is compared with the truth
# One shift of each kind, and all adversaries: these are what might break a claim.
QUICK = ("none", "sine", "log-alternating", "random-walk", "cancel-best", "push-leader", "react-to-last")
SECONDS = 1e-6  # a round, with its share of plans


@dataclass(frozen=True)
class Mode:
    """A mode of confidence: settings of the policy, and noise that keeps to what they declare."""

    settings: Mapping[str, Any]
    noise: str


@dataclass(frozen=True)
class Coverage:
    """Runs in which the best arm was ever dropped or some bound ever wrong, by mode and shift."""

    name: str
    title: str
    group: str
    plain: str
    instance: Part
    modes: Mapping[str, Mode]

    claims = (
        "With probability 1 − δ, at all times at once, the best arm survives and the bounds on what it is"
        " better by hold, whatever the shift: exactly for bounded and for sub-Gaussian rewards, for large"
        " samples in the asymptotic mode. Not a claim of the paper's."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        of = ", ".join(f"{name} = {value}" for name, value in self.instance.settings.items())
        return (
            f"{scope.pick(*RUNS)} runs a mode and shift of {scope.pick(*ROUNDS):,} rounds, or until an arm is"
            f" declared; δ = {DELTA}; {self.instance.kind} with {of}, so near to a tie that most runs last;"
            f" shifts within ±{LIMIT:g}; adversaries see the past. A run fails if a claim is wrong after any"
            " batch."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every mode under every shift, in pieces."""
        runs = scope.pick(*RUNS)
        rounds = scope.pick(*ROUNDS)
        shifts = QUICK if scope.is_quick else tuple(SHIFTS)
        return [
            Cell(
                task=TASK,
                settings={
                    "policy": Part("anytime", {"delta": DELTA, "growth": GROWTH, **mode.settings}).plain(),
                    "instance": self.instance.plain(),
                    "shift": Part(shift).plain(),
                    "noise": Part(mode.noise).plain(),
                    "limit": LIMIT,
                    "horizon": rounds,
                    "first": first,
                    "replications": min(PIECE, runs - first),
                    "seed": scope.seed,
                },
                labels={"mode": label, "shift": shift},
                cost=SECONDS * rounds * min(PIECE, runs - first),
            )
            for label, mode in self.modes.items()
            for shift in shifts
            for first in range(0, runs, PIECE)
        ]

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return what the worst shift of each mode says of its claim."""
        return [
            Judgement(
                name=f"{label} coverage",
                claim=f"in the mode {label}, no shift makes more than δ of the runs fail",
                source="here",
                statistic="share of failed runs, worst shift, exact limits",
                measured=_worst(_by_shift(data, label).values()),
                relation="≤",
                bound=DELTA,
            )
            for label in self.modes
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return failed runs by shift and mode, and from when on a mode has kept its promise."""
        table = {label: _by_shift(data, label) for label in self.modes}
        shifts = [shift for (shift,) in distinct(data["misses"], "shift")]
        rows = [[shift, *(_count(table[label][shift]) for label in self.modes)] for shift in shifts]
        rows.append(["held from round", *(_held_from(data, label) for label in self.modes)])
        runs = len(next(iter(table[next(iter(self.modes))].values()))["first_miss"])
        caption = (
            f"Failed runs of {runs}. Last row: the first round from which on, under every shift, at most δ of"
            " the runs still fail."
        )
        return [Grid(caption, ["shift", *self.modes], rows, words=1)]

    def charts(self, data: Data) -> list[Chart]:
        """Return shares by shift."""
        rows = {
            shift: {label: Dot(_share(_by_shift(data, label)[shift])) for label in self.modes}
            for (shift,) in distinct(data["misses"], "shift")
        }
        caption = "Share of runs in which a claim ever failed, and δ, below which it has to stay."
        return [Chart("misses", caption, lambda: share_rows(rows, "share of failed runs", DELTA, "δ"))]


def _by_shift(data: Data, mode: str) -> dict[str, Columns]:
    columns = where(data["misses"], mode=mode)
    return {shift: where(columns, shift=shift) for (shift,) in distinct(columns, "shift")}


def _worst(shifts: Collection[Columns]) -> Measured:
    """Return the largest share of failed runs over the shifts."""
    return Measured.largest(
        [
            Measured.share(
                int(np.count_nonzero(found["first_miss"] >= 0)), len(found["first_miss"]), among=len(shifts)
            )
            for found in shifts
        ]
    )


def _share(columns: Columns) -> float:
    return float(np.mean(columns["first_miss"] >= 0))


def _count(columns: Columns) -> str:
    return str(int(np.count_nonzero(columns["first_miss"] >= 0)))


def _held_from(data: Data, mode: str) -> str:
    """Return the first round from which on at most δ of the runs fail, under the worst shift."""
    starts = []
    for columns in _by_shift(data, mode).values():
        allowed = int(DELTA * len(columns["last_miss"]))
        # Failures after round n are runs whose last one comes later.
        last = np.sort(columns["last_miss"])[::-1][allowed]
        starts.append(int(last) + 1 if last >= 0 else 0)
    return "the first" if max(starts) == 0 else f"{max(starts):,}"
