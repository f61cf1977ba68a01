"""Rules are compared without bias in every round, and rounds that cannot judge them are refused by name."""

import json

import numpy as np
import pytest

from orthobandit.errors import ParameterError, ProbabilityError, RewardError
from orthobandit.estimate import Asymptotic, Bounded, Plan, SubGaussian
from orthobandit.policy.contextual import Interactions, Offer, RuleComparison, spread_plan

THIRDS = {
    "first": "0",
    "last": lambda offer: offer.labels[-1],
    "any": lambda offer: dict.fromkeys(offer.labels, 1.0 / len(offer)),
}


def score(before, after):
    """Return ψ (m,) of the last round."""
    return after.evidence.totals - before.evidence.totals


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("confidence", [None, Bounded(-50.0, 50.0)], ids=["asymptotic", "bounded"])
@pytest.mark.parametrize(("arms", "features"), [(2, 5), (3, 5), (4, 2), (6, 3)])
def test_each_round_is_unbiased_whatever_level_forecast_and_coefficients(arms, features, linear, confidence):
    rng = np.random.default_rng([arms, features])
    theta = rng.normal(size=features)
    rules = RuleComparison.start(THIRDS, reference="first", confidence=confidence, floor=0.01, linear=linear)
    for level in (0.0, -30.0):
        offer = Offer(rng.normal(size=(arms, features)))
        plan = spread_plan(Plan(rng.dirichlet(np.full(arms, 0.5)), 1), 0.2)
        forecast, guess = rng.normal(), rng.normal(size=features)
        means = offer.features @ theta
        found = [
            score(rules, rules.add(offer, plan, arm, means[arm] + level, forecast=forecast, theta=guess))
            for arm in range(arms)
        ]
        expected = [means[-1] - means[0], means.mean() - means[0]]
        assert np.allclose(plan.probabilities @ found, expected, atol=1e-9)


def test_without_a_linear_model_weights_are_inverse_propensities():
    rules = RuleComparison.start({"a": "0", "b": "1"}, reference="a", linear=False)
    z, g = rules.weights(Offer(np.eye(3)), Plan([0.5, 0.2, 0.3], 1))
    assert z.tolist() == [[-1.0, 1.0, 0.0]]
    assert g.tolist() == [[-2.0, 5.0, 0.0]]


def test_arms_that_share_no_feature_need_no_linear_model():
    pages = Interactions(["A", "B", "C"], context=["age"])
    plan = Plan([0.2, 0.3, 0.5], 1)
    both = [
        RuleComparison.start({"a": "A", "b": "B"}, reference="a", linear=linear).weights(
            pages.offer({"age": 3.0}), plan
        )[1]
        for linear in (True, False)
    ]
    assert np.allclose(*both)


def test_a_linear_model_judges_arms_that_are_not_played():
    line = Offer([[0.0], [1.0], [2.0]])
    plan = Plan([0.5, 0.5, 0.0], 1)
    rules = {"none": "0", "twice": "2"}
    _, g = RuleComparison.start(rules, reference="none").weights(line, plan)
    assert np.allclose(g, [[-4.0, 4.0, 0.0]])
    with pytest.raises(ProbabilityError, match="round 0: rules 'twice' and 'none' differ on 0, 2, which"):
        RuleComparison.start(rules, reference="none", linear=False).weights(line, plan)


def test_weights_that_reach_beyond_the_floor_give_way_to_plain_ones():
    # An arm that no rule chooses is played rarely, and lies far out: the linear weights lean on it.
    offer = Offer([[0.0], [1.0], [30.0]])
    plan = Plan([0.495, 0.495, 0.01], 1)
    rules = {"a": "0", "b": "1"}
    free = RuleComparison.start(rules, reference="a").weights(offer, plan)[1]
    kept = RuleComparison.start(rules, reference="a", floor=0.49).weights(offer, plan)[1]
    assert np.abs(free).max() > 1 / 0.49
    assert np.allclose(kept, [[-1 / 0.495, 1 / 0.495, 0.0]])
    with pytest.raises(ProbabilityError, match=r"below the declared floor=0.4"):
        RuleComparison.start({"a": "0", "c": "2"}, reference="a", floor=0.4, linear=False).weights(
            offer, plan
        )


def played(confidence, rounds=400, **settings):
    pages = Interactions(["A", "B"], context=["mobile"])
    rules = {
        "A for all": "A",
        "B for all": "B",
        "B on telephones": lambda offer: "B" if offer.context["mobile"] else "A",
        "also A": lambda offer: "A",
    }
    found = RuleComparison.start(rules, reference="A for all", confidence=confidence, **settings)
    rng = np.random.default_rng(2)
    for t in range(rounds):
        offer = pages.offer({"mobile": float(t % 2)})
        arm = int(rng.integers(2))
        mean = 0.3 + (0.4 if t % 2 else -0.2) * arm
        reward = float(rng.random() < mean)
        found = found.add(offer, Plan([0.5, 0.5], 1), arm, reward, forecast=0.3)
    return found


@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(0.0, 1.0), SubGaussian(0.0, 1.0, 0.5)])
def test_the_rule_that_looks_at_who_comes_is_found(confidence):
    found = played(confidence, rounds=1500, floor=0.5)
    gains = {gain.rule: gain for gain in found.gains()}
    assert gains["B on telephones"].low > 0
    assert gains["B on telephones"].low <= 0.2 <= gains["B on telephones"].high
    assert gains["B on telephones"].different == 750
    assert gains["B for all"].low <= 0.1 <= gains["B for all"].high
    assert (gains["also A"].low, gains["also A"].high, gains["also A"].different) == (0.0, 0.0, 0)
    assert "A for all" not in found.possible_best()
    assert "B on telephones" in found.possible_best()
    assert "B on telephones earns +0." in str(gains["B on telephones"])


@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(0.0, 1.0)])
def test_what_was_learnt_survives_json(confidence):
    found = played(confidence, rounds=60, floor=0.5)
    blank = played(confidence, rounds=0, floor=0.5)
    again = blank.resumed(json.loads(json.dumps(found.to_json(), allow_nan=False)))
    assert again.gains() == found.gains()
    offer = Interactions(["A", "B"], context=["mobile"]).offer({"mobile": 1.0})
    added = [one.add(offer, Plan([0.5, 0.5], 1), 1, 1.0).to_json() for one in (found, again)]
    assert added[0] == added[1]


def test_nothing_is_claimed_before_there_is_evidence():
    assert {gain.high for gain in played(None, rounds=0).gains()} == {np.inf}
    pages = Interactions(["A", "B"])
    found = RuleComparison.start({"a": "A", "b": "B"}, reference="a")
    for t in range(200):
        # Rewards that never differ say nothing of what a reward can be.
        found = found.add(pages.offer(), Plan([0.5, 0.5], 1), t % 2, 0.0, forecast=0.1 / (t + 1))
    assert found.gains()[0].high == np.inf
    assert found.possible_best() == ("a", "b")


def test_an_arm_that_was_hardly_drawn_carries_no_claim():
    pages = Interactions(["A", "B"])
    found = RuleComparison.start({"a": "A", "b": "B"}, reference="a")
    rng = np.random.default_rng(0)
    for t in range(300):
        arm = int(t % 60 == 0)
        found = found.add(pages.offer(), Plan([0.98, 0.02], 1), arm, float(rng.normal()))
    assert found.gains()[0].high == np.inf


def test_a_loud_arm_counts_for_what_it_was_drawn_for_and_for_what_it_may_be():
    # Residuals of B are three times those of A. With p = (0.8, 0.2), v = 1/0.8 + 1/0.2 = 6.25; where B has
    # been louder, squares of g·residual are 1/0.8 times A's loudness and 1/0.2 times B's on average.
    pages = Interactions(["A", "B"])
    found = RuleComparison.start({"a": "A", "b": "B"}, reference="a", linear=False)
    squares, draws, pooled = np.zeros(2), np.zeros(2), 0.0
    for t in range(40):
        arm = int(t % 4 == 3)
        residual = (3.0 if arm else 1.0) * (-1.0) ** (t // 4)
        found = found.add(pages.offer(), Plan([0.8, 0.2], 1), arm, residual)
        squares[arm] += residual**2
        draws[arm] += 1
        whole = squares.sum() / draws.sum()
        loudness = np.where(draws > 0, squares / np.maximum(draws, 1.0), whole) / whole
        pooled += max(6.25, loudness @ [1.25, 5.0]) * residual**2
    assert found.evidence.pooled == pytest.approx(pooled)
    assert pooled > 1.5 * 6.25 * squares.sum()


def test_one_arm_on_offer_is_a_round_without_a_gain():
    found = RuleComparison.start(THIRDS, reference="first")
    found = found.add(Offer([[1.0, 2.0]]), Plan([1.0], 1), 0, 7.0)
    assert found.rounds == 1
    assert [gain.different for gain in found.gains()] == [0, 0]
    assert [(gain.low, gain.high) for gain in found.gains()] == [(0.0, 0.0)] * 2


def test_bad_input_is_refused_by_name():
    offer = Offer(np.eye(2), labels=["A", "B"])
    even = Plan([0.5, 0.5], 1)
    both = {"a": "A", "b": "B"}
    start = RuleComparison.start
    with pytest.raises(ParameterError, match="1 entries"):
        start({"a": "A"}, reference="a")
    with pytest.raises(ParameterError, match="reference='c' is not among the rules a, b"):
        start(both, reference="c")
    with pytest.raises(ParameterError, match=r"floor is missing.*spread_plan"):
        start(both, reference="a", confidence=Bounded(0.0, 1.0))
    with pytest.raises(ParameterError, match="rule 'b' is 3"):
        start({"a": "A", "b": 3}, reference="a")
    with pytest.raises(ParameterError, match=r"round 0: rule 'c' chooses 'C', which is not offered.*A, B"):
        start({"a": "A", "c": "C"}, reference="a").add(offer, even, 0, 1.0)
    with pytest.raises(ProbabilityError, match=r"rule 'c' sum to 0.7"):
        start({"a": "A", "c": lambda offer: {"A": 0.7}}, reference="a").add(offer, even, 0, 1.0)
    rules = start(both, reference="a", confidence=Bounded(0.0, 1.0), floor=0.5)
    with pytest.raises(RewardError, match="outside the declared range"):
        rules.add(offer, even, 0, 2.0)
    with pytest.raises(ParameterError, match="arm=5 cannot have been drawn"):
        rules.add(offer, even, 5, 1.0)
    with pytest.raises(ParameterError, match=r"theta has shape \(3,\); 2 finite"):
        rules.add(offer, even, 0, 1.0, theta=np.zeros(3))
    with pytest.raises(ParameterError, match=r"the plan has shape \(3,\), the offer 2 arms"):
        rules.add(offer, Plan(np.full(3, 1 / 3), 1), 0, 1.0)
    with pytest.raises(ParameterError, match="start with the same ones"):
        start(both, reference="b").resumed(rules.to_json())
