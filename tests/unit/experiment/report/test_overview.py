"""A glance shows what a report does and what is provisional, and writes nothing."""

import pytest

from orthobandit import ArmSet, Experiment, Guardrail, Metric


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
    before = list(pages._store.entries())
    glance = pages.glance()
    assert glance.report == report
    assert len(list(pages._store.entries())) == len(before)
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
    watch = pages._now().watch
    for _ in range(20):
        watch.ratio = watch.ratio.and_of([0.5, 0.5], [540, 460])
    first = pages.glance().checks[0]
    assert first.is_alarm
    assert first.words.startswith("arms are not drawn as the plans say, p = ")
