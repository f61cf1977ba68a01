"""A glance shows what a report does and what is provisional, and writes nothing."""

import numpy as np
import pytest

from experiment_samples import entries_of, ledger_of
from inside.service import DECLARED, Look, find_news, state_of
from orthobandit import ArmSet, Experiment, Guardrail, Metric
from orthobandit.errors import ParameterError


@pytest.fixture
def pages():
    return Experiment.memory(
        ArmSet.one_hot(2, labels=["old", "new"]),
        rewards=(0, 1),
        silence="missing",
        metrics=[Metric("seconds", (0, 9))],
        guardrails=[Guardrail("seconds", 0.5), Guardrail("seconds", worse="lower")],
    )


def test_provisional_rewards_are_counted_by_arm_and_settled_ones_are_not(pages):
    proposals = pages.ask_many(20)
    assert pages.glance().provisional == ((0, None), (0, None))
    for one in proposals[1:]:
        pages.tell(one.id, float(one.arm))
    later = [one.arm for one in proposals[1:]]
    glance = pages.glance()
    assert glance.provisional == ((later.count(0), 0.0), (later.count(1), 1.0))
    assert glance.report.settled == 0
    pages.tell(proposals[0].id, 1.0)  # now all are settled, in the order of draws
    assert pages.glance().provisional == ((0, None), (0, None))
    assert pages.glance().report.settled == 20


def test_a_glance_is_the_report_and_leaves_the_log_alone(pages):
    for one in pages.ask_many(30):
        pages.tell(one.id, float(one.arm))
    report = pages.report()
    before = entries_of(pages)
    glance = pages.glance()
    assert glance.report == report
    assert len(entries_of(pages)) == len(before)
    assert glance.at == before[-1][1].at
    assert glance.plan == pages.ask().plan


def test_health_and_guardrails_are_in_words(pages):
    glance = pages.glance()
    assert [check.name for check in glance.checks] == ["Sample ratio", "Silence", "Constancy of gaps"]
    assert not any(check.is_alarm for check in glance.checks)
    assert glance.checks[0].words == "arms are drawn as the plans say, p = 1"
    assert [(rail.name, rail.words) for rail in glance.guardrails] == [
        (
            "Guardrail on seconds",
            "an arm is retired once it is proven above the reference arm by more than 0.5",
        ),
        ("Guardrail on seconds", "an arm is retired once it is proven below the reference arm"),
    ]
    assert not any(rail.is_alarm for rail in glance.guardrails)


def test_an_alarm_is_one(pages):
    watch = ledger_of(pages).watch
    for _ in range(20):
        watch.ratio = watch.ratio.and_of([0.5, 0.5], [540, 460])
    first = pages.glance().checks[0]
    assert first.is_alarm
    assert first.words.startswith("arms were not drawn as the plans say, p = ")


def test_no_arm_is_advised_while_an_alarm_says_not_to_believe_claims():
    now = 0.0
    random = np.random.default_rng(0)
    pages = Experiment.memory(
        ArmSet.one_hot(2, labels=["old", "new"]),
        rewards=(0, 1),
        window=10.0,
        silence="missing",
        clock=lambda: now,
        key="1" * 32,
    )
    for _ in range(5):
        shown = pages.ask_many(100)
        bought = random.random(100) < 0.5
        # Nothing is heard of most visitors who did not buy, with one of the arms alone.
        is_heard = bought | (random.random(100) < 0.3) | np.array([one.arm == 0 for one in shown])
        kept = [
            (one.id, float(reward))
            for one, reward, is_told in zip(shown, bought, is_heard, strict=True)
            if is_told
        ]
        pages.tell_many(*zip(*kept, strict=True))
        now += 20.0
    report = pages.report()
    assert report.alarms == ("missing",)
    # The arms are equal, and the policy would declare one: that is what the alarm warns of.
    assert (report.declared, report.held, report.leader) == (None, None, None)
    assert report.advice == (
        "Do not act: rewards are missing more for some arms than for others, so what claims rest on does not"
        " hold; see the alarm."
    )
    # Nothing beside it claims what the alarm takes back, and it is said once.
    for text in (str(report), report.to_html(), report._repr_html_()):
        assert text.count("missing more for some arms") == 1
        assert "While there is an alarm, intervals and error rates need not hold" in text
        assert "winner" not in text
        assert "False winners" not in text
    assert state_of(report).word == "running"
    assert DECLARED not in [news.kind for news in find_news("pages", Look(1, now, report), now)]
    with pytest.raises(ParameterError, match="no certificate while rewards are missing more for some arms"):
        pages.certificate()
