"""How SBE's worst regret grows with dimension and horizon: `python -m benchmarks.scaling`.

For each d and T the best arm of d + 1 leads all others by the gap that costs most; since that gap
shrinks like √(d/T), no gap is given to the policy. δ = 1/T, so that failures do not add to the mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit import SBE
from orthobandit._foundation.random import stream
from orthobandit.simulation import Environment, Sine, exact_gap, one_hot, simulate, within

Array = NDArray[np.float64]

# Gaps tried, in units of √(d·log(dT)/T): around the one that is told apart only at the horizon.
FACTORS = tuple(2.0 ** (k / 2) for k in range(-1, 6))

# Horizons that cover one doubling of ε twice over, so that the steps of the phases average out.
OCTAVES = tuple(2.0 ** (k / 2) for k in range(4))

DIMENSIONS = (4, 6, 8, 12, 16, 24, 32, 48, 64)


def bandit(dimension: int, gap: float) -> Environment:
    """Return d + 1 one-hot arms of which the first leads all others by the gap."""
    return one_hot([gap] + [0.0] * dimension, shift=within(Sine()))


def sphere(dimension: int, gap: float) -> Environment:
    """Return 2d random arms on the sphere with the gap between the best two."""
    return exact_gap(dimension, 2 * dimension, min(gap, 1.0), seed=dimension, shift=within(Sine()))


@dataclass(frozen=True, eq=False)
class Cell:
    """Regret (G, R) at the horizon for each gap tried, in R replications."""

    dimension: int
    horizon: int
    regret: Array

    def worst(self, replications: NDArray[np.int64] | slice = slice(None)) -> float:
        """Return the largest mean regret over gaps, from some of the replications."""
        return float(self.regret[:, replications].mean(axis=1).max())


@dataclass(frozen=True)
class Exponents:
    """Fitted exponents of d and T, each with the ends of its 95 % bootstrap interval."""

    dimension: tuple[float, float, float]
    horizon: tuple[float, float, float]


def measure(
    family: Callable[[int, float], Environment], dimension: int, horizon: float, replications: int
) -> Cell:
    """Simulate one dimension and horizon at all gaps tried."""
    rounds = round(horizon)
    unit = math.sqrt(dimension * math.log(dimension * rounds) / rounds)

    def regret(gap: float) -> Array:
        environment = family(dimension, gap)
        found = simulate(
            SBE(delta=1 / rounds),
            environment,
            horizon=rounds,
            replications=replications,
            seed=1,
            checkpoints=[rounds],
        )
        return found.regret[:, 0]

    return Cell(dimension, rounds, np.array([regret(factor * unit) for factor in FACTORS]))


def fit(cells: Sequence[Cell], resamples: int = 1000) -> Exponents:
    """Regress log regret on log d and log T; bootstrap over cells and over replications within them."""
    generator = stream(0, "bootstrap")
    found = [_slopes(cells, [cell.worst() for cell in cells])]
    count = cells[0].regret.shape[1]
    while len(found) <= resamples:
        chosen = [cells[i] for i in generator.integers(len(cells), size=len(cells))]
        found.append(_slopes(chosen, [cell.worst(generator.integers(count, size=count)) for cell in chosen]))
    slopes = np.array(found)
    low, high = np.quantile(slopes[1:], (0.025, 0.975), axis=0)
    first, second = ((float(slopes[0, i]), float(low[i]), float(high[i])) for i in range(2))
    return Exponents(first, second)


def _slopes(cells: Sequence[Cell], regret: Sequence[float]) -> Array:
    """Return the exponents of d and T; NaN for one that does not vary among the cells."""
    sizes = np.log([[cell.dimension, cell.horizon] for cell in cells])
    varies = np.ptp(sizes, axis=0) > 0
    table = np.column_stack([np.ones(len(cells)), sizes[:, varies]])
    slopes = np.full(2, np.nan)
    slopes[varies] = np.linalg.lstsq(table, np.log(regret), rcond=None)[0][1:]
    return slopes


def report(name: str, cells: Sequence[Cell], exponent: tuple[float, float, float]) -> None:
    """Print one exponent, its interval and the range that it was fitted on."""
    first, last = cells[0], cells[-1]
    verdict = "nearer ½ than 1" if exponent[2] < 0.75 else "NOT surely nearer ½ than 1"
    print(
        f"regret ~ {name}^{exponent[0]:.2f}, 95 % interval {exponent[1]:.2f} to {exponent[2]:.2f}: {verdict}"
    )
    print(
        f"  d = {first.dimension}…{last.dimension}, T = {first.horizon:.1e}…{last.horizon:.1e},"
        f" worst regret {first.worst():,.0f}…{last.worst():,.0f}",
        flush=True,
    )


def main() -> None:
    """Print the exponents of d and T; about ten minutes."""
    print("one-hot arms", flush=True)
    cells = [measure(bandit, d, 3e7 * octave, 2) for d in DIMENSIONS for octave in OCTAVES]
    report("d", cells, fit(cells).dimension)
    cells = [measure(bandit, 8, 1e5 * 2 ** (k / 2), 3) for k in range(20)]
    report("T", cells, fit(cells).horizon)
    print("random arms on the sphere, K = 2d", flush=True)
    cells = [measure(sphere, d, 2e8 * octave, 1) for d in DIMENSIONS[::2] for octave in OCTAVES[::2]]
    report("d", cells, fit(cells).dimension)
    cells = [measure(sphere, 8, 1e5 * 2 ** (k / 2), 3) for k in range(20)]
    report("T", cells, fit(cells).horizon)


if __name__ == "__main__":
    main()
