"""LUCB, action elimination, LinLUCB and pooled track-and-stop against hand-computed cases."""

import math

import numpy as np
import pytest
import scipy

from orthobandit import ArmSet, Tally
from orthobandit.peers.pooled_track_and_stop import pooled_proportions
from orthobandit.policy import LUCB, ActionElimination, LinLUCB, PooledTrackAndStop


def lil_bound(count, share):
    logs = math.log(math.log(1.01 * count + 2) / share)
    return 2 * 1.1 * math.sqrt(1.01 * logs / (2 * count))


@pytest.mark.slow  # compiles for seconds
def test_lucb_plays_the_leader_and_its_rival(played):
    policy = LUCB(delta=0.1, noise=0.5)
    arms = ArmSet.one_hot(4)
    counts, sums = np.zeros(4), np.zeros(4)
    pair = []
    for t, (p, state, arm, reward) in enumerate(
        played(policy, arms, np.array([1.0, 0.4, 0.2, 0.0]), 2000, shift=np.zeros_like), 1
    ):
        assert p[arm] == 1.0
        if t > 4:
            assert arm == pair.pop(0)
        counts[arm] += 1
        sums[arm] += reward
        if t < 4:
            assert arm == t - 1
        elif not pair:
            means = sums / counts
            bounds = np.array([0.5 * lil_bound(n, 0.1 / 4) for n in counts])
            leader = int(np.argmax(means))
            others = np.where(np.arange(4) == leader, -np.inf, means + bounds)
            pair = [leader, int(np.argmax(others))]
            has_stopped = means[leader] - bounds[leader] > others.max()
            assert (policy.decide(state).declared >= 0) == has_stopped
            if has_stopped:
                break
    assert policy.decide(state).declared == 0


@pytest.mark.slow
def test_action_elimination_goes_round_and_drops(played):
    policy = ActionElimination(delta=0.1, noise=0.5)
    arms = ArmSet.one_hot(3)
    counts, sums, alive = np.zeros(3), np.zeros(3), np.ones(3, dtype=bool)
    passed = 0
    for _, state, arm, reward in played(policy, arms, np.array([1.0, 0.0, -1.0]), 4000, shift=np.zeros_like):
        counts[arm] += 1
        sums[arm] += reward
        passed += 1
        if passed == alive.sum():
            passed = 0
            means = sums / counts
            bounds = np.array([lil_bound(n, 0.1 / 3) for n in counts])  # 2 × σ = 1
            leader = int(np.argmax(np.where(alive, means, -np.inf)))
            alive &= (means[leader] - bounds[leader] < means + bounds) | (np.arange(3) == leader)
        assert policy.decide(state).active.tolist() == alive.tolist()
        if alive.sum() == 1:
            break
    assert policy.decide(state).declared == 0


def period(counts, means, spread=1.0):
    """Return a tally with these counts, means and variances."""
    counts = np.asarray(counts)
    sums = counts * np.asarray(means)
    squares = np.maximum(counts - 1, 0) * spread + counts * np.asarray(means) ** 2
    return Tally(counts=counts, sums=sums, squares=squares, largest=np.full(len(counts), 9.0))


def test_pooled_track_and_stop_tests_as_the_gateway_does():
    policy = PooledTrackAndStop(period=100)
    state = policy.start(ArmSet.one_hot(2))
    # Δ²/(2(1/50 + 1/50)) > log((1 + log 100)/.05) = 4.72: Δ > .614.
    for gap, declared in ((0.61, -1), (0.62, 0)):
        after = policy.observe(state, policy.plan(state), period([50, 50], [gap, 0.0]))
        assert policy.decide(after).declared == declared
    waits = policy.observe(state, policy.plan(state), period([91, 9], [5.0, 0.0]))
    assert policy.decide(waits).declared == -1
    assert policy.plan(waits).probabilities.tolist() == [0.5, 0.5]


# From the tests of the gateway (tensorzero/tensorzero, track_and_stop/check_stopping.rs): rounds of each arm,
# means, the variance of all, δ, and the arm that is declared.
RELEASED_STOPS = [
    (1000, [0.3, 0.9, 0.5], 0.1, 0.05, 1),
    (50, [0.50, 0.52, 0.51], 0.2, 0.05, -1),
    (150, [0.45, 0.65, 0.50], 0.15, 0.01, -1),
    (150, [0.45, 0.65, 0.50], 0.15, 0.2, 1),
    (100, [0.3, 0.8], 0.1, 0.05, 1),
    (200, [0.3, 0.9, 0.5, 0.4, 0.6], 0.1, 0.05, 1),
    (80, [0.55, 0.70], 0.25, 0.05, -1),
    (1000, [0.55, 0.70], 0.25, 0.05, 1),
]


@pytest.mark.parametrize(("rounds", "means", "variance", "delta", "declared"), RELEASED_STOPS)
def test_pooled_track_and_stop_stops_where_the_released_code_does(rounds, means, variance, delta, declared):
    policy = PooledTrackAndStop(period=rounds * len(means), delta=delta)
    state = policy.start(ArmSet.one_hot(len(means)))
    tally = period([rounds] * len(means), means, variance)
    after = policy.observe(state, policy.plan(state), tally)
    assert policy.decide(after).declared == declared


# From estimate_optimal_probabilities.rs there: means, variances, ε, and the proportions that cvxpy or scipy
# find, where neither the smoothing nor the least probability matters. ε is added to the mean of the leader.
RELEASED_PROPORTIONS = [
    ([100.0, 105.0], [1.0, 20.0], 2.0, [0.182752086850448, 0.817247913149552]),
    ([10.0, 10.5], [1.0, 1.2], 0.05, [0.477229489718064, 0.522770510281936]),
    ([0.5, 0.7], [0.1, 0.15], 0.1, [0.449525654401765, 0.550474345598233]),
    ([1.0, 1.5, 1.2], [0.2, 0.3, 0.25], 0.2, [0.111715272862871, 0.473942231288105, 0.414342495849023]),
    ([10.0, 12.0, 11.0], [2.0, 3.5, 2.5], 0.5, [0.069702913270257, 0.508019009489254, 0.422278077240489]),
]


@pytest.mark.parametrize(("means", "variances", "epsilon", "released"), RELEASED_PROPORTIONS)
def test_pooled_proportions_are_those_of_the_released_code(means, variances, epsilon, released):
    told = np.array(means)
    told[np.argmax(told)] += epsilon
    w = pooled_proportions(told, np.array(variances), 1e14)
    assert w == pytest.approx(released, abs=1e-4)  # the tolerance of the gateway's own tests


def test_pooled_proportions_are_the_best():
    rng = np.random.default_rng(1)
    for _ in range(5):
        means = rng.standard_normal(4)
        variances = rng.uniform(0.5, 2.0, 4)
        leader = int(np.argmax(means))

        def worst(logits, means=means, variances=variances, leader=leader):
            w = scipy.special.softmax(logits)
            values = (variances[leader] / w[leader] + variances / w) / np.maximum(
                (means[leader] - means) ** 2, 1e-300
            )
            return float(np.log(np.max(np.delete(values, leader))))

        w = pooled_proportions(means, variances, 1e14)
        assert w.sum() == pytest.approx(1.0)
        found = min(
            scipy.optimize.minimize(worst, start, method="Nelder-Mead", options={"maxiter": 4000}).fun
            for start in (np.log(w), np.zeros(4))
        )
        assert worst(np.log(w)) <= found + 1e-4


def test_linlucb_takes_the_level_of_environments_off():
    policy = LinLUCB(budget=200, epoch=100)
    state = policy.start(ArmSet.one_hot(3))
    state = policy.observe(state, policy.plan(state), period([40, 30, 30], [1.0, 0.5, 0.0]))
    plan = policy.plan(state)
    # Leader 0; arms 1 and 2 are equally uncertain, and 1 looks better.
    assert plan.probabilities.tolist() == [0.5, 0.5, 0.0]
    assert int(plan.rounds) == 100
    # The level is five higher, the arms as before: nothing changes.
    after = policy.observe(state, plan, period([50, 50, 0], [6.0, 5.5, 0.0]))
    information, moment = after.carried[:-1], after.carried[-1]
    assert information.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-9)
    effects = np.linalg.pinv(information) @ moment
    assert effects - effects[2] == pytest.approx([1.0, 0.5, 0.0])
    assert policy.decide(after).declared == 0
