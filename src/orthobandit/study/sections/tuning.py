"""Policies tuned in hindsight: which tuning cost least, and which edge of its grid it lies on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from orthobandit._types import Array
from orthobandit.study.charts import Curve
from orthobandit.study.sections.measured import Measured
from orthobandit.study.tables import Columns, distinct, grouped, where

NARROW = (1.0, 2.0, 4.0, 8.0)  # the paper's grid for c
WIDE = (1 / 16, 1 / 8, 1 / 4, 1 / 2, *NARROW)
UNTUNED = 0.0  # stands for c where a policy has none
AS_PUBLISHED = ""  # the variant that the paper runs
BAND = (0.1, 0.9)


def fraction(scale: float) -> str:
    """Return c as people write it: 1/16, 8."""
    return str(Fraction(scale))


@dataclass(frozen=True)
class Tuned:
    """A policy at one tuning.

    Attributes
    ----------
    label, variant, scale
        The policy, its variant and c.
    by_set : (G,) array
        Final regret on each arm set, the mean over its runs: what is independent.
    grid : tuple of float
        The values of c that were tried.
    """

    label: str
    variant: str
    scale: float
    by_set: Array
    grid: tuple[float, ...]

    @property
    def regret(self) -> Measured:
        """Mean final regret."""
        return Measured.mean(self.by_set)

    @property
    def tuning(self) -> str:
        """The tuning in words."""
        if self.scale == UNTUNED:
            return "untuned"
        return ", ".join(filter(None, (self.variant, f"c = {fraction(self.scale)}")))

    @property
    def edge(self) -> str | None:
        """Which end of the grid the tuning lies on, if any."""
        ends = {min(self.grid): "smallest", max(self.grid): "largest"}
        return ends.get(self.scale) if len(self.grid) > 1 else None

    def rows(self, columns: Columns) -> Columns:
        """Return the rows of a table that belong to this policy at this tuning."""
        return where(columns, policy=self.label, variant=self.variant, scale=self.scale)

    def curve(self, curves: Columns) -> Curve:
        """Return the mean regret over time with a band of quantiles."""
        rounds, regret = grouped(self.rows(curves), "round", "regret")
        low, high = np.quantile(regret, BAND, axis=1)
        return Curve(f"{self.label}, {self.tuning}", rounds, regret.mean(axis=1), low, high)


def tried(
    runs: Columns, label: str, scales: Sequence[float], variants: Sequence[str] | None = None
) -> list[Tuned]:
    """Return a policy at each tuning that was run: the variants (all by default) at some of the scales."""
    of_policy = where(runs, policy=label)
    combinations = [
        (variant, scale)
        for variant, scale in distinct(of_policy, "variant", "scale")
        if (scale in scales or scale == UNTUNED) and (variants is None or variant in variants)
    ]
    return [
        Tuned(
            label,
            variant,
            scale,
            _by_set(where(of_policy, variant=variant, scale=scale)),
            tuple(value for other, value in combinations if other == variant),
        )
        for variant, scale in combinations
    ]


def best(found: Sequence[Tuned]) -> Tuned:
    """Return the tuning of least mean final regret, chosen on the very runs that are compared."""
    return min(found, key=lambda one: one.regret.value)


def cross_tuned(found: Sequence[Tuned]) -> Array:
    """Return the regret on each arm set (G,) at the tuning that was best on the other sets.

    Whoever is tuned on the runs that are compared profits from their luck, and limits mean nothing then.

    Examples
    --------
    >>> lucky = Tuned("a", "", 1.0, np.array([0.0, 9.0, 9.0]), (1.0, 2.0))
    >>> steady = Tuned("a", "", 2.0, np.array([5.0, 5.0, 5.0]), (1.0, 2.0))
    >>> cross_tuned([lucky, steady]).tolist()
    [5.0, 9.0, 9.0]
    """
    regret = np.array([one.by_set for one in found])
    if regret.shape[1] == 1:
        return np.asarray(regret.min(axis=0))
    others = regret.sum(axis=1, keepdims=True) - regret
    return np.asarray(regret[np.argmin(others, axis=0), np.arange(regret.shape[1])])


def edges(chosen: Mapping[str, Sequence[Tuned]]) -> str:
    """Return a sentence that says, by size, which policies were best at an edge of their grid."""
    hits = [
        f"{one.label} at the {one.edge} c ({fraction(one.scale)}) at {size}"
        for size, policies in chosen.items()
        for one in policies
        if one.edge
    ]
    if not hits:
        return "no policy was best at an edge of it."
    return f"best at an edge of it, so perhaps better still beyond: {'; '.join(hits)}."


def below(chosen: Mapping[str, Sequence[Tuned]], untuned: str) -> str:
    """Return a sentence that says, by size, which tuned policies had less mean regret than an untuned one.

    About the numbers of the table alone, whatever their errors.
    """
    said = []
    for size, policies in chosen.items():
        ours = next((one for one in policies if one.label == untuned), None)
        if ours is None:
            continue
        less = [
            f"{one.label} ({one.tuning}; {one.regret.value:,.0f})"
            for one in policies
            if one.scale != UNTUNED and one.regret.value < ours.regret.value
        ]
        who = f"{' and '.join(less) or 'nobody'} {'are' if len(less) > 1 else 'is'}"
        said.append(f"at {size} {who} below {untuned} ({ours.regret.value:,.0f})")
    return f"So tuned, {'; '.join(said)}." if said else ""


def _by_set(runs: Columns) -> Array:
    return np.asarray(grouped(runs, "instance", "regret")[1].mean(axis=1))
