"""SBE on forty arm sets of the paper's size, beside the two numbers that the paper reports.

The paper gives (d, K) = (20, 30), Δ = ½ and σ = 1, but neither its arms nor its horizon. Run
`python examples/reported_regret.py`; a minute later it prints the table of docs/simulation.md.
"""

import numpy as np
from numpy.typing import NDArray

from orthobandit import SBE
from orthobandit.simulation import LogAlternating, Oblivious, Sine, exact_gap, simulate

SETS, RUNS, HORIZON = 40, 25, 40_000
REPORTED = {"ν¹": 2677.66, "ν²": 2703.10}
SHIFTS: dict[str, Oblivious] = {
    "ν¹": Sine(),
    "ν² as printed (max)": LogAlternating(),
    "ν² with min": LogAlternating(form="min"),
}


def regrets(shift: Oblivious, sets: int = SETS, runs: int = RUNS) -> NDArray[np.float64]:
    """Return the mean regret (sets,) of SBE with c = 1 on every arm set; by `HORIZON` it is flat."""
    means = []
    for seed in range(sets):
        environment = exact_gap(20, 30, 0.5, seed=seed, shift=shift)
        result = simulate(SBE(delta=0.05), environment, horizon=HORIZON, replications=runs, seed=seed)
        means.append(result.regret[:, -1].mean())
    return np.array(means)


def row(name: str, found: NDArray[np.float64], reference: NDArray[np.float64]) -> str:
    """Return mean and range over arm sets, and the ratio to ν¹ overall and by arm set."""
    error = found.std(ddof=1) / np.sqrt(found.size)
    each = found / reference
    return (
        f"{name:22} {found.mean():6.0f} ± {error:3.0f}   {found.min():5.0f}–{found.max():5.0f}"
        f"   {found.mean() / reference.mean():.3f}   {each.min():.2f}–{each.max():.2f}"
    )


def main() -> None:
    """Print the table."""
    print(f"{'':22} {'regret':>12}   {'arm sets':>11}   {'/ ν¹':>5}   arm sets")
    reference = regrets(SHIFTS["ν¹"])
    for name, shift in SHIFTS.items():
        print(row(name, reference if name == "ν¹" else regrets(shift), reference))
    ratio = REPORTED["ν²"] / REPORTED["ν¹"]
    print(f"reported: {REPORTED['ν¹']} under ν¹, {REPORTED['ν²']:.2f} under ν²: {ratio:.3f}")


if __name__ == "__main__":
    main()
