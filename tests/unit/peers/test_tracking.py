"""Track-and-stop for linear rewards against slow computations and certified designs."""

import math

import numpy as np
import pytest
import scipy

from orthobandit import ArmSet
from orthobandit.design import contrast_design
from orthobandit.peers.frank_wolfe_sampling import solve_game
from orthobandit.peers.lazy_track_and_stop import frank_wolfe, spanning_arms
from orthobandit.peers.tracking import respond
from orthobandit.policy import FrankWolfeSampling, LazyTrackAndStop, LinGame

pytestmark = pytest.mark.slow  # compiles for seconds

ANGLE = 0.5
ARMS = ArmSet([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [math.cos(ANGLE), math.sin(ANGLE), 0.0]])
THETA = np.array([2.0, 0.0, 0.0])


def best_value(features, scores):
    """Return max_w min_j Δ_j²/(2‖x_ℓ − x_j‖²_{A(w)⁻¹}), certified to 1e-6, by mirrored arms."""
    leader = int(np.argmax(scores))
    rivals = [j for j in range(len(features)) if j != leader]
    mirrored = ArmSet(np.vstack([features, -features]))
    weights = [1 / (scores[leader] - scores[j]) ** 2 for j in rivals]
    pairs = [(leader, j) for j in rivals]
    design = contrast_design(mirrored, pairs, weights=weights)
    p = design.probabilities.reshape(2, -1).sum(axis=0)
    inverse = np.linalg.inv((features * p[:, None]).T @ features)
    return min(
        (scores[leader] - scores[j]) ** 2
        / (2 * (features[leader] - features[j]) @ inverse @ (features[leader] - features[j]))
        for j in rivals
    )


def test_frank_wolfe_comes_near_the_certified_proportions():
    rng = np.random.default_rng(2)
    for _ in range(5):
        features = rng.standard_normal((8, 3))
        scores = features @ rng.standard_normal(3)
        weights = np.full(8, 1 / 8)
        everyone = np.ones(8, dtype=bool)
        twins = np.arange(8)
        frank_wolfe(features, twins, scores, everyone, weights)
        leader = int(np.argmax(scores))
        reached = respond(features, twins, weights, scores, everyone, leader).values.min()
        wanted = best_value(features, scores)
        assert weights.sum() == pytest.approx(1.0)
        assert 0.93 * wanted < reached < wanted * (1 + 1e-5)


@pytest.mark.parametrize("unit", [1e-3, 0.7, 3e4])
def test_lazy_track_and_stop_plays_alike_in_all_units(played, unit):
    policy = LazyTrackAndStop(delta=0.1)
    features = np.random.default_rng(3).standard_normal((6, 3))

    def arms_played(unit):
        rounds = played(policy, ArmSet(unit * features), THETA / unit, 30, shift=np.zeros_like)
        return [arm for _, _, arm, _ in rounds]

    assert arms_played(unit) == arms_played(1.0)


def test_the_lazy_threshold_is_the_papers(played):
    policy = LazyTrackAndStop(delta=0.1)
    X = ARMS.features
    spanner, least = spanning_arms(X)
    A, b = np.zeros((3, 3)), np.zeros(3)
    for t, (p, state, arm, reward) in enumerate(played(policy, ARMS, THETA, 5000, shift=np.zeros_like), 1):
        assert p[arm] == 1.0
        A += np.outer(X[arm], X[arm])
        b += X[arm] * reward
        if t <= 3:
            assert arm == spanner[t - 1]
            continue
        scores = X @ np.linalg.solve(A, b)
        assert state.memory.scores == pytest.approx(scores, abs=1e-5)
        leader = int(np.argmax(scores))
        apart = X[leader] - np.delete(X, leader, axis=0)
        ratios = (apart @ np.linalg.solve(A, b)) ** 2 / np.einsum(
            "ij,jk,ik->i", apart, np.linalg.inv(A), apart
        )
        determinant = np.linalg.slogdet(A / (0.1 * least) + np.eye(3))[1]
        threshold = 1.1 * (determinant / 2 - math.log(0.1))
        has_stopped = ratios.min() / 2 > threshold and np.linalg.eigvalsh(A)[0] > least
        assert (policy.decide(state).declared >= 0) == has_stopped
        if has_stopped:
            break
    assert policy.decide(state).declared == 0


def test_the_lazy_rule_explores_while_an_eigenvalue_is_small(played):
    policy = LazyTrackAndStop(delta=1e-6)
    pace = spanning_arms(ARMS.features)[1] / math.sqrt(3)
    for t, (_, state, _, _) in enumerate(played(policy, ARMS, THETA, 600, shift=np.zeros_like), 1):
        if t > 10:
            # One round of each spanning arm at most is missing.
            assert np.linalg.eigvalsh(state.memory.gram)[0] >= pace * (math.sqrt(t) - 3)


def test_a_drawn_rule_is_not_biased_by_a_shift(played):
    arms = ArmSet.one_hot(3)
    policy = LazyTrackAndStop(delta=1e-9, draw=True)
    gaps = []
    for seed in range(8):
        rounds = played(policy, arms, np.array([0.5, 0.0, 0.0]), 600, shift=lambda t: t / 100, seed=seed)
        *_, (p, state, _, _) = rounds
        scores = state.memory.scores
        gaps.append(scores[0] - scores[1])
        assert p.min() > 0
        assert p.sum() == pytest.approx(1.0)
    error = np.std(gaps) / math.sqrt(len(gaps))
    assert abs(np.mean(gaps) - 0.5) < 4 * error + 0.1


def test_games_are_solved():
    rng = np.random.default_rng(0)
    for _ in range(50):
        payoffs = rng.standard_normal((rng.integers(1, 6), rng.integers(2, 8)))
        rows, columns = payoffs.shape
        z = solve_game(payoffs)
        found = scipy.optimize.linprog(
            np.r_[np.zeros(columns), -1.0],
            A_ub=np.column_stack([-payoffs, np.ones(rows)]),
            b_ub=np.zeros(rows),
            A_eq=[np.r_[np.ones(columns), 0.0]],
            b_eq=[1.0],
            bounds=[(0, None)] * columns + [(None, None)],
        )
        assert z.sum() == pytest.approx(1.0)
        assert np.min(payoffs @ z) == pytest.approx(-found.fun, abs=1e-9)


@pytest.mark.parametrize("policy", [LinGame(threshold="gk16"), FrankWolfeSampling(threshold="gk16")])
def test_the_declared_arm_passes_the_likelihood_ratio_test(played, policy):
    for _, state, _, _ in played(policy, ARMS, THETA, 5000, shift=np.zeros_like):
        if policy.decide(state).declared >= 0:
            break
    assert policy.decide(state).declared == 0
    memory = state.memory
    scores = memory.scores
    apart = ARMS.features[0] - ARMS.features[1:]
    V = memory.gram + np.eye(3)
    norms = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(V), apart)
    ratios = (scores[0] - scores[1:]) ** 2 / (2 * norms)
    assert ratios.min() > math.log((1 + math.log(memory.step)) / 0.05)
