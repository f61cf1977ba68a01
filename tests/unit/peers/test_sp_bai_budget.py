"""SP-BAI with a budget: the phases of SP-BAI, cut where the budget ends."""

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.policy import FOREVER, SPBAI, BudgetedSPBAI
from orthobandit.simulation import Sine, one_hot, simulate

ARMS = ArmSet(np.random.default_rng(12).standard_normal((6, 3)))
CLOSE = ARMS.features @ [0.02, 0.01, 0.03]  # gaps far below the first ε, so that no phase drops an arm


def complete(policy, state, means):
    """Finish the phase with counts proportional to the design and rewards without noise."""
    plan = policy.plan(state)
    counts = np.floor(plan.probabilities * int(plan.rounds)).astype(int)
    counts[np.argmax(counts)] += int(plan.rounds) - counts.sum()
    return policy.observe(state, plan, Tally(counts, counts * means, counts * means**2))


@pytest.mark.parametrize("variant", ["anchor", "released"])
def test_phases_are_those_of_sp_bai_until_the_budget_ends(variant):
    whole = SPBAI(delta=0.1, variant=variant)
    first = whole.start(ARMS)
    second = complete(whole, first, CLOSE)
    lengths = [int(whole.plan(state).rounds) for state in (first, second)]
    policy = BudgetedSPBAI(sum(lengths) - 1, delta=0.1, variant=variant)
    state = policy.start(ARMS)
    assert policy.plan(state).probabilities.tolist() == whole.plan(first).probabilities.tolist()
    assert policy.plan(state).rounds == lengths[0]
    state = complete(policy, state, CLOSE)
    assert policy.decide(state).declared == -1
    assert policy.plan(state).probabilities.tolist() == whole.plan(second).probabilities.tolist()
    assert policy.plan(state).rounds == lengths[1] - 1
    state = complete(policy, state, CLOSE)
    decision = policy.decide(state)
    assert decision.declared == np.argmax(CLOSE)
    assert state.rounds == policy.budget
    assert policy.plan(state).rounds == FOREVER
    assert (decision.certainty, decision.epsilon) == (0.0, np.inf)


def test_a_clear_winner_ends_the_run_early():
    policy = BudgetedSPBAI(10_000)
    state = complete(policy, policy.start(ArmSet([[0.0], [1.0]])), np.array([0.0, 3.0]))
    assert policy.decide(state).declared == 1
    assert state.rounds < 10_000


def test_the_declared_arm_is_a_survivor():
    means = np.array([0.0, 0.3, 1.0, 1.1])
    arms = ArmSet.one_hot(4)
    whole = SPBAI(delta=0.1)
    first = int(whole.plan(whole.start(arms)).rounds)
    policy = BudgetedSPBAI(first + 10, delta=0.1)
    state = complete(policy, policy.start(arms), means)
    left = policy.decide(state).active
    assert left.tolist() == [False, False, True, True]
    # The second phase makes a dropped arm look best, which must not be declared.
    state = complete(policy, state, np.array([9.0, 0.0, 2.0, 1.0]))
    assert policy.decide(state).declared == 2


def test_runs_of_a_batch_have_budgets_of_their_own():
    world = one_hot([0.0, 0.2, 0.5], shift=Sine())
    result = simulate(BudgetedSPBAI(3000, delta=0.1), world, horizon=5000, replications=20, seed=4)
    assert np.all(result.declared >= 0)
    assert np.all(result.stop_times <= 3000)
    assert len(set(result.stop_times.tolist())) > 1
    assert np.mean(result.declared == 2) > 0.9
