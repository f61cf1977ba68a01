"""Guardrails: what clears an arm, what holds one back, and where the reference arm stays in plans."""

import json

import numpy as np
import pytest

from inside.experiment import Ledger
from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric
from orthobandit.errors import ParameterError
from orthobandit.experiment.ledger.policy_feed import COMPARED_SHARE, GUARDED_SHARE

SALES = np.array([0.1, 0.5, 0.9])


def shop(goal="earn", **rail):
    return Experiment.memory(
        ArmSet.one_hot(3),
        AnytimeElimination(goal=goal, rewards=(0, 1)),
        metrics=[Metric("crash", rewards=(0, 1))],
        guardrails=[Guardrail("crash", **rail)],
        key=f"{5:032x}",
    )


def visited(experiment, rounds, crashes, seed=0, step=50):
    """Let visitors come in, and yield the report after each step."""
    rng = np.random.default_rng(seed)
    for _ in range(0, rounds, step):
        proposals = experiment.ask_many(step)
        arms = np.array([one.arm for one in proposals])
        values = {
            "reward": (rng.random(step) < SALES[arms]).astype(float),
            "crash": (rng.random(step) < np.asarray(crashes)[arms]).astype(float),
        }
        experiment.tell_many([one.id for one in proposals], values)
        yield experiment.report()


@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_the_reference_arm_stays_in_plans_until_arms_are_cleared(goal):
    reports = list(visited(shop(goal), 4000, [0.02, 0.02, 0.02], seed=3))
    blind = [
        one for one in reports if not one.arms[0].is_active and one.declared is None and one.held is None
    ]
    assert blind
    assert all(one.arms[0].probability >= GUARDED_SHARE - 1e-9 for one in blind)
    held = [one for one in reports if one.held is not None]
    assert held
    assert all(one.arms[0].probability == pytest.approx(COMPARED_SHARE) for one in held)
    assert all("has not cleared it" in one.advice for one in held)
    assert all(one.declared is None for one in held)
    last = reports[-1]
    assert last.declared == "2"
    assert last.arms[2].probability == 1.0
    assert "every arm in play is cleared" in last.guardrails[0]


def test_an_arm_that_won_and_does_harm_is_retired_not_declared():
    experiment = shop()
    reports = list(visited(experiment, 4000, [0.02, 0.02, 0.2]))
    assert all(one.declared != "2" for one in reports)
    assert reports[-1].arms[2].is_retired
    assert reports[-1].declared == "1"
    assert experiment.replay().is_equal


def test_more_harm_may_be_allowed_and_less():
    soon = next(one.settled for one in visited(shop(harm=0.5), 4000, [0.02] * 3) if one.declared)
    late = next(one.settled for one in visited(shop(harm=0.03), 20_000, [0.02] * 3) if one.declared)
    assert soon < late
    for harm in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ParameterError, match="harm="):
            Guardrail("crash", harm=harm)


def test_a_retired_reference_arm_is_said_to_leave_a_guardrail_blind():
    experiment = shop()
    list(visited(experiment, 400, [0.02] * 3))
    experiment.retire(0)
    report = list(visited(experiment, 2000, [0.02] * 3, seed=1))[-1]
    assert report.held == "2"
    assert report.arms[0].probability == 0.0
    assert "the reference arm is retired, so no more will be known" in report.advice


def test_the_joint_level_of_several_guardrails_is_said():
    experiment = Experiment.memory(
        ArmSet.one_hot(2),
        AnytimeElimination(rewards=(0, 1)),
        metrics=[Metric("crash", delta=0.01), Metric("seconds", delta=0.02)],
        guardrails=[Guardrail("crash"), Guardrail("seconds"), Guardrail("seconds", 1.0, "lower")],
    )
    words = experiment.report().guardrails
    assert len(words) == 4
    assert "in at most 3 % of experiments" in words[-1]
    assert all(text in str(experiment.report()) for text in words)


def test_a_ledger_with_the_reference_arm_mixed_in_survives_json():
    experiment = shop()
    reports = visited(experiment, 4000, [0.02] * 3)
    while next(reports).held is None:
        pass
    ledger = experiment._shared.do(lambda turn: turn.ledger)
    again = Ledger.from_json(experiment.settings, json.loads(json.dumps(ledger.to_json())))
    assert again.feed.plan.to_json() == ledger.feed.plan.to_json()
    assert np.array_equal(again.feed.cleared, ledger.feed.cleared)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"margin": "5%"}, "margin='5%' must be a finite number of at least 0"),
        ({"margin": True}, "margin=True must be a finite number of at least 0"),
        ({"harm": "a"}, "harm='a' must be a finite number above 0"),
        ({"metric": None}, "metric=None must be the name of a metric"),
    ],
)
def test_a_guardrail_is_of_a_name_and_numbers(given, said):
    with pytest.raises(ParameterError, match=said):
        Guardrail(**{"metric": "crash", **given})
