"""Fixed-budget peers against hand-computed designs."""

import math

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.peers.adjacent_bai import adjacent_design, adjacent_pairs
from orthobandit.peers.xy_design import xy_design
from orthobandit.policy import GBAI, AdjacentBAI, ODLinBAI, P1Peace, Peace


def exactly(counts, rewards):
    """Return the tally of rounds in which each arm earns always the same."""
    counts = np.asarray(counts)
    sums = counts * np.asarray(rewards, dtype=float)
    return Tally(counts=counts, sums=sums, squares=sums * rewards, largest=np.abs(rewards))


def test_od_linbai_halves_the_dimension():
    policy = ODLinBAI(budget=90)
    state = policy.start(ArmSet.one_hot(8))
    left = []
    while policy.decide(state).declared < 0:
        plan = policy.plan(state)
        assert int(plan.rounds) == 30
        active = np.flatnonzero(policy.decide(state).active)
        left.append(len(active))
        assert plan.probabilities[active] == pytest.approx(np.full(len(active), 1 / len(active)))
        each = np.where(np.isin(np.arange(8), active), 30 // len(active), 0)
        each[active[0]] += 30 - each.sum()
        state = policy.observe(state, plan, exactly(each, np.arange(8.0)))
    assert left == [8, 4, 2]
    assert policy.decide(state).declared == 7


@pytest.mark.parametrize("policy", [GBAI(60), AdjacentBAI(60)])
def test_one_design_serves_the_whole_budget(policy):
    arms = ArmSet.one_hot(3)
    state = policy.start(arms)
    plan = policy.plan(state)
    assert plan.probabilities == pytest.approx(np.full(3, 1 / 3), abs=1e-3)
    after = policy.observe(state, plan, exactly([20, 20, 20], np.array([1.0, 2.0, 0.5])))
    assert policy.decide(after).declared == 1


def test_peace_keeps_the_largest_set_of_half_the_value():
    # One-hot arms have ρ = 2m for m of them: 8 → 4 → 2 … in log₂ 16 = 4 epochs.
    policy = Peace(budget=80)
    state = policy.start(ArmSet.one_hot(8))
    left = []
    while policy.decide(state).declared < 0:
        plan = policy.plan(state)
        assert int(plan.rounds) == 20
        active = np.flatnonzero(policy.decide(state).active)
        left.append(len(active))
        support = np.flatnonzero(plan.probabilities > 1e-6)
        counts = np.bincount(np.resize(support, 20), minlength=8)
        state = policy.observe(state, plan, exactly(counts, np.arange(8.0)))
    assert left == [8, 4, 2]
    assert policy.decide(state).declared == 7


def test_p1_peace_mixes_with_the_g_optimal_design():
    policy = P1Peace(budget=80)
    state = policy.start(ArmSet.one_hot(4))
    first = policy.plan(state)
    assert first.probabilities == pytest.approx(np.full(4, 0.25))
    rounds = int(first.rounds)
    counts = np.bincount(np.resize(np.arange(4), rounds), minlength=4)
    second = policy.plan(policy.observe(state, first, exactly(counts, np.array([3.0, 2.0, 1.0, 0.0]))))
    # Virtually left: all four, then the best two (ρ 8 → 4), then one.
    assert second.probabilities == pytest.approx([5 / 16, 5 / 16, 3 / 16, 3 / 16], abs=0.01)


def test_adjacent_arms_are_edges_of_the_hull():
    angles = np.arange(7) * 2 * math.pi / 7
    polygon = ArmSet(np.column_stack([np.cos(angles), np.sin(angles)]))
    expected = sorted([min(k, (k + 1) % 7), max(k, (k + 1) % 7)] for k in range(7))
    assert adjacent_pairs(polygon).tolist() == expected
    assert len(adjacent_pairs(ArmSet.one_hot(4))) == 6
    # On a line only the ends can be best.
    assert adjacent_pairs(ArmSet([[1.0], [0.0], [3.0], [2.0]])).tolist() == [[1, 2]]


def test_the_adjacent_design_is_sharper_than_that_of_all_pairs():
    angles = np.arange(8) * 2 * math.pi / 8
    polygon = ArmSet(np.column_stack([np.cos(angles), np.sin(angles)]))
    everyone = np.ones(8, dtype=bool)
    # Side 2·sin(π/8) against diameter 2, with A = I/2.
    assert adjacent_design(polygon)[1] == pytest.approx(8 * math.sin(math.pi / 8) ** 2, rel=1e-3)
    assert xy_design(polygon, everyone)[1] == pytest.approx(8.0, rel=1e-3)
