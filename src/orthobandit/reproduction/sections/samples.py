"""Samples until the best arm is declared: the tables of the paper's successor, SP-BAI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import Any

import numpy as np
from scipy import special

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Dot, dot_rows
from orthobandit.reproduction.sections.base import Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, samples_of, share_wrong, where

DELTA = 0.1
FEWER = 0.25  # of the rival's samples, for ours
ENOUGH = 100  # runs from which on a mean is held to a number: with fewer, luck would decide


PUBLISHED_RUNS = 100  # behind each published mean
PUBLISHED_HEAD = ("published mean", "± s.e. there", "published wrong", "p (equal means)")


@dataclass(frozen=True)
class Published:
    """What the successor's author reports of `PUBLISHED_RUNS` runs.

    Attributes
    ----------
    samples, deviation : float
        Mean and standard deviation of the samples.
    wrong : float
        Share of wrong declarations.
    """

    samples: float
    deviation: float
    wrong: float

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / sqrt(PUBLISHED_RUNS)

    def ratio(self, samples: Array) -> Measured:
        """Return mean(samples (n,)) / the published mean, with the errors of both (two samples)."""
        here = Measured.mean(samples)
        logarithm = log(here.value / self.samples)
        if not here.error and not self.deviation:
            return Measured.exactly(exp(logarithm))
        spread = sqrt(((here.error or 0.0) / here.value) ** 2 + (self.error / self.samples) ** 2)
        freedom = min(samples.size, PUBLISHED_RUNS) - 1
        return Measured.estimate(logarithm, spread, freedom).exponentiated()

    def p_value(self, samples: Array) -> float | None:
        """Return the two-sided p-value of equal means, here and published (Welch); None without chance."""
        here = Measured.mean(samples)
        spread = sqrt((here.error or 0.0) ** 2 + self.error**2)
        if not spread:
            return None
        return float(2 * special.ndtr(-abs(here.value - self.samples) / spread))


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
        The successor's claim that the first needs fewer samples than the second.
    asked : tuple of str
        Further contenders of which it is asked whether the first of `order` needs fewer samples.
    tuned : tuple of str
        Contenders that are one policy at several tunings. The best in hindsight is the one of fewest samples
        among those with at most δ wrong declarations.
    fooled : tuple of str
        Contenders that, says the successor, mostly declare a wrong arm.
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
    asked: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()
    fooled: tuple[str, ...] = ()
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

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether errors stay below δ, and whether the published numbers and their order come out."""
        runs = {label: where(data["runs"], policy=label) for (label,) in distinct(data["runs"], "policy")}
        found = [
            Judgement(
                name=f"{label} error",
                claim=f"{label} declares a wrong arm with probability at most δ",
                source="here" if label in self.reach else "successor",
                statistic="share of wrong declarations, exact limits",
                measured=_wrong(columns),
                relation="≤",
                bound=DELTA,
            )
            for label, columns in runs.items()
            if label not in self.unclaimed
        ]
        found += [
            Judgement(
                name=f"{label} is fooled",
                claim=f"{label} declares a wrong arm in most runs, since it relies on there being no shift",
                source="successor",
                statistic="share of wrong declarations, exact limits",
                measured=_wrong(runs[label]),
                relation="≥",
                bound=0.5,
            )
            for label in self.fooled
            if label in runs
        ]
        for label, factor in self._comparable(runs).items():
            samples = samples_of(runs[label])
            known = self.published[label]
            # A size without any chance has no error, though instances vary.
            if factor == 1:
                away = Measured.exactly(samples.mean()).factor_from(known.samples)
            else:
                away = known.ratio(samples).factor_from(1.0)
            found.append(
                Judgement(
                    name=f"{label} as published",
                    claim=f"{label} needs as many samples as published"
                    + (f", within a factor of {factor:g}" if factor > 1 else ""),
                    source="successor",
                    statistic="mean samples, here / published, or its inverse if that is larger; the errors"
                    " of both means count",
                    measured=away,
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
            found += [
                Judgement(
                    name=f"{first} before {other}",
                    claim=f"{first} needs fewer samples than {other}",
                    source=source,
                    statistic=f"mean samples, {first} / {other}",
                    measured=Measured.ratio(samples_of(runs[first]), samples_of(runs[other])),
                    relation="≤",
                    bound=1.0,
                )
                for other, source in ((second, "successor"), *((one, "question") for one in self.asked))
            ]
        return found

    def best_tuned(self, runs: Columns) -> str | None:
        """Return the tuning of fewest mean samples with at most δ wrong declarations, on these runs."""
        found = {label: where(runs, policy=label) for label in self.tuned}
        kept = {
            label: float(samples_of(its).mean())
            for label, its in found.items()
            if len(its["declared"]) and share_wrong(its) <= DELTA
        }
        return min(kept, key=lambda label: kept[label]) if kept else None

    def _comparable(self, runs: Mapping[str, Any]) -> Mapping[str, float]:
        """Return whom to hold to a published mean: over many instances, all of them must have been run."""
        count = min(len(columns["declared"]) for columns in runs.values())
        return self.is_close if not self._has_many or count >= max(self.instances) else {}

    def _reached(self, label: str, bound: float, samples: Mapping[str, Any]) -> list[Judgement]:
        """Return whether ours needs few samples: against the rival and, given enough runs, as claimed."""
        found = [
            Judgement(
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
                Judgement(
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
        best = self.best_tuned(data["runs"])
        measured = [label for (label,) in distinct(data["runs"], "policy")]
        for label in dict.fromkeys([*measured, *self.published]):
            mark = " ←" if label == best else ""
            theirs = self._beside(data, label) if self.published else []
            rows.append([label + mark, *self._measured(data, label), *theirs])
        head = [
            "policy",
            "mean samples",
            "± s.e.",
            "median",
            "geometric mean",
            "± s.e. of it",
            "wrong",
            "runs",
            *(PUBLISHED_HEAD if self.published else ()),
        ]
        caption = "Samples until an arm is declared best."
        if best is not None:
            caption += f" ← fewest among the tunings with at most δ = {DELTA} wrong, in hindsight."
        return [Grid(caption, head, rows, words=1)]

    def _beside(self, data: Data, label: str) -> list[str]:
        """Return the published columns of a row, and how likely means so far apart are if they are equal."""
        known = self.published.get(label)
        if known is None:
            return ["–"] * 4
        samples = samples_of(where(data["runs"], policy=label))
        chance = known.p_value(samples) if samples.size > 1 else None
        p_value = "–" if chance is None else f"{chance:.2g}"
        return [f"{known.samples:,.2f}", f"{known.error:,.0f}", _share(known.wrong), p_value]

    def _measured(self, data: Data, label: str) -> list[str]:
        columns = where(data["runs"], policy=label)
        samples = samples_of(columns)
        if not samples.size:
            return ["–"] * 7
        mean = Measured.mean(samples)
        geometric = Measured.geometric(samples)
        numbers = (mean.value, mean.error, float(np.median(samples)), geometric.value, geometric.error)
        said = ["–" if number is None else f"{number:,.0f}" for number in numbers]
        return [*said, _share(share_wrong(columns)), str(samples.size)]

    def charts(self, data: Data) -> list[Chart]:
        """Return arithmetic and geometric means with their errors beside the published means."""
        rows: dict[str, dict[str, Dot]] = {}
        for label in dict.fromkeys(
            [*(label for (label,) in distinct(data["runs"], "policy")), *self.published]
        ):
            samples = samples_of(where(data["runs"], policy=label))
            rows[label] = {}
            if samples.size:
                rows[label]["mean"] = _dot(Measured.mean(samples))
                rows[label]["geometric mean"] = _dot(Measured.geometric(samples))
            if label in self.published:
                known = self.published[label]
                rows[label]["published mean"] = Dot(known.samples, known.error)
        caption = (
            "Samples until an arm is declared best, on a logarithmic axis; bars of one standard error where"
            " they are wider than the mark."
        )
        return [Chart("samples", caption, lambda: dot_rows(rows, "samples (rounds)"))]


def _dot(measured: Measured) -> Dot:
    return Dot(measured.value, measured.error or 0.0)


def _wrong(columns: Columns) -> Measured:
    """Return the share of runs that declared a wrong arm."""
    count = len(columns["declared"])
    return Measured.share(round(share_wrong(columns) * count), count)


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
