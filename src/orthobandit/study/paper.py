"""The paper's figures, its successor's tables, scaling checks and what goes beyond: a named section each."""

from collections.abc import Mapping

from orthobandit.study.sections import Section
from orthobandit.study.sections.contenders import Contender, Size
from orthobandit.study.sections.coverage import Coverage, Mode
from orthobandit.study.sections.errors import ErrorFigure
from orthobandit.study.sections.gaps import GapChecks
from orthobandit.study.sections.many_arms import ManyArms
from orthobandit.study.sections.precision import Precision
from orthobandit.study.sections.ratios import RatioTable
from orthobandit.study.sections.regret import RegretFigure
from orthobandit.study.sections.samples import Published, SampleTable
from orthobandit.study.sections.scaling import ScalingChecks
from orthobandit.study.sections.survivors import Survivors
from orthobandit.study.sections.tuning import AS_PUBLISHED, UNTUNED
from orthobandit.study.spec import Part

PAPER = "The paper's figures"
SUCCESSOR = "The successor's tables"
THEOREMS = "The theorems, one by one"
BEYOND = "Beyond the paper"

SIZES = (
    Size(5, 10, sets=(10, 30), rounds=(20_000, 40_000)),
    Size(20, 30, sets=(4, 20), rounds=(20_000, 40_000)),
)
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
        is_peer=True,
    ),
    "SBE, exact design": Contender("sbe", {"delta": 0.05, "design": "centred"}, runs=(8, 10), margin=1.2),
}
OURS, EXACT, G_OPT = "anytime elimination", "anytime elimination, exact", "G-Opt"

ERRORS = (
    "Do four times as many rounds make estimates twice as precise, whatever the level does meanwhile, and is"
    " the exact design more precise than the paper's?"
)

IDENTIFIERS = {
    "SP-BAI": Part("sp-bai", {"delta": 0.1}),
    "SBE": Part("sbe", {"schedule": "successor", "delta": 0.1}),
    OURS: Part("anytime", {"delta": 0.1}),
}


def _exact(low: float, high: float, **settings: float | str) -> Part:
    """Return anytime elimination with exact confidence, for means between these."""
    return Part("anytime", {**settings, "confidence": "sub-gaussian", "low": low, "high": high})


def _regret(name: str, title: str, shift: str, span: tuple[float, float], reported: str) -> RegretFigure:
    parts: dict[str, tuple[Part, float | None]] = {
        OURS: (Part("anytime", {"delta": 0.05, "goal": "earn"}), None),
        EXACT: (_exact(*span, delta=0.05, goal="earn"), 1.2),
    }
    earn = {
        label: Contender(
            part.kind, part.settings, runs=(4, 4), seconds_a_round=1e-5, scales=(UNTUNED,), margin=margin
        )
        for label, (part, margin) in parts.items()
    }
    plain = (
        "While the level of all rewards moves, who loses least on the way to the best arm: the paper's"
        " method, its rivals tuned as in the paper and as well as hindsight can, or ours, which has nothing"
        " to tune?"
    )
    return RegretFigure(name, title, PAPER, plain, shift, {**CONTENDERS, **earn}, SIZES, reported)


def _small_gap(dimension: int, published: Mapping[str, Published]) -> SampleTable:
    return SampleTable(
        name=f"small-gap-{dimension}",
        title=f"How many rounds to tell two nearly equal arms apart, in {dimension} dimensions",
        plain="Two of the arms are nearly alike: how many rounds until the better one is certain, here and as"
        " published?",
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
            "What learning costs while the level swings like a wave",
            "sine",
            (-1.0, 3.0),
            "Reported regret of SBE at (20, 30): 2677.66.",
        ),
        _regret(
            "figure-2",
            "What learning costs while the level jumps up and down",
            "log-alternating",
            (-3.2, 3.2),
            "Reported regret of SBE at (20, 30): 2703.10.",
        ),
        ErrorFigure(
            "figure-3",
            "How fast estimates become precise while the level swings",
            PAPER,
            ERRORS,
            "sine",
            ((5, 30), (30, 30)),
        ),
        ErrorFigure(
            "figure-4",
            "How fast estimates become precise while the level jumps",
            PAPER,
            ERRORS,
            "log-alternating",
            ((5, 30), (30, 30)),
        ),
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
            title="How many rounds to find the best of 100 random arms",
            plain="A hundred arms in random directions: how many rounds until the best is certain?",
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
        ScalingChecks("scaling", "How cost grows with time and with dimension", THEOREMS),
        GapChecks("gaps", "How cost grows when arms are nearly alike", THEOREMS),
        ManyArms("many-arms", "How cost grows with the number of arms", THEOREMS),
        Survivors("survivors", "Whether it can be stopped at any moment", THEOREMS),
        Precision("precision", "How precise estimates are at best", THEOREMS),
        RatioTable(
            name="earning",
            title="What learning costs with our method, 30 arms in 20 dimensions",
            plain="How much of what the paper's method loses on the way does ours lose?",
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
            sets=(10, 20),
            runs=(4, 10),
        ),
        RatioTable(
            name="robustness",
            title="What robustness costs where the level does not move, 30 arms in 20 dimensions",
            plain="If the level stays put after all, how much longer does a method take that is ready for"
            " it to move?",
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
            title="How often our claims ever fail",
            group=BEYOND,
            plain="Looking at any time, under the worst shift we know, how often is a claim ever wrong?",
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
