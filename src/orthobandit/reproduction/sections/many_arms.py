"""How samples, regret and error grow with the number of arms, and where they stop growing."""

from functools import partial

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.measured import Fit, Measured
from orthobandit.reproduction.section import (
    Claim,
    Data,
    Form,
    Grid,
    Law,
    LawsChart,
    LawsTable,
    Panel,
    Section,
    largest_exponent,
)
from orthobandit.reproduction.sections.common import (
    arm_sets,
    error_cell,
    fresh_seed,
    policy_cells,
    random_arms,
)
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, distinct, grouped, share_wrong, where
from orthobandit.theory import adaptive_phase_rounds

DELTA = 0.05
GAP = 0.5
COUNTS = (8, 64, 512, 4096)  # d = 5, for log K
MANY = (16, 1024, 16_384)  # d = 2, where the bound without K takes over
_, FEW, MOST = MANY
EXPLORED = 100_000
GIVEN_UP = 10**9  # rounds, long after SBE has declared at this gap
MARGIN = 0.1  # of an exponent, and of a ratio: logarithms of lower order are not quite gone at these K
# Up to this T phases are of the length without K at FEW arms as at MOST, so that regret should be the same;
# with K in every phase they would be a fifth longer.
FREE_OF_K = 2**14
SAME = 0.05  # of a ratio
FRESH = 8_180_000  # added to the report's seed: bounds were fixed before these seeds were run


def means_by_set(rows: Columns, column: str, by: str) -> tuple[list[int], Array]:
    """Return the values (n,) of a column, and the means of another on each arm set (n, sets)."""
    values = [value for (value,) in distinct(rows, by)]
    means = [grouped(where(rows, **{by: value}), "instance", column)[1].mean(axis=1) for value in values]
    return values, np.array(means)


def sample_points(check: str, data: Data) -> tuple[Array, Array]:
    """Return log K (n,) and samples (n, sets)."""
    counts, samples = means_by_set(where(data["runs"], check=check), "stop_time", "count")
    return np.log(counts), samples


def error_points(data: Data) -> tuple[Array, Array]:
    """Return log K (n,) and errors (n, runs)."""
    counts, errors = grouped(data["errors"], "count", "error")
    return np.log(counts), errors


def regret_points(count: int, data: Data, check: str = "regret") -> tuple[Array, Array]:
    """Return T (n,) and the mean regret on each circle of so many arms (n, sets)."""
    runs = where(data["runs"], check=check, count=count)
    horizons, regret = means_by_set(runs, "regret", "horizon")
    return np.array(horizons, dtype=float), regret


SAMPLES = Law("SBE", partial(sample_points, "log K"))
ERROR = Law("DEO", error_points)
REGRET = {count: Law(f"K = {count:,}", partial(regret_points, count)) for count in (FEW, MOST)}


def sample_ratio(data: Data) -> Measured:
    """Return the samples at MOST arms / at FEW, of the adaptive schedule."""
    _, (_, few, most) = sample_points("adaptive", data)
    return Measured.ratio(most, few)


def share_of_errors(data: Data) -> Measured:
    """Return the share of wrong declarations of the adaptive schedule."""
    runs = where(data["runs"], check="adaptive")
    count = len(runs["declared"])
    return Measured.share(round(share_wrong(runs) * count), count)


def regret_ratio(data: Data) -> Measured:
    """Return the regret at MOST arms / at FEW, up to the T at which it should be the same."""
    horizons, few = regret_points(FEW, data)
    _, most = regret_points(MOST, data)
    index = int(np.argmax(horizons == FREE_OF_K))
    return Measured.ratio(most[index], few[index])


def schedule_exponent(horizons: Array) -> float:
    """Return the exponent of T that the adaptive schedule itself has between these horizons (n,), K = MOST.

    That of the worst ε_{ℓ−1}·min(T, t_ℓ): an arm that is worse by ε_{ℓ−1} may survive phase ℓ, which ends
    after t_ℓ rounds. It is ½ but for logarithms.

    Examples
    --------
    >>> round(schedule_exponent(2.0 ** np.arange(14, 24, 2)), 3)
    0.564
    """
    worst = []
    for horizon in horizons.tolist():
        phase = 0
        end = 0
        most = 0.0
        while end < horizon:
            phase += 1
            end += adaptive_phase_rounds(phase, DELTA, 2, MOST)
            most = max(most, 2 * 2.0**-phase * min(horizon, end))
        worst.append([most])
    return Fit.of(horizons, np.array(worst)).exponent


def table_of_samples(data: Data) -> Grid:
    """Return mean samples by K and schedule."""
    rows = [
        [
            f"{count:,}",
            *(
                f"{where(data['runs'], check=check, count=count)['stop_time'].mean():,.0f}"
                for check in ("theory", "adaptive")
            ),
        ]
        for count in MANY
    ]
    return Grid("Mean samples, d = 2.", ["K", "with K in every phase", "adaptive"], rows, words=1)


def table_of_regret(data: Data) -> Grid:
    """Return mean regret by schedule, T and K."""
    rows = []
    for check, words in (("regret", "adaptive"), ("regret, with K", "with K in every phase")):
        horizons, few = regret_points(FEW, data, check)
        _, most = regret_points(MOST, data, check)
        rows += [
            [words, f"2^{np.log2(horizon):.0f}", f"{at_few.mean():,.0f}", f"{at_most.mean():,.0f}"]
            for horizon, at_few, at_most in zip(horizons, few, most, strict=True)
        ]
    head = ["schedule", "T", f"K = {FEW:,}", f"K = {MOST:,}"]
    return Grid("Mean regret on a circle.", head, rows, words=1)


def cells(form: Form) -> list[Cell]:
    """Return runs until a declaration, runs on circles, and explorations."""
    until_declared = [
        *(("log K", 5, count, "theory") for count in COUNTS),
        *((schedule, 2, count, schedule) for schedule in ("theory", "adaptive") for count in MANY),
    ]
    work = []
    for check, dimension, count, schedule in until_declared:
        arms = random_arms(dimension, count, form.seed, GAP)
        work += policy_cells(
            _sbe(schedule),
            arm_sets(arms, form.seed, form.sets),
            seed=form.seed,
            horizon=GIVEN_UP,
            runs=form.runs,
            labels={"check": check, "count": count, "horizon": GIVEN_UP},
            stop_when_declared=True,
            seconds_a_round=0.05 / GIVEN_UP,
        )
    seed = fresh_seed(form.seed, FRESH)
    for count in (FEW, MOST):
        # θ of length 1, as the theorem assumes.
        circle = Part("uniform-sphere", {"dimension": 2, "count": count, "norm": 1.0})
        played = [("regret", 2**power, "adaptive") for power in form.horizons]
        for check, horizon, schedule in [*played, ("regret, with K", FREE_OF_K, "theory")]:
            work += policy_cells(
                _sbe(schedule),
                arm_sets(circle, seed, form.circles),
                seed=seed,
                horizon=horizon,
                runs=form.circle_runs,
                labels={"check": check, "count": count, "horizon": horizon},
            )
    explored = [
        error_cell(form, "sine", (5, count), "anchor", [EXPLORED], form.explorers) for count in COUNTS
    ]
    return work + explored


def _sbe(schedule: str) -> dict[str, Part]:
    return {"SBE": Part("sbe", {"schedule": schedule, "delta": DELTA})}


CAPTION = "Mean over arm sets, or over runs, with bars of one standard deviation; fitted power laws."
MANY_ARMS = Section(
    name="many-arms",
    title="How cost grows with the number of arms",
    plain="Do a thousand times as many arms need a few times as many rounds, not a thousand times, and beyond"
    " some number of arms none more?",
    claims="Samples grow no faster than log K and the error no faster than √log K. With phases of the length"
    " min(Õ(d·log K/ε²), Õ(d²/ε²)) samples no longer depend on K once it is large, and errors still have"
    " probability at most δ. The regret of that schedule is Õ(d√T) whatever K. The theorem has δ = 1/T², with"
    " which K would have to be near T² before the phases that matter become shorter: here δ is fixed.",
    described=lambda form: (
        f"SBE as in the theorem and with the adaptive schedule (C₂ = C₃ = 1, δ = {DELTA}) under ν¹/2 until an"
        f" arm is declared: random unit arms with gap {GAP:g}, d = 5 and K up to {COUNTS[-1]:,}, d = 2 and K"
        f" up to {MOST:,}; {form.runs} runs on each of {form.sets} arm sets. Regret: the adaptive schedule on"
        f" {FEW:,} and {MOST:,} random arms on the unit circle, θ = e_1, T up to 2^{form.horizons[-1]},"
        f" {form.circle_runs} runs on each of {form.circles} arm sets. Error: DEO for {EXPLORED:,} rounds"
        f" under ν¹, {form.explorers} runs."
    ),
    sizes={
        "sets": (8, 20),
        "runs": (7, 10),  # on each set
        # Regret of the adaptive schedule: arms all around the circle, whose gaps have every size, so that
        # regret grows for ever. Powers of 2 in steps of 2: every T cuts the phases, four times as long each,
        # alike.
        "horizons": ((14, 16, 18, 20), (14, 16, 18, 20, 22)),
        "circles": (8, 40),  # arm sets
        "circle_runs": (4, 10),  # on each set
        "explorers": (40, 100),
    },
    runs=cells,
    judged=[
        Claim(
            "samples against log K",
            "samples to the best arm grow no faster than log K, but for 0.1 in the exponent",
            "fitted exponent of log K",
            SAMPLES.exponent,
            at_most=1 + MARGIN,
        ),
        Claim(
            "error against log K",
            "the error of the worst arm grows no faster than √log K, but for 0.1 in the exponent",
            "fitted exponent of log K",
            ERROR.exponent,
            at_most=0.5 + MARGIN,
        ),
        Claim(
            "free of K",
            f"with the adaptive schedule, d = 2, {MOST:,} arms need no more samples than {FEW:,}, but for"
            " 10 %",
            f"mean samples, K = {MOST:,} / K = {FEW:,}",
            sample_ratio,
            at_most=1 + MARGIN,
        ),
        Claim(
            "errors of the adaptive schedule",
            f"with the adaptive schedule a wrong arm is declared with probability at most δ = {DELTA}",
            "share of wrong declarations, exact limits",
            share_of_errors,
            at_most=DELTA,
        ),
        Claim(
            "regret of the adaptive schedule against T",
            "with the adaptive schedule, d = 2, regret grows with T as that schedule does, but for 0.1 in the"
            " exponent",
            f"fitted exponent of T, the larger of K = {FEW:,} and {MOST:,}; the schedule's is"
            " {yardstick:.3f}",
            largest_exponent(REGRET.values()),
            at_most=MARGIN,
            yardstick=lambda data: schedule_exponent(regret_points(FEW, data)[0]),
        ),
        Claim(
            "regret free of K",
            f"with the adaptive schedule, d = 2, {MOST:,} arms cost no more regret than {FEW:,}, but for 5 %",
            f"mean regret at T = {FREE_OF_K:,}, K = {MOST:,} / K = {FEW:,}",
            regret_ratio,
            at_most=1 + SAME,
        ),
    ],
    tabled=[
        LawsTable(
            "Fitted exponents ± standard error.",
            ["quantity", "theorem", "here"],
            {
                ("samples against log K, d = 5", "1"): SAMPLES,
                ("error against log K, d = 5", "½"): ERROR,
                **{(f"regret against T, adaptive, K = {count:,}", "½"): law for count, law in REGRET.items()},
            },
        ),
        table_of_samples,
        table_of_regret,
    ],
    drawn=[
        LawsChart(
            "growth",
            CAPTION,
            {
                "samples against log K (d = 5)": Panel([SAMPLES], "log K", "rounds"),
                "error against log K (d = 5)": Panel([ERROR], "log K", "error (units of reward)"),
            },
        ),
        LawsChart(
            "regret",
            CAPTION,
            {"regret against T (d = 2, adaptive)": Panel(REGRET.values(), "rounds T", "regret")},
        ),
    ],
)
