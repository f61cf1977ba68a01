"""Whether the rounds of Corollary 5 suffice, and how fast the error of pure exploration falls."""

from functools import partial

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.section import (
    Claim,
    Data,
    Groups,
    GroupsTable,
    Law,
    LawsChart,
    LawsTable,
    Panel,
    Section,
    largest_exponent,
    task_cells,
    variants,
)
from orthobandit.reproduction.sections.common import BOUNDED, random_arms
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, grouped, where
from orthobandit.theory import pac_rounds

DELTA = 0.05
SIZE = (10, 20)
GAP = 2.0**-8  # of the best arm, far below every ε: nearly the best will do, and is not found by luck
MARGIN = 0.1  # in an exponent
# All keep to |ν| ≤ 1.
SHIFTS = {"none": Part("none"), "ν¹/2": BOUNDED, "jumps": Part("jumps")}
EPSILONS = tuple(tuple(2.0**-power for power in powers) for powers in ((2, 3, 4, 5), (2, 3, 4, 5, 6)))
ROUNDS = tuple(tuple(pac_rounds(epsilon, DELTA, *SIZE) for epsilon in epsilons) for epsilons in EPSILONS)
GROUPS = Groups("pac", ("shift", "epsilon"))


def points(shift: str, data: Data) -> tuple[Array, Array]:
    """Return rounds (n,) and the largest error of a pair of arms (n, runs) under one shift."""
    rounds, errors = grouped(where(data["pac"], shift=shift), "round", "pair_error")
    return rounds.astype(float), errors


def is_missed(runs: Columns) -> Array:
    """Tell for each run (n,) whether the arm that looked best was not within ε."""
    return np.asarray(runs["gap"] > runs["epsilon"])


LAWS = {shift: Law(f"shift {shift}", partial(points, shift)) for shift in SHIFTS}

PAC = Section(
    name="pac",
    title="Whether as many rounds as the paper asks for are enough",
    plain="After as many rounds as the paper asks for, is the arm that looks best as good as promised?",
    claims="Drawing from DEO for τ(ε, δ) = C₂(d/ε²·log(dK/(εδ)) + d^{3/2}/ε·log(dK/δ)) rounds, the arm that"
    " looks best is within ε of the best one with probability 1 − δ (Corollary 5), so ε falls like t^{−1/2}"
    " but for logarithms, the PAC rate of Theorem 8 too. C₂ is not given: C₂ = 1 here.",
    described=lambda form: (
        f"Random unit arms (d, K) = {SIZE} of which the best leads by {GAP:g}, σ = 1, δ = {DELTA}; ε from ¼"
        f" to 2^−{len(form.epsilons) + 1}, each after its own τ(ε, δ) rounds; {form.runs:,} runs under each"
        " of three shifts within ±1."
    ),
    sizes={"epsilons": EPSILONS, "rounds": ROUNDS, "runs": (300, 1000)},
    runs=lambda form: task_cells(
        form,
        "track_pac",
        {
            "instance": random_arms(*SIZE, form.seed, gap=GAP),
            "design": "anchor",
            "delta": DELTA,
            "epsilons": list(form.epsilons),
            "checkpoints": list(form.rounds),
        },
        {"shift": variants("shift", SHIFTS)},
        cost=lambda cell: 1.0 + 1e-8 * cell["checkpoints"][-1] * cell["replications"],
    ),
    judged=[
        Claim(
            "within ε",
            "after τ(ε, δ) rounds with C₂ = 1, the arm that looks best is within ε of the best with"
            f" probability 1 − δ, δ = {DELTA}",
            "share of runs that miss it, worst shift and ε, exact limits",
            GROUPS.worst_share(is_missed),
            at_most=DELTA,
        ),
        Claim(
            "PAC rate",
            "the error over all pairs of arms falls like t^(−1/2) or faster, but for 0.1 in the exponent",
            "fitted exponent of t, slowest of the shifts",
            largest_exponent(LAWS.values()),
            at_most=MARGIN - 0.5,
        ),
    ],
    tabled=[
        GroupsTable(
            "The arm that looks best after τ(ε, δ) rounds, C₂ = 1. Errors are over all pairs of arms: a ratio"
            " above 1 says that the rounds do not suffice for all pairs at once, which nobody claims.",
            GROUPS,
            {
                "shift": "shift",
                "ε": lambda runs: f"1/{1 / runs['epsilon'][0]:.0f}",
                "τ(ε, δ)": lambda runs: f"{int(runs['round'][0]):,}",
                "not within ε": lambda runs: str(is_missed(runs).sum()),
                "mean gap": lambda runs: f"{np.mean(runs['gap']):.4f}",
                "95 % of errors / ε": lambda runs: (
                    f"{np.quantile(runs['pair_error'], 1 - DELTA) / runs['epsilon'][0]:.3f}"
                ),
                "runs": lambda runs: str(len(runs["gap"])),
            },
        ),
        LawsTable(
            "Fitted exponent of t of the error ± standard error.",
            ["shift", "exponent"],
            {(shift,): law for shift, law in LAWS.items()},
        ),
    ],
    drawn=[
        LawsChart(
            "error",
            "Error over all pairs of arms: mean over runs, bars of one standard deviation; fitted laws.",
            {f"(d, K) = {SIZE}": Panel(list(LAWS.values()), "rounds t = τ(ε, δ)", "largest error of a pair")},
        )
    ],
)
