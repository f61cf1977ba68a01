"""How often the claims of anytime elimination ever fail: every mode under every shift."""

from functools import partial

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Dot
from orthobandit.reproduction.section import (
    Claim,
    Data,
    Grid,
    Groups,
    Section,
    SharesChart,
    Variants,
    task_cells,
    variants,
)
from orthobandit.simulation import SHIFTS
from orthobandit.study.spec import Part
from orthobandit.study.tables import Columns

DELTA = 0.1
LIMIT = 1.0  # of the shift
GROWTH = 0.2  # of batches: fewer looks than by default, since every look is compared with the truth
# One shift of each kind, and all adversaries: these are what might break a claim.
QUICK = ("none", "sine", "log-alternating", "random-walk", "cancel-best", "push-leader", "react-to-last")
SECONDS = 1e-6  # a round, with its share of plans
INSTANCE = Part("exact-gap", {"dimension": 3, "count": 5, "gap": 0.001, "seed": 1})


def played(noise: str, **settings: float | str) -> dict[str, Part]:
    """Return a mode of confidence: the policy, and noise that keeps to what it declares."""
    policy = Part("anytime", {"delta": DELTA, "growth": GROWTH, **settings})
    return {"policy": policy, "noise": Part(noise)}


MODES = {
    "bounded rewards": played("uniform", confidence="bounded", low=-3.0, high=3.0, goal="earn", lags=4),
    "sub-Gaussian noise": played(
        "gaussian", confidence="sub-gaussian", low=-2.0, high=2.0, baseline="exponential"
    ),
    "asymptotic": played("gaussian", lags=4),
}


def by_shift(mode: str) -> Groups:
    """Return the runs of a mode, apart by their shifts."""
    return Groups("misses", ("shift",), {"mode": mode})


def is_failed(runs: Columns) -> Array:
    """Tell for each run (n,) whether a claim ever failed."""
    return np.asarray(runs["first_miss"] >= 0)


def held_from(mode: str, data: Data) -> str:
    """Return the first round from which on at most δ of the runs fail, under the worst shift."""
    starts = []
    for runs in by_shift(mode).of(data).values():
        # Failures after round n are runs whose last one comes later.
        last = np.sort(runs["last_miss"])[::-1][int(DELTA * len(runs["last_miss"]))]
        starts.append(int(last) + 1 if last >= 0 else 0)
    return "the first" if max(starts) == 0 else f"{max(starts):,}"


def failures(modes: Variants, data: Data) -> dict[str, dict[str, Array]]:
    """Return which runs failed, by shift and mode."""
    by_mode = {mode: by_shift(mode).of(data) for mode in modes}
    shifts = next(iter(by_mode.values()))
    return {shift[0]: {mode: is_failed(by_mode[mode][shift]) for mode in modes} for shift in shifts}


def table(modes: Variants, data: Data) -> Grid:
    """Return failed runs by shift and mode, and from when on a mode has kept its promise."""
    failed = failures(modes, data)
    rows = [[shift, *(str(runs.sum()) for runs in by_mode.values())] for shift, by_mode in failed.items()]
    rows.append(["held from round", *(held_from(mode, data) for mode in modes)])
    runs = next(iter(next(iter(failed.values())).values())).size
    caption = (
        f"Failed runs of {runs}. Last row: the first round from which on, under every shift, at most δ of the"
        " runs still fail."
    )
    return Grid(caption, ["shift", *modes], rows, words=1)


def share_dots(modes: Variants, data: Data) -> dict[str, dict[str, Dot]]:
    """Return the shares of failed runs by shift and mode."""
    return {
        shift: {mode: Dot(float(runs.mean())) for mode, runs in by_mode.items()}
        for shift, by_mode in failures(modes, data).items()
    }


def coverage_section(modes: Variants) -> Section:
    """Return runs in which the best arm was ever dropped or some bound ever wrong, by mode and shift."""
    settings = ", ".join(f"{name} = {value}" for name, value in INSTANCE.settings.items())
    return Section(
        name="coverage",
        title="How often our claims ever fail",
        plain="Looking at any time, under the worst shift we know, how often is a claim ever wrong?",
        claims="With probability 1 − δ, at all times at once, the best arm survives and the bounds on what it"
        " is better by hold, whatever the shift: exactly for bounded and for sub-Gaussian rewards, for large"
        " samples in the asymptotic mode. Not a claim of the paper's.",
        described=lambda form: (
            f"{form.runs} runs a mode and shift of {form.rounds:,} rounds, or until an arm is declared; δ ="
            f" {DELTA}; {INSTANCE.kind} with {settings}, so near to a tie that most runs last; shifts within"
            f" ±{LIMIT:g}; adversaries see the past. A run fails if a claim is wrong after any batch."
        ),
        sizes={"runs": (40, 1000), "rounds": (3_000, 100_000), "shifts": (QUICK, tuple(SHIFTS))},
        runs=lambda form: task_cells(
            form,
            "track_misses",
            {"instance": INSTANCE, "limit": LIMIT, "horizon": form.rounds},
            {
                "mode": modes,
                "shift": variants("shift", {shift: Part(shift) for shift in form.shifts}),
            },
            cost=lambda cell: SECONDS * cell["horizon"] * cell["replications"],
            piece=250,
        ),
        judged=[
            Claim(
                f"{mode} coverage",
                f"in the mode {mode}, no shift makes more than δ of the runs fail",
                "share of failed runs, worst shift, exact limits",
                by_shift(mode).worst_share(is_failed),
                at_most=DELTA,
                source="here",
            )
            for mode in modes
        ],
        tabled=[partial(table, modes)],
        drawn=[
            SharesChart(
                "misses",
                "Share of runs in which a claim ever failed, and δ, below which it has to stay.",
                DELTA,
                partial(share_dots, modes),
            )
        ],
    )


COVERAGE = coverage_section(MODES)
