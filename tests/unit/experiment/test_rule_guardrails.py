"""Guardrails of personalised experiments: a rule that does harm is neither declared nor advised."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet, Experiment, Guardrail, Metric, Personalised
from orthobandit.errors import ParameterError
from orthobandit.verify import verify

RULES = {"B on telephones": "B if mobile >= 0.5 else A", "B on desktops": "B if mobile < 0.5 else A"}
POLICY = Personalised(["mobile"], RULES, rewards=(0, 1), explore=0.99)
CRASH = Metric("crash", rewards=(0, 1))


def play(*guardrails, visitors=300):
    """B earns .9 and A nothing, but B crashes on telephones; a tenth crash anyway."""
    live = Experiment.memory(
        ArmSet.one_hot(2, labels=["A", "B"]), POLICY, key="5" * 64, metrics=[CRASH], guardrails=guardrails
    )
    rng = np.random.default_rng(0)
    contexts = [{"mobile": float(one)} for one in rng.random(visitors) < 0.5]
    shown = live.ask_many(units=[f"user {place}" for place in range(visitors)], context=contexts)
    is_b = np.array([one.label == "B" for one in shown])
    is_mobile = np.array([one["mobile"] == 1.0 for one in contexts])
    ids = [one.id for one in shown]
    earned = is_b & (rng.random(visitors) < 0.9)
    crashed = (is_b & is_mobile) | (rng.random(visitors) < 0.1)
    live.tell_many(ids, {"reward": earned.astype(float), "crash": crashed.astype(float)})
    return live


def test_a_rule_that_harms_cannot_be_the_best():
    free = play().report()
    assert "'B for all' looks best" in free.advice
    assert free.personal.guardrails == ()
    live = play(Guardrail("crash", margin=0.05, harm=0.5))
    report = live.report()
    personal = report.personal
    harms = {rule.name: rule.harms for rule in personal.rules}
    assert harms == {
        "A for all": (),
        "B for all": ("crash",),
        "B on telephones": ("crash",),
        "B on desktops": (),
    }
    # It earns less than 'B for all', whose intervals must not count against it any more.
    assert personal.best == "B on desktops"
    assert [rule.name for rule in personal.rules if rule.is_possible] == ["B on desktops"]
    assert report.advice.startswith("Follow the rule 'B on desktops': it earns most of the 2 rules that no")
    assert "B for all" in report.guardrails[0]
    assert "harms crash" in str(report)
    assert json.loads(json.dumps(report.to_json()))["personal"]["rules"][1]["harms"] == ["crash"]
    (check,) = live.glance().guardrails
    assert check.is_alarm
    assert "rules out 'B for all', 'B on telephones'" in check.words
    # No arm is retired: B serves those with desktops.
    assert report.retirements == ()
    assert live.replay().is_equal


def test_a_rule_is_held_back_until_the_guardrail_clears_it():
    report = play(Guardrail("crash", margin=0.05, harm=0.001)).report()
    assert (report.personal.best, report.personal.held) == (None, "B on desktops")
    assert "has not cleared it; it is declared once it is" in report.advice
    assert "crash not cleared" in str(report)


def test_the_side_that_is_worse_counts():
    report = play(Guardrail("crash", worse="lower", harm=0.5)).report()
    assert not any(rule.harms for rule in report.personal.rules)
    assert "'B for all' looks best" in report.advice


def test_a_guardrail_on_a_metric_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="guardrail on 'crashes': metrics are reward, crash"):
        play(Guardrail("crashes"))


def test_no_certificate_calls_a_rule_the_best_that_is_not_cleared():
    policy = Personalised(["mobile"], rewards=(0, 1), explore=0.99)
    for harm, is_certified in ((0.9, True), (0.001, False)):
        live = Experiment.memory(
            ArmSet.one_hot(2, labels=["A", "B"]),
            policy,
            key="5" * 64,
            metrics=[CRASH],
            guardrails=[Guardrail("crash", harm=harm)],
        )
        shown = live.ask_many(
            units=[f"user {place}" for place in range(120)],
            context=[{"mobile": float(place % 3 > 0)} for place in range(120)],
        )
        crashed = np.random.default_rng(1).random(120) < 0.1
        earned = [float(one.label == "B") for one in shown]
        live.tell_many([one.id for one in shown], {"reward": earned, "crash": crashed.astype(float)})
        assert [rule.name for rule in live.report().personal.rules if rule.is_possible] == ["B for all"]
        if is_certified:
            assert verify(live.certificate().document).valid
            assert live.report().personal.best == "B for all"
        else:
            with pytest.raises(ParameterError, match="guardrail on 'crash' rules it out or has not cleared"):
                live.certificate()
