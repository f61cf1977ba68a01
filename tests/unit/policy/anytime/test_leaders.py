"""Anytime elimination with evidence against leaders: what it rests on, and what it leaves behind."""

import json
from dataclasses import replace

import numpy as np
import pytest

from inside.estimate import WIDE, draws_waited
from inside.policy import AllPairs
from inside.simulation import Player
from orthobandit import ArmSet, Environment, Plan, Tally, simulate
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate import (
    Asymptotic,
    AutoRegression,
    Bounded,
    Evidence,
    NoBaseline,
    PairGeometry,
    SubGaussian,
    Tuning,
)
from orthobandit.policy import AnytimeElimination
from orthobandit.policy.anytime.leaders import REMEMBERED, Against, Leaders, Shown
from orthobandit.simulation import Gaussian, PushLeader, Sine, Uniform, misses

RNG = np.random.default_rng(12)
MANY = ArmSet(RNG.standard_normal((60, 3)) / 2)
ARMS = {
    "many": MANY,
    "one hot": ArmSet.one_hot(5),
    "repeated": ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.3]]),
}


def world(arms, shift=None, noise=None, spread=1.0):
    theta = np.random.default_rng(3).standard_normal(arms.features.shape[1])
    scaled = theta * spread / np.abs(arms.features @ theta).max()
    return Environment(arms, scaled, shift or Sine(offset=0.0), noise or Gaussian(0.5))


def steps(policy, environment, horizon=4000, seed=0):
    """Yield (run before, plan, tally, run after) of one replication until it is over."""
    player = Player(environment, np.array([horizon]), seed, np.arange(1), policy.baseline)
    state = policy.start(environment.arms, (1,))
    while state.declared[0] < 0 and player.memory.clock[0] < horizon:
        plan = policy.plan(state)
        rounds = np.minimum(plan.rounds, horizon - player.memory.clock)
        tally = player.play(plan.probabilities, rounds, plan.centre)
        after = policy.observe(state, plan, tally)
        yield state[0,], plan, tally, after[0,]
        state = after


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize(
    ("confidence", "noise"),
    [(SubGaussian(-2.0, 2.0, 0.5), Gaussian(0.5)), (Bounded(-3.0, 3.0), Uniform(1.0))],
)
def test_no_round_moves_a_sum_by_more_than_its_scale(name, goal, confidence, noise):
    arms = ARMS[name]
    policy = AnytimeElimination(
        0.2, goal=goal, confidence=confidence, baseline=AutoRegression(2), growth=0.6, pairs="leader"
    )
    looked = 0
    for before, plan, tally, after in steps(policy, world(arms, noise=noise)):
        assert np.all(tally.squares <= tally.counts * confidence.limit**2 * (1 + 1e-12))
        if before.tests is None:
            assert after.tests is None or not after.tests.weights.any(), "pilot rounds were counted"
            continue
        p = plan.probabilities[0]
        inner = PairGeometry.of(arms.positions, p).inner
        kept = np.isin(before.kept, after.kept)
        now = {one.arm: one for one in (after.tests, *after.led)}
        for one in (before.tests, *before.led):
            if one.arm not in now or not np.array_equal(one.rho[kept], now[one.arm].rho):
                continue
            rivals = plan.rivals[0][after.kept] if one.arm < 0 else np.full(len(after.kept), one.arm)
            most = np.abs(inner[after.kept][:, p > 0] - inner[rivals][:, p > 0]).max(axis=1)
            weight = (now[one.arm].weights - one.weights[kept]) / tally.rounds[0]
            room = 1e-9 + 1e-11 * one.weights[kept] * most * confidence.limit
            assert np.all(weight * most * confidence.limit <= one.scale[kept] * (1 + 1e-9) + room)
            assert np.array_equal(now[one.arm].scale, one.scale[kept])
            looked += 1
    assert looked


@pytest.mark.parametrize("confidence", [Asymptotic(), SubGaussian(-3.0, 3.0, 2.0)])
def test_tests_are_against_the_leader_of_before_the_batch(confidence):
    policy = AnytimeElimination(confidence=confidence, baseline=NoBaseline(), growth=0.3, pairs="leader")
    given, leaders = world(MANY, PushLeader(), Gaussian(2.0), 0.2), set()
    for before, plan, tally, after in steps(policy, given):
        if before.tests is None or after.declared >= 0:
            continue
        leaders.add(int(before.leader))
        rivals = plan.rivals[0]
        assert np.all(rivals[np.arange(60) != before.leader] == before.leader)
        geometry = PairGeometry.of(MANY.positions, plan.probabilities[0])
        totals, squares = geometry.sums(
            tally.counts[0].astype(float), tally.sums[0], tally.squares[0], before.values
        )
        rows = after.kept
        kept = np.isin(before.kept, rows)
        weight = (after.tests.weights - before.tests.weights[kept]) / tally.rounds[0]
        gained = after.tests.totals - before.tests.totals[kept]
        assert gained == pytest.approx(weight * totals[rows, rivals[rows]], rel=1e-6, abs=1e-6)
        gained = after.tests.variances - before.tests.variances[kept]
        assert gained == pytest.approx(weight**2 * squares[rows, rivals[rows]], rel=1e-5, abs=1e-6)
    assert len(leaders) > 1


def test_an_arm_that_leads_again_goes_on_with_its_evidence():
    policy = AnytimeElimination(0.5, baseline=NoBaseline(), growth=0.02, pairs="leader")
    spent, again = {}, 0
    for before, _, _, after in steps(policy, world(MANY, PushLeader(), Gaussian(2.0), 0.1), 8000):
        assert len(after.led) <= REMEMBERED
        assert len({one.arm for one in after.led}) == len(after.led)
        if after.tests is None or after.declared >= 0:
            continue
        assert after.led[-1].arm == after.leader or any(one.arm == after.leader for one in after.led)
        for one in after.led:
            assert after.active[one.arm]
            spent.setdefault((one.arm, one.since), one.alpha)
        old = {one.arm: one for one in before.led}
        leader = int(after.leader)
        if leader != before.leader and leader in old:
            mine = next(one for one in after.led if one.arm == leader)
            assert mine.since == old[leader].since
            again += 1
    assert again
    assert len(spent) > 2
    # What all bounds of one arm may be wrong by is within their share of δ.
    assert sum(spent.values()) <= 0.05 * 0.98 * 0.5 * (1 + 1e-12)


def test_dropped_arms_are_left_out_of_everything_that_is_kept():
    policy, sizes = AnytimeElimination(pairs="leader"), []
    given = world(ArmSet(RNG.standard_normal((500, 3))), spread=3.0)
    for _, _, _, after in steps(policy, given):
        for one in after.led if after.tests is None else (after.tests, *after.led):
            assert len(one.totals) == len(one.rho) == np.count_nonzero(after.active)
        sizes.append(len(json.dumps(policy.dump(after))))
    assert sizes[-1] < 0.5 * max(sizes)


def test_epsilon_is_the_largest_bound_over_the_leader():
    policy = AnytimeElimination(0.1, confidence=SubGaussian(-3.0, 3.0), pairs="leader")
    seen = 0
    for _, _, _, after in steps(policy, world(MANY), 1500):
        leader = int(after.leader)
        over = policy.upper_bounds(after, over=leader)
        assert over.shape == (60,)
        assert over[after.leader] == 0
        if np.isfinite(after.epsilon) and after.declared < 0:
            others = after.active & (np.arange(60) != after.leader)
            assert after.epsilon == pytest.approx(max(over[others].max(), 0.0), rel=1e-6)
            whole = policy.upper_bounds(after)
            assert np.array_equal(whole[:, after.leader], over)
            assert np.array_equal(whole[after.leader], policy.upper_bounds(after, of=leader))
            assert np.all(np.isinf(over[~after.active]))
            seen += 1
    assert seen


def test_a_row_of_all_pairs_is_a_row():
    policy = AnytimeElimination(pairs="all")
    state = policy.start(ArmSet.one_hot(3), (2,))
    assert policy.upper_bounds(state, of=1).shape == policy.upper_bounds(state, over=1).shape == (2, 3)
    with pytest.raises(ParameterError, match="give one of them"):
        policy.upper_bounds(state, of=1, over=2)
    with pytest.raises(ParameterError, match="over=3"):
        policy.upper_bounds(state, over=3)


@pytest.mark.parametrize(
    ("goal", "epsilon"),
    [
        ("identify", 0.0),
        ("earn", 0.3),
        pytest.param("identify", 0.3, marks=pytest.mark.slow),
        pytest.param("earn", 0.0, marks=pytest.mark.slow),
    ],
)
def test_the_best_of_many_arms_is_declared(goal, epsilon):
    rng = np.random.default_rng(5)
    features, theta = rng.standard_normal((3000, 4)), np.array([1.0, 0.0, 0.0, 0.0])
    features[7, 0] = features[:, 0].max() + 0.5
    given = Environment(ArmSet(features), theta, Sine())
    policy = AnytimeElimination(goal=goal, epsilon=epsilon)
    assert isinstance(policy.start(given.arms), Leaders)
    result = simulate(policy, given, horizon=30_000, replications=3, seed=1, stop_when_declared=True)
    assert np.all(given.gaps[result.decision.declared] <= epsilon)
    assert np.all(result.decision.epsilon <= epsilon)
    assert np.all(result.stop_times > 0)


def test_units_of_rewards_do_not_matter():
    times = []
    for unit in (1.0, 2.0**40, 2.0**-40):
        given = Environment(MANY, np.array([0.3, 0.1, 0.2]) * unit, Sine(unit, unit), Gaussian(unit))
        policy = AnytimeElimination(baseline=NoBaseline(), pairs="leader")
        result = simulate(policy, given, horizon=4000, replications=2, seed=2)
        times.append((result.stop_times.tolist(), result.elimination_times.tolist()))
    assert times[0] == times[1] == times[2]


def test_misses_are_counted_with_evidence_against_leaders():
    found = misses(AnytimeElimination(pairs="leader"), world(MANY), horizon=1500, replications=3)
    assert found.first.tolist() == [-1, -1, -1]


def test_late_rounds_count_for_the_plan_they_were_drawn_under():
    policy, rng = AnytimeElimination(0.2, baseline=NoBaseline(), pairs="leader"), np.random.default_rng(0)
    given = world(MANY)

    def rounds(plan, count):
        drawn = rng.choice(60, count, p=plan.probabilities)
        return Tally.of(drawn, plan.residuals(drawn, given.means[drawn] + rng.standard_normal(count)), 60)

    state, early = policy.start(MANY), None
    while state.stage < 2:
        plan = policy.plan(state)
        state = policy.observe(state, plan, rounds(plan, int(plan.rounds)))
    early = policy.plan(state)
    state = policy.observe(state, early, rounds(early, int(early.rounds)))
    before = state
    tally = rounds(early, 5)
    after = policy.late(state, early, tally)
    assert after.late == 5
    geometry = PairGeometry.of(MANY.positions, early.probabilities)
    totals, _ = geometry.sums(tally.counts.astype(float), tally.sums, tally.squares, early.values)
    weight = (after.tests.weights - before.tests.weights) / 5
    gained = after.tests.totals - before.tests.totals
    rivals = early.rivals[before.kept]
    assert gained == pytest.approx(weight * totals[before.kept, rivals], rel=1e-6, abs=1e-8)
    # Evidence that was begun later than the plan does not count its rounds.
    later = replace(state.sequences.item(), led=tuple(replace(a, since=99) for a in before.led))
    newer = replace(state, sequences=np.asarray(later))
    kept = policy.late(newer, early, tally).led
    assert all(np.array_equal(a.totals, b.totals) for a, b in zip(kept, before.led, strict=True))
    with pytest.raises(TallyError, match="the newest is number"):
        policy.late(state, Plan(early.probabilities, 5, early.centre, 99, early.rivals), tally)


def test_small_sets_follow_all_pairs_unless_asked():
    assert isinstance(AnytimeElimination().start(MANY), AllPairs)
    assert isinstance(AnytimeElimination(pairs="leader").start(MANY), Leaders)
    big = ArmSet(RNG.standard_normal((1001, 1)))
    assert isinstance(AnytimeElimination().start(big), Leaders)
    assert isinstance(AnytimeElimination().start(big.subset(np.arange(1000))), AllPairs)
    with pytest.raises(ParameterError, match="pairs='some' is not one of"):
        AnytimeElimination(pairs="some")


def test_a_dump_of_other_arms_is_refused():
    policy = AnytimeElimination(pairs="leader")
    data = policy.dump(policy.start(MANY))
    with pytest.raises(ParameterError, match="dumped with other arms"):
        policy.load(ArmSet(RNG.standard_normal((61, 3))), data)


@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(-1.0, 1.0)])
def test_arms_that_are_not_looked_at_could_not_have_lost(confidence):
    rng, n = np.random.default_rng(4), 4000
    weights, spread = rng.uniform(1.0, 50.0, n), rng.uniform(0.0, 30.0, n)
    one = Against(
        arm=3,
        alpha=0.04,
        since=1,
        totals=-spread * rng.standard_normal(n),
        weights=weights,
        variances=rng.uniform(0.0, 20.0, n) * (rng.random(n) < 0.95),
        slack=np.zeros(n),
        pooled=np.zeros(n),
        peaks=np.zeros(n),
        rho=rng.uniform(0.1, 10.0, n),
        scale=rng.uniform(0.1, 3.0, n),
    )
    names = ("weights", "variances", "slack", "pooled", "peaks")
    parts = {name: getattr(one, name) for name in names}
    shown = Shown(50.0, rng.random(n) < 0.3)
    waited = draws_waited(one.totals, one.weights, one.variances, shown.quiet)
    evidence = Evidence(totals=-one.totals, **parts, events=np.asarray(50.0), waited=waited)
    exact = confidence.exceeds(evidence, Tuning(np.asarray(0.04), one.rho, one.scale, WIDE))
    assert np.array_equal(one.lost(confidence, shown), exact)
    assert 100 < np.count_nonzero(exact) < 3900
    bounds = one.upper_bounds(confidence, shown)
    some = rng.random(n) < 0.5
    assert one.highest(confidence, shown, some) == pytest.approx(max(bounds[some].max(), 0.0), rel=1e-8)


def test_only_arms_that_cannot_lose_are_left_out_of_the_closer_look():
    rng = np.random.default_rng(3)
    count, confidence = 4000, Bounded(0.0, 1.0)
    variances = 10.0 ** rng.uniform(-2, 5, count)
    rho, scale = variances * 10.0 ** rng.uniform(-8, 8, count), 10.0 ** rng.uniform(-1, 1, count)
    bare = dict.fromkeys(("slack", "pooled", "peaks"), np.zeros(count))
    sums = {"weights": np.ones(count), "variances": variances * scale**2, **bare}
    tuning = {"rho": rho * scale**2, "scale": scale}
    # Sums a little below, at and above the boundary of each arm.
    flat = Against(0, 0.01, 0, totals=np.zeros(count), **sums, **tuning)
    shown = Shown(np.inf, np.zeros(count, dtype=bool))
    boundary = flat.upper_bounds(confidence, shown)
    for factor in (0.9, 1.0 - 1e-6, 1.0 + 1e-6, 1.1):
        near = Against(0, 0.01, 0, totals=-factor * boundary, **sums, **tuning)
        evidence = replace(near._evidence(slice(None), shown), totals=factor * boundary)
        assert np.array_equal(
            near.lost(confidence, shown), confidence.exceeds(evidence, near._tuning(slice(None)))
        )
    assert near.lost(confidence, shown).all()
