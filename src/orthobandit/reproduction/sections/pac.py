"""Whether the rounds of Corollary 5 suffice, and how fast the error of pure exploration falls."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Series, scaling_panels
from orthobandit.reproduction.sections.base import Chart, Data, Fit, Grid, Judgement, Measured, Scope, signed
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, distinct, grouped, where
from orthobandit.theory import pac_rounds

TASK = "orthobandit.reproduction.tasks:track_pac"
DELTA = 0.05
SIZE = (10, 20)
GAP = 2.0**-8  # of the best arm, far below every ε: nearly the best will do, and is not found by luck
POWERS = ((2, 3, 4, 5), (2, 3, 4, 5, 6))  # ε is 2 to minus these
RUNS = (300, 1000)
MARGIN = 0.1  # in an exponent
# All keep to |ν| ≤ 1.
SHIFTS = {
    "none": Part("none"),
    "ν¹/2": Part("sine", {"offset": 0.5, "amplitude": 0.5}),
    "jumps": Part("jumps"),
}


@dataclass(frozen=True)
class Pac:
    """Pure exploration for the rounds of Corollary 5: how good the arm is that then looks best."""

    name: str
    title: str
    group: str

    plain = "After as many rounds as the paper asks for, is the arm that looks best as good as promised?"
    claims = (
        "Drawing from DEO for τ(ε, δ) = C₂(d/ε²·log(dK/(εδ)) + d^{3/2}/ε·log(dK/δ)) rounds, the arm that"
        " looks best is within ε of the best one with probability 1 − δ (Corollary 5), so ε falls like"
        " t^{−1/2} but for logarithms, the PAC rate of Theorem 8 too. C₂ is not given: C₂ = 1 here."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        powers = _powers(scope)
        return (
            f"Random unit arms (d, K) = {SIZE} of which the best leads by {GAP:g}, σ = 1, δ = {DELTA}; ε from"
            f" ¼ to 2^−{powers[-1]}, each after its own τ(ε, δ) rounds; {scope.pick(*RUNS):,} runs under each"
            " of three shifts within ±1."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return one exploration for each shift."""
        epsilons = [2.0**-power for power in _powers(scope)]
        shape = {"dimension": SIZE[0], "count": SIZE[1], "gap": GAP, "seed": scope.seed}
        rounds = [pac_rounds(epsilon, DELTA, SIZE[0], SIZE[1]) for epsilon in epsilons]
        return [
            Cell(
                task=TASK,
                settings={
                    "instance": Part("exact-gap", shape).plain(),
                    "shift": shift.plain(),
                    "noise": Part("gaussian").plain(),
                    "design": "anchor",
                    "delta": DELTA,
                    "epsilons": epsilons,
                    "checkpoints": rounds,
                    "replications": scope.pick(*RUNS),
                    "seed": scope.seed,
                },
                labels={"shift": name},
                cost=1.0 + 1e-8 * rounds[-1] * scope.pick(*RUNS),
            )
            for name, shift in SHIFTS.items()
        ]

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether promises are kept under the worst shift and at the worst ε, and the rate."""
        parts = _parts(data)
        shares = [
            Measured.share(int(np.sum(found["gap"] > epsilon)), len(found["gap"]), among=len(parts))
            for (_, epsilon), found in parts.items()
        ]
        fits = {shift: _fit(data, shift) for (shift,) in distinct(data["pac"], "shift")}
        return [
            Judgement(
                name="within ε",
                claim="after τ(ε, δ) rounds with C₂ = 1, the arm that looks best is within ε of the best with"
                f" probability 1 − δ, δ = {DELTA}",
                source="paper",
                statistic="share of runs that miss it, worst shift and ε, exact limits",
                measured=Measured.largest(shares),
                relation="≤",
                bound=DELTA,
            ),
            Judgement(
                name="PAC rate",
                claim="the error over all pairs of arms falls like t^(−1/2) or faster, but for 0.1 in the"
                " exponent",
                source="paper",
                statistic="fitted exponent of t, slowest of the shifts",
                measured=Measured.largest([Measured.exponent(fit, among=len(fits)) for fit in fits.values()]),
                relation="≤",
                bound=MARGIN - 0.5,
            ),
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return failures and errors by shift and ε, and exponents."""
        rows = [
            [
                shift,
                f"1/{1 / epsilon:.0f}",
                f"{int(found['round'][0]):,}",
                str(int(np.sum(found["gap"] > epsilon))),
                f"{np.mean(found['gap']):.4f}",
                f"{np.quantile(found['pair_error'], 1 - DELTA) / epsilon:.3f}",
                str(len(found["gap"])),
            ]
            for (shift, epsilon), found in _parts(data).items()
        ]
        head = ["shift", "ε", "τ(ε, δ)", "not within ε", "mean gap", "95 % of errors / ε", "runs"]
        exponents = [[shift, signed(_fit(data, shift))] for (shift,) in distinct(data["pac"], "shift")]
        return [
            Grid(
                "The arm that looks best after τ(ε, δ) rounds, C₂ = 1. Errors are over all pairs of arms: a"
                " ratio above 1 says that the rounds do not suffice for all pairs at once, which nobody"
                " claims.",
                head,
                rows,
            ),
            Grid("Fitted exponent of t of the error ± standard error.", ["shift", "exponent"], exponents, 1),
        ]

    def charts(self, data: Data) -> list[Chart]:
        """Return the error against the rounds."""
        series = []
        for (shift,) in distinct(data["pac"], "shift"):
            rounds, errors = _points(data, shift)
            fit = _fit(data, shift)
            name = f"shift {shift}, slope {fit.exponent:.2f}".replace("-", "−")
            series.append(Series(name, rounds, errors.mean(axis=1), errors.std(axis=1, ddof=1), fit.values))
        panels = {f"(d, K) = {SIZE}": (series, "rounds t = τ(ε, δ)", "largest error of a pair")}
        caption = "Error over all pairs of arms: mean over runs, bars of one standard deviation; fitted laws."
        return [Chart.of_panels("error", caption, scaling_panels, panels)]


def _powers(scope: Scope) -> tuple[int, ...]:
    return POWERS[0] if scope.is_quick else POWERS[1]


def _parts(data: Data) -> dict[tuple[str, float], Columns]:
    return {
        (shift, epsilon): where(data["pac"], shift=shift, epsilon=epsilon)
        for shift, epsilon in distinct(data["pac"], "shift", "epsilon")
    }


def _points(data: Data, shift: str) -> tuple[Array, Array]:
    rounds, errors = grouped(where(data["pac"], shift=shift), "round", "pair_error")
    return rounds.astype(float), errors


def _fit(data: Data, shift: str) -> Fit:
    return Fit.of(*_points(data, shift))
