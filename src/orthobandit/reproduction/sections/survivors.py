"""Whether the arms that SBE still plays are ever worse than it claims."""

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Dot
from orthobandit.reproduction.measured import Measured
from orthobandit.reproduction.section import (
    Claim,
    Data,
    Groups,
    GroupsTable,
    Section,
    SharesChart,
    task_cells,
    variants,
)
from orthobandit.reproduction.sections.common import BOUNDED
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns

DELTA = 0.05
GROUPS = Groups("survivors", ("arms", "shift"))
# Both keep to |ν| ≤ 1, which the theorem assumes.
SHIFTS = {"ν¹/2": BOUNDED, "push-leader": Part("push-leader", {"limit": 1.0})}
SECONDS = {"ν¹/2": 1e-8, "push-leader": 1e-7}  # of a round
# Gaps of powers of 2 put an arm near the limit of every phase: none is easy to keep within it.
INSTANCES = {
    "one-hot": Part("one-hot", {"means": [-(2.0**-arm) for arm in range(6)] + [0.0]}),
    "linear": Part("exact-gap", {"dimension": 5, "count": 10, "gap": 0.1, "seed": 1}),
}


def is_failed(runs: Columns) -> Array:
    """Tell for each run (n,) whether a survivor was ever too bad."""
    # One rounding error above 1 is no failure: gaps here are sums of powers of 2, or far from them.
    return np.asarray(runs["excess"] > 1 + 1e-9)


def share_dots(data: Data) -> dict[str, dict[str, Dot]]:
    """Return the share of failed runs with its upper limit, by arms and shift."""
    shares = {
        names: Measured.share(int(is_failed(runs).sum()), len(runs["excess"]))
        for names, runs in GROUPS.of(data).items()
    }
    return {
        ", ".join(names): {"failed": Dot(share.value), "upper limit": Dot(share.high)}
        for names, share in shares.items()
    }


SURVIVORS = Section(
    name="survivors",
    title="Whether it can be stopped at any moment",
    plain="Stopped at any moment, does the paper's method play only arms as good as it says?",
    claims="With probability 1 − δ, at all times at once, every arm that SBE still plays after phase ℓ is"
    " within 2ε_ℓ = 2^{1−ℓ} of the best one, which is still there: the PAC property, with ε after"
    " Õ(d/ε²·log K) rounds.",
    described=lambda form: (
        f"SBE as in the theorem (C₂ = 1, δ = {DELTA}), {form.runs} runs of {form.rounds:,} rounds on one-hot"
        " arms with gaps 1, ½, ¼, …, and on random unit arms (d, K) = (5, 10) with gap 0.1, under ν¹/2 and"
        " under an adversary that pushes the leader. A run fails if a survivor is too bad after any phase, or"
        " the best arm is gone."
    ),
    sizes={"runs": (160, 1000), "rounds": (2**19, 2**21)},
    runs=lambda form: task_cells(
        form,
        "track_survivors",
        {"delta": DELTA, "horizon": form.rounds},
        {"arms": variants("instance", INSTANCES), "shift": variants("shift", SHIFTS)},
        cost=lambda cell: SECONDS[cell["shift"]] * cell["horizon"] * cell["replications"],
        piece=250,
    ),
    judged=[
        Claim(
            "survivors",
            f"a run of SBE ever plays an arm worse than it says with probability at most δ = {DELTA}",
            "share of failed runs, worst arms and shift, exact limits",
            GROUPS.worst_share(is_failed),
            at_most=DELTA,
        )
    ],
    tabled=[
        GroupsTable(
            "Runs in which a survivor was ever too bad. At most 1 is claimed.",
            GROUPS,
            {
                "arms": "arms",
                "shift": "shift",
                "runs": lambda runs: str(len(runs["excess"])),
                "phases": lambda runs: str(int(runs["phases"][0])),
                "failed": lambda runs: str(is_failed(runs).sum()),
                "largest gap / 2ε_ℓ": lambda runs: (
                    "–" if is_failed(runs).any() else f"{np.max(runs['excess']):.3f}"
                ),
            },
        )
    ],
    drawn=[
        SharesChart(
            "failed",
            "Share of failed runs with its upper limit, and δ, below which it has to stay.",
            DELTA,
            share_dots,
        )
    ],
)
