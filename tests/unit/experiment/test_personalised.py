"""Personalised live experiments: every visitor has an offer, a distribution and a place in the order."""

import json

import numpy as np
import pytest

from experiment_samples import ledger_of
from orthobandit import AnytimeElimination, ArmSet, Experiment, InformationDirected, Personalised
from orthobandit.errors import ClosedError, ParameterError, RewardError

ARMS = ArmSet.one_hot(3, labels=["A", "B", "C"])
RULES = {"B on telephones": "B if mobile >= 0.5 else A"}
POLICY = Personalised(["mobile"], RULES, rewards=(0, 1))
KEY = "7" * 64


def visitor(rng):
    return {"mobile": float(rng.random() < 0.5)}


def play(experiment, visitors, *, seed=1, first=0, batch=20):
    """B is better on telephones and worse elsewhere; the level depends on who comes."""
    rng = np.random.default_rng(seed)
    for start in range(first, first + visitors, batch):
        contexts = [visitor(rng) for _ in range(batch)]
        shown = experiment.ask_many(units=[f"user {start + k}" for k in range(batch)], context=contexts)
        means = [
            0.2 + 0.2 * one["mobile"] + (proposal.label == "B") * (0.5 * one["mobile"] - 0.15)
            for proposal, one in zip(shown, contexts, strict=True)
        ]
        experiment.tell_many([one.id for one in shown], (rng.random(batch) < means).astype(float))


@pytest.fixture(params=["memory", "file"])
def experiment(request, tmp_path):
    if request.param == "memory":
        made = Experiment.memory(ARMS, POLICY, key=KEY)
    else:
        made = Experiment.create(tmp_path / "personal.db", ARMS, POLICY, key=KEY)
    with made:
        yield made


def test_visitors_get_what_serves_them_and_the_log_gives_the_state(experiment):
    play(experiment, 600)
    with_telephone = experiment.ask("new", context={"mobile": 1.0})
    without = experiment.ask("other", context={"mobile": 0.0})
    assert with_telephone.probabilities[1] > 0.8 > without.probabilities[1]
    assert min(with_telephone.probabilities) >= POLICY.explore / 3 - 1e-12
    assert sum(without.probabilities) == pytest.approx(1.0)
    assert experiment.audit().passed
    assert experiment.replay().is_equal


def test_a_unit_that_comes_again_gets_its_first_proposal_whatever_its_context(experiment):
    first = experiment.ask("ann", context={"mobile": 1.0})
    again = experiment.ask("ann", context={"mobile": 0.0})
    assert (again.id, again.arm) == (first.id, first.arm)
    assert again.probabilities.tolist() == first.probabilities.tolist()
    assert experiment.ask("ann").id == first.id


def test_rewards_count_in_the_order_of_draws(experiment):
    shown = experiment.ask_many(3, context={"mobile": 1.0})
    experiment.tell(shown[2].id, 1.0)
    assert experiment.report().settled == 0
    experiment.tell_many([shown[0].id, shown[1].id], [0.0, 1.0])
    assert experiment.report().settled == 3
    assert experiment.replay().is_equal


def test_it_goes_on_from_a_file_and_from_its_log_alone(tmp_path):
    path = tmp_path / "personal.db"
    with Experiment.create(path, ARMS, POLICY, key=KEY) as whole:
        play(whole, 80)
        awaited = whole.ask("late", context={"mobile": 1.0})
    with Experiment.open(path) as again:
        assert again.settings.policy == POLICY
        assert again.replay().is_equal
        again.tell(awaited.id, 1.0)
        play(again, 40, seed=2, first=80)
        assert again.replay().is_equal
        assert again.report().settled == 121
    twin = Experiment.memory(ARMS, POLICY, key=KEY)
    play(twin, 80)
    twin.tell(twin.ask("late", context={"mobile": 1.0}).id, 1.0)
    play(twin, 40, seed=2, first=80)
    with Experiment.open(path) as again:
        mine = again.ask("last", context={"mobile": 0.0})
        assert mine.probabilities.tolist() == twin.ask("last", context={"mobile": 0.0}).probabilities.tolist()


def test_arms_that_are_not_available_or_retired_are_not_offered(experiment):
    shown = experiment.ask("ann", available=["A", "C"], context={"mobile": 1.0})
    assert shown.label in ("A", "C")
    assert shown.probabilities[1] == 0
    experiment.tell(shown.id, 1.0)
    alone = experiment.ask("bob", available=["C"], context={"mobile": 1.0})
    assert alone.probabilities.tolist() == [0, 0, 1]
    experiment.tell(alone.id, 0.0)
    experiment.retire("B")
    later = experiment.ask("eve", context={"mobile": 1.0})
    assert later.probabilities[1] == 0
    with pytest.raises(ParameterError, match="were retired"):
        experiment.ask("mel", available=["B"], context={"mobile": 1.0})
    experiment.tell(later.id, 1.0)
    assert experiment.replay().is_equal
    assert experiment.audit().passed


def test_silence_counts_as_zero_when_the_window_is_over():
    now = [0.0]
    experiment = Experiment.memory(ARMS, POLICY, window="1h", clock=lambda: now[0], key=KEY)
    experiment.ask_many(5, context={"mobile": 1.0})
    now[0] = 3601.0
    assert experiment.report().settled == 5
    assert experiment.replay().is_equal


def test_a_holdout_is_shown_the_first_arm_and_teaches_nothing():
    experiment = Experiment.memory(ARMS, POLICY, holdout=0.5, key=KEY)
    shown = experiment.ask_many(40, context={"mobile": 1.0})
    held = [one for one in shown if one.held]
    assert 5 < len(held) < 35
    assert {one.label for one in held} == {"A"}
    experiment.tell_many([one.id for one in shown], [1.0] * 40)
    assert ledger_of(experiment).feed.state.comparison.rounds == 40 - len(held)


@pytest.mark.parametrize("rewards", [(0, 1), None])
def test_the_state_survives_json_exactly(rewards):
    policy = Personalised(["mobile"], RULES, rewards=rewards)
    experiment = Experiment.memory(ARMS, policy, rewards=None if rewards else "unknown", key=KEY)
    play(experiment, 60)
    state = ledger_of(experiment).feed.state
    kept = json.loads(json.dumps(policy.dump(state), allow_nan=False))
    assert policy.dump(policy.load(ARMS, kept)) == policy.dump(state)


def test_effects_have_intervals_where_rewards_are_declared():
    exact, rough = (
        Experiment.memory(ARMS, Personalised(["mobile"], rewards=rewards), rewards=said, key=KEY)
        for rewards, said in (((0, 1), None), (None, "unknown"))
    )
    for one in (exact, rough):
        play(one, 100)
    first, *_ = exact.settings.policy.effects(ledger_of(exact).feed.state)
    assert (first.arm, first.reference, first.column) == ("B", "A", None)
    assert first.low < first.estimate < first.high
    effects = rough.settings.policy.effects(ledger_of(rough).feed.state)
    assert [(one.arm, one.column) for one in effects] == [
        ("B", None),
        ("B", "mobile"),
        ("C", None),
        ("C", "mobile"),
    ]
    assert {one.low for one in effects} == {None}


def test_arms_with_features_share_their_effects():
    arms = ArmSet([[0.0], [1.0], [2.0]], labels=["none", "one", "two"])
    experiment = Experiment.memory(arms, Personalised(["hour"], rewards=(0, 1)), key=KEY)
    for k in range(10):
        shown = experiment.ask(f"user {k}", context={"hour": k / 10})
        experiment.tell(shown.id, 1.0)
    effects = experiment.settings.policy.effects(ledger_of(experiment).feed.state)
    # Two steps are twice one step, for everybody and per hour.
    assert effects[2].estimate == pytest.approx(2 * effects[0].estimate)
    assert effects[3].estimate == pytest.approx(2 * effects[1].estimate)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (None, "context has no 'mobile'"),
        ({"tablet": 1.0}, "context has no 'mobile'"),
        ({"mobile": float("nan")}, "finite number"),
    ],
)
def test_a_context_that_cannot_be_used_is_named_and_nothing_is_drawn(experiment, context, words):
    with pytest.raises(ParameterError, match=words):
        experiment.ask("ann", context=context)
    with pytest.raises(ParameterError, match=words):
        experiment.ask_many(units=["ann", "bob"], context=[{"mobile": 1.0}, context or {}])
    assert experiment.report().proposals == 0
    assert experiment.replay().is_equal


def test_what_a_personalised_experiment_cannot_do_is_said(experiment):
    with pytest.raises(ParameterError, match="plan=0 was never handed out; none was"):
        experiment.expose(0, ["ann"], [0])
    with pytest.raises(ParameterError, match="cannot take in new arms"):
        experiment.extend(ArmSet.one_hot(4, labels=["A", "B", "C", "D"]))
    with pytest.raises(RewardError, match="range"):
        experiment.tell(experiment.ask("ann", context={"mobile": 1.0}).id, 7.0)
    experiment.stop("enough")
    with pytest.raises(ClosedError):
        experiment.ask("bob", context={"mobile": 1.0})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Personalised([]), "must name the columns"),
        (lambda: Personalised("mobile"), "must be a list"),
        (lambda: Personalised(["mobile"], explore=0.0), "explore"),
        (lambda: Personalised(["mobile"], policy=AnytimeElimination()), "must be InformationDirected"),
        (
            lambda: Personalised(["mobile"], {"B for all": "B"}).start(ARMS),
            "two rules are named 'B for all'",
        ),
        (lambda: Personalised(["mobile"]).start(ArmSet.one_hot(1)), "two arms or more"),
        (lambda: Experiment.memory(ARMS, POLICY, reference="B"), "compares with its first arm"),
        (
            lambda: Experiment.memory(ARMS, Personalised(["mobile"])),
            "rewards is not given",
        ),
        (
            lambda: Experiment.memory(ARMS, rewards=(0, 1)).ask(context={"mobile": 1.0}),
            "context is for experiments that are made with Personalised",
        ),
    ],
)
def test_settings_that_cannot_be_are_named(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_a_range_is_said_to_the_experiment_and_not_to_the_inner_policy():
    from orthobandit import Bounded

    with pytest.raises(ParameterError, match="say where rewards lie by `rewards`"):
        Personalised(["mobile"], policy=InformationDirected(confidence=Bounded(0, 1)))


def test_the_report_has_rules_effects_and_audiences_that_agree(experiment):
    assert experiment.report().advice == "Too early: nobody has come yet."
    play(experiment, 600)
    report = experiment.report()
    personal = report.personal
    assert [rule.name for rule in personal.rules] == [
        "A for all",
        "B for all",
        "C for all",
        "B on telephones",
    ]
    # One inference: the gap of an arm is the gain of the rule that shows it to all.
    for arm, rule in zip(report.arms[1:], personal.rules[1:3], strict=True):
        assert (arm.gap, arm.low, arm.high) == (rule.gain, rule.low, rule.high)
    looks = max(personal.rules, key=lambda rule: rule.gain)
    assert looks.name == "B on telephones"
    assert "'B on telephones' looks best" in report.advice
    without, with_telephone = personal.audiences
    assert (without.column, without.value, with_telephone.value) == ("mobile", 0.0, 1.0)
    assert without.best != "B" == with_telephone.best
    assert sum(arm.probability for arm in report.arms) == pytest.approx(1.0)
    assert json.loads(json.dumps(report.to_json()))["personal"]["rules"][3]["gain"] == looks.gain
    for words in (str(report), report.to_html(), report._repr_html_()):
        assert "B on telephones" in words
    assert "per unit of mobile" in str(report)


@pytest.mark.slow
def test_a_rule_that_earns_most_is_proven_and_said():
    policy = Personalised(["mobile"], RULES, rewards=(0, 1))
    experiment = Experiment.memory(ArmSet.one_hot(2, labels=["A", "B"]), policy, key=KEY)
    rng = np.random.default_rng(1)
    for _ in range(60):
        contexts = [visitor(rng) for _ in range(50)]
        shown = experiment.ask_many(50, context=contexts)
        served = [one.arm == given["mobile"] for one, given in zip(shown, contexts, strict=True)]
        experiment.tell_many([one.id for one in shown], np.array(served, dtype=float))
    report = experiment.report()
    assert report.personal.best == "B on telephones"
    assert report.advice.startswith("Follow the rule 'B on telephones'")
