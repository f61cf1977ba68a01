"""How regret, samples and plans grow when the best arm leads by less, and mean regret with the horizon."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Series, scaling_panels
from orthobandit.reproduction.sections.base import Chart, Data, Fit, Grid, Judgement, Measured, Scope, signed
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep
from orthobandit.study.tables import distinct, grouped, where
from orthobandit.theory import bai_rounds, expected_regret_bound, phases_needed

DELTA = 0.05
DIMENSION = 8
POWERS = ((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 7, 8))  # gaps are 2 to minus these
# Arms of the one-hot instances whose number varies. With fewer, regret grows faster than the schedule by up
# to .13 in the exponent: the best arm has a share of the rounds, which costs nothing, and a phase whose ε is
# the gap may drop all other arms by luck. Both effects are all but gone at these numbers.
COUNTS = ((33, 65), (33, 65, 129))
SETS = (14, 20)  # arm sets of the linear instances
RUNS = (28, 40)  # a point: all of them on one-hot arms, two on each arm set
EVERY_ROUND = 2000  # rounds of the policies that plan every round: enough to see whether plans grow with T
GIVEN_UP = 10**9  # rounds; SBE declares long before at all gaps here, and a fault should not run for ever
MARGIN = 0.15  # in an exponent, for logarithms
FIXED = 1 / 16  # the gap at which K varies
WIDE = 1 / 2  # the gap at which T varies
ABOVE = 0.1  # the schedule's exponent of K
# Horizons T of runs with δ = 1/T: 2 to these powers. At the gap ½ an arm is declared long before.
HORIZONS = (18, 21, 24, 27, 30)
MORE = 4  # times as many runs where K (in the full form) or T varies
BOUNDED = Part("sine", {"offset": 0.5, "amplitude": 0.5})  # ν¹/2
FAMILIES = {"linear": f"linear arms, d = {DIMENSION}", "one-hot": f"one-hot arms, K = {DIMENSION + 1}"}
RIVALS = {
    "BOSE": Part("bose", {"delta": DELTA, "horizon": EVERY_ROUND}),
    "Semiparametric-TS": Part("semiparametric-ts", {"draws": 100, "horizon": EVERY_ROUND}),
}


@dataclass(frozen=True)
class GapChecks:
    """Regret and samples against 1/Δ on linear and one-hot arms, regret against K and log T, plans."""

    name: str
    title: str
    group: str

    plain = (
        "When the best arm leads by half as much, does the way to it cost no more than twice as much and take"
        " no more than four times as long, with one change of plan more?"
    )
    claims = (
        "Regret Õ(d/Δ) on linear arms and Õ(K/Δ) on one-hot arms, samples Õ(d/Δ²) until the best arm is"
        " declared, O(log 1/Δ) plans: exponents 1, 1 and 2 in 1/Δ, but for logarithms (0.15 here). The growth"
        " with K is compared with that of SBE's schedule, which has logarithms and a term K^{3/2}. Mean"
        " regret with δ = 1/T grows no faster than log T. BOSE and Semiparametric-TS plan Ω(T) times."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        powers = POWERS[0] if scope.is_quick else POWERS[1]
        return (
            f"SBE as in the theorem (C₂ = 1, δ = {DELTA}) under ν¹/2 until it declares an arm; Δ from ½ to"
            f" 2^−{powers[-1]}; random unit arms (d, K) = ({DIMENSION}, {2 * DIMENSION}) in"
            f" {scope.pick(*SETS)} sets, and one-hot arms of which the last is better by Δ;"
            f" {scope.pick(*RUNS)} runs a point. K varies at Δ = 1/16, with {scope.pick(1, MORE)} times as"
            f" many runs; T varies from 2^{HORIZONS[0]} to 2^{HORIZONS[-1]} with δ = 1/T on {DIMENSION + 1}"
            f" one-hot arms, Δ = ½, with {MORE} times as many. The rivals play {EVERY_ROUND:,} rounds."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return SBE on all gaps and numbers of arms, and the rivals once."""
        cells = []
        for power in POWERS[0] if scope.is_quick else POWERS[1]:
            gap = 2.0**-power
            cells += _sbe("one-hot", gap, {"the instance": _one_hot(DIMENSION + 1, gap)}, scope)
            cells += _sbe("linear", gap, _linear(gap, scope), scope)
        for count in COUNTS[0] if scope.is_quick else COUNTS[1]:
            instance = {f"{count}": _one_hot(count, FIXED)}
            cells += _sbe("arms", FIXED, instance, scope, count=count, times=scope.pick(1, MORE))
        for power in HORIZONS:
            instance = {"the instance": _one_hot(DIMENSION + 1, WIDE)}
            cells += _sbe("horizon", WIDE, instance, scope, delta=2.0**-power, horizon=2**power, times=MORE)
        cells += Sweep(
            policies=RIVALS,
            instances={
                "one set": Part("exact-gap", {"dimension": 5, "count": 10, "seed": 1000 * scope.seed})
            },
            shifts={"ν¹/2": BOUNDED},
            horizon=EVERY_ROUND,
            replications=4,
            seeds=(scope.seed,),
            checkpoints=(EVERY_ROUND,),
            labels={"check": "every round", "gap": 0.5, "count": 10, "horizon": EVERY_ROUND},
        ).cells()
        return cells

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether exponents and plans keep to the theorems'."""
        found = []
        for family, words in FAMILIES.items():
            letter = "d" if family == "linear" else "K"
            for column, power in (("regret", 1), ("stop_time", 2)):
                what = "regret" if power == 1 else "samples"
                found.append(
                    Judgement(
                        name=f"{what}, {family}",
                        claim=f"on {words}, {what} grow{'s' * (power == 1)} no faster than"
                        f" {letter}/Δ{'²' * (power == 2)}",
                        source="paper",
                        statistic="fitted exponent of 1/Δ",
                        measured=Measured.exponent(_fit(data, family, column)),
                        relation="≤",
                        bound=power + MARGIN,
                    )
                )
        counts, regret = points(data, "arms", "regret")
        sizes = [[bai_rounds(FIXED, DELTA, int(count) - 1, int(count))] for count in counts]
        own = Fit.of(counts, np.array(sizes, dtype=float)).exponent
        arms = Judgement(
            name="regret against K",
            claim=f"on one-hot arms, regret grows with K as SBE's schedule does, but for {ABOVE:g} in the"
            " exponent",
            source="paper",
            statistic=f"fitted exponent of K; the schedule's is {own:.3f}",
            measured=Measured.exponent(Fit.of(counts, regret)),
            relation="≤",
            bound=own + ABOVE,
        )
        horizon = Judgement(
            name="mean regret against log T",
            claim="with δ = 1/T at a fixed gap, mean regret grows no faster than log T",
            source="paper",
            statistic="fitted exponent of log T",
            measured=Measured.exponent(_fit(data, "horizon", "regret")),
            relation="≤",
            bound=1.0,
        )
        return [*found, arms, horizon, *_plans(data)]

    def grids(self, data: Data) -> list[Grid]:
        """Return exponents, and plans by gap."""
        rows = [
            [f"{what}, {words}", theorem, signed(_fit(data, family, column))]
            for family, words in FAMILIES.items()
            for what, column, theorem in (("regret", "regret", "1"), ("samples", "stop_time", "2"))
        ]
        horizons, regret = points(data, "horizon", "regret")
        by_horizon = [
            [
                f"2^{place / np.log(2):.0f}",
                f"{values.mean():,.1f} ± {values.std(ddof=1) / np.sqrt(values.size):,.1f}",
                f"{expected_regret_bound(WIDE, round(np.exp(place)), DIMENSION, DIMENSION + 1):,.0f}",
            ]
            for place, values in zip(horizons.tolist(), regret, strict=True)
        ]
        gaps, plans = points(data, "one-hot", "plans")
        _, of_linear = points(data, "linear", "plans")
        _, samples = points(data, "one-hot", "stop_time")
        by_gap = [
            [
                f"1/{inverse:.0f}",
                f"{plans[place].mean():.1f}",
                f"{of_linear[place].mean():.1f}",
                str(phases_needed(1 / inverse) + 1),
                f"{samples[place].mean():,.0f}",
                f"{bai_rounds(1 / inverse, DELTA, DIMENSION, DIMENSION + 1):,}",
            ]
            for place, inverse in enumerate(gaps.tolist())
        ]
        return [
            Grid("Fitted exponents of 1/Δ ± standard error.", ["quantity", "theorem", "here"], rows, words=1),
            Grid(
                "Means over runs, and what the theorem's proof allows. On the one-hot arms all gaps are the"
                " same, so that a phase often drops all of them or none.",
                ["Δ", "plans, one-hot", "plans, linear", "at most", "samples, one-hot", "at most"],
                by_gap,
                words=1,
            ),
            Grid(
                "Mean regret ± standard error with δ = 1/T, Δ = ½, and d/Δ·log(TdK/Δ): a rate whose constant"
                " the paper leaves open. The fitted exponent of log T is"
                f" {signed(_fit(data, 'horizon', 'regret'))}.",
                ["T", "mean regret", "d/Δ·log(TdK/Δ)"],
                by_horizon,
                words=1,
            ),
        ]

    def charts(self, data: Data) -> list[Chart]:
        """Return regret and samples against 1/Δ, and mean regret against log T."""

        def series(family: str, column: str) -> Series:
            x, y = points(data, family, column)
            fit = _fit(data, family, column)
            name = "one-hot" if family == "horizon" else family
            return Series(
                f"{name}, slope {fit.exponent:.2f}", x, y.mean(axis=1), y.std(axis=1, ddof=1), fit.values
            )

        panels = {
            "regret until the best arm is declared": (
                [series(family, "regret") for family in FAMILIES],
                "1/Δ",
                "regret",
            ),
            "samples until the best arm is declared": (
                [series(family, "stop_time") for family in FAMILIES],
                "1/Δ",
                "rounds",
            ),
            "mean regret with δ = 1/T, Δ = ½": ([series("horizon", "regret")], "log T", "regret"),
        }
        caption = "Mean over runs, or over arm sets, with bars of one standard deviation; fitted power laws."
        return [Chart.of_panels("growth", caption, scaling_panels, panels)]


def points(data: Data, check: str, column: str) -> tuple[Array, Array]:
    """Return 1/Δ, K or log T (n,) and a column (n, runs), on random arms the means on each set (n, sets)."""
    runs = where(data["runs"], check=check)
    by = {"arms": "count", "horizon": "horizon"}.get(check, "gap")
    x, y = [], []
    for (place,) in distinct(runs, by):
        here = where(runs, **{by: place})
        x.append({"count": float(place), "horizon": np.log(place), "gap": 1 / place}[by])
        y.append(grouped(here, "instance", column)[1].mean(axis=1) if check == "linear" else here[column])
    return np.array(x), np.array(y, dtype=np.float64)


def _fit(data: Data, family: str, column: str) -> Fit:
    return Fit.of(*points(data, family, column))


def _plans(data: Data) -> list[Judgement]:
    """Judge how often policies make a new plan: SBE once a phase, its rivals in most rounds."""
    runs = data["runs"]
    own = {family: where(runs, check=family) for family in FAMILIES}
    allowed = {
        family: np.array([phases_needed(gap) + 1 for gap in its["gap"]]) for family, its in own.items()
    }
    hits = sum(int(np.sum(own[family]["plans"] > allowed[family])) for family in own)
    few = Judgement(
        name="plans of SBE",
        claim=f"with probability 1 − δ a run of SBE has at most ⌈log₂ 1/Δ⌉ + 2 plans, δ = {DELTA}",
        source="paper",
        statistic="share of runs with more, exact limits",
        measured=Measured.share(hits, sum(len(its["plans"]) for its in own.values())),
        relation="≤",
        bound=DELTA,
    )
    every = where(runs, check="every round")
    return [
        few,
        *(
            Judgement(
                name=f"plans of {rival}",
                claim=f"{rival} has a new plan in at least half of the rounds",
                source="paper",
                statistic=f"plans / rounds, T = {EVERY_ROUND:,}",
                measured=Measured.mean(where(every, policy=rival)["plans"] / EVERY_ROUND),
                relation="≥",
                bound=0.5,
            )
            for rival in RIVALS
        ),
    ]


def _one_hot(count: int, gap: float) -> Part:
    # The best arm comes last: the reference of an anchor design should not be best by luck.
    return Part("one-hot", {"means": [0.0] * (count - 1) + [gap]})


def _linear(gap: float, scope: Scope) -> dict[str, Part]:
    shape = {"dimension": DIMENSION, "count": 2 * DIMENSION, "gap": gap}
    return {
        f"arms {number + 1}": Part("exact-gap", shape | {"seed": 1000 * scope.seed + number})
        for number in range(scope.pick(*SETS))
    }


def _sbe(
    check: str,
    gap: float,
    instances: dict[str, Part],
    scope: Scope,
    *,
    count: int = DIMENSION + 1,
    delta: float = DELTA,
    horizon: int = GIVEN_UP,
    times: int = 1,
) -> list[Cell]:
    runs = times * scope.pick(*RUNS) // len(instances)
    return Sweep(
        policies={"SBE": Part("sbe", {"schedule": "theory", "delta": delta})},
        instances=instances,
        shifts={"ν¹/2": BOUNDED},
        horizon=horizon,
        replications=runs,
        seeds=(scope.seed,),
        checkpoints=(horizon,),
        stop_when_declared=True,
        batch=runs,
        seconds_a_round=2e-7 / gap**2 / horizon,
        labels={"check": check, "gap": gap, "count": count, "horizon": horizon},
    ).cells()
