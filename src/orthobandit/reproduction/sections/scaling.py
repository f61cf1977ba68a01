"""How regret, plans and error grow, with fitted exponents next to the theorems'."""

from dataclasses import dataclass
from math import log

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Series, scaling_panels
from orthobandit.reproduction.sections.base import Chart, Data, Fit, Grid, Judgement, Measured, Scope, signed
from orthobandit.reproduction.sections.errors import Exploration
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, grouped, where
from orthobandit.theory import theory_phase_rounds

DIMENSION = 5  # where T varies
# Powers of 2, quick and full. Steps of 2: phases get four times as long from one to the next, so that every
# T cuts them at the same place.
HORIZONS = ((14, 16, 18, 20), (14, 16, 18, 20, 22))
DIMENSIONS = (8, 16, 32, 64)
LONG = (18.0, 22.5)  # the power of 2 from which dimensions are compared, over one factor of four:
CUTS = (0.0, 0.5, 1.0, 1.5)  # where the horizon cuts the phases should not decide an exponent
GAPS = 2.0 ** np.arange(2.0, 6.1, 0.5)  # in units of √(d/T): the gaps among which the worst is sought
PLAN_HORIZONS = ((10, 12, 14, 16, 18, 20), (10, 12, 14, 16, 18, 20, 22, 24))
PLAN_ARMS = 13
RUNS = (8, 32)
EXPLORED = (2_000_000, 20_000_000)
EXPLORERS = (40, 120)  # runs whose error is followed
ERROR_SIZE = (10, 20)
BOUNDED = Part("sine", {"offset": 0.5, "amplitude": 0.5})  # ν¹/2, which keeps to |ν| ≤ 1
# Fixed before these seeds were run for the first time; pilots had used others.
MARGIN = 0.1  # in the exponent, above that of SBE's own schedule
FRESH = 7_120_000  # added to the report's seed
# The schedule, and what is left of it without the parts that make exponents in d larger than ½.
PARTS = ("the whole schedule", "without its d^{3/2} term", "and with log(dK/δ) held fixed")


@dataclass(frozen=True)
class ScalingChecks:
    """Worst-case regret against T and d, plans against T, error against t."""

    name: str
    title: str
    group: str

    plain = (
        "When an experiment lasts longer or has more dimensions, does the price of learning grow like a"
        " square root, and the number of changes of plan like a logarithm?"
    )
    claims = (
        "Regret Õ(√(dT log K)) whatever the gaps; O(log T) plans; error Õ(√(d log K/t)). Exponents: ½ in T"
        " and in d, −½ in t, but for logarithms and a term of lower order d^{3/2}. Those are not small at any"
        " T that can be run: the yardstick is the exponent that SBE's own schedule has at the same points,"
        " the worst ε_{ℓ−1}·min(T, t_ℓ) over its phases ℓ, which end after t_ℓ rounds. The margin of 0.1 was"
        " fixed before these seeds were run."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        return (
            "SBE as in the theorem (C₂ = 1, δ = 1/T) under ν¹/2, which keeps to |ν| ≤ 1, on d + 1 one-hot"
            f" arms, of which the last is better by Δ; for every T and d the worst of {len(GAPS)} gaps Δ"
            f" between 4 and 64 times √(d/T); T up to 2^{_power(scope)}; {scope.pick(*RUNS)} runs each."
            " Plans: arms with gaps 1, ½, ¼, …, so that phases drop arms."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return the runs of all four checks."""
        powers = HORIZONS[0] if scope.is_quick else HORIZONS[1]
        cells = [cell for power in powers for cell in _worst_case("T", DIMENSION, power, scope)]
        cells += [
            cell
            for d in DIMENSIONS
            for cut in CUTS
            for cell in _worst_case("d", d, _pair(LONG, scope) + cut, scope)
        ]
        means = [*(-(2.0**-place) for place in range(PLAN_ARMS - 1)), 0.0]
        for power in PLAN_HORIZONS[0] if scope.is_quick else PLAN_HORIZONS[1]:
            cells += _sweep("plans", means, power, scope, gap=0.0)
        marks = np.unique(
            np.geomspace(scope.pick(*EXPLORED) / 64, scope.pick(*EXPLORED), 7).round().astype(int)
        ).tolist()
        cells += [
            Exploration("sine", *ERROR_SIZE, design).cell(marks, scope.pick(*EXPLORERS), scope.seed)
            for design in ("anchor", "centred")
        ]
        return cells

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether exponents keep to those of the schedule."""
        fitted = fits(data)
        found = [
            Judgement(
                name=f"regret against {key}",
                claim=f"worst-case regret grows with {key} as SBE's schedule does, but for {MARGIN:g} in the"
                " exponent",
                source="paper",
                statistic=f"fitted exponent of {key}; the schedule's is {schedule_exponent(data, key):.3f}",
                measured=Measured.exponent(fitted[key]),
                relation="≤",
                bound=schedule_exponent(data, key) + MARGIN,
            )
            for key in ("T", "d")
        ]
        slower = Judgement(
            name="regret slower than d",
            claim="worst-case regret grows more slowly than d, the rate of earlier bounds",
            source="paper",
            statistic="fitted exponent of d",
            measured=Measured.exponent(fitted["d"]),
            relation="≤",
            bound=1.0,
        )
        return [*found, slower, _plans(data), _consistency(data)]

    def grids(self, data: Data) -> list[Grid]:
        """Return the fitted exponents beside the schedule's, and where the latter come from."""
        names = {
            "T": "regret against T",
            "d": "regret against d",
            "anchor": "error against t, DEO",
            "centred": "error against t, exact design",
        }
        rows = [
            [names[key], "½" if key in {"T", "d"} else "−½", signed(fit), *_own(data, key)]
            for key, fit in fits(data).items()
        ]
        horizons, plans = points(data, "plans")
        slope = np.polyfit(np.log2(horizons), plans.mean(axis=1), 1)[0]
        rows.append(["plans added when T doubles", "a constant", f"{slope:.3f}", *["–"] * len(PARTS)])
        caption = (
            "Fitted exponents ± standard error, and where they come from: the schedule's own exponent at the"
            " same points, then without its term of order d^{3/2}, then also with the logarithm of dK/δ held"
            " fixed, which leaves ½, but for the steps of the phases."
        )
        return [Grid(caption, ["quantity", "theorem", "fitted here", *PARTS], rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return the power laws, and plans against T."""
        fitted = fits(data)

        def series(key: str, name: str) -> Series:
            x, y = points(data, key)
            fit = fitted.get(key)
            label = name if fit is None else f"{name}, slope {fit.exponent:.2f}".replace("-", "−")
            return Series(
                label, x, y.mean(axis=1), y.std(axis=1, ddof=1), None if fit is None else fit.values
            )

        first = {
            f"regret against T (d = {DIMENSION})": ([series("T", "SBE")], "rounds T", "worst-case regret"),
            "regret against d": ([series("d", "SBE")], "dimension d", "worst-case regret / √T"),
        }
        second = {
            "plans against T": ([series("plans", "SBE")], "rounds T", "plans in a run"),
            f"error against t, (d, K) = {ERROR_SIZE}": (
                [series("anchor", "DEO"), series("centred", "exact design")],
                "rounds t",
                "error eₜ (units of reward)",
            ),
        }
        bars = "mean over runs with bars of one standard deviation; lines are fitted power laws"
        return [
            Chart.of_panels("regret", f"Worst-case regret against T and d: {bars}.", scaling_panels, first),
            Chart.of_panels("plans", f"Plans against T, error against t: {bars}.", scaling_panels, second),
        ]


# Power laws of the four checks, and the exponents that SBE's own schedule has at the same points.


def fits(data: Data) -> dict[str, Fit]:
    """Return the fitted power laws."""
    return {key: Fit.of(*points(data, key)) for key in ("T", "d", "anchor", "centred")}


def points(data: Data, key: str) -> tuple[Array, Array]:
    """Return x (n,) and y (n, runs) of one check."""
    if key in {"anchor", "centred"}:
        rounds, errors = grouped(where(data["errors"], design=key), "round", "error")
        return rounds.astype(float), errors
    runs = where(data["runs"], check=key)
    if key == "plans":
        horizons, plans = grouped(runs, "horizon", "plans")
        return horizons.astype(float), plans
    if key == "T":
        places = [horizon for (horizon,) in distinct(runs, "horizon")]
        return np.array(places, dtype=float), np.array([_worst(where(runs, horizon=T)) for T in places])
    places = [dimension for (dimension,) in distinct(runs, "dimension")]
    return np.array(places, dtype=float), np.array([_per_root(where(runs, dimension=d)) for d in places])


def schedule_worst(horizon: int, dimension: int, part: str = PARTS[0]) -> float:
    """Return the worst ε_{ℓ−1}·min(T, t_ℓ) of SBE's schedule with δ = 1/T, C₂ = 1 and K = d + 1.

    An arm that is worse by ε_{ℓ−1} may survive phase ℓ, which ends after t_ℓ = n_1 + … + n_ℓ rounds. The
    lengths are those of :func:`~orthobandit.theory.theory_phase_rounds`, not rounded, or some of their parts.

    Examples
    --------
    >>> schedule_worst(2**20, 8) / schedule_worst(2**18, 8)
    2.0
    """
    d = dimension
    end = 0.0
    worst = 0.0
    arms = log(8 * 9 * horizon) if part == PARTS[2] else log(d * (d + 1) * horizon)
    for phase in range(1, 100):
        epsilon = 2.0**-phase
        share = log(phase * (phase + 1))
        length = d / epsilon**2 * (arms + share - log(epsilon))
        if part == PARTS[0]:
            length += d**1.5 / epsilon * (arms + share)
        end += 4 * length
        worst = max(worst, 2 * epsilon * min(float(horizon), end))
        if end >= horizon:
            break
    return worst


def schedule_exponent(data: Data, key: str, part: str = PARTS[0]) -> float:
    """Return the exponent of T or d that the schedule itself has at the points of a check."""
    runs = where(data["runs"], check=key)
    places = distinct(runs, "horizon" if key == "T" else "dimension")
    values = []
    for (place,) in places:
        here = where(runs, **{"horizon" if key == "T" else "dimension": place})
        # As the points are made: regret against T, or regret / √T averaged over T against d.
        logs = [
            log(schedule_worst(T, d, part)) - (log(T) / 2 if key == "d" else 0.0)
            for T, d in distinct(here, "horizon", "dimension")
        ]
        values.append([float(np.exp(np.mean(logs)))])
    return Fit.of(np.array(places, dtype=float)[:, 0], np.array(values)).exponent


def _worst(runs: Columns) -> Array:
    """Return the regret (runs,) at the gap where its mean is largest."""
    _, regret = grouped(runs, "gap", "regret")
    return np.asarray(regret[np.argmax(regret.mean(axis=1))])


def _per_root(runs: Columns) -> Array:
    """Return worst-case regret / √T (runs,), the geometric mean over horizons."""
    horizons = [horizon for (horizon,) in distinct(runs, "horizon")]
    ratios = [_worst(where(runs, horizon=T)) / np.sqrt(T) for T in horizons]
    return np.asarray(np.exp(np.mean(np.log(ratios), axis=0)))


def _pair(sizes: tuple[float, float], scope: Scope) -> float:
    return sizes[0] if scope.is_quick else sizes[1]


def _power(scope: Scope) -> str:
    return f"{_pair(LONG, scope) + CUTS[-1]:g}"


def _fresh(scope: Scope) -> int:
    # A wrong seed stays wrong, and is refused by the sweep.
    return scope.seed + FRESH if scope.seed >= 0 else scope.seed


def _own(data: Data, key: str) -> list[str]:
    if key not in {"T", "d"}:
        return ["–"] * len(PARTS)
    # Parts are taken away for the sake of d alone: δ = 1/T keeps a logarithm of T.
    parts = PARTS if key == "d" else PARTS[:1]
    return [
        *(f"{schedule_exponent(data, key, part):.3f}" for part in parts),
        *["–"] * (len(PARTS) - len(parts)),
    ]


def _plans(data: Data) -> Judgement:
    """Return whether plans are few: by the lengths of the phases, and in every run."""
    plans = where(data["runs"], check="plans")
    most = []
    for (horizon,) in distinct(plans, "horizon"):
        phase = 0
        begun = 0
        while begun < horizon:
            phase += 1
            begun += theory_phase_rounds(phase, 1 / horizon, PLAN_ARMS - 1, PLAN_ARMS)
        # One more plan plays what was declared.
        seen = int(where(plans, horizon=horizon)["plans"].max())
        most.append(max(phase + 1, seen) / np.log2(horizon))
    return Judgement(
        name="plans against T",
        claim="no run needs more than log₂ T plans",
        source="paper",
        statistic="most plans that phases of these lengths allow, or that a run had, / log₂ T",
        measured=Measured.exactly(max(most)),
        relation="≤",
        bound=1.0,
    )


def _consistency(data: Data) -> Judgement:
    fitted = fits(data)
    return Judgement(
        name="error against t",
        claim="the estimation error falls like t^(−1/2) or faster, but for 0.1 in the exponent",
        source="paper",
        statistic="fitted exponent of t, the slower of both designs",
        measured=Measured.largest([Measured.exponent(fitted[key], among=2) for key in ("anchor", "centred")]),
        relation="≤",
        bound=-0.4,
    )


def _worst_case(check: str, dimension: int, power: float, scope: Scope) -> list[Cell]:
    """Return runs for the gaps around √(d/T) times the logarithms, where regret is worst."""
    cells = []
    for gap in (GAPS * np.sqrt(dimension / 2.0**power)).tolist():
        # The best arm comes last: the reference of an anchor design should not be best by luck.
        cells += _sweep(check, [0.0] * dimension + [gap], power, scope, gap=gap)
    return cells


def _sweep(check: str, means: list[float], power: float, scope: Scope, *, gap: float) -> list[Cell]:
    horizon = round(2**power)
    return Sweep(
        policies={"SBE": Part("sbe", {"schedule": "theory", "delta": 1 / horizon})},
        instances={"one-hot": Part("one-hot", {"means": means})},
        shifts={"ν¹/2": BOUNDED},
        horizon=horizon,
        replications=scope.pick(*RUNS),
        seeds=(_fresh(scope),),
        checkpoints=(horizon,),
        batch=scope.pick(*RUNS),
        labels={"check": check, "dimension": len(means) - 1, "horizon": horizon, "gap": gap},
    ).cells()
