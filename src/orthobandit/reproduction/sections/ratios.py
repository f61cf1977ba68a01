"""A policy against a reference on the same instances: the ratio of their means, and what it should be."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orthobandit.reproduction.charts import Dot, dot_rows
from orthobandit.reproduction.sections.base import Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, grouped, samples_of, share_wrong, where

SECONDS = 0.2  # of a run, roughly


@dataclass(frozen=True)
class RatioTable:
    """Mean regret or mean samples of several policies, divided by those of a reference.

    Attributes
    ----------
    contenders : dict of Part
        The first is the reference.
    reach : dict of float
        Largest ratio that is claimed, by policy.
    measure : {"regret", "samples"}
    shifts : tuple of str
    rounds : int
        The horizon, or where runs are given up.
    sets, runs : (int, int)
        Random arm sets and runs on each, quick and full.
    plain : str
        What the section finds out, in one sentence.
    is_random : bool
        Whether arm sets have seeds; otherwise there is one.
    """

    name: str
    title: str
    group: str
    about: str
    claims: str
    instance: Part
    contenders: Mapping[str, Part]
    reach: Mapping[str, float]
    measure: str
    shifts: tuple[str, ...]
    rounds: int
    sets: tuple[int, int]
    runs: tuple[int, int]
    plain: str = ""
    is_random: bool = True

    @property
    def reference(self) -> str:
        """The policy that others are compared with."""
        return next(iter(self.contenders))

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        sets = scope.pick(*self.sets)
        runs = scope.pick(*self.runs)
        many = f"{runs} runs on each of {sets} arm sets" if sets > 1 else f"{runs} runs"
        return f"{self.about}; {many}, with the same seeds for all policies."

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every policy on every instance under every shift."""
        runs = scope.pick(*self.runs)
        return [
            cell
            for label, policy in self.contenders.items()
            for cell in Sweep(
                policies={label: policy},
                instances=self._instances(scope),
                shifts={shift: Part(shift) for shift in self.shifts},
                horizon=self.rounds,
                replications=runs,
                seeds=(scope.seed,),
                checkpoints=(self.rounds,),
                stop_when_declared=self.measure == "samples",
                batch=runs,
                seconds_a_round=SECONDS / self.rounds,
                labels={"limit": self.rounds},
            ).cells()
        ]

    def _instances(self, scope: Scope) -> dict[str, Part]:
        if not self.is_random:
            return {"the arms": self.instance}
        return {
            f"arms {number + 1}": Part(
                self.instance.kind, {**self.instance.settings, "seed": 1000 * scope.seed + number}
            )
            for number in range(scope.pick(*self.sets))
        }

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether ratios are as small as claimed."""
        return [
            Judgement(
                name=f"{label}, {shift}",
                claim=f"under the shift {shift}, {label} has at most {bound:g} times the {self.measure} of"
                f" {self.reference}",
                source="here",
                statistic=f"mean {self.measure}, {label} / {self.reference}",
                measured=Measured.ratio(
                    self._by_set(data, shift, label), self._by_set(data, shift, self.reference)
                ),
                relation="≤",
                bound=bound,
            )
            for label, bound in self.reach.items()
            for shift in self.shifts
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return means, ratios and errors."""
        rows = []
        for shift in self.shifts:
            means = self._means(data, shift)
            for label, mean in means.items():
                found = where(data["runs"], policy=label, shift=shift)
                error = Measured.mean(self._by_set(data, shift, label)).error
                ratio = mean / means[self.reference]
                reach = f"≤ {self.reach[label]:g}" if label in self.reach else "–"
                rows.append(
                    [
                        shift,
                        label,
                        f"{mean:,.0f}",
                        "–" if error is None else f"{error:,.0f}",
                        f"{ratio:.3f}",
                        reach,
                        f"{share_wrong(found):.0%}",
                        str(len(found["declared"])),
                    ]
                )
        head = ["shift", "policy", f"mean {self.measure}", "± s.e.", "ratio", "claimed", "wrong", "runs"]
        return [Grid(f"Mean {self.measure}, and its ratio to that of {self.reference}.", head, rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return means by policy and shift."""
        rows = {
            label: {f"shift {shift}": self._dot(data, shift, label) for shift in self.shifts}
            for label in self.contenders
        }
        caption = f"Mean {self.measure} with bars of one standard error, on a logarithmic axis."
        unit = "rounds" if self.measure == "samples" else "units of reward"
        return [Chart("means", caption, lambda: dot_rows(rows, f"{self.measure} ({unit})"))]

    def _dot(self, data: Data, shift: str, label: str) -> Dot:
        mean = Measured.mean(self._by_set(data, shift, label))
        return Dot(mean.value, mean.error or 0.0)

    def _means(self, data: Data, shift: str) -> dict[str, float]:
        of_shift = where(data["runs"], shift=shift)
        return {
            label: float(self._values(where(of_shift, policy=label)).mean())
            for (label,) in distinct(of_shift, "policy")
        }

    def _by_set(self, data: Data, shift: str, label: str) -> np.ndarray:
        """Return what is independent: the mean over the runs on each arm set, or the runs on a sole one."""
        columns = where(data["runs"], shift=shift, policy=label)
        columns = {**columns, "value": self._values(columns)}
        # Runs on one arm set share its difficulty, so they are no independent draws of a ratio.
        _, values = grouped(columns, "instance", "value")
        return np.asarray(values[0] if len(values) == 1 else values.mean(axis=1))

    def _values(self, columns: Columns) -> np.ndarray:
        if self.measure == "regret":
            return np.asarray(columns["regret"], dtype=np.float64)
        return samples_of(columns)
