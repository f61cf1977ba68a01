"""Cumulative regret of several policies, tuned in hindsight or not at all: the paper's first two figures.

First who is compared, on which arms and with which tuning in hindsight; then the figure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Curve, regret_panels
from orthobandit.reproduction.measured import Measured
from orthobandit.reproduction.section import Chart, Claim, Data, Form, Grid, Scope, Section
from orthobandit.reproduction.sections.common import (
    EXACT,
    FORMULAS,
    OURS,
    arm_sets,
    exact_elimination,
    policy_cells,
    random_arms,
)
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, distinct, grouped, where

REFERENCE = "SBE"
MARKS = 100  # points of a curve
FLAT = 0.1  # regret of the last tenth over that of the first, below which a curve counts as flat
NARROW = (1.0, 2.0, 4.0, 8.0)  # the paper's grid for c
WIDE = (1 / 16, 1 / 8, 1 / 4, 1 / 2, *NARROW)
UNTUNED = 0.0  # stands for c where a policy has none
AS_PUBLISHED = ""  # the variant that the paper runs
BAND = (0.1, 0.9)
BAND_WORDS = (
    f"mean over all runs, and a band from the {BAND[0]:.0%} to the {BAND[1]:.0%} quantile where it is apart"
    " from the others"
)


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


def best(tunings: Sequence[Tuned]) -> Tuned:
    """Return the tuning of least mean final regret, chosen on the very runs that are compared."""
    return min(tunings, key=lambda tuned: tuned.regret.value)


def cross_tuned(tunings: Sequence[Tuned]) -> Array:
    """Return the regret on each arm set (G,) at the tuning that was best on the other sets.

    Whoever is tuned on the runs that are compared profits from their luck, and limits mean nothing then.

    Examples
    --------
    >>> lucky = Tuned("a", "", 1.0, np.array([0.0, 9.0, 9.0]), (1.0, 2.0))
    >>> steady = Tuned("a", "", 2.0, np.array([5.0, 5.0, 5.0]), (1.0, 2.0))
    >>> cross_tuned([lucky, steady]).tolist()
    [5.0, 9.0, 9.0]
    """
    regret = np.array([tuned.by_set for tuned in tunings])
    # With one set there are no others to tune on: the best in hindsight is all there is.
    if regret.shape[1] == 1:
        return np.asarray(regret.min(axis=0))
    others = regret.sum(axis=1, keepdims=True) - regret
    return np.asarray(regret[np.argmin(others, axis=0), np.arange(regret.shape[1])])


def edges(chosen: Mapping[str, Sequence[Tuned]]) -> str:
    """Return a sentence that says, by size, which policies were best at an edge of their grid."""
    hits = [
        f"{tuned.label} at the {tuned.edge} c ({fraction(tuned.scale)}) at {size}"
        for size, policies in chosen.items()
        for tuned in policies
        if tuned.edge
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
        ours = next((tuned for tuned in policies if tuned.label == untuned), None)
        if ours is None:
            continue
        less = [
            f"{tuned.label} ({tuned.tuning}; {tuned.regret.value:,.0f})"
            for tuned in policies
            if tuned.scale != UNTUNED and tuned.regret.value < ours.regret.value
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


SIZES = (
    Size(5, 10, sets=(10, 20), rounds=(20_000, 40_000)),
    Size(20, 30, sets=(4, 12), rounds=(20_000, 40_000)),
)


@dataclass(frozen=True)
class RegretFigure:
    """Figure 1 or 2: one shift, all sizes, peers tuned on the paper's grid and on a wide one, ours not."""

    name: str
    title: str
    shift: str
    contenders: Mapping[str, Contender]
    reported: str
    sizes: tuple[Size, ...] = SIZES

    def described(self, form: Form) -> str:
        """Return what is run."""
        rounds = " and ".join(
            f"{form.scope.pick(*size.rounds):,} rounds on {form.scope.pick(*size.sets)} arm sets at"
            f" {size.label}"
            for size in self.sizes
        )
        changed = [
            f" {label} with {name} = {value}."
            for label, contender in self.contenders.items()
            for name, value in contender.quick.items()
            if form.scope.is_quick
        ]
        return (
            f"{rounds}; random unit arms with gap Δ = ½, σ = 1, shift {FORMULAS[self.shift]}."
            f"{''.join(changed)} Curves and tables show each policy at the tuning that was best in hindsight,"
            " on these very runs; for the verdicts it is tuned on all arm sets but the one it is compared on,"
            " so that nobody profits from luck. Errors are over arm sets. The paper gives neither its arms"
            " nor its horizon, so levels of regret are not comparable: shapes and order are."
        )

    def cells(self, form: Form) -> list[Cell]:
        """Return every policy at every tuning and size."""
        return [
            cell
            for size in self.sizes
            for label, contender in self.contenders.items()
            for variant in contender.variants
            for scale in contender.scales
            for cell in self.tuning_cells(form, size, label, variant, scale)
        ]

    def tuning_cells(self, form: Form, size: Size, label: str, variant: str, scale: float) -> list[Cell]:
        """Return a policy at one tuning on all arm sets of a size."""
        contender = self.contenders[label]
        horizon = form.scope.pick(*size.rounds)
        arms = random_arms(size.dimension, size.count, form.seed)
        return policy_cells(
            {label: Part(contender.kind, contender.settings_at(variant, scale, form.scope))},
            arm_sets(arms, form.seed, form.scope.pick(*size.sets)),
            shifts={self.shift: Part(self.shift)},
            seed=form.seed,
            horizon=horizon,
            runs=contender.runs_at(scale, form.scope),
            labels={"size": size.label, "variant": variant, "scale": float(scale)},
            checkpoints=tuple(horizon * step // MARKS for step in range(1, MARKS + 1)),
            seconds_a_round=contender.seconds_a_round * size.dimension * size.count / 600,
        )

    def tunings(self, runs: Columns, *, wide: bool) -> dict[str, list[Tuned]]:
        """Return every policy at every tuning of the wide grid, or of the paper's."""
        scales, variants = (WIDE, None) if wide else (NARROW, (AS_PUBLISHED,))
        return {
            label: tried(runs, label, scales, variants)
            for label in self.contenders
            if label in runs["policy"]
        }

    def best_by_size(self, data: Data, *, wide: bool) -> dict[str, dict[str, Tuned]]:
        """Return every policy at its best tuning, by size and label."""
        return {
            size.label: {
                label: best(tunings)
                for label, tunings in self.tunings(where(data["runs"], size=size.label), wide=wide).items()
            }
            for size in self.sizes
        }

    def regret_ratio(self, size: Size, label: str, rival: str, data: Data, *, wide: bool) -> Measured:
        """Return final regret, a policy's / its rival's, each as tuned on the other arm sets."""
        tunings = self.tunings(where(data["runs"], size=size.label), wide=wide)
        return Measured.ratio(cross_tuned(tunings[label]), cross_tuned(tunings[rival]))

    def ratio_to_best_peer(self, size: Size, label: str, data: Data) -> Measured:
        """Return final regret, an untuned policy's / that of the peer best on the other arm sets."""
        wide = self.tunings(where(data["runs"], size=size.label), wide=True)
        peers = [tuned for peer in self.peers for tuned in wide[peer]]
        return Measured.ratio(wide[label][0].by_set, cross_tuned(peers))

    def late_growth(self, size: Size, data: Data) -> Measured:
        """Return the regret of SBE in the last tenth of the rounds / in the first, by arm sets."""
        sbe = self.best_by_size(data, wide=False)[size.label][REFERENCE]
        rows = sbe.rows(where(data["curves"], size=size.label))
        late = []
        first = []
        for (instance,) in distinct(rows, "instance"):
            regret = grouped(where(rows, instance=instance), "round", "regret")[1].mean(axis=1)
            tenth = len(regret) // 10
            late.append(regret[-1] - regret[-1 - tenth])
            first.append(regret[tenth - 1])
        # A run whose curve never becomes flat earns about as much regret in the last tenth as in the first:
        # where all are flat, the ratio is at most the share of runs that might not be.
        runs = len(grouped(rows, "round", "regret")[1][0])
        return Measured.share(0, runs) if np.sum(late) <= 0 else Measured.ratio(late, first)

    @property
    def peers(self) -> list[str]:
        """Whom ours are measured against."""
        return [label for label, contender in self.contenders.items() if contender.is_peer]

    @property
    def ours(self) -> list[str]:
        """Our policies without a tuning, of which it is asked whether they have less regret than peers."""
        return [
            label
            for label, contender in self.contenders.items()
            if contender.is_untuned and contender.margin is None
        ]

    def judged(self) -> list[Claim]:
        """Return how SBE compares with its rivals on either grid, whether it becomes flat, and ours."""
        # The two figures ask the same of two shifts: a claim names its own.
        symbol = FORMULAS[self.shift].partition(" ")[0]
        return [
            claim for size in self.sizes for claim in self.judged_at(size, f"under {symbol} at {size.label}")
        ]

    def judged_at(self, size: Size, situation: str) -> Iterator[Claim]:
        """Yield the claims about one size."""
        for label, contender in self.contenders.items():
            if contender.is_peer and label != REFERENCE:
                for how, wide, source in (
                    ("tuned as in the paper", False, "figure"),
                    ("tuned on the wide grid", True, "question"),
                ):
                    yield Claim(
                        f"{situation} SBE below {label}, {how}",
                        f"{situation}, SBE has less regret than {label}, both {how}",
                        f"final regret, SBE / {label}, each as tuned on the other arm sets",
                        partial(self.regret_ratio, size, REFERENCE, label, wide=wide),
                        at_most=1.0,
                        source=source,
                    )
            elif contender.margin is not None:
                more = f", but for {contender.margin - 1:.0%}" if contender.margin > 1 else ""
                yield Claim(
                    f"{situation} {label} as good as SBE",
                    f"{situation}, {label} has no more regret than SBE tuned as in the paper{more}",
                    f"final regret, {label} / SBE, as tuned on the other arm sets",
                    partial(self.regret_ratio, size, label, REFERENCE, wide=False),
                    at_most=contender.margin,
                    source="here",
                )
        yield Claim(
            f"{situation} SBE becomes flat",
            f"{situation}, the curve of SBE becomes flat",
            "regret of SBE in the last tenth of the rounds / in the first tenth",
            partial(self.late_growth, size),
            at_most=FLAT,
        )
        for label in self.ours:
            yield Claim(
                f"{situation} {label} against the best peer",
                f"{situation}, {label} untuned has no more regret than the best peer, tuned on other arm"
                " sets",
                f"final regret, {label} / the peer and tuning best on the other arm sets",
                partial(self.ratio_to_best_peer, size, label),
                at_most=1.0,
                source="question",
            )

    def table_beside(self, data: Data) -> Grid:
        """Return ours beside the peers in hindsight."""
        wide = self.best_by_size(data, wide=True)
        rows = []
        for size, by_label in wide.items():
            for tuned in by_label.values():
                runs = tuned.rows(where(data["runs"], size=size))
                regret = tuned.regret
                rows.append(
                    [
                        size,
                        tuned.label,
                        tuned.tuning,
                        f"{regret.value:,.0f}",
                        "–" if regret.error is None else f"{regret.error:,.0f}",
                        f"{np.mean(runs['is_correct']):.0%}",
                        str(len(runs["regret"])),
                    ]
                )
        caption = (
            "Final regret, mean ± standard error over arm sets: ours untuned, the others at their best tuning"
            f" of the wide grid: {edges(listed(wide))}"
        )
        head = ["(d, K)", "policy", "tuning", "regret", "± s.e.", "best arm declared", "runs"]
        return Grid(caption, head, rows, words=3)

    def table_of_tunings(self, data: Data) -> Grid:
        """Return every tuning with the chosen ones marked."""
        narrow, wide = (self.best_by_size(data, wide=is_wide) for is_wide in (False, True))
        rows = []
        for size, by_label in wide.items():
            runs = where(data["runs"], size=size)
            for label in by_label:
                contender = self.contenders[label]
                for variant in () if contender.is_untuned else contender.variants:
                    name = ", ".join(filter(None, (label, variant)))
                    chosen = (narrow[size][label], by_label[label])
                    texts = {
                        tuned.scale: marked(tuned, *chosen) for tuned in tried(runs, label, WIDE, (variant,))
                    }
                    rows.append([size, name, *(texts.get(scale, "–") for scale in WIDE)])
        caption = (
            "Mean final regret for every c: * is best of the paper's grid {1, 2, 4, 8}, ← best of the wide"
            f" one. The paper's grid: {edges(listed(narrow))}"
        )
        return Grid(caption, ["(d, K)", "policy", *(f"c = {fraction(scale)}" for scale in WIDE)], rows)

    def narrow_chart(self, data: Data) -> Chart:
        """Return the tuned policies on the paper's grid, a panel a size."""
        caption = f"The paper's grid: regret of each policy at its best c of {{1, 2, 4, 8}}; {BAND_WORDS}."
        return Chart.of_panels("regret", caption, regret_panels, self.panels(data, wide=False))

    def wide_chart(self, data: Data) -> Chart:
        """Return the wide grid with ours, and who had less regret in hindsight."""
        hindsight = listed(self.best_by_size(data, wide=True))
        less = " ".join(filter(None, (below(hindsight, label) for label in self.ours)))
        caption = (
            "The wide grid: ours untuned, every other policy at its best tuning in hindsight;"
            f" {BAND_WORDS}. {less}".rstrip()
        )
        return Chart.of_panels("wide", caption, regret_panels, self.panels(data, wide=True))

    def panels(self, data: Data, *, wide: bool) -> dict[str, list[Curve]]:
        """Return the curves of each size."""
        return {
            f"(d, K) = {size}": [
                tuned.curve(where(data["curves"], size=size))
                for label, tuned in by_label.items()
                if wide or not self.contenders[label].is_untuned
            ]
            for size, by_label in self.best_by_size(data, wide=wide).items()
        }

    def section(self) -> Section:
        """Return the section."""
        return Section(
            self.name,
            self.title,
            "While the level of all rewards moves, who loses least on the way to the best arm: the paper's"
            " method, its rivals tuned as in the paper and as well as hindsight can, or ours, which has"
            " nothing to tune?",
            "The curve of SBE becomes flat: the best arm has been identified. The comparison with BOSE and"
            " Semiparametric-TS, each at its best c of {1, 2, 4, 8}, is left to the figure; it is read here"
            f" as saying that SBE has the least regret on that grid. {self.reported} Whether that order lasts"
            " on a wide grid is asked here: c from 1/16 to 8, for BOSE also the ridge λ = 1, for"
            " Semiparametric-TS also the rule of its released code. The paper says nothing of it. Asked of"
            " ours as well: has anytime elimination, with nothing to tune, no"
            " more regret than the best of these peers, tuned on other arm sets?",
            self.described,
            self.cells,
            self.judged(),
            tabled=[self.table_beside, self.table_of_tunings],
            drawn=[self.narrow_chart, self.wide_chart],
        )


def listed(chosen: Mapping[str, Mapping[str, Tuned]]) -> dict[str, list[Tuned]]:
    """Return the chosen tunings by size alone."""
    return {size: list(by_label.values()) for size, by_label in chosen.items()}


def marked(tuned: Tuned, narrow: Tuned, wide: Tuned) -> str:
    """Return mean regret with marks where it is the best of either grid."""
    marks = " *" * (tuned.tuning == narrow.tuning) + " ←" * (tuned.tuning == wide.tuning)
    return f"{tuned.regret.value:,.0f}{marks}"


CONTENDERS = {
    "SBE": Contender("sbe", {"delta": 0.05}, runs=(8, 10), is_peer=True),
    "BOSE": Contender(
        "bose",
        {"delta": 0.05},
        runs=(1, 2),
        bold_runs=(4, 10),
        seconds_a_round=2e-5,
        variants={AS_PUBLISHED: {}, "λ = 1": {"ridge": 1.0}},
        is_peer=True,
    ),
    "Semiparametric-TS": Contender(
        "semiparametric-ts",
        {},
        runs=(1, 2),
        bold_runs=(2, 4),
        quick={"draws": 250},
        seconds_a_round=2e-5,
        variants={AS_PUBLISHED: {}, "released rule": {"rule": "released"}},
        is_peer=True,
    ),
    "SBE, exact design": Contender("sbe", {"delta": 0.05, "design": "centred"}, runs=(8, 10), margin=1.2),
}


def ours(low: float, high: float) -> dict[str, Contender]:
    """Return ours, untuned, the exact form for means between these."""
    parts: dict[str, tuple[Part, float | None]] = {
        OURS: (Part("anytime", {"delta": 0.05, "goal": "earn"}), None),
        EXACT: (exact_elimination(low, high, delta=0.05, goal="earn"), 1.2),
    }
    return {
        label: Contender(
            part.kind, part.settings, runs=(4, 4), seconds_a_round=1e-5, scales=(UNTUNED,), margin=margin
        )
        for label, (part, margin) in parts.items()
    }


FIGURE_1 = RegretFigure(
    "figure-1",
    "What learning costs while the level swings like a wave",
    "sine",
    CONTENDERS | ours(-1.0, 3.0),  # means of unit arms lie within ±1 of the shift
    "Reported regret of SBE at (20, 30): 2677.66.",
)
FIGURE_2 = RegretFigure(
    "figure-2",
    "What learning costs while the level jumps up and down",
    "log-alternating",
    CONTENDERS | ours(-3.2, 3.2),
    "Reported regret of SBE at (20, 30): 2703.10.",
)
