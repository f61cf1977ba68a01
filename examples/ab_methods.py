"""Plain A/B tests that may be looked at any time: visitors to the decision, beside other methods.

Two pages, success rates a tenth to a half apart, no drift: the world that the other methods were made for.
All may be looked at as often as one likes, and each declares the wrong page with probability at most 5 %.
The others get half of the visitors on each page, and are told what they could not know:

- **mSPRT** (Johari, Koomen, Pekelis & Walsh 2017): a normal mixture whose scale is the true gap.
- **Asymptotic confidence sequence** (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024): tightest at the
  size of a z-test that knows the gap.
- **Betting** (Waudby-Smith & Ramdas 2024): exact for bounded rewards; bets by the growth rate so far (aGRAPA)
  on scores around the mean so far, and needs nothing to be told.

Ours is told nothing but, in the exact mode, that rewards lie between 0 and 1. Numbers are in units of the
two-sided z-test of fixed size with 95 % power, which may be looked at once; with 90 % power it is 0.81.

`python examples/ab_methods.py` takes two minutes and draws docs/gallery/ab_methods.png.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from orthobandit import AnytimeElimination, ArmSet, Environment, simulate
from orthobandit.simulation import Bernoulli, Constant

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "ab_methods.png"
RATES = ((0.001, 0.0015), (0.01, 0.012), (0.05, 0.055), (0.2, 0.22), (0.5, 0.55))
DELTA = 0.05
LONGEST = 12.0  # times the fixed size at which a run is given up
STEP = 1.01  # the others are looked at after every hundredth more visitors
Found = tuple[np.ndarray, int]  # visitors of each run over the fixed size, and how many runs were wrong


def fixed_size(rates: tuple[float, float], power: float = 0.95) -> float:
    """Return the visitors of a two-sided z-test, both pages together."""
    z = norm.isf(DELTA / 2.0) + norm.ppf(power)
    return float(4.0 * _variance(rates) * (z / (rates[1] - rates[0])) ** 2)


def _variance(rates: tuple[float, float]) -> float:
    return sum(rate * (1.0 - rate) for rate in rates) / 2.0


def ours(rates: tuple[float, float], runs: int, **settings: Any) -> Found:
    """Run anytime elimination, with nothing tuned."""
    world = Environment(ArmSet.one_hot(2), rates, Constant(), Bernoulli())
    size = fixed_size(rates)
    result = simulate(
        AnytimeElimination(DELTA, **settings),
        world,
        horizon=int(LONGEST * size),
        replications=runs,
        seed=3,
        stop_when_declared=True,
    )
    times = np.where(result.stop_times < 0, LONGEST, result.stop_times / size)
    return times, int(np.count_nonzero(result.decision.declared == 0))


def looked_at(rates: tuple[float, float], runs: int, proves: Callable[..., np.ndarray]) -> Found:
    """Show each page to every other visitor until ``proves(n, gap, variance)`` says that the gap is not 0."""
    rng, size = np.random.default_rng(4), fixed_size(rates)
    times, wrong = np.full(runs, LONGEST), np.zeros(runs, dtype=bool)
    pairs, sums, is_open = 100, np.zeros((2, runs)), np.ones(runs, dtype=bool)
    seen = 0
    while is_open.any() and 2 * pairs < LONGEST * size:
        sums += rng.binomial(pairs - seen, np.array(rates)[:, np.newaxis], (2, runs))
        seen = pairs
        means = sums / seen
        gap, variance = means[1] - means[0], 2.0 * (means * (1.0 - means)).sum(axis=0)
        enough = (sums >= 10.0).all(axis=0)  # before, a plug-in variance says nothing
        variance = np.where(enough, variance, 1.0)
        now = is_open & enough & proves(2 * seen, gap, variance)
        times[now], wrong[now] = 2 * seen / size, gap[now] < 0
        is_open &= ~now
        pairs = max(int(np.ceil(STEP * pairs)), pairs + 1)
    return times, int(wrong.sum())


def msprt(rates: tuple[float, float], runs: int) -> Found:
    """Run the mixture sequential probability ratio test; δ on each side."""
    tau = (rates[1] - rates[0]) ** 2

    def proves(n: int, gap: np.ndarray, variance: np.ndarray) -> np.ndarray:
        total = variance + n * tau
        log_ratio = 0.5 * np.log(variance / total) + n**2 * tau * gap**2 / (2.0 * variance * total)
        return np.asarray(log_ratio >= np.log(1.0 / (2.0 * DELTA)))

    return looked_at(rates, runs, proves)


def asymptotic_sequence(rates: tuple[float, float], runs: int) -> Found:
    """Run the asymptotic confidence sequence; δ on each side."""
    double = -2.0 * np.log(2.0 * DELTA)
    rho = (double + np.log1p(double)) / fixed_size(rates)

    def proves(n: int, gap: np.ndarray, variance: np.ndarray) -> np.ndarray:
        width = 2.0 * (n * rho + 1.0) / (n**2 * rho) * np.log(np.sqrt(n * rho + 1.0) / (2.0 * DELTA))
        return np.asarray(np.abs(gap) > np.sqrt(variance * width))

    return looked_at(rates, runs, proves)


def betting(rates: tuple[float, float], runs: int) -> Found:
    """Bet on either page being better; each bet wins with probability at most δ if it is not.

    The score of a visitor, 2·(reward − mean so far) with the sign of a fair coin, lies in [−2, 2] and has the
    gap as its mean. A stake of at most ¼ of it never loses all.
    """
    rng, size = np.random.default_rng(5), fixed_size(rates)
    times, wrong = np.full(runs, LONGEST), np.zeros(runs, dtype=bool)
    wealth, is_open = np.zeros((2, runs)), np.ones(runs, dtype=bool)
    total, squares, ones = np.zeros(runs), np.full(runs, 4.0), np.full(runs, 0.5)
    low, high = rates
    chances = np.array([low, 1.0 - low, high, 1.0 - high]) / 2.0
    seen, block = 1, 20
    while is_open.any() and seen < LONGEST * size:
        mean, level = total / seen, ones / seen
        stake = np.clip(mean / (squares / seen), -0.25, 0.25)
        # Within a block stake and level stay, so that counts suffice.
        counts = rng.multinomial(block, chances, runs).T
        scores = 2.0 * np.array([level - 1.0, level, 1.0 - level, -level])
        for side, sign in enumerate((-1.0, 1.0)):
            bet = np.maximum(sign * stake, 0.0) * sign
            wealth[side] += (counts * np.log1p(scores * bet)).sum(axis=0)
        total, squares = total + (counts * scores).sum(axis=0), squares + (counts * scores**2).sum(axis=0)
        ones, seen = ones + counts[0] + counts[2], seen + block
        now = is_open & (wealth.max(axis=0) >= np.log(1.0 / DELTA))
        times[now], wrong[now] = seen / size, wealth[0, now] > wealth[1, now]
        is_open &= ~now
        block = max(20, int(0.005 * seen))
    return times, int(wrong.sum())


METHODS: dict[str, Callable[[tuple[float, float], int], Found]] = {
    "ours, exact": lambda rates, runs: ours(rates, runs, rewards=(0, 1)),
    "ours, asymptotic": lambda rates, runs: ours(rates, runs),
    "mSPRT, told the gap": msprt,
    "asymptotic sequence, told the size": asymptotic_sequence,
    "betting, exact": betting,
}


def measured(runs: int, rates: tuple[tuple[float, float], ...] = RATES) -> dict[str, list[Found]]:
    """Return what each method needs at each pair of rates."""
    return {name: [method(pair, runs) for pair in rates] for name, method in METHODS.items()}


def draw(found: dict[str, list[Found]], rates: tuple[tuple[float, float], ...] = RATES) -> Any:
    """Return the figure: mean visitors over the fixed size, with two standard errors."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    colours = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73")
    for row, (name, results) in enumerate(found.items()):
        places = np.arange(len(rates)) + 0.13 * (row - 2)
        means = [times.mean() for times, _ in results]
        errors = [2.0 * times.std() / len(times) ** 0.5 for times, _ in results]
        axes.errorbar(places, means, errors, fmt="o", ms=5, capsize=2, color=colours[row], label=name)
    axes.axhline(1.0, color="0.3", lw=1)
    axes.axhline(fixed_size(rates[0], 0.9) / fixed_size(rates[0]), color="0.3", lw=1, ls="--")
    axes.set_xticks(range(len(rates)), [f"{100 * low:g} % and {100 * high:g} %" for low, high in rates])
    axes.set(ylabel="visitors over those of the z-test", ylim=(0, None))
    axes.set_title(
        "mean visitors to the decision; lines: the fixed size, 95 % (solid) and 90 % power",
        loc="left",
        fontsize="medium",
    )
    axes.legend(frameon=False, fontsize="small", ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(runs: int = 200, rates: tuple[tuple[float, float], ...] = RATES, target: Path = TARGET) -> None:
    """Print the table and draw it."""
    found = measured(runs, rates)
    print("| pages | fixed size | " + " | ".join(found) + " |")
    print("|---|---:|" + "---:|" * len(found))
    for row, (low, high) in enumerate(rates):
        cells = []
        for results in found.values():
            times, wrong = results[row]
            error = times.std() / len(times) ** 0.5
            cells.append(f"{times.mean():.2f} ± {error:.2f}" + (f", {wrong} wrong" if wrong else ""))
        size = fixed_size((low, high))
        print(f"| {100 * low:g} % and {100 * high:g} % | {size:,.0f} | " + " | ".join(cells) + " |")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(found, rates).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
