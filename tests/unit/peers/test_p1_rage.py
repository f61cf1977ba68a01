"""P1-RAGE: epochs, virtual elimination, importance-weighted scores and the final declaration."""

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.design import centred_design, contrast_design
from orthobandit.policy import FOREVER, P1RAGE

ARMS = ArmSet(np.random.default_rng(5).standard_normal((6, 2)))


def drawn(plan, means, seed):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(int(plan.rounds), plan.probabilities / plan.probabilities.sum())
    return Tally(counts, counts * means, counts * np.square(means))


def score_part(p, tally):
    """Σ over rounds of X·Σ_p⁻¹(x_a − μ)r, from the lifted form M⁻¹z·r."""
    Z = np.column_stack([np.ones(6), ARMS.features])
    weighted = np.linalg.solve((Z * p[:, None]).T @ Z, Z.T @ tally.sums)
    return ARMS.features @ weighted[1:]


def test_a_run_by_the_book():
    policy, means = P1RAGE(budget=1000, epochs=3), ARMS.features @ [0.8, -0.5]
    state, total = policy.start(ARMS), np.zeros(6)
    base = centred_design(ARMS).probabilities
    for epoch, end in enumerate([333, 666, 1000]):
        plan = policy.plan(state)
        start = [0, 333, 666][epoch]
        assert plan.rounds == end - start
        if epoch == 0:
            assert np.array_equal(plan.probabilities, base)
        else:
            gaps = (total.max() - total) / start
            designs, left, i = [], np.arange(6), 0
            while len(left) > 1 and i < 15:
                pairs = [[a, b] for k, a in enumerate(left) for b in left[k + 1 :]]
                designs.append(contrast_design(ARMS, pairs).probabilities)
                i += 1
                left = left[gaps[left] <= 2.0**-i]
            expected = base / 2 + np.mean(designs, axis=0) / 2
            assert plan.probabilities == pytest.approx(expected, abs=2e-2)
        tally = drawn(plan, means, epoch)
        part = score_part(plan.probabilities, tally)
        total = total + part
        state = policy.observe(state, plan, tally)
        assert np.diff(state.carried[0]) == pytest.approx(np.diff(total))
    decision = policy.decide(state)
    assert decision.declared == decision.leader == np.argmax(total) == np.argmax(means)
    assert policy.plan(state).rounds == FOREVER


def test_scores_of_differences_do_not_feel_a_constant_shift_on_average():
    policy = P1RAGE(budget=20, epochs=1)
    state = policy.start(ARMS)
    plan, leads = policy.plan(state), []
    for seed in range(2000):
        after = policy.observe(state, plan, drawn(plan, np.full(6, 5.0), seed))
        leads.append(after.carried[0, 1] - after.carried[0, 0])
    assert abs(np.mean(leads)) < 5 * np.std(leads) / np.sqrt(2000)


def test_epochs_follow_the_difficulty_and_use_the_budget():
    policy = P1RAGE(budget=1001)
    ends = policy.epoch_ends(ARMS)
    wanted = int(np.ceil(np.log2(contrast_design(ARMS).contrast_norm ** 2)))
    assert len(ends) == max(wanted, 2)
    assert ends[-1] == 1001
    assert P1RAGE(budget=2).epoch_ends(ARMS).tolist() == [1, 2]
