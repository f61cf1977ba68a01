"""Estimate how long simulations will take, before they begin."""

import math
import time
from typing import Any

from orthobandit.policy import Policy
from orthobandit.simulation import Environment, simulate

MANY_ROUNDS = 10**9  # rounds of all runs together beyond which the time they take is estimated first
LONGEST_HOURS = 24.0  # estimated hours beyond which commands ask for confirmation
# Trial runs tell how time grows with the horizon: the first has so many rounds, each further one ten times as
# many, and the last takes long enough to be measured.
FIRST_TRIAL = 20_000
TRIAL_GROWTH = 10
TRIAL_SECONDS = 0.3


def expected_seconds(policy: Policy[Any], environment: Environment, horizon: int) -> float:
    """Return the expected seconds of one replication, extrapolated from short runs.

    Policies that plan in phases hardly take longer for more rounds. The time of others grows with the rounds,
    for some only once the rounds outweigh the fixed cost of a run.
    """
    rounds = min(FIRST_TRIAL, horizon)
    seconds_of(policy, environment, rounds)  # compiles
    before = seconds_of(policy, environment, rounds)
    while True:
        longer = min(TRIAL_GROWTH * rounds, horizon)
        taken = seconds_of(policy, environment, longer)
        if longer == horizon:
            return taken
        if taken >= TRIAL_SECONDS:
            power = math.log(max(taken / before, 1.0)) / math.log(longer / rounds)
            return taken * math.pow(horizon / longer, min(power, 1.0))
        rounds = longer
        before = taken


def seconds_of(policy: Policy[Any], environment: Environment, horizon: int) -> float:
    begin = time.perf_counter()
    simulate(policy, environment, horizon=horizon, replications=1, seed=0)
    return time.perf_counter() - begin


def time_in_words(hours: float) -> str:
    years = hours / (24 * 365.25)
    return f"{years:,.0f} years" if years >= 2 else f"{hours / 24:,.0f} days"
