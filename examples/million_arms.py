"""A design for a million arms: few of them are played, and the certificate covers all.

A shop can combine 10 headlines, 10 pictures, 10 prices, 10 texts, 10 colours and 10 layouts: a million
pages. Features are prices and scores that designers gave, two a choice, and their effects add up: 12
numbers a page. The exact design plays a few dozen pages; how well the values of all others are known after
that depends on those 12 numbers, and not on the million. The certificate says how far from the optimum the
design is, on all arms.

`python examples/million_arms.py` takes under a minute and draws docs/gallery/million_arms.png.
"""

import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit import ArmSet, Design, Environment, OrthogonalRegression, Plan, Tally, centred_design
from orthobandit.simulation import Sine

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "million_arms.png"
CHOICES, PARTS, SEED = 10, 6, 4
ROUNDS = 20_000


def pages(choices: int = CHOICES) -> ArmSet:
    """Return all combinations of six parts, each with two features a choice."""
    parts = np.random.default_rng(SEED).normal(size=(PARTS, choices, 2))
    combined = np.array(list(product(range(choices), repeat=PARTS)), dtype=np.int64)
    features = np.concatenate([parts[part][combined[:, part]] for part in range(PARTS)], axis=1)
    return ArmSet(features)


def errors(design: Design, seed: int = 1) -> tuple[np.ndarray[Any, np.dtype[np.float64]], float]:
    """Play the design for a while, and return the errors of all gaps and the regret of the choice."""
    random = np.random.default_rng(seed)
    shop = Environment(design.arms, random.normal(scale=0.3, size=2 * PARTS))
    plan = Plan(design.probabilities, ROUNDS)
    shown = plan.draw(random)
    demand = Sine(amplitude=3.0, frequency=0.01).values(0, ROUNDS)
    rewards = shop.means[shown] + demand + random.normal(size=ROUNDS)
    found = OrthogonalRegression().fit(design.arms, [(plan, Tally.of(shown, rewards, len(design.arms)))])
    values = design.arms.features @ (found.theta - shop.theta)
    return np.asarray(values - values.mean()), float(shop.gaps[int(found.best)])


def draw(design: Design, off: Any) -> Any:
    """Return the figure: what is played, and how well a million arms are known afterwards."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    design.plot(left)
    count = len(design.arms)
    left.set_title(f"{len(design.support)} of {count:,} arms are played", loc="left", fontsize="medium")
    right.hist(off, bins=200, color="#0072B2")
    right.set(xlabel="error of an arm's value (s.d. of a reward: 1)", ylabel="arms", xlim=(-0.2, 0.2))
    right.set_title(f"after {ROUNDS:,} rounds, while demand swings by ±3", loc="left", fontsize="medium")
    right.spines[["top", "right"]].set_visible(False)
    right.grid(alpha=0.3)
    figure.suptitle(
        f"certified within {design.optimality_gap:.0e} of the optimum on all arms",
        x=0.01,
        ha="left",
        fontsize="medium",
    )
    return figure


def main(choices: int = CHOICES, target: Path = TARGET) -> None:
    """Solve, play and draw."""
    arms = pages(choices)
    begin = time.perf_counter()
    design = centred_design(arms)
    seconds = time.perf_counter() - begin
    off, regret = errors(design)
    print(f"{len(arms):,} arms of dimension {arms.dimension}: {len(design.support)} are played")
    print(f"certified gap {design.optimality_gap:.1e} on all arms, in {seconds:.1f} s")
    print(f"after {ROUNDS:,} rounds the largest error of a value is {np.abs(off).max():.3f}")
    print(f"the arm that looks best is {regret:.3f} below the best of all")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(design, off).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
