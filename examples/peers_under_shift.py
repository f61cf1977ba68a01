"""What a shift that hides the best arm does to each policy.

Run `python examples/peers_under_shift.py`; a few minutes later it prints the table of docs/policies.md.
"""

from typing import Any

import numpy as np

from orthobandit.estimate import SubGaussian
from orthobandit.peers import (
    BOSE,
    P1RAGE,
    RAGE,
    SPBAI,
    UCB1,
    ActionCentredTS,
    FarthestPair,
    LinTS,
    LinUCB,
    MABThompson,
    PhasedElimination,
    SemiparametricTS,
    StratifiedMeans,
)
from orthobandit.policy import SBE, AnytimeElimination, Policy, UniformAllocation
from orthobandit.simulation import CancelBest, Environment, exact_gap, simulate

ROUNDS, RUNS = 3000, 30
POLICIES: dict[str, dict[str, Policy[Any]]] = {
    "orthogonal to the shift": {
        "anytime elimination, earn": AnytimeElimination(goal="earn"),
        "anytime elimination, earn, exact": AnytimeElimination(
            goal="earn", confidence=SubGaussian(-2.0, 2.0)
        ),
        "SBE": SBE(),
        "BOSE, λ = 1, c = ½": BOSE(ROUNDS, ridge=1.0, scale=0.5),
        "farthest pair, λ = 1, c = ½": FarthestPair(ROUNDS, ridge=1.0, scale=0.5),
        "semiparametric TS, c = 0.3": SemiparametricTS(ROUNDS, scale=0.3),
        "action-centred TS": ActionCentredTS(),
        "SP-BAI": SPBAI(),
        "P1-RAGE, half the rounds": P1RAGE(ROUNDS // 2),
    },
    "randomised alike": {
        "stratified means, epochs of 100": StratifiedMeans(100),
        "uniform allocation": UniformAllocation(),
    },
    "blind to the shift": {
        "LinUCB": LinUCB(),
        "linear TS, v = 1": LinTS(spread=1.0),
        "phased elimination": PhasedElimination(),
        "RAGE, σ = ½": RAGE(noise=0.5),  # with σ = 1 its first phase outlasts the experiment
        "UCB1": UCB1(),
        "Gaussian TS": MABThompson(),
    },
}


def outcome(policy: Policy[Any], environment: Environment) -> tuple[float, float]:
    """Return the mean regret at the end and the share of runs in which the best arm leads."""
    result = simulate(
        policy, environment, horizon=ROUNDS, replications=RUNS, seed=1, checkpoints=[ROUNDS], jobs=2
    )
    leads = environment.gaps[result.decision.leader] == 0
    return float(result.regret[:, -1].mean()), float(np.mean(leads))


def main() -> None:
    """Print one line per policy."""
    still = exact_gap(dimension=3, count=6, gap=0.5, seed=1)
    moving = still.moved(CancelBest(limit=1.0))
    print("| policy | regret, ν = 0 | best arm leads | regret, best arm hidden | best arm leads |")
    print("|---|---:|---:|---:|---:|")
    for kind, policies in POLICIES.items():
        print(f"| *{kind}* | | | | |")
        for name, policy in policies.items():
            calm, found = outcome(policy, still)
            hidden, share = outcome(policy, moving)
            print(f"| {name} | {calm:,.0f} | {found:.0%} | {hidden:,.0f} | {share:.0%} |", flush=True)


if __name__ == "__main__":
    main()
