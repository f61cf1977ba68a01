"""When should a suggestion to walk be sent? HeartSteps V1, rules compared at all times at once.

In this micro-randomised trial (Klasnja et al. 2019) a suggestion was sent with probability 0.6 whenever
somebody was available. One would like to ask whether the effect depends on where a person is. The cleaned
table does not say: its only column about places is `travel`, and nobody who travelled was available. It does
say when. So `python examples/heartsteps_rules.py` prints what sending at some times only would have gained
over never sending, and the effect in the first fortnight and after, with intervals that hold at all times.

The data (klasnja/HeartStepsV1, CC BY 4.0) are read from ../shared/data beside the repository, or from where
the environment variable HEARTSTEPS says.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from pyarrow import csv

from orthobandit import InformationDirected, Interactions, Offer, Plan
from orthobandit.estimate import CovariateRegression
from orthobandit.policy.contextual import RuleComparison, RuleGain
from orthobandit.policy.contextual.rules import Rule

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("HEARTSTEPS", ROOT.parent / "shared" / "data" / "heartsteps_v1.csv"))
PLAN = Plan([0.4, 0.6], 1)
SUGGESTIONS = Interactions(["none", "sent"], context=["early"])
FORTNIGHT = 14  # days of the study that count as early
NOISE, ROUNDS = 2.5, 5000  # guesses of residuals and rounds; intervals are tightest there
KNOWN = ("before", "slot", "day")  # what the level is forecast from


def early(offer: Offer) -> str:
    """Send in a person's first fortnight."""
    return "sent" if offer.context["early"] else "none"


def in_the_day(offer: Offer) -> str:
    """Send at the first three of a day's five decision points."""
    return "sent" if offer.context["slot"] <= 3 else "none"


RULES: dict[str, Rule] = {
    "never": "none",
    "always": "sent",
    "in the first fortnight": early,
    "in the day": in_the_day,
}


def decisions(path: Path = DATA) -> Iterator[tuple[Offer, int, float]]:
    """Yield the offer, the arm and log steps of every decision point with somebody available, in order."""
    rows = csv.read_csv(path)
    rows = rows.filter(rows["avail"]).sort_by("sugg.select.utime")
    for row in rows.to_pylist():
        context = {
            "early": float(row["study.day.nogap"] < FORTNIGHT),
            "before": float(row["jbsteps30pre.log"]),
            "slot": float(row["sugg.select.slot"]),
            "day": float(row["study.day.nogap"]),
        }
        yield SUGGESTIONS.offer(context), int(row["send"]), float(row["jbsteps30.log"])


def compare(path: Path = DATA, delta: float = 0.05) -> tuple[list[RuleGain], dict[str, RuleGain]]:
    """Return the gains of the rules over never sending, and the effect of sending early and late.

    The rules share `delta`; so do the two effects.
    """
    policy = InformationDirected()
    state = policy.start(SUGGESTIONS.dimension)
    forecaster = CovariateRegression(KNOWN).forecaster()
    rules = RuleComparison.start(RULES, reference="never", delta=delta, noise=NOISE, rounds=ROUNDS)
    arms: dict[str, Rule] = {"none": "none", "sent": "sent"}
    one = RuleComparison.start(arms, reference="none", delta=delta / 2, noise=NOISE, rounds=ROUNDS)
    effects = {"first fortnight": one, "after": one}
    for t, (offer, arm, steps) in enumerate(decisions(path)):
        expected = forecaster.forecast(t, offer.context)
        theta = policy.estimate(state)
        level = expected.value
        rules = rules.add(offer, PLAN, arm, steps, forecast=level, theta=theta)
        when = "first fortnight" if offer.context["early"] else "after"
        effects[when] = effects[when].add(offer, PLAN, arm, steps, forecast=level, theta=theta)
        state = policy.observe(state, offer, PLAN, arm, steps, level)
        forecaster.learn(expected, steps - float(offer.features[arm] @ theta))
    return rules.gains(), {when: found.gains()[0] for when, found in effects.items()}


def main() -> None:
    """Print both tables and the answer."""
    if not DATA.exists():
        print(f"{DATA} is not there: set HEARTSTEPS to the path of heartsteps_v1.csv")
        return
    gains, effects = compare()
    print("| send | gain over never, log steps | at all times | decision points |")
    print("|---|---:|---|---:|")
    for gain in gains:
        print(
            f"| {gain.rule} | {gain.estimate:.3f} | {gain.low:.3f} to {gain.high:.3f} | {gain.different:,} |"
        )
    print()
    print("| when | effect of sending | at all times | decision points |")
    print("|---|---:|---|---:|")
    for when, gain in effects.items():
        print(f"| {when} | {gain.estimate:.3f} | {gain.low:.3f} to {gain.high:.3f} | {gain.rounds:,} |")
    first = effects["first fortnight"]
    after = effects["after"]
    # Both intervals hold at once, and so does what follows for their difference.
    low = first.low - after.high
    high = first.high - after.low
    answer = "differs" if low > 0 or high < 0 else "cannot be told apart"
    print(f"\nThe effect early and late {answer}: the difference is between {low:.3f} and {high:.3f}.")


if __name__ == "__main__":
    main()
