"""BOSE: filter, distribution and constants against a slow and obvious computation."""

import math
from dataclasses import replace

import numpy as np
import pytest

from inside.design import enclosing_ball
from orthobandit import ArmSet, Tally
from orthobandit.errors import DesignError, ParameterError, TallyError
from orthobandit.policy import BOSE, FOREVER, FarthestPair

RNG = np.random.default_rng(3)
ARMS = ArmSet(RNG.standard_normal((8, 4)))
THETA = RNG.standard_normal(4) / 4


class Slow:
    """The published algorithm in the original features."""

    def __init__(self, policy, arms):
        self.X, d = arms.features, arms.features.shape[1]
        self.V, self.b = policy.regression_ridge(arms) * np.eye(d), np.zeros(d)
        self.width = policy.filter_width(arms)

    def survivors(self):
        theta = np.linalg.solve(self.V, self.b)
        differences = self.X[:, None] - self.X[None]
        norms = np.sqrt(np.einsum("ijk,kl,ijl->ij", differences, np.linalg.inv(self.V), differences))
        return ~np.any(-differences @ theta > self.width * norms + 1e-12, axis=1)

    def white(self):
        return np.linalg.solve(np.linalg.cholesky(self.V), self.X.T).T

    def see(self, p, arm, reward):
        centred = self.X[arm] - p @ self.X
        self.V += np.outer(centred, centred)
        self.b += centred * reward


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_plans_agree_with_the_slow_algorithm(played, scale):
    policy = BOSE(horizon=700, scale=scale, ridge=2.0)
    slow = Slow(policy, ARMS)
    dropped = 0
    for p, state, arm, reward in played(policy, ARMS, THETA, 700):
        alive = slow.survivors()
        expected = np.zeros(8)
        if alive.sum() > 1:
            expected[alive] = enclosing_ball(slow.white()[alive]).probabilities
        else:
            expected[alive] = 1.0
        assert p == pytest.approx(expected, abs=1e-9)
        dropped += np.count_nonzero(~alive)
        if policy.decide(state).declared >= 0:
            break
        slow.see(p, arm, reward)
    assert (dropped > 0) == (scale < 1)


@pytest.mark.parametrize(
    "policy",
    [
        BOSE(horizon=300, scale=0.3, ridge=2.0, distribution="uniform"),
        FarthestPair(horizon=300, scale=0.3, ridge=2.0),
    ],
    ids=["uniform", "pair"],
)
def test_other_distributions_share_the_filter(played, policy):
    pair = isinstance(policy, FarthestPair)
    slow = Slow(policy, ARMS)
    for p, state, arm, reward in played(policy, ARMS, THETA, 300):
        alive = np.flatnonzero(slow.survivors())
        if policy.decide(state).declared >= 0 and p.max() == 1.0:
            break
        if pair:
            white = slow.white()[alive]
            apart = np.sum((white[:, None] - white[None]) ** 2, axis=2)
            ends = alive[list(np.unravel_index(np.argmax(apart), apart.shape))]
            assert np.array_equal(np.flatnonzero(p), np.sort(ends))
            assert p[ends].tolist() == [0.5, 0.5]
        else:
            assert p[alive] == pytest.approx(1 / len(alive))
            assert np.count_nonzero(p) == len(alive)
        slow.see(p, arm, reward)


def test_constants_by_hand():
    arms = ArmSet.one_hot(3)  # affine dimension 2
    ridge = 4 * 2 * math.log(900) + 8 * math.log(400 / 0.1)
    policy = BOSE(horizon=100, delta=0.1)
    assert policy.regression_ridge(arms) == pytest.approx(ridge)
    tuned = math.sqrt(ridge) + math.sqrt(2 * math.log(50) + math.log(1000))
    assert policy.filter_width(arms) == pytest.approx(tuned)
    assert BOSE(horizon=100, delta=0.1, scale=4.0).filter_width(arms) == pytest.approx(4 * tuned)
    theory = math.sqrt(ridge) + math.sqrt(27 * 2 * math.log(101) + 54 * math.log(4000))
    assert BOSE(horizon=100, delta=0.1, constants="theory").filter_width(arms) == pytest.approx(theory)
    assert BOSE(horizon=100, ridge=3.0).regression_ridge(arms) == 3.0


def test_two_arms_get_half_each():
    for policy in (BOSE(horizon=10), BOSE(horizon=10, distribution="uniform"), FarthestPair(horizon=10)):
        assert policy.plan(policy.start(ArmSet([[0.3, 1.0], [2.0, 5.0]]))).probabilities.tolist() == [
            0.5,
            0.5,
        ]


def test_a_sole_survivor_is_played_and_nothing_is_learnt_from_it(tell):
    policy = BOSE(horizon=10, constants="tuned", scale=0.01, ridge=1e-3)
    state = tell(policy, policy.start(ArmSet([[0.0], [1.0]])), 1, 5.0)
    decision = policy.decide(state)
    assert decision.declared == decision.leader == 1
    assert decision.active.tolist() == [False, True]
    assert policy.plan(state).probabilities.tolist() == [0.0, 1.0]
    assert policy.plan(state).rounds == FOREVER
    many = Tally([0, 50], [0.0, -900.0], [0.0, 20000.0])
    assert policy.dump(policy.observe(state, policy.plan(state), many)) == policy.dump(state)


def test_claims_only_with_the_theoretical_constants():
    tuned, theory = BOSE(horizon=10), BOSE(horizon=10, constants="theory", delta=0.2)
    assert tuned.decide(tuned.start(ARMS)).certainty == 0.0
    # The constants are for ‖x‖, ‖θ‖, |ν| ≤ 1, which no data shows.
    undeclared = theory.decide(theory.start(ARMS))
    assert (undeclared.certainty, undeclared.mode) == (
        0.0,
        "none (bounds of θ and the shift are not declared)",
    )
    declared = replace(theory, theta_bound=1.0, shift_bound=2.0, noise=0.5)
    claimed = declared.decide(declared.start(ARMS))
    assert claimed.certainty == 0.8
    assert "‖θ‖ ≤ 1, |ν| ≤ 2, noise 0.5-sub-Gaussian" in claimed.mode
    bounded_but_tuned = replace(tuned, theta_bound=1.0, shift_bound=2.0)
    assert bounded_but_tuned.decide(bounded_but_tuned.start(ARMS)).certainty == 0.0


def test_nothing_is_claimed_beyond_the_horizon_of_the_constants(tell):
    policy = BOSE(horizon=1, constants="theory", theta_bound=1.0, shift_bound=1.0)
    state = tell(policy, policy.start(ArmSet.one_hot(2)), 1, 0.5)
    assert policy.decide(state).certainty == 0.95
    decision = policy.decide(tell(policy, state, 0, 0.5))
    assert (decision.certainty, decision.mode) == (0.0, "none (played beyond the horizon of the constants)")


def test_declared_bounds_put_the_constants_into_the_units_of_the_data():
    plain, arms = BOSE(horizon=100, delta=0.1), ArmSet([[3.0, 4.0], [0.0, 1.0]])
    declared = replace(plain, theta_bound=2.0, shift_bound=7.0, noise=3.0)
    # The longest feature is 5; rewards are divided by the largest of 5·2, 7 and 3.
    assert declared.regression_ridge(arms) == pytest.approx(25.0 * plain.regression_ridge(arms))
    assert declared.filter_width(arms) == pytest.approx(10.0 * plain.filter_width(arms))


def test_a_shift_of_the_features_changes_nothing(played):
    policy = BOSE(horizon=50, scale=0.1)
    moved = ArmSet(ARMS.features + 7.0)
    here = played(policy, ARMS, THETA, 50)
    there = played(policy, moved, THETA, 50, shift=lambda t: np.sin(t) - 7 * THETA.sum())
    for (p, *_), (q, *_) in zip(here, there, strict=True):
        assert p == pytest.approx(q, abs=1e-8)


def test_more_than_one_round_is_refused():
    policy = BOSE(horizon=10)
    state = policy.start(ArmSet.one_hot(2))
    with pytest.raises(TallyError, match="2 rounds but its plan is in force for 1"):
        policy.observe(state, policy.plan(state), Tally([1, 1], [0.0, 0.0], [0.0, 0.0]))


def test_an_unsolved_plan_is_an_error():
    with pytest.raises(DesignError, match="tolerance"):
        BOSE(horizon=10).compiled(ARMS).fail()


def test_replications_must_fit_the_batch():
    with pytest.raises(ParameterError, match="replications has shape"):
        BOSE(horizon=10).start(ARMS, (2,), replications=np.arange(3))
