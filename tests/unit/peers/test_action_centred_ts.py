"""Action-centred Thompson sampling: probabilities, clipping, learning when the reference arm is played."""

import numpy as np
import pytest
from scipy.stats import norm

from orthobandit import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy import FOREVER, ActionCentredTS

PAIR = ArmSet([[0.0], [2.0]])


def test_one_round_by_hand(tell):
    policy = ActionCentredTS(spread=1.5, least=0.2, most=0.8)
    state = policy.start(PAIR)
    assert policy.plan(state).probabilities.tolist() == [0.5, 0.5]
    # s = ±2, π = ½: B = 1 + ½·½·4 = 2 and b = s(0 − ½)·3 although the reference arm was played.
    state = tell(policy, state, 0, 3.0)
    s = state.arms.positions[1, 0] - state.arms.positions[0, 0]
    assert state.memory.gram.item() == pytest.approx(1.0)
    assert state.memory.moment.item() == pytest.approx(-1.5 * s)
    theta = -1.5 * s / 2
    chance = norm.cdf(s * theta / (1.5 * abs(s) / np.sqrt(2)))
    assert chance < 0.2
    assert policy.plan(state).probabilities == pytest.approx([0.8, 0.2])
    assert policy.decide(state).leader == 0
    # Learning goes on with the clipped probability.
    state = tell(policy, state, 1, 3.0)
    assert state.memory.gram.item() == pytest.approx(1.0 + 0.2 * 0.8 * 4)
    assert state.memory.moment.item() == pytest.approx(-1.5 * s + s * 0.8 * 3)


def test_probability_is_the_posterior_chance_between_the_limits(tell):
    policy = ActionCentredTS(spread=2.0, least=0.01, most=0.99)
    state = tell(policy, policy.start(PAIR), 1, 0.8)
    theta, B, s = 0.5 * 2 * 0.8 / 2.0, 2.0, 2.0
    wanted = norm.cdf(s * theta / (2.0 * s / np.sqrt(B)))
    assert policy.plan(state).probabilities == pytest.approx([1 - wanted, wanted])
    assert policy.decide(state).leader == 1


def test_the_reference_arm_may_be_any_and_one_other_challenges_it(played):
    arms = ArmSet(np.random.default_rng(2).standard_normal((5, 3)))
    policy = ActionCentredTS(reference=3, least=0.3, most=0.6)
    challengers = set()
    for p, *_ in played(policy, arms, np.ones(3), 60):
        assert np.count_nonzero(p) == 2
        assert 0.4 - 1e-12 <= p[3] <= 0.7 + 1e-12
        challengers |= set(np.flatnonzero(p).tolist()) - {3}
    assert len(challengers) > 1


def test_memory_holds_the_sums_of_the_paper(played):
    arms = ArmSet(np.random.default_rng(2).standard_normal((4, 2)))
    gram, moment = np.zeros((2, 2)), np.zeros(2)
    for p, state, arm, reward in played(ActionCentredTS(), arms, np.ones(2), 80):
        challenger = int(np.argmax(p * (np.arange(4) != 0)))
        s, chance = arms.positions[challenger] - arms.positions[0], p[challenger]
        gram += chance * (1 - chance) * np.outer(s, s)
        moment += s * ((arm != 0) - chance) * reward
        assert state.memory.gram == pytest.approx(gram, abs=1e-12)
        assert state.memory.moment == pytest.approx(moment, abs=1e-12)


def test_a_single_arm_is_played_for_ever():
    policy = ActionCentredTS()
    assert policy.plan(policy.start(ArmSet([[1.0]]))).rounds == FOREVER


def test_a_reference_that_is_no_arm_is_refused():
    with pytest.raises(ParameterError, match="reference=2 is not an arm"):
        ActionCentredTS(reference=2).start(PAIR)
