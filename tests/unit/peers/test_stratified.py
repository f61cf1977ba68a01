"""Stratified means: sums over epochs, widths, and what a shift between epochs does not change."""

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.peers.stratified import mixture_boundary
from orthobandit.policy import FOREVER, StratifiedMeans

ARMS = ArmSet.one_hot(3)


def play(policy, rewards):
    """Observe epochs of given rewards, one list per arm and epoch."""
    state = policy.start(ARMS)
    for epoch in rewards:
        arms = np.concatenate([np.full(len(values), arm) for arm, values in enumerate(epoch)]).astype(int)
        values = np.concatenate([np.asarray(values, dtype=float) for values in epoch])
        state = policy.observe(state, policy.plan(state), Tally.of(arms, values, 3))
    return state


def test_sums_over_epochs_by_hand():
    policy = StratifiedMeans(epoch=6)
    state = play(policy, [[[1, 3], [2, 2], [0, 4]], [[11, 13], [14, 16], [10, 12]]])
    means, variances, epochs = state.carried
    assert means.tolist() == [2 + 12, 2 + 15, 2 + 11]
    # Variances 2, 0, 8 and 2, 2, 2 of two rewards each: halved for the mean.
    assert variances.tolist() == [2.0, 1.0, 5.0]
    assert epochs.tolist() == [2.0, 2.0, 2.0]
    assert policy.decide(state).leader == 1


def test_an_arm_is_dropped_when_a_lead_exceeds_its_width():
    policy = StratifiedMeans(epoch=6, delta=0.1, tuned=5)
    for lead, dropped in ((3.0, False), (30.0, True)):
        epoch = [[0.0, 2.0], [lead - 1, lead + 1], [0.0, 2.0]]
        state = play(policy, [epoch])
        width = np.sqrt(2.0) * mixture_boundary(1.0, 5, 0.05)
        assert ((lead - 1) > width) == dropped
        assert policy.decide(state).active.tolist() == [not dropped, True, not dropped]
    assert policy.decide(state).declared == 1
    assert policy.plan(state).rounds == FOREVER


def test_dropped_arms_are_no_longer_played():
    policy = StratifiedMeans(epoch=6)
    state = play(policy, [[[-90.0, -91.0], [0.0, 1.0], [0.0, 1.0]]])
    assert policy.plan(state).probabilities.tolist() == [0.0, 0.5, 0.5]


def test_a_shift_between_epochs_changes_nothing():
    rng = np.random.default_rng(0)
    epochs = [[rng.standard_normal(4) for _ in range(3)] for _ in range(5)]
    moved = [[values + 100 * k for values in epoch] for k, epoch in enumerate(epochs)]
    policy = StratifiedMeans(epoch=12)
    here, there = play(policy, epochs), play(policy, moved)
    contrast = [1, -1, 0] @ here.carried[0]
    assert [1, -1, 0] @ there.carried[0] == pytest.approx(contrast)
    assert there.carried[1] == pytest.approx(here.carried[1])


def test_an_epoch_without_two_plays_of_a_survivor_is_left_out():
    policy = StratifiedMeans(epoch=5)
    state = play(policy, [[[5.0], [1.0, 1.0], [2.0, 2.0]]])
    assert not state.carried.any()
    assert policy.decide(state).active.all()
    assert state.phase == 2


def test_the_boundary_holds_at_all_times():
    # 4000 Gaussian walks of 2000 steps: the share that ever leaves must be below α up to chance.
    rng = np.random.default_rng(3)
    left = 0
    limits = np.array([mixture_boundary(t, 50, 0.1) for t in range(1, 2001)])
    for _ in range(8):
        walks = np.cumsum(rng.standard_normal((500, 2000)), axis=1)
        left += np.count_nonzero(np.any(np.abs(walks) > limits, axis=1))
    assert left < 400 + 5 * np.sqrt(360)
