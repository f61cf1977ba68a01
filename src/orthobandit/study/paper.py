"""The paper's figures, its successor's tables and the scaling checks: one named section each."""

from collections.abc import Mapping

from orthobandit.study.sections import Section
from orthobandit.study.sections.errors import ErrorFigure
from orthobandit.study.sections.regret import Contender, RegretFigure, Size
from orthobandit.study.sections.samples import Published, SampleTable
from orthobandit.study.sections.scaling import ScalingChecks
from orthobandit.study.spec import Part

PAPER = "The paper's figures"
SUCCESSOR = "The successor's tables"
SCALING = "How things grow"

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
    "SBE, exact design": Contender("sbe", {"delta": 0.05, "design": "centred"}, runs=(8, 10), is_ours=True),
}

SUCCESSOR_SBE = Part("sbe", {"schedule": "successor", "delta": 0.1})
OURS = "anytime elimination"
IDENTIFIERS = {
    "SP-BAI": Part("sp-bai", {"delta": 0.1}),
    "SBE": SUCCESSOR_SBE,
    OURS: Part("anytime", {"delta": 0.1}),
}


def _small_gap(dimension: int, published: Mapping[str, Published]) -> SampleTable:
    return SampleTable(
        name=f"small-gap-{dimension}",
        title=f"Small gap, d = {dimension}",
        group=SUCCESSOR,
        about=f"Arms e_1, …, e_{dimension} and (cos 0.2, sin 0.2, 0, …), θ = 2e_1",
        claims="SP-BAI, which adapts its design to the arms that are left, needs several times fewer samples"
        " than SBE with its authors' constants; both err with probability at most δ.",
        contenders=IDENTIFIERS,
        instance=Part("near-degenerate", {"dimension": dimension}),
        published=published,
        is_close={"SBE": 2.0, "SP-BAI": 2.0} if published else {},
        order=("SP-BAI", "SBE"),
        ours=(OURS,),
    )


SECTIONS: Mapping[str, Section] = {
    section.name: section
    for section in (
        RegretFigure(
            name="figure-1",
            title="Regret under the sine shift ν¹ = 1 + sin 2t",
            group=PAPER,
            shift="sine",
            contenders=CONTENDERS,
            sizes=SIZES,
            reported="Reported regret of SBE at (20, 30): 2677.66.",
        ),
        RegretFigure(
            name="figure-2",
            title="Regret under the alternating shift ν² = ±max(log(t+1)/5, 2)",
            group=PAPER,
            shift="log-alternating",
            contenders=CONTENDERS,
            sizes=SIZES,
            reported="Reported regret of SBE at (20, 30): 2703.10.",
        ),
        ErrorFigure("figure-3", "Estimation error under ν¹", PAPER, "sine", ((5, 30), (30, 30))),
        ErrorFigure("figure-4", "Estimation error under ν²", PAPER, "log-alternating", ((5, 30), (30, 30))),
        _small_gap(
            10,
            {
                "SP-BAI": Published(187_924.68),
                "G-Opt": Published(387_106.0),
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
            limit=(10_000_000, 200_000_000),
            ours=(OURS,),
            published={"SP-BAI": Published(2_038_886.49, 0.01), "SBE": Published(1_523_534.64, 0.10)},
        ),
        ScalingChecks("scaling", "Growth with T, d and t", SCALING),
    )
}
