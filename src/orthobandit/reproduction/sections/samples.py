"""Samples until the best arm is declared: the tables of the paper's successor, SP-BAI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orthobandit.reproduction.charts import dot_rows
from orthobandit.reproduction.sections.base import Chart, Data, Grid, Measured, Scope, Verdict
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import distinct, samples_of, share_wrong, where

DELTA = 0.1
FEWER = 0.25  # of the rival's samples, for ours
ENOUGH = 100  # runs from which on a mean is held to a number: with fewer, luck would decide


@dataclass(frozen=True)
class Published:
    """What the successor's authors report: mean samples, and the share of wrong declarations if given."""

    samples: float
    wrong: float | None = None


@dataclass(frozen=True)
class SampleTable:
    """Samples and errors of several policies on one instance, or on many random ones.

    Means over many instances hang on the hardest few, so medians and geometric means stand beside them and
    claims about many instances are about geometric means.

    Parameters
    ----------
    instances, runs : (int, int)
        Instances, quick and full: more than one get seeds of their own and one run each. Runs of one.
    is_numbered : bool
        Whether the seeds of the instances are 0, 1, … whatever the seed of the report: the author's own.
    limit : (int, int)
        Rounds after which a run is given up.
    published : dict of str to Published
        By the contender's name; others are only printed.
    is_close : dict of str to float
        Contenders whose mean should be within this factor of the published one, once as many instances
        were run as were published; 1 is for sizes without any chance.
    order : (str, str), optional
        The first needs fewer samples than the second.
    rival : str
        The contender that ours are compared with.
    reach : dict of str to float
        Samples that our own contenders claim not to exceed: mean of one instance, geometric mean of many.
    knows_gap : tuple of str
        Contenders that are told each instance's gap.
    unclaimed : tuple of str
        Contenders that promise nothing about their errors here.
    plain : str
        What the section finds out, in one sentence.
    cut : str
        What is said about phases that are cut short.
    """

    name: str
    title: str
    group: str
    about: str
    claims: str
    contenders: Mapping[str, Part]
    instance: Part
    instances: tuple[int, int] = (1, 1)
    runs: tuple[int, int] = (20, 100)
    limit: tuple[int, int] = (10**9, 10**9)
    published: Mapping[str, Published] = field(default_factory=dict)
    is_close: Mapping[str, float] = field(default_factory=dict)
    order: tuple[str, str] | None = None
    rival: str = ""
    reach: Mapping[str, float] = field(default_factory=dict)
    unclaimed: tuple[str, ...] = ()
    plain: str = ""
    knows_gap: tuple[str, ...] = ()
    is_numbered: bool = False
    cut: str = ""

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        many = scope.pick(*self.instances)
        whose = f"the author's first {many} instances" if self.is_numbered else f"{many} random instances"
        what = f"{whose}, one run each" if self._has_many else f"{scope.pick(*self.runs)} runs"
        given_up = f"; given up after {scope.pick(*self.limit):,} rounds" if self._has_many else ""
        return f"{self.about}; δ = {DELTA}, shift ν¹, σ = 1; {what}{given_up}. {self.cut}".rstrip()

    @property
    def _has_many(self) -> bool:
        return max(self.instances) > 1

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every policy on every instance."""
        runs = 1 if self._has_many else scope.pick(*self.runs)
        limit = scope.pick(*self.limit)
        return [
            cell
            for name, instance in self._instances(scope).items()
            for cell in Sweep(
                policies={label: self._told(label, instance) for label in self.contenders},
                instances={name: instance},
                shifts={"sine": Part("sine")},
                horizon=limit,
                replications=runs,
                seeds=(scope.seed,),
                checkpoints=(limit,),
                stop_when_declared=True,
                batch=runs,
                # Runs end long before the limit: a tenth of a second each, whatever the limit.
                seconds_a_round=0.1 / limit,
                labels={"limit": limit},
            ).cells()
        ]

    def _instances(self, scope: Scope) -> dict[str, Part]:
        if not self._has_many:
            return {"the instance": self.instance}
        first = 0 if self.is_numbered else 1000 * scope.seed
        return {
            f"instance {seed}": Part(self.instance.kind, {**self.instance.settings, "seed": seed})
            for seed in range(first, first + scope.pick(*self.instances))
        }

    def _told(self, label: str, instance: Part) -> Part:
        """Return a contender for this instance: some are told its gap."""
        part = self.contenders[label]
        if label not in self.knows_gap:
            return part
        gaps = instance.make("instance", ("instance",)).gaps
        return Part(part.kind, {**part.settings, "gap": float(np.sort(gaps)[1])})

    def verdicts(self, data: Data) -> list[Verdict]:
        """Return whether errors stay below δ, and whether the published numbers and their order come out."""
        runs = {label: where(data["runs"], policy=label) for (label,) in distinct(data["runs"], "policy")}
        found = [
            Verdict(
                name=f"{label} error",
                claim=f"{label} declares a wrong arm with probability at most δ",
                source="here" if label in self.reach else "successor",
                statistic="share of wrong declarations, exact limits",
                measured=Measured.share(
                    round(share_wrong(columns) * len(columns["declared"])), len(columns["declared"])
                ),
                relation="≤",
                bound=DELTA,
            )
            for label, columns in runs.items()
            if label not in self.unclaimed
        ]
        for label, factor in self._comparable(runs).items():
            samples = samples_of(runs[label])
            # A size without any chance has no error, though instances vary.
            mean = Measured.exactly(samples.mean()) if factor == 1 else Measured.mean(samples)
            found.append(
                Verdict(
                    name=f"{label} as published",
                    claim=f"{label} needs as many samples as published"
                    + (f", within a factor of {factor:g}" if factor > 1 else ""),
                    source="successor",
                    statistic="mean samples, here / published, or its inverse if that is larger",
                    measured=mean.factor_from(self.published[label].samples),
                    relation="≤",
                    bound=factor,
                )
            )
        for label, bound in self.reach.items():
            found += self._reached(
                label, bound, {name: samples_of(columns) for name, columns in runs.items()}
            )
        if self.order is not None:
            first, second = self.order
            found.append(
                Verdict(
                    name=f"{first} before {second}",
                    claim=f"{first} needs fewer samples than {second}",
                    source="successor",
                    statistic=f"mean samples, {first} / {second}",
                    measured=Measured.ratio(samples_of(runs[first]), samples_of(runs[second])),
                    relation="≤",
                    bound=1.0,
                )
            )
        return found

    def _comparable(self, runs: Mapping[str, Any]) -> Mapping[str, float]:
        """Return whom to hold to a published mean: over many instances, all of them must have been run."""
        count = min(len(columns["declared"]) for columns in runs.values())
        return self.is_close if not self._has_many or count >= max(self.instances) else {}

    def _reached(self, label: str, bound: float, samples: Mapping[str, Any]) -> list[Verdict]:
        """Return whether ours needs few samples: against the rival and, given enough runs, as claimed."""
        found = [
            Verdict(
                name=f"{label} against {self.rival}",
                claim=f"{label} needs at most {FEWER:g} of the samples of {self.rival}",
                source="here",
                # Means would hang on the hardest instance.
                statistic=f"geometric mean of samples, {label} / {self.rival}",
                measured=Measured.geometric(samples[label] / samples[self.rival]),
                relation="≤",
                bound=FEWER,
            )
        ]
        if len(samples[label]) >= ENOUGH and self.published:
            kind = "geometric mean" if self._has_many else "mean"
            found.append(
                Verdict(
                    name=f"{label} samples",
                    claim=f"{label} needs at most {bound:,.0f} samples, as a {kind}",
                    source="here",
                    statistic=f"{kind} of samples",
                    measured=self._typical(samples[label]),
                    relation="≤",
                    bound=bound,
                )
            )
        return found

    def _typical(self, samples: Any) -> Measured:
        """Return the mean of one instance, the geometric mean of many."""
        return Measured.geometric(samples) if self._has_many else Measured.mean(samples)

    def grids(self, data: Data) -> list[Grid]:
        """Return our numbers with the published ones beside them."""
        rows = []
        measured = [label for (label,) in distinct(data["runs"], "policy")]
        for label in dict.fromkeys([*measured, *self.published]):
            known = self.published.get(label)
            theirs = ["–", "–"] if known is None else [f"{known.samples:,.2f}", _share(known.wrong)]
            rows.append([label, *self._measured(data, label), *(theirs if self.published else [])])
        head = [
            "policy",
            "mean samples",
            "± s.e.",
            "median",
            "geometric mean",
            "wrong",
            "runs",
            *(["published mean", "published wrong"] if self.published else []),
        ]
        return [Grid("Samples until an arm is declared best.", head, rows, words=1)]

    def _measured(self, data: Data, label: str) -> list[str]:
        columns = where(data["runs"], policy=label)
        samples = samples_of(columns)
        if not samples.size:
            return ["–"] * 6
        error = samples.std(ddof=1) / np.sqrt(samples.size) if samples.size > 1 else np.nan
        numbers = (samples.mean(), error, np.median(samples), np.exp(np.log(samples).mean()))
        return [*(f"{number:,.0f}" for number in numbers), _share(share_wrong(columns)), str(samples.size)]

    def charts(self, data: Data) -> list[Chart]:
        """Return means and medians beside the published means."""
        rows: dict[str, dict[str, float]] = {}
        for label in dict.fromkeys(
            [*(label for (label,) in distinct(data["runs"], "policy")), *self.published]
        ):
            samples = samples_of(where(data["runs"], policy=label))
            rows[label] = (
                {"here, mean": float(samples.mean()), "here, median": float(np.median(samples))}
                if samples.size
                else {}
            )
            if label in self.published:
                rows[label]["published mean"] = self.published[label].samples
        caption = "Samples until an arm is declared best, on a logarithmic axis."
        return [Chart("samples", caption, lambda: dot_rows(rows, "samples (rounds)"))]


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
