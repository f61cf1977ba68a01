"""Who is compared in the regret figures, on which arms, and with which tuning in hindsight."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Curve
from orthobandit.reproduction.sections.base import Scope
from orthobandit.reproduction.sections.measured import Measured
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


@dataclass(frozen=True)
class Contender:
    """A policy of the comparison.

    Attributes
    ----------
    kind, settings, quick
        The policy, and settings that make the quick form cheaper.
    runs, bold_runs : (int, int)
        On each arm set, quick and full; and where c < 1, if these are others: there a policy may stake all
        on a wrong arm, which is rare and costs much, so that a few runs would flatter it.
    seconds_a_round : float
        At (d, K) = (20, 30).
    scales : tuple of float
        The values of c; those of the paper's grid are compared in the first panel.
    variants : dict
        Further settings by name, each tried at every c; the first is what the paper runs.
    is_peer : bool
        Whether ours are measured against it when it is tuned in hindsight.
    margin : float, optional
        The claim is that its regret is at most so many times that of SBE, on the paper's grid.
    """

    kind: str
    settings: Mapping[str, Any]
    runs: tuple[int, int]
    bold_runs: tuple[int, int] | None = None
    quick: Mapping[str, Any] = field(default_factory=dict)
    seconds_a_round: float = 1e-7
    scales: tuple[float, ...] = WIDE
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {AS_PUBLISHED: {}})
    is_peer: bool = False
    margin: float | None = None

    @property
    def is_untuned(self) -> bool:
        """Whether it has no c at all."""
        return self.scales == (UNTUNED,)

    def runs_at(self, scale: float, scope: Scope) -> int:
        """Return how many runs on each arm set have this c."""
        return scope.pick(*(self.bold_runs if self.bold_runs and UNTUNED < scale < 1 else self.runs))

    def settings_at(self, variant: str, scale: float, scope: Scope) -> dict[str, Any]:
        """Return the settings of one variant with this c."""
        cheaper = self.quick if scope.is_quick else {}
        tuning = {} if scale == UNTUNED else {"scale": scale}
        return {**self.settings, **self.variants[variant], **cheaper, **tuning}


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
