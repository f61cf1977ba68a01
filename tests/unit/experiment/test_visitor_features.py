"""Visitors who bring features of each arm, and further metrics of personalised experiments."""

import json

import numpy as np
import pytest

from experiment_samples import entries_of
from orthobandit import ArmSet, Experiment, Metric, Personalised
from orthobandit.errors import ParameterError
from orthobandit.verify import verify
from personal_samples import ARMS, KEY, begun, visitors

POLICY = Personalised(
    ["mobile"], {"C on telephones": "C if mobile >= 0.5 else A"}, rewards=(0, 1), features=["price", "near"]
)


@pytest.fixture(params=["memory", "file"])
def shop(request, tmp_path):
    if request.param == "memory":
        made = Experiment.memory(ARMS, POLICY, key=KEY)
    else:
        made = Experiment.create(tmp_path / "shop.db", ARMS, POLICY, key=KEY)
    with made:
        yield made


def offered(rng, labels="ABC"):
    return {label: rng.normal(size=2).tolist() for label in labels}


def test_arms_are_chosen_by_the_features_that_a_visitor_brings(shop):
    rng = np.random.default_rng(4)
    for k in range(150):
        rows = offered(rng, ["ABC", "AB", "BC"][k % 3])
        shown = shop.ask(f"user {k}", features=rows, context={"mobile": float(k % 2)})
        assert shown.label in rows
        assert all((p > 0) == (label in rows) for p, label in zip(shown.probabilities, "ABC", strict=True))
        mean = 0.5 + 0.25 * np.tanh(rows[shown.label][1] - rows[shown.label][0])
        shop.tell(shown.id, float(rng.random() < mean))
    cheap = shop.ask("last", features={"A": [1.0, 0.0], "B": [-1.0, 0.0]}, context={"mobile": 0.0})
    assert cheap.probabilities[1] > 0.6
    effects = shop.report().personal.effects
    assert [(one.arm, one.column) for one in effects] == [("", "price"), ("", "near")]
    assert effects[0].estimate < 0 < effects[1].estimate
    assert "per unit of price" in str(shop.report())
    assert "per unit of price" in shop.report().to_html()
    assert shop.audit().passed
    assert shop.replay().is_equal
    assert verify(shop.certificate().document, shop.head()).valid


def test_a_table_has_a_row_for_every_arm(shop):
    table = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    one = shop.ask("ann", features=table, available=["A", "C"], context={"mobile": 1.0})
    assert one.probabilities[1] == 0
    both = shop.ask_many(units=["bob", "eve"], features=[table, {"B": [1, 2]}], context={"mobile": 1.0})
    assert both[1].probabilities.tolist() == [0, 1, 0]
    assert shop.replay().is_equal


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (None, r"features are missing; every visitor brings 2 numbers \(price, near\)"),
        ({"A": [1.0]}, r"features of 'A' have shape \(1,\); 2 numbers"),
        ({"A": [1.0, float("nan")]}, "feature 'near' of 'A' must be a finite number"),
        # One such visitor would leave sums infinite, and no plan for anybody after.
        ({"A": [1.0, 1e308]}, r"feature 'near' of 'A' must be a finite number of magnitude at most 1e\+50"),
        ({"A": ["near", 1.0]}, r"features of 'A' are \['near', 1.0\]; 2 numbers"),
        ({"D": [1.0, 2.0]}, "features of 'D': arms are A, B, C"),
        ({}, "no arm is available to this visitor"),
        (np.zeros((2, 2)), r"features have shape \(2, 2\); give a row for each of the 3 arms"),
        (np.zeros((3, 3)), r"features of 'A' have shape \(3,\)"),
    ],
)
def test_features_that_do_not_fit_are_named_and_nothing_is_drawn(shop, features, words):
    with pytest.raises(ParameterError, match=words):
        shop.ask("ann", features=features, context={"mobile": 1.0})
    if features is not None:
        good = {"A": [1.0, 2.0], "B": [0.0, 0.0]}
        # Arrays are one for all visitors; rows by label are one a visitor, and the visitor is named.
        place = r"visitor 2 of 2 \('ann'\): " if isinstance(features, dict) else ""
        with pytest.raises(ParameterError, match=place + words):
            shop.ask_many(units=["bob", "ann"], features=[good, features], context={"mobile": 1.0})
    assert shop.report().proposals == 0
    assert shop.replay().is_equal


@pytest.mark.parametrize("context", [None, {}, {"tablet": 1.0}])
def test_rules_still_need_their_columns(shop, context):
    with pytest.raises(ParameterError, match="context has no 'mobile'"):
        shop.ask("ann", features={"A": [1.0, 2.0]}, context=context)
    assert shop.report().proposals == 0


def test_an_arm_that_is_not_on_offer_is_not_available(shop):
    with pytest.raises(ParameterError, match="no arm is available to this visitor"):
        shop.ask("ann", features={"A": [1.0, 2.0]}, available=["B"], context={"mobile": 1.0})


def test_features_are_refused_where_they_follow_from_the_context():
    rows = {"A": [1.0, 2.0]}
    with pytest.raises(ParameterError, match=r"follow from the context: mobile, hour"):
        begun().ask("ann", features=rows, context={"mobile": 1.0, "hour": 0.0})
    ordinary = Experiment.memory(ARMS, rewards=(0, 1))
    with pytest.raises(ParameterError, match="features are for experiments"):
        ordinary.ask("ann", features=rows)
    with pytest.raises(ParameterError, match="features must be a list of 2, one for each proposal"):
        Experiment.memory(ARMS, POLICY).ask_many(2, features=[rows])
    for bad, words in ((["price", "price"], "different names"), ("price", "must be a list")):
        with pytest.raises(ParameterError, match=words):
            Personalised([], features=bad)


@pytest.mark.parametrize("extra", [{"colour": float("inf")}, {3: 1.0}])
def test_what_nobody_can_store_is_refused_before_anything_is_written(extra):
    experiment = begun()
    with pytest.raises(ParameterError, match="must be a finite number by name"):
        experiment.ask("ann", context={"mobile": 1.0, "hour": 0.0, **extra})
    kinds = {getattr(entry, "kind", "asked") for _, entry in entries_of(experiment)}
    assert kinds <= {"begin", "plan", "tick"}
    assert experiment.replay().is_equal


# Further metrics


def played_with_metrics(experiment, count):
    rng = np.random.default_rng(6)
    for start in range(0, count, 20):
        contexts = visitors(rng, 20)
        units = [f"user {start + k}" for k in range(20)]
        shown = experiment.ask_many(units=units, context=contexts)
        # B is liked on telephones; it crashes everywhere.
        arms = np.array([one.arm for one in shown])
        mobile = np.array([one["mobile"] for one in contexts])
        likes = (rng.random(20) < 0.3 + 0.4 * (arms == 1) * mobile).astype(float)
        crashes = (rng.random(20) < 0.05 + 0.6 * (arms == 1)).astype(float)
        values = {"reward": likes, "crash": crashes, "seconds": rng.normal(size=20) + 3.0 * (arms == 2)}
        experiment.tell_many([one.id for one in shown], values)
    return experiment


@pytest.mark.slow
def test_rules_are_judged_in_every_metric():
    settings = {"metrics": [Metric("crash", rewards=(0, 1)), Metric("seconds")], "window": 60.0}
    experiment = played_with_metrics(begun(**settings), 2000)  # until enough draws carry each rule
    assert experiment.replay().is_equal
    report = experiment.report()
    (crash, on_crash), (seconds, on_seconds) = report.personal.metrics
    assert (crash, seconds) == ("crash", "seconds")
    gain = {rule.name: rule for rule in on_crash}
    assert gain["B for all"].low > 0  # it crashes more, proven
    assert gain["B for all"].gain == pytest.approx(0.6, abs=0.15)
    assert gain["B on telephones"].gain == pytest.approx(0.3, abs=0.15)
    assert {rule.name: rule for rule in on_seconds}["C for all"].low > 0
    # One inference: a metric's gaps are the gains of rules that show one arm to all.
    for metric, rules in zip(report.metrics[1:], (on_crash, on_seconds), strict=True):
        assert [gap[0] for gap in metric.gaps[1:]] == [rule.gain for rule in rules[1:3]]
    assert "What each rule does to 'crash'" in str(report)
    assert json.loads(json.dumps(report.to_json()))["personal"]["metrics"]["crash"][1]["low"] > 0
    assert verify(experiment.certificate().document).valid


def test_a_report_computes_gains_once(monkeypatch):
    from orthobandit.policy.contextual import RuleComparison

    experiment = begun()
    experiment.tell(experiment.ask("ann", context={"mobile": 1.0, "hour": 0.0}).id, 1.0)
    computed = []
    widths = RuleComparison._widths
    monkeypatch.setattr(
        RuleComparison, "_widths", lambda self, alpha: computed.append(1) or widths(self, alpha)
    )
    experiment.report()
    experiment.report()
    assert len(computed) == 1


def test_the_policy_says_whether_every_visitor_has_a_plan():
    assert begun().settings.is_personal
    assert not Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1)).settings.is_personal
