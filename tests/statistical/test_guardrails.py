"""Guardrails see harm after the reference arm has been dropped, and no harmful arm is declared.

Sales of .1, .5 and .52, crashes of 1 %, 1 % and 6 %: the reference arm is soon dropped, and the arm that
sells most does harm. Intervals of the crashes miss in at most 5 % of runs, which is the most that a harmful
arm is ever declared; the exact binomial test raises a false alarm once in 10⁹.
"""

import numpy as np
import pytest
from scipy.stats import binom

from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

SALES, CRASHES = np.array([0.1, 0.5, 0.52]), np.array([0.01, 0.01, 0.06])
RUNS, ROUNDS, STEP = 40, 8000, 200
DELTA, FALSE_ALARM = 0.05, 1e-9


def play(seed, goal):
    """Play until the harmful arm is retired; return after how many draws, and if it was ever declared."""
    rng = np.random.default_rng([12, seed])
    experiment = Experiment.memory(
        ArmSet.one_hot(3),
        AnytimeElimination(goal=goal, rewards=(0, 1)),
        objective="sale",
        metrics=[Metric("crash", rewards=(0, 1), delta=DELTA)],
        guardrails=[Guardrail("crash")],
        key=f"{seed:032x}",
    )
    was_declared = False
    for first in range(0, ROUNDS, STEP):
        proposals = experiment.ask_many(STEP)
        arms = np.array([one.arm for one in proposals])
        values = {
            "sale": (rng.random(STEP) < SALES[arms]).astype(float),
            "crash": (rng.random(STEP) < CRASHES[arms]).astype(float),
        }
        experiment.tell_many([one.id for one in proposals], values)
        report = experiment.report()
        was_declared |= report.declared == "2"
        if report.arms[2].is_retired:
            return first + STEP, was_declared
    return np.inf, was_declared


@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_a_harmful_arm_is_retired_though_the_reference_arm_was_dropped(goal):
    when, declared = zip(*(play(seed, goal) for seed in range(RUNS)), strict=True)
    assert np.isfinite(when).mean() >= 0.9
    assert sum(declared) <= binom.isf(FALSE_ALARM, RUNS, DELTA)
    # Published: 7 of 40 were declared, and none was retired.
    assert sum(declared) == 0
