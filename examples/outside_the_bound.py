"""How often SBE errs where the paper promises nothing: shifts beyond |ν| ≤ 1, and heavy-tailed noise.

Run `python examples/outside_the_bound.py`; a minute later it prints the table of docs/simulation.md.
"""

from scipy.stats import binomtest

from orthobandit import SBE
from orthobandit.simulation import (
    Adaptive,
    Constant,
    Environment,
    Gaussian,
    LogAlternating,
    Noise,
    Oblivious,
    Sine,
    StudentT,
    Trend,
    exact_gap,
    simulate,
    within,
)

RUNS = 2000
DELTA = 0.1
POLICIES = {
    "experiments, c = 1": SBE(delta=DELTA),
    "theory, C₂ = 1": SBE(delta=DELTA, schedule="theory"),
}
CASES: dict[str, tuple[Oblivious | Adaptive, Noise]] = {
    "ν¹ / 2 (within the bound)": (within(Sine()), Gaussian()),
    "ν¹ = 1 + sin 2t": (Sine(), Gaussian()),
    "ν² = ±max(log(t+1)/5, 2)": (LogAlternating(), Gaussian()),
    "constant 10": (Constant(10.0), Gaussian()),
    "trend t/1000": (Trend(1e-3), Gaussian()),
    "trend t/100": (Trend(1e-2), Gaussian()),
    "trend t/10": (Trend(1e-1), Gaussian()),
    "ν¹ / 2, Student-t noise, 3 df": (within(Sine()), StudentT(3.0)),
    "ν¹ / 2, Student-t noise, 1.5 df": (within(Sine()), StudentT(1.5)),
}


def failure_rate(policy: SBE, environment: Environment) -> str:
    """Return the share of runs without a right declaration, and its exact 95 % interval."""
    result = simulate(
        policy,
        environment,
        horizon=10**6,
        replications=RUNS,
        seed=0,
        checkpoints=[10**6],
        stop_when_declared=True,
    )
    failed = int((~result.correct).sum())
    low, high = binomtest(failed, RUNS).proportion_ci(0.95, method="exact")
    return f"{100 * failed / RUNS:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def main() -> None:
    """Print the table, as Markdown."""
    instance = exact_gap(5, 10, 0.5, seed=0)
    print(f"| failures in {RUNS:,} runs, δ = {DELTA} | {' | '.join(POLICIES)} |")
    print("|---|" + "---:|" * len(POLICIES))
    for name, (shift, noise) in CASES.items():
        cells = [failure_rate(policy, instance.moved(shift, noise)) for policy in POLICIES.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
