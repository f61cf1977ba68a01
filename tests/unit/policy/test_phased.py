"""Phased elimination and RAGE: designs, lengths and verdicts against the printed rules."""

from math import ceil, log

import numpy as np
import pytest
from scipy.optimize import minimize

from orthobandit import ArmSet, Tally
from orthobandit.design import g_optimal_design
from orthobandit.errors import ParameterError
from orthobandit.policy import FOREVER, RAGE, PhasedElimination
from orthobandit.policy.rage import xy_design

ARMS = ArmSet(np.random.default_rng(7).standard_normal((5, 2)))


def seen(plan, means):
    counts = np.floor(plan.probabilities * int(plan.rounds)).astype(int)
    counts[np.argmax(counts)] += int(plan.rounds) - counts.sum()
    return Tally(counts, counts * means, counts * np.square(means))


def ridge_scores(tally):
    gram = np.eye(2) + (ARMS.features * tally.counts[:, None]).T @ ARMS.features
    return ARMS.features @ np.linalg.solve(gram, ARMS.features.T @ tally.sums)


def test_phased_elimination_by_the_book():
    policy = PhasedElimination(delta=0.1, noise=0.5)
    state = policy.start(ARMS)
    active = np.ones(5, dtype=bool)
    theta = np.array([0.6, 0.3])
    for phase in (1, 2, 3):
        plan = policy.plan(state)
        expected = np.zeros(5)
        expected[active] = g_optimal_design(ARMS.subset(active)).probabilities
        assert plan.probabilities == pytest.approx(expected)
        assert plan.rounds == ceil(2 * 2 * 0.25 * 4**phase * log(5 * phase * (phase + 1) / 0.1))
        tally = seen(plan, ARMS.features @ theta)
        scores = ridge_scores(tally)
        active = active & (scores[active].max() - scores <= 2 * 2.0**-phase)
        state = policy.observe(state, plan, tally)
        decision = policy.decide(state)
        assert decision.active.tolist() == active.tolist()
        assert decision.leader == np.flatnonzero(active)[np.argmax(scores[active])]
        if active.sum() == 1:
            assert decision.declared == np.argmax(active)
            assert policy.plan(state).rounds == FOREVER
            break
    assert not active.all()


def test_rage_by_the_book():
    policy = RAGE(delta=0.1, noise=0.5)
    state = policy.start(ARMS)
    plan = policy.plan(state)
    probabilities, value = xy_design(ARMS, np.ones(5, dtype=bool))
    assert np.array_equal(plan.probabilities, probabilities)
    assert plan.rounds == ceil(8 * 16 * 0.25 * value * log(25 / 0.1))
    tally = seen(plan, ARMS.features @ [0.2, 0.1])
    scores = ridge_scores(tally)
    after = policy.decide(policy.observe(state, plan, tally))
    assert after.active.tolist() == (scores.max() - scores < 0.125).tolist()
    assert after.leader == np.argmax(scores)
    assert (after.confidence, after.epsilon) == (0.0, np.inf)


@pytest.mark.parametrize("left", [[0, 1, 2, 3, 4], [1, 3], [0, 2, 4]])
def test_xy_design_is_optimal_without_centring(left):
    X = ARMS.features
    pairs = [X[i] - X[j] for i in left for j in left if i < j]

    def value(p):
        inverse = np.linalg.inv((X * p[:, None]).T @ X)
        return max(y @ inverse @ y for y in pairs)

    survivors = np.isin(np.arange(5), left)
    p, rho = xy_design(ARMS, survivors)
    assert rho == pytest.approx(value(p), rel=1e-9)

    def softmax(w):
        weights = np.exp(w - w.max())
        return weights / weights.sum()

    starts = np.random.default_rng(0).standard_normal((8, 5))
    best = min(
        minimize(lambda w: value(softmax(w)), s, method="Nelder-Mead", options={"maxiter": 4000}).fun
        for s in starts
    )
    assert rho <= best * (1 + 1e-3)


@pytest.mark.parametrize("policy", [PhasedElimination, RAGE])
@pytest.mark.parametrize(
    ("settings", "message"), [({"delta": 1.0}, "delta=1.0"), ({"noise": 0.0}, "noise=0.0")]
)
def test_bad_settings_are_named(policy, settings, message):
    with pytest.raises(ParameterError, match=message):
        policy(**settings)


def test_late_phases_last_for_ever():
    arms = ArmSet([[1.0, 0.0], [0.0, 1.0]])
    for policy in (PhasedElimination(noise=1e12), RAGE(noise=1e12)):
        assert policy.plan(policy.start(arms)).rounds == FOREVER
