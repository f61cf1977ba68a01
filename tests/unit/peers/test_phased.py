"""Phased elimination and RAGE: designs, lengths and verdicts against the printed rules."""

from math import ceil, log

import numpy as np
import pytest
from scipy.optimize import minimize

from orthobandit import ArmSet, Tally
from orthobandit.design import g_optimal_design
from orthobandit.errors import ParameterError
from orthobandit.peers.xy_design import xy_design
from orthobandit.policy import FOREVER, RAGE, PhasedElimination

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
    assert (after.certainty, after.epsilon) == (0.0, np.inf)


def test_rage_by_its_released_code():
    policy = RAGE(delta=0.1, noise=0.5, constants="released")
    state, left = policy.start(ARMS), []
    for phase in (1, 2):
        before = policy.decide(state).active
        plan = policy.plan(state)
        p, value = xy_design(ARMS, before)
        log_tests = log(2 * 25 * phase**2 / 0.1)
        wanted = ceil(8 * 4 ** (phase - 1) * 1.1 * 0.25 * value * log_tests)
        assert plan.rounds == max(wanted, 20 * np.count_nonzero(p))
        tally = seen(plan, ARMS.features @ [0.3, 0.2] + 0.001 * phase * np.arange(5))
        gram = (ARMS.features * tally.counts[:, None]).T @ ARMS.features
        theta = np.linalg.solve(gram, ARMS.features.T @ tally.sums)
        dropped = set()
        for i in np.flatnonzero(before):
            for j in np.flatnonzero(before):
                y = ARMS.features[j] - ARMS.features[i]
                width = 0.5 * np.sqrt(2 * y @ np.linalg.solve(gram, y) * log_tests)
                if i != j and width <= y @ theta:
                    dropped.add(int(i))
        state = policy.observe(state, plan, tally)
        expected = before & ~np.isin(np.arange(5), list(dropped))
        assert policy.decide(state).active.tolist() == expected.tolist()
        left.append(int(expected.sum()))
    assert left == [2, 1], "the means are too far apart, or too near, to test the rule"


def test_released_rage_keeps_arms_that_the_draws_do_not_tell():
    arms = ArmSet([[1.0, 0.0], [0.0, 1.0]])
    policy = RAGE(constants="released")
    state = policy.start(arms)
    plan = policy.plan(state)
    n = int(plan.rounds)
    assert policy.decide(policy.observe(state, plan, Tally([n, 0], [9.0 * n, 0], [81.0 * n, 0]))).active.all()


def test_the_released_constants_take_a_sixteenth_of_the_rounds():
    rounds = {
        constants: int(policy.plan(policy.start(ARMS)).rounds)
        for constants in ("proof", "released")
        for policy in [RAGE(delta=0.1, noise=10.0, constants=constants)]
    }
    assert rounds["proof"] / rounds["released"] == pytest.approx(
        16 / 1.1 * log(25 / 0.1) / log(2 * 25 / 0.1), rel=1e-4
    )


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


def test_unknown_constants_are_named():
    with pytest.raises(ParameterError, match="did you mean 'released'"):
        RAGE(constants="release")


def test_late_phases_last_for_ever():
    arms = ArmSet([[1.0, 0.0], [0.0, 1.0]])
    for policy in (PhasedElimination(noise=1e12), RAGE(noise=1e12)):
        assert policy.plan(policy.start(arms)).rounds == FOREVER
