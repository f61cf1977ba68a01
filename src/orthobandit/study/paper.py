"""The paper's figures, its successor's tables, scaling checks and what goes beyond: a named section each."""

from collections.abc import Mapping

from orthobandit.study.sections import Section
from orthobandit.study.sections.coverage import Coverage, Mode
from orthobandit.study.sections.errors import ErrorFigure
from orthobandit.study.sections.ratios import RatioTable
from orthobandit.study.sections.regret import UNTUNED, Contender, RegretFigure, Size
from orthobandit.study.sections.samples import Published, SampleTable
from orthobandit.study.sections.scaling import ScalingChecks
from orthobandit.study.spec import Part

PAPER = "The paper's figures"
SUCCESSOR = "The successor's tables"
SCALING = "How things grow"
BEYOND = "Beyond the paper"

SIZES = (
    Size(5, 10, sets=(16, 30), rounds=(20_000, 40_000)),
    Size(20, 30, sets=(4, 10), rounds=(20_000, 40_000)),
)
CONTENDERS = {
    "SBE": Contender("sbe", {"delta": 0.05}, runs=(8, 10)),
    "BOSE": Contender("bose", {"delta": 0.05}, runs=(1, 3), seconds_a_round=3e-5),
    "Semiparametric-TS": Contender(
        "semiparametric-ts", {}, runs=(1, 3), quick={"draws": 250}, seconds_a_round=1.2e-4
    ),
    "SBE, exact design": Contender("sbe", {"delta": 0.05, "design": "centred"}, runs=(8, 10), margin=1.2),
}
OURS, EXACT, G_OPT = "anytime elimination", "anytime elimination, exact", "G-Opt"

IDENTIFIERS = {
    "SP-BAI": Part("sp-bai", {"delta": 0.1}),
    "SBE": Part("sbe", {"schedule": "successor", "delta": 0.1}),
    OURS: Part("anytime", {"delta": 0.1}),
}


def _exact(low: float, high: float, **settings: float | str) -> Part:
    """Return anytime elimination with exact confidence, for means between these."""
    return Part("anytime", {**settings, "confidence": "sub-gaussian", "low": low, "high": high})


def _regret(name: str, title: str, shift: str, span: tuple[float, float], reported: str) -> RegretFigure:
    parts = {
        OURS: (Part("anytime", {"delta": 0.05, "goal": "earn"}), 1.0),
        EXACT: (_exact(*span, delta=0.05, goal="earn"), 1.2),
    }
    earn = {
        label: Contender(
            part.kind, part.settings, runs=(4, 4), seconds_a_round=1e-5, scales=(UNTUNED,), margin=margin
        )
        for label, (part, margin) in parts.items()
    }
    return RegretFigure(name, title, PAPER, shift, {**CONTENDERS, **earn}, SIZES, reported)


def _small_gap(dimension: int, published: Mapping[str, Published]) -> SampleTable:
    return SampleTable(
        name=f"small-gap-{dimension}",
        title=f"Small gap, d = {dimension}",
        group=SUCCESSOR,
        about=f"Arms e_1, …, e_{dimension} and (cos 0.2, sin 0.2, 0, …), θ = 2e_1",
        claims="SP-BAI, which adapts its design to the arms that are left, needs several times fewer samples"
        " than SBE with its authors' constants; both err with probability at most δ. G-Opt is read here as"
        " phased elimination on G-optimal designs, which is blind to shifts and promises nothing under them.",
        contenders={
            **IDENTIFIERS,
            EXACT: _exact(0.0, 4.0, delta=0.1),
            G_OPT: Part("phased-elimination", {"delta": 0.1}),
        },
        unclaimed=(G_OPT,),
        instance=Part("near-degenerate", {"dimension": dimension}),
        published=published,
        is_close={"SBE": 2.0, "SP-BAI": 2.0, G_OPT: 3.0} if published else {},
        order=("SP-BAI", "SBE"),
        rival="SP-BAI",
        reach={OURS: 36_000, EXACT: 42_000},
    )


SECTIONS: Mapping[str, Section] = {
    section.name: section
    for section in (
        # Means of unit arms lie within ±1 of the shift.
        _regret(
            "figure-1",
            "Regret under the sine shift ν¹ = 1 + sin 2t",
            "sine",
            (-1.0, 3.0),
            "Reported regret of SBE at (20, 30): 2677.66.",
        ),
        _regret(
            "figure-2",
            "Regret under the alternating shift ν² = ±max(log(t+1)/5, 2)",
            "log-alternating",
            (-3.2, 3.2),
            "Reported regret of SBE at (20, 30): 2703.10.",
        ),
        ErrorFigure("figure-3", "Estimation error under ν¹", PAPER, "sine", ((5, 30), (30, 30))),
        ErrorFigure("figure-4", "Estimation error under ν²", PAPER, "log-alternating", ((5, 30), (30, 30))),
        _small_gap(
            10,
            {
                "SP-BAI": Published(187_924.68),
                G_OPT: Published(387_106.0),
                "SBE": Published(1_881_513.94),
            },
        ),
        _small_gap(20, {}),
        SampleTable(
            name="sphere",
            title="Uniform sphere, K = 100, d = 10",
            group=SUCCESSOR,
            about="100 arms uniform on the unit sphere of R¹⁰, θ = 2e_1",
            claims="SP-BAI errs with probability at most δ on random arms; so does SBE.",
            contenders=IDENTIFIERS,
            instance=Part("uniform-sphere", {"dimension": 10, "count": 100}),
            instances=(20, 100),
            limit=(5_000_000, 5_000_000),
            rival="SP-BAI",
            reach={OURS: 100_000},
            published={"SP-BAI": Published(2_038_886.49, 0.01), "SBE": Published(1_523_534.64, 0.10)},
        ),
        ScalingChecks("scaling", "Growth with T, d and t", SCALING),
        RatioTable(
            name="earning",
            title="Regret of anytime elimination, (d, K) = (20, 30)",
            group=BEYOND,
            about="Regret to T = 20,000 on random unit arms with gap ½, σ = 1, δ = 0.05",
            claims="Tests of each arm against the leader of the moment, designs for what is open and a"
            " forecast of the shift save most of the regret of SBE with c = 1. Not a claim of the paper's.",
            instance=Part("exact-gap", {"dimension": 20, "count": 30, "gap": 0.5}),
            contenders={
                "SBE": Part("sbe", {"delta": 0.05}),
                OURS: Part("anytime", {"delta": 0.05, "goal": "earn"}),
                EXACT: _exact(-3.0, 3.0, delta=0.05, goal="earn"),
            },
            reach={OURS: 0.22, EXACT: 0.55},
            measure="regret",
            shifts=("sine", "log-alternating"),
            rounds=20_000,
            sets=(10, 10),
            runs=(4, 10),
        ),
        RatioTable(
            name="robustness",
            title="What robustness costs where there is no shift, (d, K) = (20, 30)",
            group=BEYOND,
            about="Samples until an arm is declared best: random unit arms, gap ½, σ = 1, ν = 0, δ = 0.05",
            claims="RAGE relies on there being no shift and knows the noise. Anytime elimination, which needs"
            " neither, takes few more samples, or fewer where the constants of RAGE's proof are loose. Not a"
            " claim of the paper's.",
            instance=Part("exact-gap", {"dimension": 20, "count": 30, "gap": 0.5}),
            contenders={"RAGE": Part("rage", {"delta": 0.05}), OURS: Part("anytime", {"delta": 0.05})},
            reach={OURS: 1.5},
            measure="samples",
            shifts=("none",),
            rounds=5_000_000,
            sets=(2, 10),
            runs=(3, 10),
        ),
        Coverage(
            name="coverage",
            title="How often claims ever fail",
            group=BEYOND,
            instance=Part("exact-gap", {"dimension": 3, "count": 5, "gap": 0.001, "seed": 1}),
            modes={
                "bounded rewards": Mode(
                    {"confidence": "bounded", "low": -3.0, "high": 3.0, "goal": "earn", "lags": 4}, "uniform"
                ),
                "sub-Gaussian noise": Mode(
                    {"confidence": "sub-gaussian", "low": -2.0, "high": 2.0, "baseline": "exponential"},
                    "gaussian",
                ),
                "asymptotic": Mode({"lags": 4}, "gaussian"),
            },
        ),
    )
}
