"""The whole idea of `orthobandit` in one file, to be read before the package. It needs numpy alone.

The package's own code buys over it: fewer rewards where arms are many (designs for the pairs still
open, arms' values and seasons taken off before the bets), rewards that come late or never, arms that come and
go, visitors who differ, rewards without bounds, a million arms, thousands of runs at once, a service that
survives crashes, logs that stay in their warehouse, certificates to check. The idea is all here.

Rewards are rₜ = xₐᵀθ + νₜ + noise. Arm a has the features xₐ, and the level νₜ (season, trend, Monday) is the
same for all arms of a round. It may move in any way, as long as it is fixed before the arm is drawn. So the
mean of an arm says as much about when it was shown as about the arm. Three facts help:

1. Count an arm's features from their average under the probabilities that the arm was drawn with. On average
   the level is then multiplied by 0: `regression`, `scores`.
2. Which probabilities tell arms apart best is a convex problem: `d_optimal` proves that it has solved it.
3. What is left of the level is noise with mean 0: a fair game. Bet against a claim; whoever gets rich has
   disproved it, whenever they stop: `wealth`.

All is in the order of an experiment. `eliminate` decides as this package does, `sbe` as Kim, Kim & Oh (2025).
"""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Play = Callable[[Array, int], tuple[Whole, Array]]  # (probabilities, rounds) → arms drawn, rewards

# ---- The world: a simulator. In a real experiment these are visitors.


def simulator(values: Array, level: Callable[[Array], Array], seed: int) -> Play:
    """Return a world of sales, in which arm a succeeds with probability level(t) + values[a]."""
    random = np.random.default_rng(seed)
    time = 0

    def play(probabilities: Array, rounds: int) -> tuple[Whole, Array]:
        nonlocal time
        drawn = random.choice(len(values), size=rounds, p=probabilities)
        chance = level(time + np.arange(float(rounds))) + values[drawn]
        time = time + rounds
        return drawn, (random.random(rounds) < chance).astype(np.float64)

    return play


# ---- Arms and designs: with which probabilities to draw.


def coordinates(differences: Array) -> Array:
    """Return differences of arms (n, d) in as many coordinates (n, r) as they span."""
    _, sizes, directions = np.linalg.svd(differences, full_matrices=False)
    return np.asarray(differences @ directions[sizes > 1e-9 * sizes.max()].T)


def hull(features: Array) -> Array:
    """Return arms (K, r) by what can be learnt, their differences: of two arms r = 1, whatever they have."""
    return coordinates(features - features.mean(axis=0))


def d_optimal(points: Array, gap: float = 1e-6) -> Array:
    """Return probabilities p (K,) whose largest leverage zᵢᵀM⁻¹zᵢ is least, for M = Σ pᵢzᵢzᵢᵀ.

    The average of the leverages under p is n, for every p, if the points span n dimensions. So no largest
    leverage is below n, and one that is nearly n proves that p is nearly the best (Kiefer & Wolfowitz 1960).
    In each step the point of smallest leverage gives to that of the largest what raises det M most.
    """
    arms, n = points.shape
    p = np.full(arms, 1.0 / arms)
    while True:
        inverse = np.linalg.inv(points.T @ (p[:, np.newaxis] * points))
        leverage = ((points @ inverse) * points).sum(axis=1)
        high = int(np.argmax(leverage))
        if leverage[high] <= n * (1.0 + gap):
            return np.asarray(p / p.sum())
        low = int(np.argmin(np.where(p > 0, leverage, np.inf)))
        product = leverage[high] * leverage[low] - (points[high] @ inverse @ points[low]) ** 2
        step = min(p[low], (leverage[high] - leverage[low]) / max(2.0 * product, 1e-300))
        p[high] += step
        p[low] -= step


def centred_design(points: Array) -> Array:
    """Return p (K,) that makes maxᵢ ‖xᵢ − μ‖ in Σ⁻¹ least, for its mean μ and its covariance Σ.

    The paper calls this non-convex, since μ depends on p. A 1 in front of the features makes it D-optimal
    design: ‖(1, xᵢ)‖² in M⁻¹ is 1 + ‖xᵢ − μ‖² in Σ⁻¹. So the least maximum is √r.
    """
    return d_optimal(np.column_stack([np.ones(len(points)), points]))


def anchor_design(points: Array) -> Array:
    """Return the paper's design (DEO, Algorithm 1): half for the first arm, half to tell others from it."""
    return np.append(0.5, 0.5 * d_optimal(coordinates(points[1:] - points[0])))


# ---- Draw and tally: what is kept of the rounds under one plan.


class Tally(NamedTuple):
    """Rounds of each arm (K,), sums of their rewards and of the squares: enough while p stays the same."""

    counts: Array
    sums: Array
    squares: Array


def tally(drawn: Whole, rewards: Array, arms: int) -> Tally:
    """Add up rewards (n,) by the arm drawn (n,)."""
    parts = (np.ones(len(drawn)), rewards, rewards**2)
    return Tally(*(np.asarray(np.bincount(drawn, part, arms), dtype=np.float64) for part in parts))


# ---- Estimate: two ways to be right on average, whatever the level does.


def regression(points: Array, history: list[tuple[Array, Tally]], ridge: float) -> Array:
    """Return estimated values (K,) of the arms, of which only differences mean anything.

    Orthogonalised regression, the paper's Equation 2: θ̂ = (Σ x̃x̃ᵀ + βI)⁻¹ Σ x̃r, with the ridge β and
    x̃ = xₐ − Σ pᵢxᵢ of the round's own p. Before the draw x̃ has mean 0, and so has its product with the level.
    """
    gram, moment = ridge * np.eye(points.shape[1]), np.zeros(points.shape[1])
    for probabilities, seen in history:
        centred = points - probabilities @ points
        gram += centred.T @ (seen.counts[:, np.newaxis] * centred)
        moment += seen.sums @ centred
    return np.asarray(points @ np.linalg.solve(gram, moment))


def scores(points: Array, probabilities: Array, pairs: Whole) -> tuple[Array, Array]:
    """Return how rewards of each arm count for the gap of pairs: g (m, K), and the variance E g² (m,).

    For the gap of i over j, g(a) = (xᵢ − xⱼ)ᵀΣ⁻¹(xₐ − μ). Under p it has mean 0, and g(a)·xₐᵀθ has the mean
    (xᵢ − xⱼ)ᵀθ. So g(a)·(r − m) is right on average for every forecast m of the level made before the draw,
    and a good one leaves less noise. For two arms drawn alike, g is 2 and −2.
    """
    centred = points - probabilities @ points
    covariance = centred.T @ (probabilities[:, np.newaxis] * centred)
    contrasts = points[pairs[:, 0]] - points[pairs[:, 1]]
    # A pseudo-inverse, since arms that were dropped may leave directions in which nothing is drawn.
    g = contrasts @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ centred.T
    return g, g**2 @ probabilities


# ---- Bets: how sure we are, at all times at once.

BETS = 0.9 * 0.5 ** np.arange(14.0)  # shares λ of the wealth; below 1, so that no round can ruin


def wealth(totals: Array, squares: Array) -> Array:
    """Return the log-wealth (m,) of bets that increments x in [−1, 1] have a mean above 0, from Σx and Σx².

    If their mean is 0 or less, the wealth Π(1 + λx) is that of a fair or losing game: started at 1, it ever
    reaches 1/α with probability at most α, however long it is played and whenever one stops (Ville 1939). It
    is at least exp(λΣx − ψΣx²) with ψ = −log(1 − λ) − λ (Fan, Grama & Liu 2015), which needs two sums only.
    As nobody knows the best λ, the money is spread evenly over several.
    """
    psi = -np.log1p(-BETS) - BETS
    logs = totals[:, np.newaxis] * BETS - squares[:, np.newaxis] * psi
    return np.asarray(np.logaddexp.reduce(logs, axis=1) - np.log(len(BETS)))


class Evidence:
    """What is known of the gap of i over j, for ordered pairs (m, 2) of arms.

    Increments are w·g(a)·(r − m), with rewards and forecasts in [0, 1]. The weight w = 1/E g² counts rounds
    by what they tell, but never so much that an increment exceeds `scale`, which the first plan has fixed.
    """

    def __init__(self, points: Array, first_plan: Array, pairs: Whole) -> None:
        g, variance = scores(points, first_plan, pairs)
        self.pairs = pairs
        self.scale = np.abs(g).max(axis=1) / variance
        # Σ increments, Σ increments², and Σ w: the first over the last estimates the gap.
        self.totals, self.squares, self.weights = np.zeros((3, len(pairs)))

    def add(self, points: Array, plan: Array, seen: Tally, asked: NDArray[np.bool_]) -> None:
        """Add a tally of rewards less their forecast, for the pairs that are asked for (m,)."""
        g, variance = scores(points, plan, self.pairs[asked])
        w = np.minimum(1.0 / variance, self.scale[asked] / np.abs(g[:, plan > 0]).max(axis=1))
        self.totals[asked] += w * (g @ seen.sums)
        self.squares[asked] += w**2 * (g**2 @ seen.squares)
        self.weights[asked] += w * seen.counts.sum()

    def proves(self, alpha: float, gap: Array | float = 0.0) -> NDArray[np.bool_]:
        """Tell for which pairs (m,) it is proven that the gap is larger than `gap`, each at level α."""
        totals = (self.totals - self.weights * gap) / self.scale
        return np.asarray(wealth(totals, self.squares / self.scale**2) >= np.log(1.0 / alpha))

    def lower_ends(self, alpha: float) -> Array:
        """Return the largest gap that is proven of each pair (m,), by bisection between −1 and 1."""
        low, high = np.full((2, len(self.pairs)), [[-1.0], [1.0]])
        for _ in range(40):
            middle = (low + high) / 2.0
            is_proven = self.proves(alpha, middle)
            low, high = np.where(is_proven, middle, low), np.where(is_proven, high, middle)
        return low


# ---- Decide: elimination at any time, and the paper's phases.


class Answer(NamedTuple):
    """The best arm (−1: not found), the rounds played, and gaps (K, K) of row over column with lower ends."""

    best: int
    rounds: int
    gaps: Array
    low: Array

    def interval(self, arm: int, over: int) -> tuple[float, float]:
        """Return both ends of a gap: one arm leads by at most h if the other leads by −h at least."""
        return float(self.low[arm, over]), -float(self.low[over, arm])


def eliminate(features: Array, play: Play, delta: float, most: int, batch: int = 50) -> Answer:
    """Drop every arm that is proven worse than another, until one is left or `most` rounds were played.

    With probability 1 − δ no proof is ever wrong: the arm that is left is the best, and all intervals hold.
    """
    points = hull(features)
    arms = len(points)
    pairs = np.array(list(permutations(range(arms), 2)))
    alpha = delta / len(pairs)
    alive = np.ones(arms, dtype=np.bool_)
    plan = centred_design(points)
    evidence = Evidence(points, plan, pairs)
    forecast, rounds = 0.5, 0
    while alive.sum() > 1 and rounds < most:
        drawn, rewards = play(plan, batch)
        asked = alive[pairs].all(axis=1)
        evidence.add(points, plan, tally(drawn, rewards - forecast, arms), asked)
        forecast = 0.5 * forecast + 0.5 * float(rewards.mean())  # for the next batch, never for its own
        rounds += batch
        beaten = pairs[asked & evidence.proves(alpha), 1]
        if len(beaten):
            alive[beaten] = False
            plan = np.zeros(arms)
            plan[alive] = centred_design(hull(features[alive])) if alive.sum() > 1 else 1.0
    best = int(np.argmax(alive)) if alive.sum() == 1 else -1
    gaps, low = np.zeros((2, arms, arms))
    gaps[*pairs.T] = evidence.totals / evidence.weights
    low[*pairs.T] = evidence.lower_ends(alpha)
    return Answer(best, rounds, gaps, low)


def sbe(features: Array, play: Play, delta: float) -> Iterator[tuple[int, list[int]]]:
    """Yield rounds and survivors of each phase of the paper's Algorithm 2, until one arm is left.

    Phase ℓ draws from the design of its survivors, estimates from its own rounds alone, and drops arms that
    look more than ε = 2^−ℓ worse than the best. Its length is that of the paper's experiments.
    """
    arms, d = hull(features).shape
    survivors, phase = np.arange(arms), 0
    while len(survivors) > 1:
        phase += 1
        epsilon = 0.5**phase
        log = np.log(d * phase / (delta * epsilon))
        by_arms = d * (log + np.log(arms)) / epsilon**2 + d**1.5 * (log + np.log(arms * epsilon)) / epsilon
        rounds = int(np.ceil(min(by_arms, d**2 * log / epsilon**2)))
        points = hull(features[survivors])
        design = anchor_design(points)
        drawn, rewards = play(np.asarray(np.bincount(survivors, design, arms), np.float64), rounds)
        seen = tally(np.searchsorted(survivors, drawn), rewards, len(survivors))
        values = regression(points, [(design, seen)], np.log(rounds * phase * (phase + 1) / delta))
        survivors = survivors[values >= values.max() - epsilon]
        yield rounds, survivors.tolist()


# ---- An experiment: three pages, and a level that falls while the best page is shown more and more.


def main() -> None:
    """Print what plain means, the regression, elimination and SBE say of the same pages."""
    pages, values = np.eye(3), np.array([0.0, 0.05, 0.2])
    falling, wave = (lambda t: np.where(t < 1500, 0.6, 0.2)), (lambda t: 0.4 + 0.3 * np.sin(t / 300.0))
    play = simulator(values, falling, seed=1)
    plans = [np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])]
    history = [(plan, tally(*play(plan, 1500), 3)) for plan in plans]
    means = np.sum([seen.sums for _, seen in history], 0) / np.sum([seen.counts for _, seen in history], 0)
    estimates = regression(hull(pages), history, ridge=np.log(3000 / 0.05))
    print("Rates fall by .4 while page 2, the best by .2, goes from 10 % to 60 % of visitors.")
    print("  plain means, less that of page 0:  ", np.round(means - means[0], 2))
    print("  orthogonalised regression:         ", np.round(estimates - estimates[0], 2))
    found = eliminate(pages, simulator(values, wave, seed=2), delta=0.05, most=20_000)
    print(f"Elimination finds page {found.best} after {found.rounds:,} visitors, while rates swing by ± .3.")
    print("  Its lead over page 0, at all times: {:+.2f} to {:+.2f}".format(*found.interval(2, 0)))
    for phase, (rounds, survivors) in enumerate(sbe(pages, simulator(values, wave, seed=3), 0.05), start=1):
        print(f"SBE, phase {phase}: {rounds:,} visitors, pages left: {survivors}")
    equal = (simulator(np.zeros(3), wave, seed) for seed in range(100))
    wrong = sum(eliminate(pages, play, delta=0.05, most=2000).best >= 0 for play in equal)
    print(f"Three equal pages, looked at 40 times: a best one is found in {wrong} of 100 experiments.")


if __name__ == "__main__":
    main()
