"""LinGapE against a slow and obvious computation, round by round."""

import math

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.policy import LinGapE

ARMS = ArmSet([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [math.cos(0.3), math.sin(0.3), 0.0]])
THETA = np.array([2.0, 0.0, 0.0])


def slow_width(constants, V, t, count, delta):
    """Return C_t for d = 3, σ = 1, λ = 1, S = 2, L = 1."""
    if constants == "released":
        return math.sqrt(3 * math.log(count**2 * (1 + t) / delta)) + 2
    if constants == "paper":
        return math.sqrt(2 * math.log(count**2 / delta) + math.log(np.linalg.det(V))) + 2
    return math.sqrt(2 * math.log((1 + t) / delta))


@pytest.mark.slow  # compiles for seconds
@pytest.mark.parametrize("constants", ["released", "paper", "heuristic"])
def test_every_choice_and_the_stop_are_those_of_the_algorithm(played, constants):
    policy = LinGapE(delta=0.1, constants=constants)
    X = ARMS.features
    V, b = np.eye(3), np.zeros(3)
    has_stopped = False
    for t, (p, state, arm, reward) in enumerate(played(policy, ARMS, THETA, 4000, shift=np.zeros_like), 1):
        if not has_stopped:
            assert p[arm] == 1.0
        V += np.outer(X[arm], X[arm])
        b += X[arm] * reward
        if t < len(X):
            assert arm == t - 1
            continue
        if has_stopped:
            break
        inverse = np.linalg.inv(V)
        scores = X @ inverse @ b
        leader = int(np.argmax(scores))
        norms = np.sqrt(np.einsum("ij,jk,ik->i", X - X[leader], inverse, X - X[leader]))
        indices = scores - scores[leader] + slow_width(constants, V, t, len(X), 0.1) * norms
        indices[leader] = -np.inf
        assert state.memory.scores == pytest.approx(scores, abs=1e-9)
        has_stopped = indices.max() <= 0
        assert (policy.decide(state).declared >= 0) == has_stopped
        if not has_stopped:
            y = X[leader] - X[np.argmax(indices)]
            after = [y @ np.linalg.inv(V + np.outer(x, x)) @ y for x in X]
            assert policy.plan(state).probabilities[np.argmin(after)] == 1.0
    assert has_stopped
    assert policy.decide(state).declared == 0


@pytest.mark.slow
def test_dropped_arms_stay_dropped_and_the_last_is_declared(played):
    policy = LinGapE(delta=0.1, constants="heuristic", eliminates=True)
    before = np.ones(4, dtype=bool)
    dropped_at = set()
    for t, (_, state, _, _) in enumerate(played(policy, ARMS, THETA, 4000, shift=np.zeros_like)):
        decision = policy.decide(state)
        assert not np.any(decision.active & ~before)
        if np.any(decision.active != before):
            dropped_at.add(t)
        before = decision.active
        if decision.declared >= 0:
            break
    assert decision.declared == 0
    assert decision.active.tolist() == [True, False, False, False]
    assert len(dropped_at) > 1


@pytest.mark.slow
def test_equal_arms_are_no_rivals(played):
    arms = ArmSet([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    policy = LinGapE(noise=0.5)
    *_, (_, state, _, _) = played(policy, arms, np.array([3.0, 0.0]), 400, shift=np.zeros_like)
    assert policy.decide(state).declared in (0, 1)


def test_arms_without_a_difference_are_declared_at_once():
    policy = LinGapE()
    decision = policy.decide(policy.start(ArmSet(np.ones((3, 2)))))
    assert decision.declared == 0
    assert decision.certainty == 0.0
