"""The plan of the guaranteed modes keeps the ratio that the proof needs, and costs least by estimates."""

import numpy as np
import pytest

from orthobandit.policy.contextual._guaranteed_plan import guaranteed_into


def losses_of(features, scores, norm, most):
    apart = features[:, None] - features[None]
    widths = np.sqrt(np.einsum("abd,de,abe->ab", apart, norm, apart))
    return widths, np.minimum(np.max(scores[None] - scores[:, None] + widths, axis=1), most)


@pytest.mark.parametrize("most", [np.inf, 0.7])
@pytest.mark.parametrize("seed", range(10))
def test_ratio_is_kept_at_the_least_estimated_regret(seed, most):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(5, 3))
    half = rng.normal(size=(3, 3))
    norm = rng.uniform(0.01, 1.0) * half @ half.T
    scores = features @ rng.normal(size=3)
    p = np.empty(5)
    guaranteed_into(features, scores, norm, most, p)
    widths, losses = losses_of(features, scores, norm, most)
    assert np.isclose(p.sum(), 1.0)
    played = np.flatnonzero(p)
    if losses[np.argmax(scores)] <= 0:
        assert p[np.argmax(scores)] == 1
        return
    a, b = played
    assert (p @ losses) ** 2 <= 8 * p[a] * p[b] * widths[a, b] ** 2 * (1 + 1e-9)
    regret = scores.max() - p @ scores
    # No share of any pair that keeps the ratio is estimated to cost less.
    for a in range(5):
        for b in range(a):
            q = np.linspace(0, 1, 2001)[1:-1]
            keeps = (q * losses[a] + (1 - q) * losses[b]) ** 2 <= 8 * q * (1 - q) * widths[a, b] ** 2
            cost = scores.max() - q * scores[a] - (1 - q) * scores[b]
            assert np.all(cost[keeps] >= regret - 1e-9)


def test_a_leader_that_nobody_can_beat_is_played_alone():
    p = np.empty(2)
    guaranteed_into(np.eye(2), np.array([1.0, 0.0]), 0.1 * np.eye(2), np.inf, p)
    assert p.tolist() == [1.0, 0.0]


def test_arms_that_cannot_be_told_apart_are_played_evenly_or_alone():
    p = np.empty(3)
    # Nothing is known: all losses are alike, and the share is the larger root of 1 = 8q(1 − q).
    guaranteed_into(np.eye(3), np.zeros(3), np.eye(3), np.inf, p)
    assert np.isclose(p.max(), (1 + np.sqrt(0.5)) / 2)
    guaranteed_into(np.ones((3, 2)), np.zeros(3), np.eye(2), np.inf, p)
    assert sorted(p.tolist()) == [0.0, 0.0, 1.0]
