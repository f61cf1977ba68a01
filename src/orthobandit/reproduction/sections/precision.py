"""How precise estimates are at best, and how close the constants of the proofs come."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Series, scaling_panels
from orthobandit.reproduction.sections.base import Chart, Data, Fit, Grid, Judgement, Measured, Scope, signed
from orthobandit.reproduction.sections.errors import DESIGNS, Exploration
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import distinct, grouped, where

FLOOR, MOMENTS, ELLIPSOID = (
    f"orthobandit.reproduction.tasks:{name}" for name in ("track_floor", "track_moments", "track_ellipsoid")
)
DELTA = 0.05
SIZE = (10, 20)
SIZES = ((5, 10), (20, 30))  # of the second moments
ROUNDS = (1_000_000, 10_000_000)
EXPLORERS = (60, 150)
FLAT = 0.1  # exponent of √t·eₜ that still counts as flat
CLOSE = 0.1  # part of the squared error by which the lower bound may be missed
EXPLORED = 100_000
RUNS = (600, 2000)  # for the floor
MOMENT_RUNS = (1500, 5000)
DIMENSIONS = (4, 8, 16, 32, 64)  # of the ellipsoids, with twice as many arms
SHORT = 20_000  # rounds of theirs
SHORT_RUNS = (200, 500)
ROOT = 0.1  # in an exponent of d
BOUNDED = Part("sine", {"offset": 0.5, "amplitude": 0.5})  # ν¹/2, within the lemma's |ν| ≤ 1
NORMS = {"norm": "as a whole", "contrast": "of one contrast"}
SHIFTS = {"log-alternating-min": "ν² with min, |ν| ≤ 2", "log-alternating": "ν² as printed, unbounded"}


@dataclass(frozen=True)
class Precision:
    """Flatness of √t·eₜ, the lower bound √(L/t), second moments, constants of the designs, Lemma 19."""

    name: str
    title: str
    group: str

    plain = (
        "Where the level is the most harmless one, are estimates as precise as any unbiased estimate can be,"
        " and are the constants hidden in the proofs small?"
    )
    claims = (
        "√t·eₜ stays bounded where the shift is bounded (as printed, the paper's ν² is not: it has max where"
        " min was perhaps meant). The leading term √(L/t) of the error is that of the lower bound, reached"
        " under the shift ν = −μᵀθ of its proof. After a phase of SBE the second moments seen agree with"
        " those of the design up to c ≤ 2, but for δ/10 of the runs. DEO keeps ‖x_i − x_1‖ ≤ 2√d and"
        " ‖x_i − μ‖ ≤ 4√d in Σ⁻¹. θ lies in the ellipsoid of Lemma 19 with probability 1 − δ. The bound by"
        " Cauchy–Schwarz that follows from it loses a factor √d: the error as a whole grows like √d, that of"
        " one contrast in units of √(L/t) does not grow with d."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        return (
            f"Random unit arms with gap ½, σ = 1, δ = {DELTA}. Flatness: DEO at (d, K) = {SIZE} for"
            f" {scope.pick(*ROUNDS):,} rounds, {scope.pick(*EXPLORERS)} runs. Lower bound: squared errors of"
            f" all x_i − x_1 after {EXPLORED:,} rounds, in units of L/t, {scope.pick(*RUNS)} runs. Second"
            f" moments: the first phase of SBE as in the theorem, {scope.pick(*MOMENT_RUNS):,} runs a design"
            f" at {SIZES[0]} and {SIZES[1]}. Ellipsoids: {SHORT:,} rounds of DEO under ν¹/2, d from"
            f" {DIMENSIONS[0]} to {DIMENSIONS[-1]} and K = 2d, {scope.pick(*SHORT_RUNS)} runs each."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return explorations of all kinds."""
        last = scope.pick(*ROUNDS)
        marks = np.unique(np.geomspace(last / 32, last, 6).round().astype(int)).tolist()
        flat = [
            Exploration(shift, *SIZE, "anchor").cell(marks, scope.pick(*EXPLORERS), scope.seed)
            for shift in SHIFTS
        ]
        floors = [
            _cell(FLOOR, SIZE, design, scope.pick(*RUNS), scope, checkpoints=[EXPLORED]) for design in DESIGNS
        ]
        moments = [
            _cell(MOMENTS, size, design, scope.pick(*MOMENT_RUNS), scope)
            for size in SIZES
            for design in DESIGNS
        ]
        ellipsoids = [
            _cell(
                ELLIPSOID,
                (d, 2 * d),
                "anchor",
                scope.pick(*SHORT_RUNS),
                scope,
                shift=BOUNDED,
                checkpoints=[SHORT],
            )
            for d in DIMENSIONS
        ]
        return [*flat, *floors, *moments, *ellipsoids]

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return what is flat, reached and kept."""
        flat = Judgement(
            name="flat",
            claim="where the shift is bounded, √t·eₜ becomes flat, but for 0.1 in the exponent",
            source="paper",
            statistic="fitted exponent of t of √t·eₜ, ν² with min",
            measured=Measured.exponent(_fit(data, "log-alternating-min")),
            relation="≤",
            bound=FLAT,
        )
        return [flat, *_floors(data), *_moments(data), *_ellipsoids(data)]

    def grids(self, data: Data) -> list[Grid]:
        """Return exponents, squared errors and constants."""
        rows = [[words, signed(_fit(data, shift))] for shift, words in SHIFTS.items()]
        floors = [
            [DESIGNS[design], f"{found.value:.3f} ± {found.error:.3f}"]
            for design, found in _excess(data).items()
        ]
        constants = [
            [
                f"({d}, {count})",
                DESIGNS[design],
                f"{int(found['rounds'][0]):,}",
                f"{np.mean(found['constant']):.3f}",
                f"{np.max(found['constant']):.3f}",
                f"{found['reference'][0]:.3f}",
                f"{found['centred'][0]:.3f}",
            ]
            for (d, count, design), found in _by_design(data).items()
        ]
        balls = [
            [
                str(d),
                f"{np.mean(found['norm']):.2f}",
                f"{np.quantile(found['norm'], 1 - DELTA):.2f}",
                f"{found['radius'][0]:.1f}",
                f"{np.mean(found['contrast']):.2f}",
                f"{np.quantile(found['contrast'], 1 - DELTA):.2f}",
            ]
            for d, found in _by_dimension(data).items()
        ]
        shares = f"{1 - DELTA:.0%} of them below"
        head = ["(d, K)", "design", "rounds", "mean c", "largest c", "‖x_i − x_1‖/√r", "‖x_i − μ‖/√r"]
        return [
            Grid("Fitted exponent of √t·eₜ in t ± standard error.", ["shift", "exponent"], rows, words=1),
            Grid(
                "Squared error in units of the lower bound L/t, mean over arms and runs ± standard error.",
                ["design", "t·error²/L"],
                floors,
                words=1,
            ),
            Grid("Second moments after the first phase, and the norms of the designs.", head, constants),
            Grid(
                "‖θ̂ − θ‖ in V̂ + βI, the radius that Lemma 19 has for it, and the error of x_2 − x_1 in units"
                " of √(L/t).",
                ["d", "mean norm", shares, "Lemma 19", "mean error of a contrast", shares],
                balls,
                words=1,
            ),
        ]

    def charts(self, data: Data) -> list[Chart]:
        """Return √t·eₜ over time, and errors against d."""
        series = []
        for shift, words in SHIFTS.items():
            rounds, values = _scaled(data, shift)
            series.append(Series(words, rounds, values.mean(axis=1), values.std(axis=1, ddof=1)))
        panels = {f"(d, K) = {SIZE}": (series, "rounds t", "√t · eₜ (units of reward)")}
        caption = "√t·eₜ against t: mean over runs with bars of one standard deviation."
        against = {
            "error in two norms, against d": (
                [_against_dimension(data, column, name) for column, name in NORMS.items()],
                "dimension d",
                "error, each in its unit",
            )
        }
        lost = (
            "The error as a whole, ‖θ̂ − θ‖ in V̂ + βI, and that of one contrast in units of √(L/t), against d:"
            " mean over runs with bars of one standard deviation; fitted power laws. What lies between their"
            " slopes is lost by Cauchy–Schwarz."
        )
        return [
            Chart.of_panels("flat", caption, scaling_panels, panels),
            Chart.of_panels("cauchy-schwarz", lost, scaling_panels, against),
        ]


def _by_dimension(data: Data) -> dict[int, Any]:
    columns = data["ellipsoids"]
    return {d: where(columns, dimension=d) for (d,) in distinct(columns, "dimension")}


def _points(data: Data, column: str) -> tuple[Array, Array]:
    """Return d (n,) and a column of the ellipsoids (n, runs)."""
    found = _by_dimension(data)
    return np.array(list(found), dtype=float), np.array([its[column] for its in found.values()])


def _against_dimension(data: Data, column: str, name: str) -> Series:
    x, y = _points(data, column)
    fit = Fit.of(x, y)
    label = f"{name}, slope {fit.exponent:.2f}".replace("-", "−")
    return Series(label, x, y.mean(axis=1), y.std(axis=1, ddof=1), fit.values)


def _ellipsoids(data: Data) -> list[Judgement]:
    """Return whether θ lies in the ellipsoid, and what Cauchy–Schwarz loses."""
    parts = _by_dimension(data).values()
    outside = [
        Measured.share(int(np.sum(its["norm"] > its["radius"])), len(its["norm"]), among=len(parts))
        for its in parts
    ]
    return [
        Judgement(
            name="ellipsoid",
            claim=f"θ lies outside the ellipsoid of Lemma 19 with probability at most δ = {DELTA}",
            source="paper",
            statistic="share of runs in which it does, worst d, exact limits",
            measured=Measured.largest(outside),
            relation="≤",
            bound=DELTA,
        ),
        Judgement(
            name="error as a whole",
            claim="the error as a whole grows like √d, but for 0.1 in the exponent, so that Cauchy–Schwarz"
            " loses that factor",
            source="paper",
            statistic="fitted exponent of d of ‖θ̂ − θ‖ in V̂ + βI",
            measured=Measured.exponent(Fit.of(*_points(data, "norm"))),
            relation="≥",
            bound=0.5 - ROOT,
        ),
        Judgement(
            name="error of a contrast",
            claim="in units of √(L/t) the error of one contrast does not grow with d, but for 0.1 in the"
            " exponent",
            source="paper",
            statistic="fitted exponent of d of |zᵀ(θ̂ − θ)|/√(L/t), z = x_2 − x_1",
            measured=Measured.exponent(Fit.of(*_points(data, "contrast"))),
            relation="≤",
            bound=ROOT,
        ),
    ]


def _scaled(data: Data, shift: str) -> tuple[Array, Array]:
    rounds, errors = grouped(where(data["errors"], shift=shift), "round", "error")
    return rounds.astype(float), errors * np.sqrt(rounds)[:, np.newaxis]


def _fit(data: Data, shift: str) -> Fit:
    return Fit.of(*_scaled(data, shift))


def _excess(data: Data) -> dict[str, Measured]:
    floors = data["floors"]
    return {
        design: Measured.mean(where(floors, design=design)["excess"])
        for (design,) in distinct(floors, "design")
    }


def _floors(data: Data) -> list[Judgement]:
    excess = _excess(data)["anchor"]
    # Both sides are asked: an estimate that beats the bound would show a fault of the simulation.
    sides = (("reached", "reaches", "≤", 1 + CLOSE), ("not beaten", "does not beat", "≥", 1 - CLOSE))
    return [
        Judgement(
            name=f"lower bound {name}",
            claim=f"under ν = −μᵀθ, orthogonalised regression {verb} the lower bound √(L/t), but for"
            f" {CLOSE:.0%} of the squared error",
            source="paper",
            statistic="squared error of x_i − x_1, mean over arms and runs / (L/t), DEO",
            measured=excess,
            relation=relation,
            bound=bound,
        )
        for name, verb, relation, bound in sides
    ]


def _by_design(data: Data) -> dict[tuple[int, int, str], Any]:
    moments = data["moments"]
    return {
        (d, count, design): where(moments, dimension=d, count=count, design=design)
        for d, count, design in distinct(moments, "dimension", "count", "design")
    }


def _moments(data: Data) -> list[Judgement]:
    found = _by_design(data)
    shares = [
        Measured.share(int(np.sum(its["constant"] > 2)), len(its["constant"]), among=len(found))
        for its in found.values()
    ]
    anchors = [its for (_, _, design), its in found.items() if design == "anchor"]
    constant = Judgement(
        name="second moments",
        claim="after the first phase of SBE, second moments agree up to c ≤ 2, but for δ/10 of the runs",
        source="paper",
        statistic="share of runs with c > 2, worst size and design, exact limits",
        measured=Measured.largest(shares),
        relation="≤",
        bound=DELTA / 10,
    )
    return [
        constant,
        *(
            Judgement(
                name=f"design constant {column}",
                claim=f"DEO keeps {norm} ≤ {bound:g}√d in Σ⁻¹",
                source="paper",
                statistic=f"largest {norm}/√r at {SIZES[0]} and {SIZES[1]}",
                measured=Measured.exactly(max(float(its[column].max()) for its in anchors)),
                relation="≤",
                bound=bound,
            )
            for column, norm, bound in (("reference", "‖x_i − x_1‖", 2.0), ("centred", "‖x_i − μ‖", 4.0))
        ),
    ]


def _cell(
    task: str,
    size: tuple[int, int],
    design: str,
    runs: int,
    scope: Scope,
    *,
    shift: Part | None = None,
    **settings: list[int],
) -> Cell:
    shape = {"dimension": size[0], "count": size[1], "gap": 0.5, "seed": scope.seed}
    return Cell(
        task=task,
        settings={
            "instance": Part("exact-gap", shape).plain(),
            "shift": (shift or Part("none")).plain(),
            "noise": Part("gaussian").plain(),
            "design": design,
            "delta": DELTA,
            "replications": runs,
            "seed": scope.seed,
            **settings,
        },
        labels={"dimension": size[0], "count": size[1], "design": design},
        cost=1.0 + 2e-3 * runs,
    )
