"""One-shot exploration with a known gap: its size against the published number, its verdict by hand."""

from math import ceil, cos, log

import numpy as np
import pytest

from orthobandit import ArmSet, OrthogonalRegression, Tally
from orthobandit.design import anchor_design, centred_design
from orthobandit.errors import ParameterError
from orthobandit.policy import FOREVER, OneShot, named_policy
from orthobandit.policy.author_rounds import one_shot_rounds
from orthobandit.simulation import near_degenerate

ARMS = ArmSet(np.random.default_rng(3).standard_normal((5, 3)))


def test_the_published_sample_size_comes_out_exactly():
    instance = near_degenerate(10, 0.2)
    gap = float(np.sort(instance.gaps)[1])
    assert gap == pytest.approx(2 - 2 * cos(0.2))
    plan = OneShot(gap=gap, delta=0.1).plan(OneShot(gap=gap, delta=0.1).start(instance.arms))
    assert plan.rounds == 387_106
    assert np.array_equal(plan.probabilities, anchor_design(instance.arms).probabilities)


@pytest.mark.parametrize(("gap", "delta", "d"), [(0.5, 0.1, 1), (0.05, 0.01, 7), (1.5, 0.3, 20)])
def test_sizes_are_as_in_the_released_code(gap, delta, d):
    leading = 4 / 3 * 4 * d / gap**2 * log(4 * d / (gap * delta))
    lower = 2 / 3 * 32 * d**1.5 / gap * log(d / delta)
    assert one_shot_rounds(gap, delta, d) == ceil(leading + lower)


def test_the_best_looking_arm_is_declared_after_the_last_round_and_not_before():
    policy = OneShot(gap=1.0, delta=0.2, design="centred")
    state = policy.start(ARMS)
    plan = policy.plan(state)
    assert np.array_equal(plan.probabilities, centred_design(ARMS).probabilities)
    rng = np.random.default_rng(5)
    rounds = int(plan.rounds)
    counts = rng.multinomial(rounds, plan.probabilities / plan.probabilities.sum())
    means = rng.standard_normal(5)
    seen = Tally(counts, counts * means, counts * means**2)
    fewer = counts - np.eye(5, dtype=int)[np.argmax(counts)]
    early = policy.observe(state, plan, Tally(fewer, fewer * means, fewer * means**2))
    assert policy.decide(early).declared == -1
    state = policy.observe(state, plan, seen)
    ridge = max(1.0, log(rounds / 0.2))
    best = int(np.argmin(OrthogonalRegression(ridge=ridge).fit(ARMS, [(plan, seen)]).gaps))
    decision = policy.decide(state)
    assert (decision.declared, decision.leader) == (best, best)
    assert np.flatnonzero(decision.active).tolist() == [best]
    assert policy.plan(state).rounds == FOREVER


def test_it_claims_nothing_and_says_that_it_is_told_the_gap():
    policy = OneShot(gap=1.0, longest=4)
    state = policy.start(ArmSet([[0.0], [1.0]]))
    assert policy.plan(state).rounds == 4
    state = policy.observe(state, policy.plan(state), Tally([2, 2], [0.0, 8.0], [0.0, 32.0]))
    decision = policy.decide(state)
    assert (decision.declared, decision.certainty, decision.epsilon) == (1, 0.0, np.inf)
    assert "told the gap" in decision.mode


def test_a_gap_must_be_given():
    assert named_policy("one-shot", gap=0.5) == OneShot(0.5)
    with pytest.raises(ParameterError, match="'one-shot' needs the setting 'gap'"):
        named_policy("one-shot")
    with pytest.raises(ParameterError, match="gap=0"):
        OneShot(gap=0.0)
    with pytest.raises(ParameterError, match="longest=0"):
        OneShot(gap=1.0, longest=0)
    with pytest.raises(ParameterError, match="design='deo'"):
        OneShot(gap=1.0, design="deo")


def test_tiny_gaps_last_for_ever():
    assert one_shot_rounds(1e-12, 0.1, 3) == FOREVER
