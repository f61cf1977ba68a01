"""Cumulative regret of several policies, tuned in hindsight or not at all: the paper's first two figures.

First who is compared, on which arms and with which tuning in hindsight; then the figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Curve, regret_panels
from orthobandit.reproduction.sections.base import FORMULAS, Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, grouped, where

REFERENCE = "SBE"
MARKS = 100  # points of a curve
FLAT = 0.1  # regret of the last tenth over that of the first, below which a curve counts as flat
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
    # With one set there are no others to tune on: the best in hindsight is all there is.
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


@dataclass(frozen=True)
class RegretFigure:
    """Figure 1 or 2: one shift, all sizes, peers tuned on the paper's grid and on a wide one, ours not."""

    name: str
    title: str
    group: str
    plain: str
    shift: str
    contenders: Mapping[str, Contender]
    sizes: tuple[Size, ...]
    reported: str

    @property
    def claims(self) -> str:
        """What the paper says of the figure, and what we say."""
        return (
            "The curve of SBE becomes flat: the best arm has been identified. The comparison with BOSE and"
            " Semiparametric-TS, each at its best c of {1, 2, 4, 8}, is left to the figure; it is read here"
            f" as saying that SBE has the least regret on that grid. {self.reported} Whether that order lasts"
            " on a wide grid is asked here: c from 1/16 to 8, for BOSE also the ridge λ = 1, for"
            " Semiparametric-TS also the rule of its released code. The paper says nothing of it. Asked of"
            " ours as well: has anytime elimination, with nothing to tune, no"
            " more regret than the best of these peers, tuned on other arm sets?"
        )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        rounds = " and ".join(
            f"{scope.pick(*size.rounds):,} rounds on {scope.pick(*size.sets)} arm sets at {size.label}"
            for size in self.sizes
        )
        return (
            f"{rounds}; random unit arms with gap Δ = ½, σ = 1, shift {FORMULAS[self.shift]}."
            f"{self._cheaper(scope)} Curves and tables show each policy at the tuning that was best in"
            " hindsight, on these very runs; for the verdicts it is tuned on all arm sets but the one it is"
            " compared on, so that nobody profits from luck. Errors are over arm sets. The paper gives"
            " neither its arms nor its horizon, so levels of regret are not comparable: shapes and order are."
        )

    def _cheaper(self, scope: Scope) -> str:
        changed = [(label, *item) for label, its in self.contenders.items() for item in its.quick.items()]
        said = (f" {label} with {name} = {value}." for label, name, value in changed)
        return "".join(said) if scope.is_quick else ""

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every policy at every tuning and size."""
        return [
            cell
            for size in self.sizes
            for label, contender in self.contenders.items()
            for variant in contender.variants
            for scale in contender.scales
            for cell in self._sweep(size, label, variant, scale, scope).cells()
        ]

    def _sweep(self, size: Size, label: str, variant: str, scale: float, scope: Scope) -> Sweep:
        contender = self.contenders[label]
        horizon = scope.pick(*size.rounds)
        runs = contender.runs_at(scale, scope)
        shape = {"dimension": size.dimension, "count": size.count, "gap": 0.5}
        return Sweep(
            policies={label: Part(contender.kind, contender.settings_at(variant, scale, scope))},
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
            seconds_a_round=contender.seconds_a_round * size.dimension * size.count / 600,
            labels={"size": size.label, "variant": variant, "scale": float(scale)},
        )

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return how SBE compares with its rivals on either grid, whether it becomes flat, and ours."""
        found = []
        for (size,) in distinct(data["runs"], "size"):
            # The two figures ask the same of two shifts: a claim names its own.
            place = f"under {FORMULAS[self.shift].partition(' ')[0]} at {size}"
            runs = where(data["runs"], size=size)
            narrow = self.tunings(runs, wide=False)
            wide = self.tunings(runs, wide=True)
            own = narrow[REFERENCE]
            for label, its in narrow.items():
                margin = self.contenders[label].margin
                if self.contenders[label].is_peer and label != REFERENCE:
                    found += [
                        _below(place, own, its, "tuned as in the paper", "figure"),
                        _below(place, wide[REFERENCE], wide[label], "tuned on the wide grid", "question"),
                    ]
                elif margin is not None:
                    found.append(_as_good(place, its, own, margin))
            found.append(_flat(place, best(own), where(data["curves"], size=size)))
            found += self._ours(place, wide)
        return found

    def tunings(self, runs: Columns, *, wide: bool) -> dict[str, list[Tuned]]:
        """Return every policy at every tuning of the wide grid, or of the paper's."""
        scales, variants = (WIDE, None) if wide else (NARROW, (AS_PUBLISHED,))
        return {
            label: tried(runs, label, scales, variants)
            for label in self.contenders
            if label in runs["policy"]
        }

    def _ours(self, place: str, wide: Mapping[str, list[Tuned]]) -> list[Judgement]:
        peers = [one for label, its in wide.items() if self.contenders[label].is_peer for one in its]
        return [
            Judgement(
                name=f"{place} {label} against the best peer",
                claim=f"{place}, {label} untuned has no more regret than the best peer, tuned on other arm"
                " sets",
                source="question",
                statistic=f"final regret, {label} / the peer and tuning best on the other arm sets",
                measured=Measured.ratio(its[0].by_set, cross_tuned(peers)),
                relation="≤",
                bound=1.0,
            )
            for label, its in wide.items()
            if self.contenders[label].is_untuned and self.contenders[label].margin is None
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return ours beside the peers in hindsight, then every tuning with the chosen one marked."""
        every = []
        beside = []
        hindsight: dict[bool, dict[str, list[Tuned]]] = {False: {}, True: {}}
        for (size,) in distinct(data["runs"], "size"):
            runs = where(data["runs"], size=size)
            narrow, wide = (
                {label: best(its) for label, its in self.tunings(runs, wide=is_wide).items()}
                for is_wide in (False, True)
            )
            hindsight[False][size] = list(narrow.values())
            hindsight[True][size] = list(wide.values())
            for label in wide:
                beside.append(_beside(size, wide[label], runs))
                if not self.contenders[label].is_untuned:
                    every += [
                        _row(size, variant, tried(runs, label, WIDE, (variant,)), narrow[label], wide[label])
                        for variant in self.contenders[label].variants
                    ]
        return [
            Grid(
                "Final regret, mean ± standard error over arm sets: ours untuned, the others at their best"
                f" tuning of the wide grid: {edges(hindsight[True])}",
                ["(d, K)", "policy", "tuning", "regret", "± s.e.", "best arm declared", "runs"],
                beside,
                words=3,
            ),
            Grid(
                "Mean final regret for every c: * is best of the paper's grid {1, 2, 4, 8}, ← best of the"
                f" wide one. The paper's grid: {edges(hindsight[False])}",
                ["(d, K)", "policy", *(f"c = {fraction(scale)}" for scale in WIDE)],
                every,
            ),
        ]

    def _better(self, chosen: Mapping[str, Sequence[Tuned]]) -> str:
        """Return who, tuned in hindsight, had less regret than ours."""
        ours = [label for label, its in self.contenders.items() if its.is_untuned and its.margin is None]
        return " ".join(filter(None, (below(chosen, label) for label in ours)))

    def charts(self, data: Data) -> list[Chart]:
        """Return one panel a size: the paper's grid, and the wide one with ours."""
        panels: dict[bool, dict[str, Any]] = {False: {}, True: {}}
        hindsight: dict[str, list[Tuned]] = {}
        for (size,) in distinct(data["runs"], "size"):
            runs, curves = (where(data[name], size=size) for name in ("runs", "curves"))
            hindsight[size] = [best(its) for its in self.tunings(runs, wide=True).values()]
            for wide in panels:
                panels[wide][f"(d, K) = {size}"] = [
                    best(its).curve(curves)
                    for label, its in self.tunings(runs, wide=wide).items()
                    if wide or not self.contenders[label].is_untuned
                ]
        band = (
            f"mean over all runs, and a band from the {BAND[0]:.0%} to the {BAND[1]:.0%} quantile where it is"
            " apart from the others"
        )
        return [
            Chart.of_panels(
                "regret",
                f"The paper's grid: regret of each policy at its best c of {{1, 2, 4, 8}}; {band}.",
                regret_panels,
                panels[False],
            ),
            Chart.of_panels(
                "wide",
                f"The wide grid: ours untuned, every other policy at its best tuning in hindsight; {band}."
                f" {self._better(hindsight)}".rstrip(),
                regret_panels,
                panels[True],
            ),
        ]


def _below(place: str, own: Sequence[Tuned], rival: Sequence[Tuned], how: str, source: str) -> Judgement:
    label = rival[0].label
    return Judgement(
        name=f"{place} SBE below {label}, {how}",
        claim=f"{place}, SBE has less regret than {label}, both {how}",
        source=source,
        statistic=f"final regret, SBE / {label}, each as tuned on the other arm sets",
        measured=Measured.ratio(cross_tuned(own), cross_tuned(rival)),
        relation="≤",
        bound=1.0,
    )


def _as_good(place: str, its: Sequence[Tuned], own: Sequence[Tuned], margin: float) -> Judgement:
    label = its[0].label
    more = f", but for {margin - 1:.0%}" if margin > 1 else ""
    return Judgement(
        name=f"{place} {label} as good as SBE",
        claim=f"{place}, {label} has no more regret than SBE tuned as in the paper{more}",
        source="here",
        statistic=f"final regret, {label} / SBE, as tuned on the other arm sets",
        measured=Measured.ratio(cross_tuned(its), cross_tuned(own)),
        relation="≤",
        bound=margin,
    )


def _flat(place: str, own: Tuned, curves: Columns) -> Judgement:
    """Return whether regret has all but stopped growing, from the runs on each arm set."""
    rows = own.rows(curves)
    late = []
    first = []
    for (instance,) in distinct(rows, "instance"):
        regret = grouped(where(rows, instance=instance), "round", "regret")[1].mean(axis=1)
        tenth = len(regret) // 10
        late.append(regret[-1] - regret[-1 - tenth])
        first.append(regret[tenth - 1])
    # A run whose curve never becomes flat earns about as much regret in the last tenth as in the first: where
    # all are flat, the ratio is at most the share of runs that might not be.
    runs = len(grouped(rows, "round", "regret")[1][0])
    flat = Measured.share(0, runs) if np.sum(late) <= 0 else Measured.ratio(late, first)
    return Judgement(
        name=f"{place} SBE becomes flat",
        claim=f"{place}, the curve of SBE becomes flat",
        source="paper",
        statistic="regret of SBE in the last tenth of the rounds / in the first tenth",
        measured=flat,
        relation="≤",
        bound=FLAT,
    )


def _beside(size: str, one: Tuned, runs: Columns) -> list[str]:
    rows = one.rows(runs)
    regret = one.regret
    error = "–" if regret.error is None else f"{regret.error:,.0f}"
    declared = f"{np.mean(rows['is_correct']):.0%}"
    return [size, one.label, one.tuning, f"{regret.value:,.0f}", error, declared, str(len(rows["regret"]))]


def _row(size: str, variant: str, found: Sequence[Tuned], narrow: Tuned, wide: Tuned) -> list[str]:
    def text(one: Tuned) -> str:
        marks = " *" * (one.tuning == narrow.tuning) + " ←" * (one.tuning == wide.tuning)
        return f"{one.regret.value:,.0f}{marks}"

    by_scale = {one.scale: text(one) for one in found}
    label = ", ".join(filter(None, (narrow.label, variant)))
    return [size, label, *(by_scale.get(scale, "–") for scale in WIDE)]
