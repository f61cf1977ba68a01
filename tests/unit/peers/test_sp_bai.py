"""SP-BAI and the phase lengths of its authors, against the printed formulae."""

from math import ceil, log, sqrt

import numpy as np
import pytest
from tests.unit.policy.tallies import noiseless_tally

from orthobandit import ArmSet, OrthogonalRegression
from orthobandit.design import anchor_design, contrast_design
from orthobandit.errors import ParameterError
from orthobandit.peers.sp_bai import spbai_rounds
from orthobandit.policy import FOREVER, SBE, SPBAI
from orthobandit.policy.author_rounds import successor_phase_rounds

ARMS = ArmSet(np.random.default_rng(12).standard_normal((6, 3)))


def complete(policy, state, means):
    """Finish the phase with counts proportional to the design and rewards without noise."""
    plan = policy.plan(state)
    counts = np.floor(plan.probabilities * int(plan.rounds)).astype(int)
    counts[np.argmax(counts)] += int(plan.rounds) - counts.sum()
    return policy.observe(state, plan, noiseless_tally(counts, means))


def largest_variance(p, left):
    X = ARMS.features
    centred = X - p @ X
    inverse = np.linalg.inv((centred * p[:, None]).T @ centred)
    return max((X[i] - X[j]) @ inverse @ (X[i] - X[j]) for i in left for j in left)


def test_first_phase_is_as_printed():
    plan = SPBAI(delta=0.1).plan(SPBAI(delta=0.1).start(ARMS))
    local = contrast_design(ARMS, reference=0).probabilities / 2 + np.eye(6)[0] / 2
    assert plan.probabilities == pytest.approx(local / 2 + anchor_design(ARMS).probabilities / 2, abs=1e-3)
    V, share = largest_variance(plan.probabilities, range(6)), 0.1 / (36 * 2)
    printed = V / 0.25 * log(V / (0.5 * share)) / 3 + 32 * 3 * sqrt(V) / 0.5 * log(3 / share) / 3
    assert abs(plan.rounds - printed) <= 1


def test_survivors_shape_the_next_phase():
    policy = SPBAI(delta=0.1)
    means = ARMS.features @ [0.2, 0.1, 0.3]
    state = complete(policy, policy.start(ARMS), means)
    left = np.flatnonzero(policy.decide(state).active)
    gaps = means.max() - means
    assert 2 <= len(left) <= 5
    assert set(np.flatnonzero(gaps < 0.45)) <= set(left) <= set(np.flatnonzero(gaps < 0.55))
    plan = policy.plan(state)
    pairs = [[left[0], j] for j in left[1:]]
    local = contrast_design(ARMS, pairs).probabilities / 2 + np.eye(6)[left[0]] / 2
    assert plan.probabilities == pytest.approx(local / 2 + anchor_design(ARMS).probabilities / 2, abs=1e-9)
    V, share = largest_variance(plan.probabilities, left), 0.1 / (len(left) ** 2 * 6)
    assert abs(plan.rounds - spbai_rounds(0.25, share, 3, V)) <= 1
    assert (policy.decide(state).certainty, policy.decide(state).epsilon) == (0.0, np.inf)


def xy_value(q, points, pairs):
    """Largest squared norm of the pairs' differences in the inverse of Σ q_i b_i b_iᵀ."""
    inverse = np.linalg.pinv((points * q[:, None]).T @ points)
    return max((points[i] - points[j]) @ inverse @ (points[i] - points[j]) for i, j in pairs)


def test_released_designs_are_for_all_pairs_and_anchored_at_the_leader():
    policy = SPBAI(delta=0.1, variant="released")
    means = ARMS.features @ [0.2, 0.1, 0.3]
    state = policy.start(ARMS)
    anchors = [0]
    state = complete(policy, state, means)
    left = np.flatnonzero(policy.decide(state).active)
    anchors.append(int(policy.decide(state).leader))
    assert anchors[1] == np.argmax(means)
    assert anchors[1] != left[0], "the instance does not tell the two variants apart"
    for anchor, alive, plan in (
        (anchors[0], np.arange(6), policy.plan(policy.start(ARMS))),
        (anchors[1], left, policy.plan(state)),
    ):
        q = 4 * (plan.probabilities - anchor_design(ARMS).probabilities / 2)
        q[anchor] -= 1
        assert q.min() > -1e-9
        assert q.sum() == pytest.approx(1)
        assert np.all(q[np.setdiff1d(np.arange(6), alive)] < 1e-9), "only survivors"
        assert q[anchor] < 1e-3
        points = (ARMS.features - ARMS.features[anchor])[alive]
        pairs = [(i, j) for i in range(len(alive)) for j in range(i)]
        reached = xy_value(q[alive], points, pairs)
        rng = np.random.default_rng(0)
        others = rng.dirichlet(np.full(len(alive), 0.7), size=3000) * 0.5 + q[alive] * 0.5
        assert reached <= 1.001 * min(xy_value(other, points, pairs) for other in others)
        V, share = largest_variance(plan.probabilities, alive), 0.1 / (len(alive) ** 2)
        phase = 1 if anchor == anchors[0] else 2
        assert abs(plan.rounds - spbai_rounds(2.0**-phase, share / (phase * (phase + 1)), 3, V)) <= 1


def test_a_cut_phase_ends_with_its_leader_and_without_a_claim():
    means = ARMS.features @ [0.02, 0.01, 0.03]
    whole = SPBAI(delta=0.1)
    first = int(whole.plan(whole.start(ARMS)).rounds)
    for longest, is_cut in ((first + 1, False), (first, True), (first - 1, True)):
        policy = SPBAI(delta=0.1, longest=longest)
        state = policy.start(ARMS)
        assert policy.plan(state).rounds == min(first, longest)
        decision = policy.decide(complete(policy, state, means))
        assert (decision.declared >= 0) == is_cut
        assert decision.leader == np.argmax(means)
        assert (decision.certainty, decision.epsilon) == (0.0, np.inf)


def test_estimates_use_the_ridge_of_the_paper():
    policy = SPBAI(delta=0.3)
    state = policy.start(ARMS)
    plan = policy.plan(state)
    rng = np.random.default_rng(1)
    counts = rng.multinomial(int(plan.rounds), plan.probabilities / plan.probabilities.sum())
    seen = noiseless_tally(counts, rng.standard_normal(6))
    after = policy.observe(state, plan, seen)
    ridge = max(1.0, log(int(plan.rounds) / 0.3))
    gaps = OrthogonalRegression(ridge=ridge).fit(ARMS, [(plan, seen)]).gaps
    assert policy.decide(after).leader == np.argmin(gaps)
    assert policy.decide(after).active.tolist() == (gaps < 0.5).tolist()


def test_a_sole_survivor_is_declared():
    policy = SPBAI()
    state = complete(policy, policy.start(ArmSet([[0.0], [1.0]])), [0.0, 3.0])
    decision = policy.decide(state)
    assert (decision.declared, decision.leader, decision.certainty) == (1, 1, 0.0)
    assert policy.plan(state).rounds == FOREVER
    assert policy.plan(state).probabilities.tolist() == [0.0, 1.0]
    later = policy.observe(state, policy.plan(state), noiseless_tally([0, 9], [0.0, -5.0]))
    assert policy.dump(later) == policy.dump(state)


@pytest.mark.parametrize("phase", [1, 2, 5])
@pytest.mark.parametrize(("d", "K"), [(1, 2), (10, 11), (20, 30)])
def test_sbe_constants_of_the_successor_are_as_printed(phase, d, K):
    e, share = 2.0**-phase, 0.1 / (K * phase * (phase + 1))
    printed = 4 / 3 * 4 * d / e**2 * log(4 * d / (e * share)) + 2 / 3 * 32 * d**1.5 / e * log(d / share)
    assert successor_phase_rounds(phase, 0.1, d, K) == ceil(printed)


def test_late_phases_last_for_ever():
    assert successor_phase_rounds(2000, 0.1, 3, 4) == FOREVER
    assert spbai_rounds(2.0**-500, 1e-300, 3, 4.0) == FOREVER


def test_sbe_takes_the_schedule_of_the_successor():
    arms = ArmSet.one_hot(5)
    policy = SBE(schedule="successor", delta=0.1)
    assert policy.phase_rounds(arms, 3) == successor_phase_rounds(3, 0.1, 4, 5)
    with pytest.raises(ParameterError, match="reads only no constant"):
        SBE(schedule="successor", scale=2.0)


def test_sbe_cut_by_the_successors_limit_declares_its_leader():
    arms, means = ArmSet.one_hot(3), np.array([0.1, 0.2, 0.0])
    whole = SBE(schedule="successor", delta=0.1)
    lengths = [whole.phase_rounds(arms, phase) for phase in (1, 2)]
    policy = SBE(schedule="successor", delta=0.1, longest=lengths[1] - 1)
    state = complete(policy, policy.start(arms), means)
    assert (policy.decide(state).declared, policy.plan(state).rounds) == (-1, lengths[1] - 1)
    decision = policy.decide(complete(policy, state, means))
    assert (decision.declared, decision.certainty, decision.epsilon) == (1, 0.0, np.inf)
    assert decision.active.tolist() == [False, True, False]
    with pytest.raises(ParameterError, match="longest=0"):
        SBE(longest=0)
