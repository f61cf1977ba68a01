"""How regret, plans and error grow, with fitted exponents next to the theorems'."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit.study.cells import Cell
from orthobandit.study.charts import Series, scaling_panels
from orthobandit.study.sections.base import Chart, Data, Grid, Scope, Verdict
from orthobandit.study.sections.errors import Exploration
from orthobandit.study.sections.fits import Fit
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import Columns, distinct, grouped, where

Array = NDArray[np.float64]

DIMENSION = 5
# Powers of 2, quick and full. Steps of 2: phases get four times as long from one to the next, so that every
# T cuts them at the same place.
HORIZONS = ((14, 16, 18, 20), (14, 16, 18, 20, 22))
DIMENSIONS = (4, 8, 16, 32)
LONG = (18, 20)  # the power of 2 from which dimensions are compared, over one factor of four:
CUTS = (0.0, 0.5, 1.0, 1.5)  # where the horizon cuts the phases should not decide an exponent
GAPS = 2.0 ** np.arange(1.5, 6.6, 0.5)  # in units of √(d/T): the gaps among which the worst is sought
PLAN_HORIZONS = ((10, 12, 14, 16, 18, 20), (10, 12, 14, 16, 18, 20, 22, 24))
RUNS = (16, 32)
EXPLORED = (2_000_000, 20_000_000)
EXPLORERS = 40  # runs whose error is followed
ERROR_SIZE = (10, 20)


@dataclass(frozen=True)
class ScalingChecks:
    """Worst-case regret against T and d, plans against T, error against t."""

    name: str
    title: str
    group: str

    claims = (
        "Regret Õ(√(dT log K)) whatever the gaps; a number of phases logarithmic in T; estimation error"
        " Õ(√(d log K/t)). Exponents: ½ in T and in d (the bound has a d^{3/2} term of lower order), −½ in t."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        return (
            "SBE as in the theorem (C₂ = 1, δ = 0.05) under ν¹ on one-hot arms, of which one is better by Δ;"
            f" for every T and d the worst of {len(GAPS)} gaps Δ between 2.8 and 91 times √(d/T);"
            f" {scope.pick(*RUNS)} runs each. Plans: arms with gaps 1, ½, ¼, …, so that phases drop arms."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return the runs of all four checks."""
        powers = HORIZONS[0] if scope.is_quick else HORIZONS[1]
        cells = [c for power in powers for c in _worst_case("T", DIMENSION, power, scope)]
        cells += [
            cell
            for d in DIMENSIONS
            for cut in CUTS
            for cell in _worst_case("d", d, scope.pick(*LONG) + cut, scope)
        ]
        means = [*(-(2.0**-place) for place in range(12)), 0.0]
        for power in PLAN_HORIZONS[0] if scope.is_quick else PLAN_HORIZONS[1]:
            cells += _sweep("plans", means, power, scope, gap=0.0)
        marks = np.unique(
            np.geomspace(scope.pick(*EXPLORED) / 64, scope.pick(*EXPLORED), 7).round().astype(int)
        ).tolist()
        cells += [
            Exploration("sine", *ERROR_SIZE, design).cell(marks, EXPLORERS, scope.seed)
            for design in ("anchor", "centred")
        ]
        return cells

    def verdicts(self, data: Data) -> list[Verdict]:
        """Return whether the fitted exponents keep to the theorems'."""
        fits = _fits(data)
        plans = where(data["runs"], check="plans")
        share = float(np.max(plans["plans"] / np.log2(plans["horizon"])))
        return [
            Verdict(
                name="regret against T",
                claim="worst-case regret grows no faster than √T, but for logarithms (0.15 in the exponent)",
                source="paper",
                statistic="fitted exponent of T",
                value=fits["T"].exponent,
                relation="≤",
                bound=0.65,
            ),
            Verdict(
                name="regret against d",
                claim="worst-case regret grows more slowly than d, the rate of earlier bounds; the theorem"
                " says √d and a term of lower order",
                source="paper",
                statistic="fitted exponent of d",
                value=fits["d"].exponent,
                relation="≤",
                bound=1.0,
            ),
            Verdict(
                name="plans against T",
                claim="no run needs more than log₂ T plans",
                source="paper",
                statistic="most plans of a run / log₂ T",
                value=share,
                relation="≤",
                bound=1.0,
            ),
            Verdict(
                name="error against t",
                claim="the estimation error falls like t^(−1/2) or faster, but for 0.1 in the exponent",
                source="paper",
                statistic="fitted exponent of t, the slower of both designs",
                value=max(fits["anchor"].exponent, fits["centred"].exponent),
                relation="≤",
                bound=-0.4,
            ),
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return the fitted exponents beside the theorems'."""
        theorem = {
            "T": "½",
            "d": "½ (lower order: 3⁄2)",
            "plans": "0 (log T)",
            "anchor": "−½",
            "centred": "−½",
        }
        names = {
            "T": "regret against T",
            "d": "regret against d",
            "plans": "plans against T",
            "anchor": "error against t, DEO",
            "centred": "error against t, exact design",
        }
        fits = _fits(data)
        rows = [
            [names[key], f"{fit.exponent:.3f} ± {fit.error:.3f}".replace("-", "−"), theorem[key]]
            for key, fit in fits.items()
        ]
        return [Grid("Fitted exponents ± standard error.", ["quantity", "fitted", "theorem"], rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return the four power laws."""
        fits = _fits(data)

        def series(key: str, name: str) -> Series:
            x, y = _points(data, key)
            spread = y.std(axis=1, ddof=1)
            return Series(
                f"{name}{fits[key].exponent:.2f}".replace("-", "−"),
                x,
                y.mean(axis=1),
                spread,
                fits[key].values,
            )

        regret = "worst-case regret"
        first = {
            f"d = {DIMENSION}": ([series("T", "SBE, slope ")], "rounds T", regret),
            "over one factor of four in T": (
                [series("d", "SBE, slope ")],
                "dimension d",
                "worst-case regret / √T",
            ),
        }
        second = {
            "plans of a run": ([series("plans", "SBE, slope ")], "rounds T", "plans"),
            f"(d, K) = {ERROR_SIZE}": (
                [series("anchor", "DEO, slope "), series("centred", "exact, slope ")],
                "rounds t",
                "error e_t",
            ),
        }
        bars = "mean over runs with bars of one standard deviation; lines are fitted power laws"
        return [
            Chart("regret", f"Worst-case regret against T and d: {bars}.", lambda: scaling_panels(first)),
            Chart(
                "plans-error", f"Plans against T and error against t: {bars}.", lambda: scaling_panels(second)
            ),
        ]


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
        policies={"SBE": Part("sbe", {"schedule": "theory"})},
        instances={"one-hot": Part("one-hot", {"means": means})},
        shifts={"sine": Part("sine")},
        horizon=horizon,
        replications=scope.pick(*RUNS),
        seeds=(scope.seed,),
        checkpoints=(horizon,),
        batch=scope.pick(*RUNS),
        labels={"check": check, "dimension": len(means) - 1, "horizon": horizon, "gap": gap},
    ).cells()


def _points(data: Data, key: str) -> tuple[Array, Array]:
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


def _worst(runs: Columns) -> Array:
    """Return the regret (runs,) at the gap where its mean is largest."""
    _, regret = grouped(runs, "gap", "regret")
    return np.asarray(regret[np.argmax(regret.mean(axis=1))])


def _per_root(runs: Columns) -> Array:
    """Return worst-case regret / √T (runs,), the geometric mean over horizons."""
    horizons = [horizon for (horizon,) in distinct(runs, "horizon")]
    ratios = [_worst(where(runs, horizon=T)) / np.sqrt(T) for T in horizons]
    return np.asarray(np.exp(np.mean(np.log(ratios), axis=0)))


def _fits(data: Data) -> dict[str, Fit]:
    return {key: Fit.of(*_points(data, key)) for key in ("T", "d", "plans", "anchor", "centred")}
