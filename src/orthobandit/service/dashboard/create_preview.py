"""How an experiment would begin, and how long it may take: a preview of a form."""

from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from orthobandit.arms import ArmSet
from orthobandit.service.api.creation import arms_of, policy_of, range_of
from orthobandit.service.api.requests import CreateBody
from orthobandit.service.dashboard.create_metrics import said_of
from orthobandit.service.dashboard.form_fields import DraftError, number

# simulated runs, and rounds after which one is given up
RUNS = 10
LIMIT = 200_000
MOST_ARMS = 40  # of a simulation that takes seconds only
_ONE = Lock()  # a simulation at a time, so that visitors are served meanwhile


class Rounds(NamedTuple):
    """Visitors that simulated runs took, None beyond the limit; and the days that this is."""

    median: int | None
    least: int | None
    most: int | None
    days: float | None


def preview(body: CreateBody, fields: dict[str, str]) -> dict[str, Any]:
    """Return what a page shows before an experiment begins.

    Raises
    ------
    DraftError
        If spread or daily visitors are no numbers.
    """
    wrong: dict[str, str] = {}
    ends = range_of(body.rewards)
    half = 1.0 if ends is None else (ends[1] - ends[0]) / 2
    sigma = number(fields, "spread", wrong) if fields["spread"].strip() else half
    daily = number(fields, "daily", wrong) if fields["daily"].strip() else 0.0
    if not wrong and not (0 < sigma < np.inf):
        wrong["spread"] = f"{sigma:g} must be more than 0"
    if not wrong and not (0 <= daily < np.inf):
        wrong["daily"] = f"{daily:g} must be at least 0"
    if wrong:
        raise DraftError(wrong)
    arms = arms_of(body.arms)
    policy = policy_of(body)
    plan = policy.plan(policy.start(arms))
    rounds = None
    if body.epsilon > 0 and len(arms) <= MOST_ARMS:
        rounds = _rounds(arms, body, sigma, daily)
    return {
        "arms": list(zip(arms.labels, plan.probabilities.tolist(), strict=True)),
        "dimension": arms.dimension,
        "rounds": rounds,
        "runs": RUNS,
        "limit": LIMIT,
        "most_arms": MOST_ARMS,
        "sigma": sigma,
        "daily": daily,
        "metrics": list(said_of(body)),
    }


def _rounds(arms: ArmSet, body: CreateBody, sigma: float, daily: float) -> Rounds:
    from orthobandit.simulation import rounds_to_plan  # a server need not wait for it to begin

    with _ONE:
        needed = rounds_to_plan(
            arms,
            epsilon=body.epsilon,
            delta=body.delta,
            goal=body.goal,
            sigma=sigma,
            runs=RUNS,
            limit=LIMIT,
        )
    median, least, most = (
        int(value) if np.isfinite(value) else None
        for value in np.quantile(needed, [0.5, 0.0, 1.0], method="higher")
    )
    days = median / daily if median is not None and daily else None
    return Rounds(median, least, most, days)
