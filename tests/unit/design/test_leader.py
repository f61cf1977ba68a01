"""Quick designs for one arm against very many, against the exact ones."""

import numpy as np
import pytest

from orthobandit import ArmSet, centred_design, contrast_design
from orthobandit.design import earning_design
from orthobandit.design.leader import Request, leader_design, playable_arms


def setting(count=400, width=6, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((count, width))
    arms, values = ArmSet(features), features[:, 0]
    leader = int(values.argmax())
    others = np.flatnonzero(np.arange(count) != leader)
    weights = 1.0 / np.maximum(values[leader] - values[others], 0.3) ** 2
    return arms, leader, others, weights / weights.max()


def worst(arms, p, leader, others, weights):
    mean = p @ arms.features
    centred = arms.features - mean
    y = arms.features[others] - arms.features[leader]
    inverse = np.linalg.inv((centred.T * p) @ centred)
    return float((weights * np.einsum("ij,jk,ik->i", y, inverse, y)).max())


@pytest.mark.parametrize("seed", range(3))
def test_a_quick_design_is_near_the_best_and_says_how_near(seed):
    arms, leader, others, weights = setting(seed=seed)
    wide = centred_design(arms, 0.01)
    pool = playable_arms(wide)
    guard = wide.probabilities[pool]
    request = Request(leader, others, weights, pool, guard, 0.05)
    quick = leader_design(arms, request, guard)
    pairs = np.column_stack([np.full(len(others), leader), others])
    only = contrast_design(arms, pairs, weights, support=pool, gap=1e-3)
    best, mine = (worst(arms, one.probabilities, leader, others, weights) for one in (only, quick))
    assert best * (1 - 1e-9) <= mine <= 1.5 * best
    # The certificate holds: no design on these arms is better by more than the gap.
    assert mine <= (1 + quick.optimality_gap) * best * (1 + 1e-9)
    again = leader_design(arms, request, quick.probabilities[pool])
    assert worst(arms, again.probabilities, leader, others, weights) <= mine * 1.05
    assert abs(quick.probabilities.sum() - 1) < 1e-12
    assert np.all(quick.probabilities[pool][guard > 0] > 0)


def test_costs_make_the_same_problem_as_an_earning_design():
    arms, leader, others, weights = setting(60, 3)
    wide = centred_design(arms, 0.01)
    pool = np.arange(60)
    costs = 0.2 + np.abs(arms.features[:, 0] - arms.features[leader, 0])
    request = Request(leader, others, weights, pool, wide.probabilities, 0.01, costs)
    quick = leader_design(arms, request, wide.probabilities)
    pairs = np.column_stack([np.full(len(others), leader), others])
    exact = earning_design(arms, pairs, weights, costs)
    mine, best = (
        worst(arms, one.probabilities, leader, others, weights) * (one.probabilities @ costs)
        for one in (quick, exact)
    )
    assert mine <= 1.3 * best


def test_few_arms_are_all_playable_and_of_many_the_farthest():
    few = ArmSet([[0.0], [0.3], [1.0]])
    assert playable_arms(centred_design(few)).tolist() == [0, 1, 2]
    arms = ArmSet(np.random.default_rng(1).standard_normal((5000, 2)))
    wide = centred_design(arms, 0.01)
    pool = playable_arms(wide)
    assert set(wide.support) <= set(pool)
    assert len(pool) <= 30 + len(wide.support)
    sizes = np.linalg.norm(arms.features, axis=1)
    assert sizes[pool].min() > np.median(sizes)


def test_one_contrast_is_enough():
    arms = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    wide = centred_design(arms, 0.01).probabilities
    request = Request(0, np.array([1]), np.ones(1), np.arange(4), wide, 0.05)
    design = leader_design(arms, request, wide)
    # Σ of the first feature is at most ¼: no design is below 4.
    assert 4.0 - 1e-9 <= worst(arms, design.probabilities, 0, np.array([1]), np.ones(1)) <= 4.5
