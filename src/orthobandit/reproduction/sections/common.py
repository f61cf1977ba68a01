"""Arms, shifts and policies that several sections play, and the cells that play them."""

from collections.abc import Mapping
from typing import Any

from orthobandit.reproduction.section import Form, task_cells
from orthobandit.study.cells import Cell
from orthobandit.study.spec import Part, Sweep

# The paper's shifts as it writes them.
FORMULAS = {"sine": "ν¹ = 1 + sin 2t", "log-alternating": "ν² = ±max(log(t+1)/5, 2)"}
BOUNDED = Part("sine", {"offset": 0.5, "amplitude": 0.5})  # ν¹/2, which keeps to |ν| ≤ 1
STILL = Part("none")
OURS = "anytime elimination"
EXACT = "anytime elimination, exact"
DESIGNS = {"anchor": "DEO (the paper's)", "centred": "exact centred design"}
EXPLORED = 100_000  # rounds of an exploration that chooses them itself, roughly


def exact_elimination(low: float, high: float, **settings: float | str) -> Part:
    """Return anytime elimination with exact confidence, for means between these."""
    return Part("anytime", {**settings, "confidence": "sub-gaussian", "low": low, "high": high})


def random_arms(dimension: int, count: int, seed: int, gap: float = 0.5) -> Part:
    """Return random unit arms of which the best leads by the gap."""
    return Part("exact-gap", {"dimension": dimension, "count": count, "gap": gap, "seed": seed})


def one_hot_arms(count: int, gap: float) -> Part:
    """Return so many separate arms, of which the last is better by the gap."""
    # The best arm comes last: the reference of an anchor design should not be best by luck.
    return Part("one-hot", {"means": [0.0] * (count - 1) + [gap]})


def arm_sets(arms: Part, seed: int, sets: int) -> dict[str, Part]:
    """Return so many random sets of arms, each with a seed of its own."""
    return {
        f"arms {number + 1}": Part(arms.kind, {**arms.settings, "seed": 1000 * seed + number})
        for number in range(sets)
    }


def fresh_seed(seed: int, offset: int) -> int:
    """Return a seed that no pilot had."""
    # A wrong seed stays wrong, and is refused by the sweep.
    return seed + offset if seed >= 0 else seed


def exploration(
    form: Form,
    task: str,
    size: tuple[int, int],
    design: str,
    runs: int,
    *,
    shift: Part = STILL,
    labels: Mapping[str, str] | None = None,
    **settings: list[int],
) -> Cell:
    """Return the cell that explores random arms of a size (d, K) with one design."""
    dimension, count = size
    names = {**(labels or {}), "dimension": dimension, "count": count, "design": design}
    rounds = settings.get("checkpoints", [EXPLORED])[-1]
    (cell,) = task_cells(
        form,
        task,
        {
            "instance": random_arms(dimension, count, form.seed),
            "shift": shift,
            "design": design,
            "delta": 0.05,
            "replications": runs,
            **settings,
        },
        {label: {name: {}} for label, name in names.items()},
        cost=lambda _: 0.2 + 4e-8 * rounds * runs,
    )
    return cell


def error_cell(
    form: Form, shift: str, size: tuple[int, int], design: str, checkpoints: list[int], runs: int
) -> Cell:
    """Return the cell that follows the error of an exploration under a shift, whose name is a label."""
    labels = {"shift": shift}
    return exploration(
        form, "track_error", size, design, runs, shift=Part(shift), labels=labels, checkpoints=checkpoints
    )


def policy_cells(
    policies: Mapping[str, Part],
    instances: Mapping[str, Part],
    *,
    seed: int,
    horizon: int,
    runs: int,
    labels: Mapping[str, str | int | float],
    shifts: Mapping[str, Part] | None = None,
    **how: Any,
) -> list[Cell]:
    """Return every policy on every instance, under ν¹/2 by default; a cell has all the runs."""
    return Sweep(
        policies=policies,
        instances=instances,
        shifts=shifts or {"ν¹/2": BOUNDED},
        horizon=horizon,
        replications=runs,
        seeds=(seed,),
        batch=runs,
        labels=labels,
        **({"checkpoints": (horizon,)} | how),
    ).cells()
