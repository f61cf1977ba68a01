"""SBE against a slow reading of the paper's Algorithm 2, and at every edge."""

import json
from dataclasses import replace
from math import log

import numpy as np
import pytest

from orthobandit import ArmSet, Plan, Tally
from orthobandit.design import anchor_design, centred_design
from orthobandit.errors import InputError, ParameterError, ProbabilityError, TallyError
from orthobandit.policy import FOREVER, SBE
from orthobandit.theory import adaptive_phase_rounds, experiments_phase_rounds, theory_phase_rounds

BOUNDS = {"theta_bound": 1.0, "shift_bound": 1.0}
PROVEN = SBE(schedule="theory", C2=96, **BOUNDS)


def exact_tally(means, counts):
    """Tally of rewards without noise: arm i returned means[i] each time."""
    counts, means = np.asarray(counts), np.asarray(means, dtype=float)
    return Tally(counts, counts * means, counts * means**2)


def complete(policy, state, means):
    """Complete the phase with noise-free rewards, drawn as evenly as whole numbers allow."""
    plan = policy.plan(state)
    counts = np.floor(plan.probabilities * plan.rounds[..., np.newaxis]).astype(int)
    first = np.argmax(plan.probabilities > 0, axis=-1)[..., np.newaxis]
    rest = plan.rounds - counts.sum(axis=-1)
    counts = counts + rest[..., np.newaxis] * (np.arange(counts.shape[-1]) == first)
    return policy.observe(state, plan, exact_tally(np.broadcast_to(means, counts.shape), counts))


def rounds_of(arms, theta, seed, phase, probabilities, n):
    """Arms and rewards of one phase under a moving baseline; depends on its arguments alone."""
    rng = np.random.default_rng([seed, phase])
    drawn = rng.choice(len(arms), size=n, p=probabilities)
    rewards = arms.features[drawn] @ theta + 1 + np.sin(2.0 * np.arange(n)) + rng.standard_normal(n)
    return drawn, rewards


def slow_sbe(arms, theta, seed, delta, length, phases):
    """Algorithm 2, one round after the other, in the features' own coordinates."""
    X, (K, d) = arms.features, arms.features.shape
    survivors, history = list(range(K)), []
    for phase in range(1, phases + 1):
        if len(survivors) == 1:
            break
        epsilon, n = 1 / 2**phase, length(phase)
        p = np.zeros(K)
        p[survivors] = anchor_design(ArmSet(X[survivors]), reference=0).probabilities
        mean = sum(p[a] * X[a] for a in survivors)
        B, b = np.zeros((d, d)), np.zeros(d)
        for a, reward in zip(*rounds_of(arms, theta, seed, phase, p, n), strict=True):
            centred = X[a] - mean
            B += np.outer(centred, centred)
            b += centred * reward
        theta_hat = np.linalg.inv(B + log(n * phase * (phase + 1) / delta) * np.eye(d)) @ b
        best = max(X[a] @ theta_hat for a in survivors)
        survivors = [a for a in survivors if not best - X[a] @ theta_hat > epsilon]
        history.append((n, survivors))
    return history


def fast_sbe(policy, arms, theta, seed, phases):
    state, history = policy.start(arms), []
    for phase in range(1, phases + 1):
        if policy.decide(state).declared >= 0:
            break
        plan = policy.plan(state)
        drawn, rewards = rounds_of(arms, theta, seed, phase, plan.probabilities, int(plan.rounds))
        state = policy.observe(state, plan, Tally.of(drawn, rewards, len(arms)))
        history.append((int(plan.rounds), np.flatnonzero(policy.decide(state).active).tolist()))
    return history


INSTANCES = {
    "sphere": (lambda rng: ArmSet(rng.standard_normal((7, 3)) / 2), 3),
    "far from the origin": (lambda rng: ArmSet(rng.standard_normal((6, 2)) / 2 + 20.0), 2),
    "flat": (lambda rng: ArmSet(rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5)) / 3), 2),
    "one hot": (lambda _: ArmSet.one_hot(4), 3),
    "line": (lambda rng: ArmSet(rng.standard_normal((5, 1)) / 2), 1),
}


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_slow_reading(name, seed):
    make, dimension = INSTANCES[name]
    rng = np.random.default_rng(seed)
    arms, delta = make(rng), 0.1
    theta = rng.standard_normal(arms.features.shape[1])
    policy = SBE(delta=delta)
    slow = slow_sbe(
        arms, theta, seed, delta, lambda ell: experiments_phase_rounds(ell, delta, dimension, len(arms)), 4
    )
    assert fast_sbe(policy, arms, theta, seed, 4) == slow
    assert slow  # at least one phase was played


@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_the_slow_reading_on_the_theory_schedule(seed):
    rng = np.random.default_rng(seed)
    arms, theta = ArmSet(rng.standard_normal((6, 2)) / 2), rng.standard_normal(2)
    slow = slow_sbe(arms, theta, seed, 0.2, lambda ell: theory_phase_rounds(ell, 0.2, 2, 6), 3)
    assert fast_sbe(SBE(delta=0.2, schedule="theory"), arms, theta, seed, 3) == slow


def test_schedules_use_the_affine_dimension_and_all_arms():
    arms = ArmSet.one_hot(5)
    setting = (3, 0.05, 4, 5)
    assert SBE().phase_rounds(arms, 3) == experiments_phase_rounds(*setting)
    assert SBE(scale=8).phase_rounds(arms, 3) == experiments_phase_rounds(*setting, scale=8)
    assert SBE(schedule="theory", C2=2).phase_rounds(arms, 3) == theory_phase_rounds(*setting, C2=2)
    adaptive = SBE(schedule="adaptive", C2=2, C3=0.1)
    assert adaptive.phase_rounds(arms, 3) == adaptive_phase_rounds(*setting, C2=2, C3=0.1)


def test_first_plan_is_the_design_on_all_arms():
    arms = ArmSet(np.random.default_rng(0).standard_normal((6, 2)))
    plan = SBE().plan(SBE().start(arms))
    assert np.array_equal(plan.probabilities, anchor_design(arms).probabilities)
    plan = SBE(design="centred").plan(SBE(design="centred").start(arms))
    assert np.array_equal(plan.probabilities, centred_design(arms).probabilities)


def test_a_phase_drops_what_looks_worse_by_more_than_epsilon():
    arms = ArmSet.one_hot(4)
    policy = SBE(scale=1000)  # so long that the ridge does not matter
    state = complete(policy, policy.start(arms), [0.0, 1.0, 0.45, 0.55])
    decision = policy.decide(state)
    assert decision.active.tolist() == [False, True, False, True]
    assert (decision.leader, decision.declared, decision.epsilon) == (1, -1, np.inf)
    plan = policy.plan(state)
    # Two survivors; the reference is the first of them.
    assert plan.probabilities.tolist() == pytest.approx([0.0, 0.5, 0.0, 0.5], abs=1e-6)
    assert plan.rounds == experiments_phase_rounds(2, 0.05, 3, 4, scale=1000)
    state = complete(policy, state, [0.0, 1.0, 0.45, 0.55])
    decision = policy.decide(state)
    assert (decision.leader, decision.declared) == (1, 1)
    assert policy.plan(state).probabilities.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert policy.plan(state).rounds == FOREVER
    assert state.phase == 3


def test_epsilon_halves_with_each_phase_that_decides_nothing():
    arms, policy = ArmSet([[0.0], [1.0]]), PROVEN
    state, seen = policy.start(arms), []
    for _ in range(4):
        seen.append(float(policy.decide(state).epsilon))
        state = complete(policy, state, [5.0, 5.0])
    assert seen == [np.inf, 1.0, 0.5, 0.25]
    assert policy.decide(state).certainty == 0.95
    assert policy.decide(state).mode == "proven, if ‖x‖ ≤ 1, ‖θ‖ ≤ 1, |ν| ≤ 1, noise 1-sub-Gaussian"
    state = complete(policy, state, [4.0, 5.0])
    assert (policy.decide(state).declared, policy.decide(state).epsilon) == (1, 0.0)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "bounds of θ and the shift are not declared"),
        ({"schedule": "theory", "C2": 96}, "bounds of θ and the shift are not declared"),
        (BOUNDS, "constants of schedule 'experiments' are not known to suffice"),
        (
            {"schedule": "theory", "C2": 16, **BOUNDS},
            "constants of schedule 'theory' are not known to suffice",
        ),
        ({"schedule": "theory", "C2": 96, "longest": 10**9, **BOUNDS}, "phases are cut"),
        ({"schedule": "theory", "C2": 96, "design": anchor_design, **BOUNDS}, "a design of one's own"),
    ],
)
def test_nothing_is_claimed_without_bounds_and_constants_that_suffice(settings, why):
    policy = SBE(**settings)
    state = complete(policy, policy.start(ArmSet([[0.0], [1.0]])), [0.0, 5.0])
    decision = policy.decide(state)
    assert (decision.declared, decision.certainty, decision.epsilon) == (1, 0.0, np.inf)
    assert why in decision.mode


@pytest.mark.parametrize(("r", "count"), [(1, 2), (2, 40), (5, 10), (19, 20), (20, 1000)])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_the_constant_that_the_docs_name_suffices(r, count, delta):
    rng = np.random.default_rng(r)
    arms = ArmSet.one_hot(count) if r == count - 1 else ArmSet(rng.standard_normal((count, r)))
    policy = replace(PROVEN, delta=delta)
    assert policy.decide(policy.start(arms)).certainty == 1 - delta


def test_bounds_that_are_declared_do_not_lengthen_phases():
    arms = ArmSet.one_hot(4)
    assert SBE(**BOUNDS).phase_rounds(arms, 3) == SBE().phase_rounds(arms, 3)


@pytest.mark.parametrize("schedule", ["experiments", "theory", "adaptive"])
@pytest.mark.parametrize("phase", [1, 2])
def test_the_ridge_is_that_of_algorithm_2(schedule, phase):
    # Half the rounds on each of 0 and 1: V = n/4, so the gap Δ is estimated as Δ·V/(V + β).
    arms, policy = ArmSet([[0.0], [1.0]]), SBE(schedule=schedule, delta=0.2)
    for side, survives in ((1 - 1e-9, True), (1 + 1e-9, False)):
        state = policy.start(arms)
        if phase == 2:
            state = complete(policy, state, [0.0, 0.0])
        plan = policy.plan(state)
        n = int(plan.rounds)
        counts = [n // 2, n - n // 2]
        gram, beta = n / 4, log(n * phase * (phase + 1) / 0.2)
        moment = counts[1] / 2  # of one unit of gap
        gap = 0.5**phase * (gram + beta) / moment
        state = policy.observe(state, plan, exact_tally([0.0, gap * side], counts))
        assert policy.decide(state).active.tolist() == [survives, True]


def test_each_phase_forgets_the_one_before():
    arms, policy = ArmSet([[0.0], [1.0]]), SBE(scale=100)
    state = complete(policy, policy.start(arms), [0.3, 0.0])
    assert state.tally.rounds == 0
    assert policy.decide(state).leader == 0
    assert policy.decide(complete(policy, state, [0.0, 0.4])).declared == 1


def test_observing_in_parts_keeps_the_plan_and_counts_down():
    arms, policy = ArmSet.one_hot(3), SBE()
    state = policy.start(arms)
    plan = policy.plan(state)
    rounds = int(plan.rounds)
    state = policy.observe(state, plan, exact_tally([0.0, 0.0, 9.0], [1, 2, 3]))
    again = policy.plan(state)
    assert np.array_equal(again.probabilities, plan.probabilities)
    assert again.rounds == rounds - 6
    state = policy.observe(state, again, exact_tally([0.0, 0.0, 9.0], [rounds - 7, 0, 0]))
    assert policy.plan(state).rounds == 1
    assert policy.decide(state).active.all()
    state = policy.observe(state, policy.plan(state), exact_tally([0.0, 0.0, 9.0], [1, 0, 0]))
    assert state.phase == 2


def test_a_phase_cut_by_the_horizon_drops_nothing():
    arms, policy = ArmSet.one_hot(3), SBE(horizon=20)
    state = policy.start(arms)
    assert policy.plan(state).rounds == 20
    state = complete(policy, state, [0.0, 0.0, 100.0])
    decision = policy.decide(state)
    assert decision.active.all()
    assert (decision.declared, decision.epsilon) == (-1, np.inf)
    assert policy.plan(state).rounds == 0
    with pytest.raises(TallyError, match="in force for 0 more"):
        policy.observe(state, policy.plan(state), exact_tally([0.0, 0.0, 1.0], [1, 0, 0]))


def test_a_declared_arm_is_played_on_past_any_horizon():
    policy = SBE(horizon=5)
    state = policy.start(ArmSet([[1.0, 2.0]]))
    for _ in range(3):
        assert policy.plan(state).rounds == FOREVER
        state = policy.observe(state, policy.plan(state), exact_tally([1.0], [4]))
    assert policy.plan(state).rounds == FOREVER


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_one_arm_is_declared_at_once(batch):
    policy = SBE()
    state = policy.start(ArmSet([[1.0, 2.0]]), batch)
    decision = policy.decide(state)
    assert decision.declared.shape == batch
    assert not decision.declared.any()
    assert not decision.epsilon.any()
    assert np.all(policy.plan(state).rounds == FOREVER)


def test_identical_arms_are_settled_at_once():
    policy = SBE()
    decision = policy.decide(policy.start(ArmSet(np.ones((4, 2)))))
    assert (decision.declared, decision.epsilon) == (0, 0.0)
    assert decision.active.all()


def test_duplicates_of_the_best_arm_are_settled_by_the_first():
    arms, policy = ArmSet([[0.0], [1.0], [1.0]]), SBE(scale=100)
    state = complete(policy, policy.start(arms), [0.0, 1.0, 1.0])
    decision = policy.decide(state)
    assert decision.active.tolist() == [False, True, True]
    assert (decision.declared, decision.leader) == (1, 1)
    plan = policy.plan(state)
    assert plan.probabilities.tolist() == [0.0, 1.0, 0.0]
    assert plan.rounds == FOREVER


def test_replications_in_different_phases_equal_single_runs():
    arms, policy = ArmSet.one_hot(3), SBE(scale=50)
    means = np.array([[0.0, 1.0, 0.6], [0.9, 0.6, 0.7], [0.0, 0.0, 3.0]])
    state = policy.start(arms, (3,))
    # Replication 1 stays behind by one phase, then all end a phase together.
    plan = policy.plan(state)
    counts = np.floor(plan.probabilities * plan.rounds[:, np.newaxis]).astype(int)
    counts[:, 0] += plan.rounds - counts.sum(axis=-1)
    counts[1] = 0
    state = policy.observe(state, plan, exact_tally(means, counts))
    assert state.phase.tolist() == [2, 1, 2]
    assert policy.decide(state).declared.tolist() == [-1, -1, 2]
    plan = policy.plan(state)
    counts = np.floor(plan.probabilities * np.where(plan.rounds == FOREVER, 7, plan.rounds)[:, np.newaxis])
    counts = counts.astype(int)
    lead = np.argmax(plan.probabilities > 0, axis=-1)
    missing = np.where(plan.rounds == FOREVER, 0, plan.rounds - counts.sum(axis=-1))
    counts[np.arange(3), lead] += missing
    state = policy.observe(state, plan, exact_tally(means, counts))
    assert state.phase.tolist() == [3, 2, 2]
    for number, phases in enumerate([2, 1, 1]):
        single = policy.start(arms)
        for _ in range(phases):
            single = complete(policy, single, means[number])
        assert np.array_equal(policy.plan(state).probabilities[number], policy.plan(single).probabilities)
        assert policy.plan(state).rounds[number] == policy.plan(single).rounds
        assert np.array_equal(state.active[number], single.active)


def test_designs_are_made_once_for_each_set_of_survivors():
    made = []

    def counted(arms):
        made.append(arms.labels)
        return anchor_design(arms)

    arms, policy = ArmSet.one_hot(3), SBE(design=counted, scale=50)
    state = policy.start(arms, (60,))
    assert made == [("0", "1", "2")]
    means = np.tile([[0.0, 1.0, 0.8], [0.8, 1.0, 0.0], [1.0, 0.9, 0.8]], (20, 1))
    state = complete(policy, state, means)
    assert sorted(made[1:]) == [("0", "1"), ("1", "2")]
    assert np.all(state.phase == 2)


def test_very_long_phases_are_capped():
    policy = SBE(scale=1e30)
    state = policy.start(ArmSet.one_hot(3))
    assert policy.plan(state).rounds == FOREVER
    assert policy.decide(state).declared == -1
    assert SBE().phase_rounds(ArmSet.one_hot(3), 500) == FOREVER


def test_states_cannot_be_written_to():
    policy = SBE()
    state = policy.start(ArmSet.one_hot(3), (2,))
    decision = policy.decide(state)
    for array in (state.active, state.probabilities, state.phase, decision.active, decision.declared):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_what_cannot_have_been_played_is_refused():
    arms, policy = ArmSet.one_hot(3), SBE()
    state = policy.start(arms)
    plan, before = policy.plan(state), json.dumps(policy.dump(state))
    with pytest.raises(TallyError, match="not the one in force"):
        policy.observe(state, Plan([0.2, 0.4, 0.4], 10, number=1), exact_tally([1.0, 1.0, 1.0], [1, 1, 1]))
    with pytest.raises(TallyError, match=r"in force for \d+ more"):
        policy.observe(state, plan, exact_tally([1.0, 1.0, 1.0], [int(plan.rounds), 1, 0]))
    with pytest.raises(TallyError, match="shapes"):
        policy.observe(state, plan, exact_tally([1.0, 1.0], [1, 1]))
    with pytest.raises(TallyError, match="shapes"):
        policy.observe(state, plan, Tally.zeros(3, (2,)))
    settled = policy.start(ArmSet(np.ones((2, 1))))
    with pytest.raises(TallyError, match="arm 1 was played 1 times but has probability 0"):
        policy.observe(settled, policy.plan(settled), exact_tally([1.0, 1.0], [1, 1]))
    assert json.dumps(policy.dump(state)) == before


class Bad:
    def __init__(self, probabilities):
        self.probabilities = probabilities


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda arms: np.full(len(arms), 1 / len(arms)), "returned ndarray"),
        (lambda _: Bad([0.5, 0.5]), r"shape \(2,\) for 3 arms"),
        (lambda _: Bad([0.5, 0.5, 0.5]), "sum to 1.5"),
    ],
)
def test_bad_design_rules_are_named(rule, message):
    with pytest.raises((ParameterError, ProbabilityError), match=message):
        SBE(design=rule).start(ArmSet.one_hot(3))


def test_a_state_of_other_arms_is_refused():
    policy = SBE()
    data = policy.dump(policy.start(ArmSet.one_hot(3), (2,)))
    with pytest.raises(ParameterError, match="other arms"):
        policy.load(ArmSet.one_hot(4), data)
    del data["rounds"]
    with pytest.raises(ParameterError, match="no entry 'rounds'"):
        policy.load(ArmSet.one_hot(3), data)
    with pytest.raises(InputError, match="no entry 'phase'"):
        policy.load(ArmSet.one_hot(3), {"format": data["format"]})
