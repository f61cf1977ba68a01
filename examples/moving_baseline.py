"""Find the offer that sells best, although demand has a season and traffic is moved half-way.

Five offers, 10 000 visitors. Demand rises and falls by a slow sine that no offer has any part in. Half-way
the experimenter does what is usually done, and sends most visitors to the offer that leads. By then demand
is low, so the leader collects most of the bad times.
"""

import numpy as np
from numpy.typing import NDArray

from orthobandit import ArmSet, OrthogonalRegression, Plan, Tally
from orthobandit._foundation.random import draw_arms, stream

Array = NDArray[np.float64]

SEED = 0
HALF = 5_000
OFFERS = ArmSet(
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 1.0]],  # discount in units of 10 %, free delivery
    labels=["as it is", "5 % off", "10 % off", "free delivery", "5 % off + free delivery"],
)
VALUES = OFFERS.features @ np.array([0.5, 0.4])


def play(plan: Plan, half: int) -> Tally:
    """Show offers for half a season, drawn from the plan, and tally what visitors spend."""
    visitors = np.arange(HALF) + half * HALF
    season = 2.0 * np.sin(np.pi * visitors / HALF)
    offers = draw_arms(stream(SEED, "arms", half), plan.probabilities, HALF)
    noise = stream(SEED, "noise", half).standard_normal(HALF)
    return Tally.of(offers, VALUES[offers] + season + noise, len(OFFERS))


def least_squares(tally: Tally, columns: Array) -> Array:
    """Return the gaps by ordinary least squares on the given columns, blind to when offers were shown."""
    gram = columns.T @ (columns * tally.counts[:, np.newaxis])
    values = columns @ np.linalg.solve(gram, columns.T @ tally.sums)
    return np.asarray(values.max() - values)


def estimate() -> dict[str, Array]:
    """Run the experiment and return the gaps: the truth, ours and what ordinary least squares makes of it."""
    first = Plan([0.2, 0.2, 0.2, 0.2, 0.2], HALF)
    early = play(first, half=0)
    leader = np.argmax(early.sums / early.counts)
    second = Plan(np.where(np.arange(len(OFFERS)) == leader, 0.8, 0.05), HALF)
    late = play(second, half=1)
    pooled = early + late
    return {
        "true gap": VALUES.max() - VALUES,
        "orthogonalised": OrthogonalRegression().fit(OFFERS, [(first, early), (second, late)]).gaps,
        "OLS": least_squares(pooled, OFFERS.features),
        "OLS + intercept": least_squares(pooled, np.column_stack([np.ones(len(OFFERS)), OFFERS.features])),
    }


def main() -> None:
    """Print the gaps side by side."""
    columns = estimate()
    truth = columns["true gap"]
    best = {name: OFFERS.labels[np.argmin(gaps)] for name, gaps in columns.items()}
    print(f"Gap to the best offer after {2 * HALF:,} visitors, by method\n")
    print(f"{'offer':<25}" + "".join(f"{name:>17}" for name in columns))
    for row, label in enumerate(OFFERS.labels):
        print(f"{label:<25}" + "".join(f"{gaps[row]:>17.2f}" for gaps in columns.values()))
    largest = [f"{np.abs(gaps - truth).max():>17.2f}" for gaps in columns.values()]
    print(f"\n{'largest error':<25}{'':>17}" + "".join(largest[1:]))
    print(
        "\nThe season moved all offers alike, yet least squares takes it for their own doing: it calls"
        f"\n{best['OLS']!r} best, with an intercept {best['OLS + intercept']!r};"
        f" orthogonalised regression finds\n{best['orthogonalised']!r}, which is the best."
    )


if __name__ == "__main__":
    main()
