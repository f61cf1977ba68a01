"""The joke that people like best, while every reader has a level of their own: the Jester data.

`python examples/jester.py` repeats both experiments that SP-BAI's author (Kim, AISTATS 2026) ran on real
ratings, on the users of the public sample Jester5k who rated the same eight jokes. Each round a user comes
at random and rates the joke shown, from −10 to 10. Users' levels, which differ by far more than the jokes,
are the shift. First: how many rounds until the best joke is declared, δ = 0.1, 100 runs, with rewards as they
are (every policy but ours takes the noise for 1). Then: how often it is ranked first after one DEO design
and after showing all jokes equally often. The published numbers are of 50,699 users of a later collection:
the protocol carries over, the numbers need not agree.

The data (Goldberg, Roeder, Gupta & Perkins, Information Retrieval 4(2), 2001; free for research) are read
from ../shared/data beside the repository, or from where the environment variable JESTER says.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit import SBE, AnytimeElimination, ArmSet, OrthogonalRegression, Plan, Tally, anchor_design
from orthobandit.estimate import Bounded
from orthobandit.policy import SPBAI, Policy

Array = NDArray[np.float64]
ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("JESTER", ROOT.parent / "shared" / "data" / "jester5k_gauge8.csv"))
JOKES = (7, 8, 13, 15, 16, 17, 18, 19)
ARMS = ArmSet.one_hot(len(JOKES), labels=[f"joke {number}" for number in JOKES])
DELTA = 0.1
LONGEST = 20_000_000  # rounds after which a run is given up
POLICIES: dict[str, Policy[Any]] = {
    "SBE, successor's phases": SBE(delta=DELTA, schedule="successor"),
    "SBE, paper's phases, c = 1": SBE(delta=DELTA),
    "SP-BAI": SPBAI(delta=DELTA, variant="released"),
    "anytime elimination": AnytimeElimination(delta=DELTA),
    "anytime elimination, told the range": AnytimeElimination(delta=DELTA, confidence=Bounded(-10.0, 10.0)),
}
# Mean samples and right declarations of 100 runs, by SP-BAI's author.
PUBLISHED = {"SBE, successor's phases": (266_706.2, 98), "SP-BAI": (61_546.4, 97)}
PUBLISHED_RANKING = {3000: (65, 58), 5000: (69, 58)}  # of 100: DEO, uniform


@dataclass(frozen=True)
class Outcome:
    """How a run ended: rounds played, and the joke declared (−1 for none)."""

    rounds: int
    declared: int


def read_ratings(path: Path = DATA) -> Array:
    """Return the ratings (users, jokes)."""
    return np.loadtxt(path, delimiter=",", skiprows=1)


def identify(policy: Policy[Any], ratings: Array, rng: np.random.Generator) -> Outcome:
    """Show jokes to users who come at random until one is declared best."""
    state = policy.start(ARMS)
    played = 0
    level = 0.0  # forecast of a user's level: the mean of what was seen, known before the plan
    while played < LONGEST:
        declared = int(policy.decide(state).declared)
        if declared >= 0:
            return Outcome(played, declared)
        plan = policy.plan(state)
        rounds = min(int(plan.rounds), LONGEST - played)
        jokes = rng.choice(len(JOKES), size=rounds, p=plan.probabilities)
        rewards = ratings[rng.integers(len(ratings), size=rounds), jokes]
        residuals = rewards
        if plan.centre is not None:
            centre = plan.centre
            off = rewards - centre.values[jokes]
            residuals = np.clip(off - np.clip(level, centre.low, centre.high), -centre.limit, centre.limit)
            level += (off.mean() - level) * rounds / (played + rounds)
        played += rounds
        # A phase that was cut drops nothing.
        if rounds < plan.rounds:
            break
        state = policy.observe(state, plan, tally_of(jokes, residuals))
    return Outcome(played, -1)


def tally_of(jokes: NDArray[np.int64], values: Array) -> Tally:
    """Return the sums by joke."""
    size = len(JOKES)
    largest = np.zeros(size)
    np.maximum.at(largest, jokes, np.abs(values))
    return Tally(
        np.bincount(jokes, minlength=size),
        np.bincount(jokes, values, size),
        np.bincount(jokes, values**2, size),
        largest,
    )


def ranked_first(ratings: Array, rounds: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return the joke that looks best after one DEO design, and after showing all jokes equally often."""
    users = rng.permutation(len(ratings))[:rounds]
    design = anchor_design(ARMS)
    jokes = rng.choice(len(JOKES), size=rounds, p=design.probabilities)
    plan = Plan(design.probabilities, rounds)
    estimate = OrthogonalRegression(delta=0.05).fit(ARMS, [(plan, tally_of(jokes, ratings[users, jokes]))])
    turns = np.arange(rounds) % len(JOKES)
    seen = ratings[users, turns]
    means = np.bincount(turns, seen) / np.bincount(turns)
    return int(np.argmax(ARMS.features @ estimate.theta)), int(np.argmax(means))


def main(runs: int = 100, path: Path = DATA) -> None:
    """Print both tables."""
    if not path.is_file():
        raise SystemExit(f"there is no file {path}; set JESTER to the ratings of the eight jokes")
    ratings = read_ratings(path)
    means = ratings.mean(axis=0)
    best = int(np.argmax(means))
    levels = ratings.mean(axis=1).std()
    print(f"{len(ratings):,} users; best {ARMS.labels[best]}, ahead by {np.diff(np.sort(means))[-1]:.3f};")
    print(f"levels of users have a standard deviation of {levels:.2f}, jokes of {means.std():.2f}\n")
    print("| policy | mean samples ± s.e. | geometric mean | right | published mean | published right |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, policy in POLICIES.items():
        found = [identify(policy, ratings, np.random.default_rng([1, run])) for run in range(runs)]
        samples = np.array([one.rounds for one in found], dtype=np.float64)
        right = sum(one.declared == best for one in found)
        error = samples.std(ddof=1) / np.sqrt(runs)
        geometric = np.exp(np.log(samples).mean())
        theirs = "– | –" if name not in PUBLISHED else "{:,.1f} | {} of 100".format(*PUBLISHED[name])
        said = f"{samples.mean():,.0f} ± {error:,.0f} | {geometric:,.0f} | {right} of {runs}"
        print(f"| {name} | {said} | {theirs} |", flush=True)
    print("\n| users | DEO right | uniform right | published, DEO and uniform |\n|---:|---:|---:|---|")
    for rounds, published in PUBLISHED_RANKING.items():
        # The sample has a few users fewer than the author showed jokes to.
        shown = min(rounds, len(ratings))
        firsts = [ranked_first(ratings, shown, np.random.default_rng([2, run])) for run in range(runs)]
        deo, uniform = (sum(first[k] == best for first in firsts) for k in (0, 1))
        theirs = f"{published[0]} and {published[1]} of 100 ({rounds:,} users)"
        print(f"| {shown:,} | {deo} of {runs} | {uniform} of {runs} | {theirs} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
