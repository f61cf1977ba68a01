"""Anytime elimination: what its exact modes rest on, checked on the states of many runs."""

from dataclasses import replace

import numpy as np
import pytest

from inside.policy import AllPairs, pace
from inside.simulation import Player
from orthobandit import ArmSet, Environment, Plan, Tally, simulate
from orthobandit.errors import RewardError, TallyError
from orthobandit.estimate import Asymptotic, AutoRegression, Bounded, NoBaseline, PairGeometry, SubGaussian
from orthobandit.policy import FOREVER, AnytimeElimination
from orthobandit.simulation import CancelBest, Gaussian, PushLeader, ReactToLast, Sine, Uniform

RNG = np.random.default_rng(8)
ARMS = {
    "plane": ArmSet([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0], [0.9, 0.9]]),
    "one hot": ArmSet.one_hot(5),
    "repeated": ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.3]]),
    "many": ArmSet(RNG.standard_normal((12, 3)) / 2),
}
SHIFTS = [Sine(offset=0.0), CancelBest(), PushLeader(), ReactToLast()]


def steps(policy, environment, size=4, horizon=4000, seed=0):
    """Yield (state before, plan, tally, state after) until every run is over."""
    player = Player(environment, np.array([horizon]), seed, np.arange(size), policy.baseline)
    state = policy.start(environment.arms, (size,))
    while True:
        plan = policy.plan(state)
        left = np.where(state.declared < 0, horizon - player.memory.clock, 0)
        rounds = np.minimum(plan.rounds, left)
        if not rounds.any():
            return
        tally = player.play(plan.probabilities, rounds, plan.centre)
        after = policy.observe(state, plan, tally)
        yield state, plan, tally, after
        state = after


def environment(arms, shift, noise, spread=1.0):
    width = arms.features.shape[1]
    theta = np.random.default_rng(3).standard_normal(width)
    means = arms.features @ theta
    return Environment(arms, theta * spread / np.abs(means).max(), shift, noise)


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("shift", SHIFTS, ids=lambda shift: type(shift).__name__)
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize(
    ("confidence", "noise"),
    [(SubGaussian(-2.0, 2.0, 0.5), Gaussian(0.5)), (Bounded(-3.0, 3.0), Uniform(1.0))],
)
def test_what_the_exact_modes_rest_on(name, shift, goal, confidence, noise):
    policy = AnytimeElimination(0.2, goal=goal, confidence=confidence, baseline=AutoRegression(2), growth=0.6)
    arms = ARMS[name]
    for before, plan, tally, after in steps(policy, environment(arms, shift, noise)):
        assert np.all(tally.squares <= tally.counts * confidence.limit**2 * (1 + 1e-12))
        for r in range(len(before.stage)):
            if not tally.rounds[r]:
                continue
            if before.stage[r] < 2:
                assert not after.weights[r].any(), "pilot rounds were counted"
                continue
            # Tuning is fixed before the first counted round and never changes.
            for field in ("alpha", "rho", "scale"):
                assert np.array_equal(getattr(after, field)[r], getattr(before, field)[r])
            if after.weights[r].sum() == before.weights[r].sum():
                continue
            # The largest possible increment: weight × largest |g| of an arm that can be drawn × limit.
            p = plan.probabilities[r]
            geometry = PairGeometry.of(arms.positions, p)
            weight = (after.weights[r] - before.weights[r]) / before.length[r]
            most = np.abs(geometry.inner[:, np.newaxis, p > 0] - geometry.inner[:, p > 0]).max(axis=2)
            # Each arm's own test, on the diagonal, is that of its rival in this batch.
            np.fill_diagonal(most, most[np.arange(len(arms)), rivals(before, r)])
            used = weight * most * confidence.limit
            # Differences of sums that have grown are rounded.
            room = 1e-9 + 1e-12 * before.weights[r] / max(before.length[r], 1) * most * confidence.limit
            assert np.all(used <= before.scale[r] * (1 + 1e-9) + room)
            slack = (after.slack[r] - before.slack[r]) / before.length[r]
            mean_size = np.abs(geometry.inner[:, np.newaxis] - geometry.inner) @ p
            np.fill_diagonal(mean_size, mean_size[np.arange(len(arms)), rivals(before, r)])
            assert np.all(slack + 1e-12 >= weight * confidence.bias * mean_size * (weight > 0))
            assert np.all(after.alpha[r].sum(axis=1) + after.left[r] <= policy.delta * (1 + 1e-12))


def rivals(state, r):
    """Return the arm that each is tested against in the next batch: the leader, or the second for it."""
    leader, count = state.leader[r], state.active.shape[1]
    others = [i for i in range(count) if state.active[r, i] and i != leader]
    second = max(others, key=lambda i: state.values[r, i]) if others else 0
    return np.array([second if i == leader else leader for i in range(count)])


@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_an_arm_is_tested_against_the_leader_of_before_the_batch(goal):
    # The leader changes in these runs; a test adds up, batch by batch, the estimates against its rival.
    policy = AnytimeElimination(0.05, goal=goal, baseline=NoBaseline(), growth=0.3)
    given = environment(ARMS["many"], PushLeader(), Gaussian(2.0), 0.2)
    leaders = set()
    for before, plan, tally, after in steps(policy, given, size=1):
        if before.stage[0] < 2:
            continue
        leaders.add(int(before.leader[0]))
        if after.plans[0] == before.plans[0]:
            continue
        rival, every = rivals(before, 0), np.arange(len(given.arms))
        geometry = PairGeometry.of(given.arms.positions, plan.probabilities[0])
        totals, variances = geometry.sums(
            tally.counts[0].astype(float), tally.sums[0], tally.squares[0], before.values[0]
        )
        # A pair waits while its variance is known less well than from ten draws of one arm.
        p = plan.probabilities[0]
        share = np.minimum(p * np.diagonal(geometry.inner), 1.0)
        doubt = geometry.carried(p * share / np.maximum(before.drawn[0] + before.length[0] * p, 1e-300))
        counts = np.isfinite(geometry.variance) & (10.0 * doubt <= geometry.variance)
        weight = np.where(counts, 1.0 / geometry.variance, 0.0)[every, rival]
        gained = np.diag(after.totals[0]) - np.diag(before.totals[0])
        assert gained == pytest.approx(weight * totals[every, rival], rel=1e-9, abs=1e-9)
        gained = np.diag(after.variances[0]) - np.diag(before.variances[0])
        assert gained == pytest.approx(weight**2 * variances[every, rival], rel=1e-6, abs=1e-9)
        assert after.met[0][every, rival].all()
    assert len(leaders) > 1


def test_bounds_on_pairs_are_those_of_their_evidence():
    policy = AnytimeElimination(0.1, confidence=SubGaussian(-3.0, 3.0), baseline=NoBaseline())
    for _, _, _, after in steps(policy, environment(ARMS["many"], Sine(), Gaussian(1.0)), 2, 1000):
        bounds = policy.upper_bounds(after)
        assert np.all(np.diagonal(bounds, axis1=1, axis2=2) == 0)
        # What i is better by, and j is better by, cannot both be negative.
        assert np.all(bounds + bounds.transpose(0, 2, 1) >= 0)
        epsilon = policy.decide(after).epsilon
        for r in np.flatnonzero((after.stage == 2) & (after.declared < 0)):
            others = after.active[r] & (np.arange(12) != after.leader[r])
            assert epsilon[r] == pytest.approx(max(bounds[r, others, after.leader[r]].max(), 0.0))
    assert np.isfinite(bounds).any()


@pytest.mark.parametrize("seed", range(5))
def test_residuals_have_means_within_the_range_whatever_the_forecast(seed):
    # Means anywhere in [low, high]; a forecast of any size; values after any amount of fitting.
    rng = np.random.default_rng(seed)
    policy = AnytimeElimination(confidence=SubGaussian(-1.0, 2.0, 0.5), baseline=NoBaseline())
    for before, plan, _, _ in steps(
        policy, environment(ARMS["many"], Sine(), Gaussian(3.0), 0.5), 2, 1500, seed
    ):
        for r in range(len(before.stage)):
            centre = replace(plan.centre.at((r,)), limit=np.inf)
            can = np.flatnonzero(plan.probabilities[r])
            arms = rng.choice(can, 200)
            means, forecasts = rng.uniform(-1.0, 2.0, 200), rng.normal(0.0, 10.0, 200)
            assert np.abs(centre.residuals(arms, means, forecasts)).max() <= 3.0 + 1e-12


def test_values_are_linear_in_the_features():
    for before, _, _, _ in steps(AnytimeElimination(), environment(ARMS["many"], Sine(), Gaussian(1.0)), 2):
        lifted = np.column_stack([np.ones(12), ARMS["many"].features])
        fitted = lifted @ np.linalg.lstsq(lifted, before.values.T, rcond=None)[0]
        assert np.abs(fitted.T - before.values).max() < 1e-9


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("confidence", [Asymptotic(), SubGaussian(-3.0, 3.0, 0.5)])
def test_the_best_arm_is_declared(goal, confidence):
    given = environment(ARMS["plane"], Sine(), Gaussian(0.5))
    policy = AnytimeElimination(goal=goal, confidence=confidence)
    result = simulate(policy, given, horizon=20_000, replications=8, seed=1, stop_when_declared=True)
    assert result.decision.declared.tolist() == [given.best] * 8
    assert np.all(result.decision.epsilon == 0)
    assert result.decision.mode == confidence.name
    assert result.decision.certainty == pytest.approx(0.95)


def test_a_near_best_arm_is_declared_within_epsilon_and_sooner():
    given = Environment(ArmSet.one_hot(3), [0.5, 0.48, 0.0], Sine(), Gaussian(0.5))
    policy = AnytimeElimination(epsilon=0.2)
    result = simulate(policy, given, horizon=20_000, replications=6, seed=1, stop_when_declared=True)
    assert np.all(result.decision.declared >= 0)
    assert np.all(result.decision.epsilon <= 0.2)
    assert np.all(given.gaps[result.decision.declared] <= 0.2)
    longer = simulate(replace(policy, epsilon=0.0), given, horizon=20_000, replications=6, seed=1)
    is_longer = (longer.stop_times < 0) | (longer.stop_times > result.stop_times)
    assert np.all(is_longer)


def test_equal_arms_take_no_share_of_delta():
    policy = AnytimeElimination(0.1, baseline=NoBaseline())
    for _, _, _, after in steps(policy, environment(ARMS["repeated"], Sine(), Gaussian(1e6)), 1, 400):
        if after.stage[0] == 2:
            alpha = after.alpha[0]
            assert alpha[1, 2] == pytest.approx(0.2 * 0.0097 * 0.1 / 4, rel=1e-6)
            assert np.all(alpha.sum(axis=1) <= 0.1)


@pytest.mark.parametrize("pairs", ["all", "leader"])
def test_equal_survivors_settle_the_matter(pairs):
    arms = ArmSet([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    given = Environment(arms, [1.0, 0.0], Sine(), Gaussian(0.3))
    result = simulate(AnytimeElimination(pairs=pairs), given, horizon=3000, replications=3, seed=0)
    assert result.decision.declared.tolist() == [0, 0, 0]
    assert result.decision.active.tolist() == [[True, False, True]] * 3
    assert result.decision.epsilon.tolist() == [0.0] * 3


def test_proofs_in_a_circle_drop_nothing():
    policy = AnytimeElimination()
    run = AllPairs.start(policy, ArmSet.one_hot(3), ())
    circle = 1e6 * (np.roll(np.eye(3), 1, axis=1) - np.roll(np.eye(3), -1, axis=1))
    enough = 1e4  # draws, so that the asymptotic mode may speak
    weights = np.full((3, 3), enough)
    run = replace(run, totals=enough * circle, weights=weights, scattered=100.0, largest=1.0)
    assert run.proven(policy.confidence).any(axis=1).all()
    assert run.eliminate(policy.confidence).active.tolist() == [True] * 3


def test_rewards_in_place_of_residuals_are_refused_and_nothing_changes():
    policy = AnytimeElimination(confidence=Bounded(0.0, 1.0))
    state = policy.start(ArmSet.one_hot(2))
    plan = policy.plan(state)
    with pytest.raises(RewardError, match="residuals of arm 1 exceed the limit 1"):
        policy.observe(state, plan, Tally.of([1], [40.0], 2))
    with pytest.raises(RewardError, match=r"rewards row 1 is 40, outside the declared range \[0, 1\]"):
        plan.centre.residuals(np.array([0, 1]), [0.5, 40.0])
    with pytest.raises(TallyError, match="not the one in force"):
        policy.observe(state, Plan([0.9, 0.1], 20, number=1), Tally.of([0], [0.5], 2))
    assert policy.dump(state) == policy.dump(policy.start(ArmSet.one_hot(2)))


def test_nothing_is_known_before_the_pilot_is_over():
    policy = AnytimeElimination()
    decision = policy.decide(policy.start(ARMS["plane"], (2,)))
    assert np.all(np.isinf(decision.epsilon))
    assert np.all(decision.active)
    assert policy.plan(policy.start(ArmSet([[1.0]]))).rounds == FOREVER


def test_late_rewards_of_an_ended_plan_are_refused_by_its_number():
    # Both plans have the same probabilities, and other centres: looking alike is not enough.
    policy, rng = AnytimeElimination(rewards=(0, 1)), np.random.default_rng(1)
    state = policy.start(ArmSet.one_hot(2))
    state = policy.observe(state, policy.plan(state), Tally.of([0], [0.5], 2))
    early = policy.plan(state)
    drawn = rng.integers(0, 2, int(early.rounds))
    state = policy.observe(state, early, Tally.of(drawn, early.residuals(drawn, rng.random(drawn.size)), 2))
    now = policy.plan(state)
    assert np.array_equal(now.probabilities, early.probabilities)
    with pytest.raises(TallyError, match="these rounds are of plan number 2, and number 3 is in force"):
        policy.observe(state, early, Tally.of([0], [0.1], 2))
    policy.observe(state, now, Tally.of([0], [0.1], 2))


@pytest.mark.parametrize(
    ("against", "settings", "share"),
    [
        (0.0, {}, 0.1),  # nothing speaks against any arm
        (-50.0, {}, 0.1),  # all speaks for it
        (19.5, {}, 0.01),  # S/√2V is 1.95 of the 2.0 at which an arm goes
        (30.0, {}, 0.01),
        (18.0, {}, 0.04),  # (2.0 − 1.8)²
        (0.0, {"epsilon": 0.1}, 0.01),  # bounds may end it at any time
        (0.0, {"growth": 0.3}, 0.3),
    ],
)
def test_batches_are_short_while_some_arm_is_near_its_end(against, settings, share):
    policy = AnytimeElimination(**settings)
    totals, variances = np.array([[0.0, against], [0.0, 0.0]]), np.full((2, 2), 50.0)
    calm = pace(policy, 0.0 * totals, variances, np.exp(-3.0))
    assert pace(policy, totals, variances, np.exp(-3.0)) == pytest.approx([share, calm[1]])


def test_batches_before_any_evidence_are_long():
    nothing = np.zeros((1, 3))
    assert pace(AnytimeElimination(), nothing, nothing, 0.05) == pytest.approx([0.1])
