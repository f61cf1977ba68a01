"""Reports of personalised experiments recommend no rule under an alarm, and none that names a retired arm."""

import numpy as np
import pytest

from orthobandit import ArmSet, Experiment, Personalised
from orthobandit.errors import ParameterError

RULES = {"B on telephones": "B if mobile >= 0.5 else A"}


def begun(labels="ABC", rules=RULES):
    arms = ArmSet.one_hot(len(labels), labels=list(labels))
    policy = Personalised(["mobile"], rules, explore=0.6)
    return Experiment.memory(arms, policy, rewards="unknown", key="1" * 64)


def play(experiment, rates, count, kept=None):
    """Let visitors be drawn by clients, who report an arm with the probability `kept` of its label, or 1."""
    before = experiment.report().proposals
    rng = np.random.default_rng(before)
    plan = experiment.edge_plan()
    contexts = [{"mobile": float(rng.random() < 0.5)} for _ in range(count)]
    draws = [plan.draw(f"user {before + k}", context) for k, context in enumerate(contexts)]
    labels = [arm.label for arm in experiment.report().arms]
    shown = [labels[draw.arm] for draw in draws]
    came = [k for k in range(count) if rng.random() < (kept or {}).get(shown[k], 1.0)]
    rewards = [float(rng.random() < rates[shown[k]]) for k in came]
    experiment.expose(
        plan.plan,
        [draws[k].unit for k in came],
        [draws[k].arm for k in came],
        rewards,
        context=[contexts[k] for k in came],
    )


def tags_of(report):
    """Return the last cell of each row of the table of rules in the text."""
    lines = str(report).partition("What each rule earns")[2].splitlines()[2 : 2 + len(report.personal.rules)]
    return [line.strip() for line in lines]


def test_under_an_alarm_no_rule_is_recommended_anywhere():
    experiment = begun("AB")
    for _ in range(5):
        play(experiment, {"A": 0.1, "B": 0.9}, 120, kept={"A": 0.4})
    report = experiment.report()
    assert report.alarms == ("sample-ratio",)
    assert report.advice.startswith("Do not act: arms were not drawn as the plans say")
    assert (report.personal.best, report.personal.held, report.leader) == (None, None, None)
    assert "best" not in " ".join(tags_of(report))
    assert {audience.best for audience in report.personal.audiences} == {None}
    with pytest.raises(ParameterError, match="no certificate while arms were not drawn as the plans"):
        experiment.certificate()


def test_a_rule_that_names_a_retired_arm_is_tagged_and_not_recommended():
    experiment = begun()
    play(experiment, {"A": 0.1, "B": 0.9, "C": 0.4}, 900)
    assert experiment.report().personal.best == "B for all"
    experiment.retire("B")
    play(experiment, {"A": 0.1, "B": 0.9, "C": 0.4}, 900)
    report = experiment.report()
    assert report.advice.startswith("Follow the rule 'C for all': it earns most of the 2 rules that name no")
    assert report.personal.best == "C for all"
    assert [rule.retired for rule in report.personal.rules] == [(), ("B",), (), ("B",)]
    assert [rule.name for rule in report.personal.rules if rule.is_possible] == ["C for all"]
    a, b, c, written = tags_of(report)
    assert b.endswith("names a retired arm")
    assert written.endswith("names a retired arm")
    assert c.endswith("proven best")
    assert not a.endswith(("best", "arm"))


def test_the_last_arm_has_no_rivals_and_its_rule_is_not_proven():
    experiment = begun()
    play(experiment, {"A": 0.1, "B": 0.9, "C": 0.4}, 900)
    experiment.retire("A")
    experiment.retire("C")
    report = experiment.report()
    assert not report.has_rivals
    assert report.personal.best is None
    assert report.advice == (
        "Only 'B' is left: all other arms were retired, so that there is nothing left to compare it with."
    )
    assert "proven best" not in str(report)
    assert repr(report).endswith("nothing to find out)")
