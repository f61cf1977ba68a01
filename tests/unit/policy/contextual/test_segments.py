"""Rules by segment: rounds go where they belong, δ is shared, discoveries keep to e-BH, trees find cuts."""

import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.estimate import Bounded, Plan
from orthobandit.policy.contextual import (
    Interactions,
    Offer,
    Round,
    RuleComparison,
    Segment,
    SegmentComparison,
    discover_segments,
)

PAGES = Interactions(["A", "B"], context=["age", "mobile"])
RULES = {"A for all": "A", "B for all": "B"}
EVEN = Plan([0.5, 0.5], 1)


def rounds(count, seed=0, effect=lambda age, mobile: 0.4 if age >= 40 else -0.3):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        age = float(rng.integers(18, 80))
        mobile = float(rng.integers(2))
        arm = int(rng.integers(2))
        mean = 0.4 + effect(age, mobile) * arm
        yield Round(PAGES.offer({"age": age, "mobile": mobile}), EVEN, arm, float(rng.random() < mean))


def test_each_segment_has_the_rounds_of_its_visitors_and_its_share_of_delta():
    old = Segment({"age": (40.0, np.inf)})
    found = SegmentComparison.start(RULES, [old], reference="A for all", delta=0.1)
    alone = RuleComparison.start(RULES, reference="A for all", delta=0.05)
    for one in rounds(300):
        found = found.add(one.offer, one.plan, one.arm, one.reward)
        if one.offer.context["age"] >= 40:
            alone = alone.add(one.offer, one.plan, one.arm, one.reward)
    assert found.gains()["age ≥ 40"] == alone.gains()
    assert sum(one.rounds for one in found.comparisons.values()) == 300


def test_the_best_rule_of_every_segment_is_found():
    earlier = discover_segments(rounds(1500), RULES, reference="A for all", depth=1)
    assert len(earlier) == 2
    assert all(set(segment.bounds) == {"age"} for segment in earlier)
    assert abs(earlier[1].bounds["age"][0] - 40) < 4
    found = SegmentComparison.start(
        RULES, earlier, reference="A for all", confidence=Bounded(0.0, 1.0), floor=0.5
    )
    for one in rounds(1500, seed=1):
        found = found.add(one.offer, one.plan, one.arm, one.reward, forecast=0.4)
    best = found.possible_best()
    assert best[str(earlier[0])] == ("A for all",)
    assert best[str(earlier[1])] == ("B for all",)
    assert [(one.segment, one.rule) for one in found.discoveries()] == [(str(earlier[1]), "B for all")]


def test_a_p_value_is_the_level_at_which_the_interval_leaves_zero():
    found = RuleComparison.start(RULES, reference="A for all", confidence=Bounded(0.0, 1.0), floor=0.5)
    assert found.p_values().tolist() == [1.0]
    for one in rounds(150, effect=lambda age, mobile: 0.3):
        found = found.add(one.offer, one.plan, one.arm, one.reward, forecast=0.4)
    p = float(found.p_values()[0])
    assert 1e-10 < p < 0.4
    for factor, is_proven in ((1.01, True), (0.99, False)):
        width = found._widths(np.array([factor * p]))
        assert bool(found.evidence.estimates[0] > width[0]) is is_proven


def test_a_discovery_needs_more_evidence_the_more_segments_there_are():
    few = SegmentComparison.start(RULES, [Segment({"mobile": (0.5, 2.0)})], reference="A for all", delta=0.2)
    many = SegmentComparison.start(
        RULES,
        [Segment({"mobile": (0.5, 2.0)}), *(Segment({"age": (100.0 + k, 101.0 + k)}) for k in range(400))],
        reference="A for all",
        delta=0.2,
    )
    for one in rounds(400, effect=lambda age, mobile: 0.25 * mobile):
        few = few.add(one.offer, one.plan, one.arm, one.reward, forecast=0.4)
        many = many.add(one.offer, one.plan, one.arm, one.reward, forecast=0.4)
    assert [one.segment for one in few.discoveries()] == ["0.5 ≤ mobile < 2"]
    assert many.discoveries() == []


def test_bad_segments_are_refused_by_name():
    with pytest.raises(ParameterError, match="segments is empty"):
        SegmentComparison.start(RULES, {}, reference="A for all")
    with pytest.raises(ParameterError, match="'everybody else'"):
        SegmentComparison.start(RULES, {"everybody else": bool}, reference="A for all")
    with pytest.raises(ParameterError, match="context has no 'income', which segment income < 3 asks for"):
        Segment({"income": (-np.inf, 3.0)})(Offer([[0.0], [1.0]], context={"age": 3.0}))
    with pytest.raises(ParameterError, match="rounds is empty"):
        discover_segments([], RULES, reference="A for all")
