"""What a report advises before there is evidence, and where there is nothing to find out."""

import numpy as np
import pytest

from orthobandit import ArmSet, Experiment, Guardrail, Metric
from orthobandit.experiment.report.render import arm_tags

LUCK = ", so which arm looks best is luck."


def told(experiment, count, *, skip=0):
    """Ask for proposals, and tell a reward of all but the first ones."""
    proposals = experiment.ask_many(count)
    experiment.tell_many([one.id for one in proposals[skip:]], [1.0] * (count - skip))


def two_pages(**settings):
    return Experiment.memory(ArmSet.one_hot(2, labels=["old", "new"]), rewards=(0, 1), **settings)


def test_nothing_is_said_of_arms_before_there_is_evidence():
    experiment = two_pages()
    assert experiment.report().advice == "Too early: nobody has come yet."
    told(experiment, 1)
    report = experiment.report()
    assert report.advice == f"Too early: 1 of 1 visitors settled{LUCK}"
    assert report.is_early
    assert report.leader is report.to_json()["leader"] is None
    assert "leads" not in str(report)
    # The policy warms up, and names its first arm as the leader.
    told(experiment, 79)
    report = experiment.report()
    assert report.is_early
    assert report.advice.startswith("Too early: 80 of 80 visitors settled, about ")
    assert "leads" not in str(report)
    told(experiment, 400)
    report = experiment.report()
    assert not report.is_early
    assert "looks best so far" in report.advice
    assert f"Go on: {report.leader!r} looks best so far" in report.advice
    assert report.to_json()["leader"] == report.leader
    assert "leads" in str(report)


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        ({"window": "7d"}, "which has none yet; it settles 7 days after its draw at the latest."),
        ({}, "tell it, or begin with a `window` after which such a"),
    ],
)
def test_rewards_that_wait_for_another_are_explained(settings, end):
    experiment = two_pages(**settings)
    told(experiment, 54, skip=1)
    advice = experiment.report().advice
    assert advice.startswith(
        "Too early: 0 of 54 visitors settled; 53 with rewards wait for proposal 1, which"
    )
    assert end in advice


def test_rewards_that_wait_for_another_are_noted_later_too():
    experiment = two_pages()
    for count in (80, 400):
        told(experiment, count)
    experiment.ask()
    told(experiment, 54)
    experiment.pause()
    report = experiment.report()
    assert not report.is_early
    assert "resume" in report.advice
    (note,) = [text for text in report.warnings if "wait for" in text]
    assert note.startswith("480 of 535 proposals are settled; 54 with rewards wait for proposal 481")


def test_rewards_that_wait_for_the_end_of_a_window_are_no_news():
    experiment = two_pages(window="7d")
    told(experiment, 800)
    experiment.ask()
    told(experiment, 54)
    assert experiment.report().warnings == ()


def test_a_proposal_that_lacks_another_metric_is_not_said_to_lack_its_reward():
    experiment = two_pages(window="7d", metrics=[Metric("basket")])
    proposals = experiment.ask_many(30)
    experiment.tell(proposals[0].id, 1.0)
    for one in proposals[1:]:
        experiment.tell(one.id, {"reward": 1.0, "basket": 20.0})
    end = "29 with rewards wait for proposal 1, of which 'basket' is not told yet; it settles 7 days"
    assert end in experiment.report().advice


def test_a_proposal_whose_rewards_add_up_is_said_to_be_open():
    experiment = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 9), window="7d", add=True)
    told(experiment, 30)
    end = "29 with rewards wait for proposal 1, final at the end of its window."
    assert experiment.report().advice.endswith(end)


@pytest.mark.parametrize(
    ("arms", "why"),
    [
        (ArmSet.one_hot(1), "there is no other arm"),
        (ArmSet([[1.0, 0.0], [1.0, 0.0]]), "by their features, all arms are the same"),
    ],
)
def test_a_winner_without_rivals_is_not_called_the_best(arms, why):
    experiment = Experiment.memory(arms, rewards=(0, 1))
    told(experiment, 1)
    report = experiment.report()
    assert report.advice == f"Show '0': {why}, so that there is nothing to find out."
    assert not report.has_rivals
    assert not any("winner" in tag for arm in report.arms for tag in arm_tags(report, arm))
    assert repr(report) == "Report(open, 1 of 1 proposals settled, nothing to find out)"


def test_the_last_arm_of_all_has_no_rivals():
    experiment = two_pages()
    assert experiment.report().has_rivals
    experiment.retire("new")
    assert not experiment.report().has_rivals


def test_rewards_that_wait_are_counted_with_what_they_wait_for():
    experiment = two_pages(window="7d")
    told(experiment, 4)
    assert "4 proposals, 4 settled, 0 awaited; gaps" in str(experiment.report())
    told(experiment, 3, skip=1)
    waits = "7 proposals, 4 settled, 3 awaited (2 with rewards so far; the next to settle is proposal 5)"
    assert waits in str(experiment.report())
    assert waits in experiment.report().to_html()


def test_an_experiment_its_certificate_and_the_verdict_print_what_they_say():
    experiment = two_pages()
    rng = np.random.default_rng(0)
    for _ in range(12):
        shown = experiment.ask_many(100)
        experiment.tell_many(
            [one.id for one in shown], [float(rng.random() < 0.2 + 0.5 * one.arm) for one in shown]
        )
    assert str(experiment) == str(experiment.report())
    assert repr(experiment) == "Experiment('in memory', 2 arms)"
    assert "Show &#x27;new&#x27;: it is the best" in experiment._repr_html_()
    certificate = experiment.certificate()
    assert str(certificate).startswith("'new' is the best of 2 arms")
    assert "<b>&#x27;new&#x27; is the best of 2 arms" in certificate._repr_html_()
    verdict = certificate.verdict
    assert str(verdict).startswith("valid: 'new' is the best of 2 arms")
    assert verdict._repr_html_().startswith("<p><b>Valid:</b> &#x27;new&#x27; is the best")
    verdict.need(False, "a < b")
    assert str(verdict).endswith("\n  wrong: a < b")
    assert "<li>a &lt; b</li>" in verdict._repr_html_()
    experiment.close()
    assert str(experiment) == "Experiment('in memory', 2 arms), closed"
    assert "closed" in experiment._repr_html_()


def test_an_outlook_is_a_range_within_which_it_mostly_ends():
    experiment = two_pages(key="0" * 32)
    chance = np.random.default_rng(3)
    ranges = []
    while not (report := experiment.report()).declared:
        if report.expected_between is not None:
            soonest, latest = report.expected_between
            ranges.append((soonest, latest or np.inf))
            assert report.settled < soonest <= (report.expected or np.inf) <= (latest or np.inf)
            assert report.outlook.startswith("In 3 of 4 cases like this, it ends after ") == bool(latest)
            assert report.outlook.endswith(", and may take far longer.") == (latest is None)
        proposals = experiment.ask_many(20)
        rates = np.array([0.2, 0.5])[[one.arm for one in proposals]]
        experiment.tell_many([one.id for one in proposals], (chance.random(20) < rates).astype(float))
    assert len(ranges) > 2
    # Looks at one experiment err together; most see the end in their range.
    assert np.mean([low - 20 <= report.settled <= high + 20 for low, high in ranges]) > 0.5
    assert report.outlook == ""
    assert report.expected is report.expected_between is None


def test_what_is_known_before_the_first_evidence_is_said_by_the_advice():
    experiment = two_pages(key="0" * 32)
    proposals = experiment.ask_many(35)
    experiment.tell_many([one.id for one in proposals], [float(one.id % 3 == 0) for one in proposals])
    report = experiment.report()
    assert report.outlook == ""
    assert report.expected > 1_000
    assert "expected to find an arm that is 10 % better" in report.advice


def test_a_guardrail_says_when_an_arm_is_cleared():
    rail = Guardrail("seconds", margin=0.5, harm=0.25)
    experiment = two_pages(metrics=[Metric("seconds", rewards=(0, 4))], guardrails=[rail])
    words = experiment.report().guardrails[0]
    assert "not cleared yet: 'new' (may be worse by 4)" in words
    assert words.endswith("an arm is cleared once more than 0.75, margin and harm together, is ruled out.")
    unbounded = two_pages(metrics=[Metric("seconds")], guardrails=[rail])
    assert "'new' (nothing is known of it)" in unbounded.report().guardrails[0]


def test_luck_is_not_named_where_the_intervals_have_ruled_an_arm_out():
    arms = ArmSet.one_hot(2, labels=["old", "new"])
    experiment = Experiment.memory(arms, rewards="unknown", key="0" * 32)
    chance = np.random.default_rng(0)
    for count, lead in ((1000, ""), (1000, "Go on: by the intervals only 'new' can be the best")):
        shown = experiment.ask_many(count)
        experiment.tell_many([one.id for one in shown], [one.arm + chance.normal() for one in shown])
        report = experiment.report()
        assert "luck" not in report.advice
        assert report.advice.startswith(lead)
        if not lead:  # the first plan is not evaluated yet: an estimate of 0 would be nobody's
            assert report.arms[1].gap is None


def test_the_last_arm_that_was_not_retired_is_not_called_the_best():
    experiment = Experiment.memory(ArmSet.one_hot(3, labels=["a", "b", "c"]), rewards=(0, 1))
    told(experiment, 5)
    experiment.retire("a")
    experiment.retire("b")
    report = experiment.report()
    alone = "all other arms were retired, so that there is nothing left to compare it with."
    assert report.advice == f"Show 'c': {alone}"
    assert not any(line.endswith("winner") for line in str(report).splitlines())
    # What holds for both is said once.
    (note,) = report.warnings
    assert note.startswith("'a' was retired by hand; 'b' was retired by hand. Claims are about")


def test_the_last_arm_is_not_shown_before_guardrails_have_cleared_it():
    experiment = Experiment.memory(
        ArmSet.one_hot(2, labels=["a", "b"]),
        rewards=(0, 1),
        metrics=[Metric("crash", rewards=(0, 1))],
        guardrails=[Guardrail("crash", 0.02)],
    )
    told(experiment, 5)
    experiment.retire("a")
    report = experiment.report()
    assert report.declared is None
    assert report.advice.startswith("Only 'b' is left, and guardrails have not cleared it: all other arms")


def test_a_retired_arm_is_not_said_to_be_worse():
    """The best may be among those that were taken out: only the best of the others is looked for."""
    experiment = Experiment.memory(ArmSet.one_hot(4, labels=list("abcd")), rewards=(0, 1), key="0" * 32)
    chance = np.random.default_rng(0)
    experiment.retire("d")
    for _ in range(40):
        shown = experiment.ask_many(100)
        rates = np.array([0.5, 0.5, 0.1, 0.9])[[one.arm for one in shown]]
        experiment.tell_many([one.id for one in shown], (chance.random(100) < rates).astype(float))
    assert experiment.report().advice.endswith("and the best of the arms that are left is one of 'a', 'b'.")


def test_a_pause_and_a_stop_say_what_is_known():
    experiment = two_pages()
    experiment.ask()
    experiment.pause()
    assert experiment.report().advice.startswith("Paused: nobody is assigned an arm")
    experiment.resume()
    experiment.stop()
    assert experiment.report().advice.endswith("declare an arm, and too early to say which looks best.")


@pytest.mark.parametrize(
    ("settings", "end"),
    [
        ({"window": "3d"}, "each does with its reward, or 3 days after its draw."),
        ({}, "each does with its reward, so report zeros too, or begin with a `window`."),
    ],
)
def test_before_the_first_settles_it_is_said_when_one_does(settings, end):
    experiment = two_pages(**settings)
    experiment.ask_many(3)
    assert experiment.report().advice == f"Too early: 0 of 3 visitors settled; {end}"


def test_an_arm_leads_on_the_objective_only():
    experiment = two_pages(metrics=[Metric("refund", rewards=(0, 1))], objective="sale", key="0" * 32)
    shown = experiment.ask_many(300)
    experiment.tell_many(
        [one.id for one in shown],
        {"sale": [float(one.arm) for one in shown], "refund": [float(one.arm) for one in shown]},
    )
    report = experiment.report()
    assert report.declared == "new"
    page = report.to_html()
    assert "winner" in page.partition("<h2>refund</h2>")[0]
    assert "winner" not in page.partition("<h2>refund</h2>")[2]


def test_a_label_of_two_lines_is_one_row_of_the_table():
    experiment = Experiment.memory(ArmSet.one_hot(2, labels=["a\nb", "c"]), rewards=(0, 1))
    experiment.ask()
    assert "1 proposal, 0 settled" in str(experiment)
    assert "  a�b" in str(experiment)


def test_a_metric_that_nobody_reports_is_named():
    """Where silence counts as 0, a guardrail whose metric is never reported clears every arm."""
    experiment = two_pages(
        objective="sale",
        metrics=[Metric("crash", rewards=(0, 1)), Metric("seconds")],
        guardrails=[Guardrail("crash", margin=0.2)],
    )
    for _ in range(15):
        proposals = experiment.ask_many(100)
        values = np.arange(100.0) % 2
        experiment.tell_many([one.id for one in proposals], {"sale": values, "seconds": values})
    report = experiment.report()
    assert "every arm in play is cleared" in report.guardrails[0]
    [warning] = [one for one in report.warnings if "ever told" in one]
    assert warning == (
        "no value of 'crash' other than 0 was ever told, and silence counts as 0: make sure that it is"
        " reported before you believe what is said of it"
    )


@pytest.mark.parametrize(
    ("silence", "words"),
    [
        ("zero", "no value of 'reward' was ever told, and silence counts as 0"),
        ("missing", "no value of 'reward' was ever told, so nothing is known of it"),
    ],
)
def test_a_reward_that_nobody_reports_is_named(clock, silence, words):
    experiment = two_pages(clock=clock, window="1h", silence=silence)
    experiment.ask_many(99)
    clock.now += 3600
    assert not [one for one in experiment.report().warnings if "ever told" in one]
    experiment.ask_many(1)
    clock.now += 3600
    assert [one for one in experiment.report().warnings if one.startswith(words)]


def test_zeros_that_are_told_are_no_silence():
    experiment = two_pages()
    proposals = experiment.ask_many(200)
    experiment.tell_many([one.id for one in proposals], [0.0] * 200)
    assert not [one for one in experiment.report().warnings if "ever told" in one]


def test_arms_that_are_the_same_by_their_features_differ_by_nothing():
    experiment = Experiment.memory(ArmSet([[1, 2], [1, 2]], labels=["old", "new"]), rewards=(0, 1))
    told(experiment, 200)
    report = experiment.report()
    assert [(arm.low, arm.high) for arm in report.arms] == [(0.0, 0.0)] * 2
    assert "winner" not in str(report)
    assert report.level_words.startswith("All intervals of 'reward' hold together")


def test_printing_says_what_it_does_not_settle(clock):
    experiment = two_pages(clock=clock, window="1h")
    experiment.ask_many(3)
    assert "note:" not in str(experiment)
    clock.now += 3600
    note = "the window of 3 awaited proposals has passed; printing changes nothing, report() settles them"
    assert f"note: {note}" in str(experiment)
    assert note in experiment._repr_html_()
    assert "0 settled" in str(experiment)  # indeed nothing
    assert experiment.report().settled == 3
    assert "note:" not in str(experiment)


def test_levels_and_shares_have_no_more_digits_than_mean_something():
    experiment = two_pages(metrics=[Metric("seconds", rewards=(0, 9), delta=0.05 / 3)])
    told(experiment, 10)
    page = experiment.report().to_html()
    assert "in at least 98.33 %" in page
    assert "98.3333" not in page
