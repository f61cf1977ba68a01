"""How regret, samples and plans grow when the best arm leads by less, and mean regret with the horizon."""

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
)
from orthobandit.reproduction.sections.common import arm_sets, one_hot_arms, policy_cells, random_arms
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import distinct, grouped, where
from orthobandit.theory import bai_rounds, expected_regret_bound, phases_needed

DELTA = 0.05
DIMENSION = 8
EVERY_ROUND = 2000  # rounds of the policies that plan every round: enough to see whether plans grow with T
GIVEN_UP = 10**9  # rounds; SBE declares long before at all gaps here, and a fault should not run for ever
MARGIN = 0.15  # in an exponent, for logarithms
FIXED = 1 / 16  # the gap at which K varies
WIDE = 1 / 2  # the gap at which T varies
ABOVE = 0.1  # the schedule's exponent of K
# Horizons T of runs with δ = 1/T: 2 to these powers. At the gap ½ an arm is declared long before.
HORIZONS = (18, 21, 24, 27, 30)
MORE = 4  # times as many runs where K (in the full form) or T varies
FAMILIES = {"linear": f"linear arms, d = {DIMENSION}", "one-hot": f"one-hot arms, K = {DIMENSION + 1}"}
LETTERS = {"linear": "d", "one-hot": "K"}
RIVALS = {
    "BOSE": Part("bose", {"delta": DELTA, "horizon": EVERY_ROUND}),
    "Semiparametric-TS": Part("semiparametric-ts", {"draws": 100, "horizon": EVERY_ROUND}),
}


def points(check: str, column: str, data: Data) -> tuple[Array, Array]:
    """Return 1/Δ, K or log T (n,) and a column (n, runs), on random arms the means on each set (n, sets)."""
    runs = where(data["runs"], check=check)
    varied = {"arms": "count", "horizon": "horizon"}.get(check, "gap")
    x, y = [], []
    for (value,) in distinct(runs, varied):
        rows = where(runs, **{varied: value})
        x.append({"count": float(value), "horizon": np.log(value), "gap": 1 / value}[varied])
        y.append(grouped(rows, "instance", column)[1].mean(axis=1) if check == "linear" else rows[column])
    return np.array(x), np.array(y, dtype=np.float64)


REGRET = {family: Law(family, partial(points, family, "regret")) for family in FAMILIES}
SAMPLES = {family: Law(family, partial(points, family, "stop_time")) for family in FAMILIES}
AGAINST_ARMS = Law("one-hot", partial(points, "arms", "regret"))
AGAINST_HORIZON = Law("one-hot", partial(points, "horizon", "regret"))
# What grows with 1/Δ, by what power, and the verb of its claim.
GROWTH = (("regret", REGRET, 1, "grows"), ("samples", SAMPLES, 2, "grow"))


def schedule_exponent(data: Data) -> float:
    """Return the exponent of K that SBE's schedule has at the same points."""
    counts, _ = AGAINST_ARMS.points(data)
    sizes = [[bai_rounds(FIXED, DELTA, int(count) - 1, int(count))] for count in counts]
    return Fit.of(counts, np.array(sizes, dtype=float)).exponent


def share_of_many_plans(data: Data) -> Measured:
    """Return the share of runs of SBE with more plans than ⌈log₂ 1/Δ⌉ + 2."""
    runs = data["runs"]
    own = {name: column[np.isin(runs["check"], list(FAMILIES))] for name, column in runs.items()}
    allowed = np.array([phases_needed(gap) + 1 for gap in own["gap"]])
    return Measured.share(int(np.sum(own["plans"] > allowed)), allowed.size)


def plans_a_round(rival: str, data: Data) -> Measured:
    """Return how many plans a rival makes in a round."""
    return Measured.mean(where(data["runs"], check="every round", policy=rival)["plans"] / EVERY_ROUND)


def table_by_gap(data: Data) -> Grid:
    """Return plans and samples by gap, and what the theorem's proof allows."""
    inverses, plans = points("one-hot", "plans", data)
    _, plans_of_linear = points("linear", "plans", data)
    _, samples = SAMPLES["one-hot"].points(data)
    rows = [
        [
            f"1/{inverse:.0f}",
            f"{of_one_hot.mean():.1f}",
            f"{of_linear.mean():.1f}",
            str(phases_needed(1 / inverse) + 1),
            f"{stops.mean():,.0f}",
            f"{bai_rounds(1 / inverse, DELTA, DIMENSION, DIMENSION + 1):,}",
        ]
        for inverse, of_one_hot, of_linear, stops in zip(
            inverses.tolist(), plans, plans_of_linear, samples, strict=True
        )
    ]
    caption = (
        "Means over runs, and what the theorem's proof allows. On the one-hot arms all gaps are the same, so"
        " that a phase often drops all of them or none."
    )
    head = ["Δ", "plans, one-hot", "plans, linear", "at most", "samples, one-hot", "at most"]
    return Grid(caption, head, rows, words=1)


def table_by_horizon(data: Data) -> Grid:
    """Return mean regret by horizon, and the rate of its bound."""
    logarithms, regret = AGAINST_HORIZON.points(data)
    rows = [
        [
            f"2^{logarithm / np.log(2):.0f}",
            f"{values.mean():,.1f} ± {values.std(ddof=1) / np.sqrt(values.size):,.1f}",
            f"{expected_regret_bound(WIDE, round(np.exp(logarithm)), DIMENSION, DIMENSION + 1):,.0f}",
        ]
        for logarithm, values in zip(logarithms.tolist(), regret, strict=True)
    ]
    caption = (
        "Mean regret ± standard error with δ = 1/T, Δ = ½, and d/Δ·log(TdK/Δ): a rate whose constant the"
        f" paper leaves open. The fitted exponent of log T is {AGAINST_HORIZON.signed(data)}."
    )
    return Grid(caption, ["T", "mean regret", "d/Δ·log(TdK/Δ)"], rows, words=1)


def cells(form: Form) -> list[Cell]:
    """Return SBE on all gaps and numbers of arms, and the rivals once."""
    work = []
    for power in form.powers:
        gap = 2.0**-power
        work += _sbe(form, "one-hot", gap, {"the instance": one_hot_arms(DIMENSION + 1, gap)})
        arms = random_arms(DIMENSION, 2 * DIMENSION, form.seed, gap)
        work += _sbe(form, "linear", gap, arm_sets(arms, form.seed, form.sets))
    for count in form.counts:
        instances = {f"{count}": one_hot_arms(count, FIXED)}
        work += _sbe(form, "arms", FIXED, instances, count=count, times=form.more)
    for power in HORIZONS:
        instances = {"the instance": one_hot_arms(DIMENSION + 1, WIDE)}
        work += _sbe(form, "horizon", WIDE, instances, delta=2.0**-power, horizon=2**power, times=MORE)
    one_set = Part("exact-gap", {"dimension": 5, "count": 10, "seed": 1000 * form.seed})
    return work + policy_cells(
        RIVALS,
        {"one set": one_set},
        seed=form.seed,
        horizon=EVERY_ROUND,
        runs=4,
        labels={"check": "every round", "gap": 0.5, "count": 10, "horizon": EVERY_ROUND},
    )


def _sbe(
    form: Form,
    check: str,
    gap: float,
    instances: dict[str, Part],
    *,
    count: int = DIMENSION + 1,
    delta: float = DELTA,
    horizon: int = GIVEN_UP,
    times: int = 1,
) -> list[Cell]:
    return policy_cells(
        {"SBE": Part("sbe", {"schedule": "theory", "delta": delta})},
        instances,
        seed=form.seed,
        horizon=horizon,
        runs=times * form.runs // len(instances),
        labels={"check": check, "gap": gap, "count": count, "horizon": horizon},
        stop_when_declared=True,
        seconds_a_round=2e-7 / gap**2 / horizon,
    )


GAPS = Section(
    name="gaps",
    title="How cost grows when arms are nearly alike",
    plain="When the best arm leads by half as much, does the way to it cost no more than twice as much and"
    " take no more than four times as long, with one change of plan more?",
    claims="Regret Õ(d/Δ) on linear arms and Õ(K/Δ) on one-hot arms, samples Õ(d/Δ²) until the best arm is"
    " declared, O(log 1/Δ) plans: exponents 1, 1 and 2 in 1/Δ, but for logarithms (0.15 here). The growth"
    " with K is compared with that of SBE's schedule, which has logarithms and a term K^{3/2}. Mean regret"
    " with δ = 1/T grows no faster than log T. BOSE and Semiparametric-TS plan Ω(T) times.",
    described=lambda form: (
        f"SBE as in the theorem (C₂ = 1, δ = {DELTA}) under ν¹/2 until it declares an arm; Δ from ½ to"
        f" 2^−{form.powers[-1]}; random unit arms (d, K) = ({DIMENSION}, {2 * DIMENSION}) in {form.sets}"
        f" sets, and one-hot arms of which the last is better by Δ; {form.runs} runs a point. K varies at"
        f" Δ = 1/16, with {form.more} times as many runs; T varies from 2^{HORIZONS[0]} to 2^{HORIZONS[-1]}"
        f" with δ = 1/T on {DIMENSION + 1} one-hot arms, Δ = ½, with {MORE} times as many. The rivals play"
        f" {EVERY_ROUND:,} rounds."
    ),
    sizes={
        "powers": ((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 7, 8)),  # gaps are 2 to minus these
        # Arms of the one-hot instances whose number varies. With fewer, regret grows faster than the schedule
        # by up to .13 in the exponent: the best arm has a share of the rounds, which costs nothing, and a
        # phase whose ε is the gap may drop all other arms by luck. Both effects are all but gone at these.
        "counts": ((33, 65), (33, 65, 129)),
        "sets": (14, 20),  # arm sets of the linear instances
        "runs": (28, 40),  # a point: all of them on one-hot arms, two on each arm set
        "more": (1, MORE),
    },
    runs=cells,
    judged=[
        *(
            Claim(
                f"{what}, {family}",
                f"on {words}, {what} {verb} no faster than {LETTERS[family]}/Δ{'²' * (power == 2)}",
                "fitted exponent of 1/Δ",
                laws[family].exponent,
                at_most=power + MARGIN,
            )
            for family, words in FAMILIES.items()
            for what, laws, power, verb in GROWTH
        ),
        Claim(
            "regret against K",
            f"on one-hot arms, regret grows with K as SBE's schedule does, but for {ABOVE:g} in the exponent",
            "fitted exponent of K; the schedule's is {yardstick:.3f}",
            AGAINST_ARMS.exponent,
            at_most=ABOVE,
            yardstick=schedule_exponent,
        ),
        Claim(
            "mean regret against log T",
            "with δ = 1/T at a fixed gap, mean regret grows no faster than log T",
            "fitted exponent of log T",
            AGAINST_HORIZON.exponent,
            at_most=1.0,
        ),
        Claim(
            "plans of SBE",
            f"with probability 1 − δ a run of SBE has at most ⌈log₂ 1/Δ⌉ + 2 plans, δ = {DELTA}",
            "share of runs with more, exact limits",
            share_of_many_plans,
            at_most=DELTA,
        ),
        *(
            Claim(
                f"plans of {rival}",
                f"{rival} has a new plan in at least half of the rounds",
                f"plans / rounds, T = {EVERY_ROUND:,}",
                partial(plans_a_round, rival),
                at_least=0.5,
            )
            for rival in RIVALS
        ),
    ],
    tabled=[
        LawsTable(
            "Fitted exponents of 1/Δ ± standard error.",
            ["quantity", "theorem", "here"],
            {
                (f"{what}, {words}", str(power)): laws[family]
                for family, words in FAMILIES.items()
                for what, laws, power, _ in GROWTH
            },
        ),
        table_by_gap,
        table_by_horizon,
    ],
    drawn=[
        LawsChart(
            "growth",
            "Mean over runs, or over arm sets, with bars of one standard deviation; fitted power laws.",
            {
                "regret until the best arm is declared": Panel(REGRET.values(), "1/Δ", "regret"),
                "samples until the best arm is declared": Panel(SAMPLES.values(), "1/Δ", "rounds"),
                "mean regret with δ = 1/T, Δ = ½": Panel([AGAINST_HORIZON], "log T", "regret"),
            },
        )
    ],
)
