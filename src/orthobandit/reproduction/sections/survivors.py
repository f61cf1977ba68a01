"""Whether the arms that SBE still plays are ever worse than it claims."""

from dataclasses import dataclass

import numpy as np

from orthobandit.reproduction.charts import Dot, share_rows
from orthobandit.reproduction.sections.base import Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns, distinct, where

TASK = "orthobandit.reproduction.tasks:track_survivors"
DELTA = 0.05
ROUNDS = (2**19, 2**21)
RUNS = (160, 1000)
PIECE = 250  # runs of a cell
# Both keep to |ν| ≤ 1, which the theorem assumes.
SHIFTS = {
    "ν¹/2": Part("sine", {"offset": 0.5, "amplitude": 0.5}),
    "push-leader": Part("push-leader", {"limit": 1.0}),
}
# Gaps of powers of 2 put an arm near the limit of every phase: none is easy to keep within it.
INSTANCES = {
    "one-hot": Part("one-hot", {"means": [-(2.0**-place) for place in range(6)] + [0.0]}),
    "linear": Part("exact-gap", {"dimension": 5, "count": 10, "gap": 0.1, "seed": 1}),
}


@dataclass(frozen=True)
class Survivors:
    """The PAC property at any time: after phase ℓ every survivor is within 2ε_ℓ of the best arm."""

    name: str
    title: str
    group: str

    plain = "Stopped at any moment, does the paper's method play only arms as good as it says?"
    claims = (
        "With probability 1 − δ, at all times at once, every arm that SBE still plays after phase ℓ is within"
        " 2ε_ℓ = 2^{1−ℓ} of the best one, which is still there: the PAC property, with ε after Õ(d/ε²·log K)"
        " rounds."
    )

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        return (
            f"SBE as in the theorem (C₂ = 1, δ = {DELTA}), {scope.pick(*RUNS)} runs of"
            f" {scope.pick(*ROUNDS):,} rounds on one-hot arms with gaps 1, ½, ¼, …, and on random unit arms"
            " (d, K) = (5, 10) with gap 0.1, under ν¹/2 and under an adversary that pushes the leader. A run"
            " fails if a survivor is too bad after any phase, or the best arm is gone."
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every instance under every shift."""
        runs = scope.pick(*RUNS)
        rounds = scope.pick(*ROUNDS)
        return [
            Cell(
                task=TASK,
                settings={
                    "instance": instance.plain(),
                    "shift": shift.plain(),
                    "noise": Part("gaussian").plain(),
                    "delta": DELTA,
                    "horizon": rounds,
                    "first": first,
                    "replications": min(PIECE, runs - first),
                    "seed": scope.seed,
                },
                labels={"arms": label, "shift": name},
                cost=(1e-7 if name == "push-leader" else 1e-8) * rounds * min(PIECE, runs - first),
            )
            for label, instance in INSTANCES.items()
            for name, shift in SHIFTS.items()
            for first in range(0, runs, PIECE)
        ]

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return the verdict on the worst arms and shift."""
        shares = [_share(found, len(_parts(data))) for found in _parts(data).values()]
        return [
            Judgement(
                name="survivors",
                claim="a run of SBE ever plays an arm worse than it says with probability at most"
                f" δ = {DELTA}",
                source="paper",
                statistic="share of failed runs, worst arms and shift, exact limits",
                measured=Measured.largest(shares),
                relation="≤",
                bound=DELTA,
            )
        ]

    def grids(self, data: Data) -> list[Grid]:
        """Return failures, and how near they were."""
        rows = [
            [
                *labels,
                str(len(found["excess"])),
                str(int(found["phases"][0])),
                str(_hits(found)),
                f"{np.max(found['excess']):.3f}" if not _hits(found) else "–",
            ]
            for labels, found in _parts(data).items()
        ]
        head = ["arms", "shift", "runs", "phases", "failed", "largest gap / 2ε_ℓ"]
        return [Grid("Runs in which a survivor was ever too bad. At most 1 is claimed.", head, rows)]

    def charts(self, data: Data) -> list[Chart]:
        """Return how near to failing the runs came."""
        rows = {
            ", ".join(labels): {
                "failed": Dot(_share(found, 1).value),
                "upper limit": Dot(_share(found, 1).high),
            }
            for labels, found in _parts(data).items()
        }
        caption = "Share of failed runs with its upper limit, and δ, below which it has to stay."
        return [Chart("failed", caption, lambda: share_rows(rows, "share of failed runs", DELTA, "δ"))]


def _parts(data: Data) -> dict[tuple[str, str], Columns]:
    columns = data["survivors"]
    return {
        (arms, shift): where(columns, arms=arms, shift=shift)
        for arms, shift in distinct(columns, "arms", "shift")
    }


def _hits(columns: Columns) -> int:
    # One rounding error above 1 is no failure: gaps here are sums of powers of 2, or far from them.
    return int(np.count_nonzero(columns["excess"] > 1 + 1e-9))


def _share(columns: Columns, among: int) -> Measured:
    return Measured.share(_hits(columns), len(columns["excess"]), among)
