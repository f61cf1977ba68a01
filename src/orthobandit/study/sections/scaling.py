"""How regret, plans and error grow, with fitted exponents next to the theorems'."""

from dataclasses import dataclass

import numpy as np

from orthobandit.study.cells import Cell
from orthobandit.study.charts import Series, scaling_panels
from orthobandit.study.sections.base import Chart, Data, Grid, Scope, Verdict
from orthobandit.study.sections.errors import Exploration
from orthobandit.study.sections.growth import bound_exponent, fits, points, signed
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import where

DELTA, DIMENSION = 0.05, 5
# Powers of 2, quick and full. Steps of 2: phases get four times as long from one to the next, so that every
# T cuts them at the same place.
HORIZONS = ((14, 16, 18, 20), (14, 16, 18, 20, 22))
DIMENSIONS = (4, 8, 16, 32)
LONG = (18, 20)  # the power of 2 from which dimensions are compared, over one factor of four:
CUTS = (0.0, 0.5, 1.0, 1.5)  # where the horizon cuts the phases should not decide an exponent
GAPS = 2.0 ** np.arange(1.5, 6.6, 0.5)  # in units of √(d/T): the gaps among which the worst is sought
PLAN_HORIZONS = ((10, 12, 14, 16, 18, 20), (10, 12, 14, 16, 18, 20, 22, 24))
RUNS = (12, 32)
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
        "Regret Õ(√(dT log K)) whatever the gaps; O(log T) plans; error Õ(√(d log K/t)). Exponents: ½ in T"
        " and in d (with a d^{3/2} term of lower order), −½ in t."
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
        """Return whether exponents keep to the theorems'."""
        fitted = fits(data)
        plans = where(data["runs"], check="plans")
        share = float(np.max(plans["plans"] / np.log2(plans["horizon"])))
        return [
            Verdict(
                name="regret against T",
                claim="worst-case regret grows no faster than √T, but for logarithms (0.15 in the exponent)",
                source="paper",
                statistic="fitted exponent of T",
                value=fitted["T"].exponent,
                relation="≤",
                bound=0.65,
            ),
            Verdict(
                name="regret like √d",
                claim="worst-case regret grows no faster than √d, but for logarithms (0.15 in the exponent)",
                source="paper",
                statistic="fitted exponent of d",
                value=fitted["d"].exponent,
                relation="≤",
                bound=0.65,
            ),
            Verdict(
                name="regret slower than d",
                claim="worst-case regret grows more slowly than d, the rate of earlier bounds",
                source="paper",
                statistic="fitted exponent of d",
                value=fitted["d"].exponent,
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
                value=max(fitted["anchor"].exponent, fitted["centred"].exponent),
                relation="≤",
                bound=-0.4,
            ),
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return the fitted exponents beside the theorems', and how fast plans add up."""
        theorem = {"T": "½", "d": "½ (and 3⁄2 in a lower-order term)", "anchor": "−½", "centred": "−½"}
        names = {
            "T": "regret against T",
            "d": "regret against d",
            "anchor": "error against t, DEO",
            "centred": "error against t, exact design",
        }
        rows = [
            [names[key], theorem[key], signed(fit), bound_exponent(key, data, DELTA)]
            for key, fit in fits(data).items()
        ]
        horizons, plans = points(data, "plans")
        slope = np.polyfit(np.log2(horizons), plans.mean(axis=1), 1)[0]
        rows.append(["plans added when T doubles", "a constant", f"{slope:.3f}", "–"])
        caption = (
            "Fitted exponents ± standard error. The last column fits the theorem's whole bound, with its"
            " logarithms and its lower-order term, at the same points."
        )
        return [Grid(caption, ["quantity", "theorem", "fitted here", "fitted to the theorem's bound"], rows)]

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
            Chart("regret", f"Worst-case regret against T and d: {bars}.", lambda: scaling_panels(first)),
            Chart("plans", f"Plans against T, error against t: {bars}.", lambda: scaling_panels(second)),
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
        policies={"SBE": Part("sbe", {"schedule": "theory", "delta": DELTA})},
        instances={"one-hot": Part("one-hot", {"means": means})},
        shifts={"sine": Part("sine")},
        horizon=horizon,
        replications=scope.pick(*RUNS),
        seeds=(scope.seed,),
        checkpoints=(horizon,),
        batch=scope.pick(*RUNS),
        labels={"check": check, "dimension": len(means) - 1, "horizon": horizon, "gap": gap},
    ).cells()
