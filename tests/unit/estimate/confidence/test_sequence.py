"""Confidence sequences for any contrasts, from plans and tallies."""

import numpy as np
import pytest

from orthobandit import ArmSet, ContrastSequence, Plan, Tally
from orthobandit.errors import ParameterError, RewardError, TallyError
from orthobandit.estimate import Asymptotic, Bounded, Centre, SubGaussian

RNG = np.random.default_rng(0)
ARMS = ArmSet(RNG.standard_normal((5, 3)))
PAIRS = [[1, 0], [4, 2]]


def batch(arms, p, rewards):
    """Return a plan of so many rounds from p, and the tally of arms drawn from it."""
    drawn = RNG.choice(len(p), len(rewards), p=p)
    return Plan(p, len(rewards)), Tally.of(drawn, rewards, len(arms))


@pytest.mark.parametrize("values", [None, 0.7])
def test_estimates_are_exactly_unbiased_for_any_contrast(values):
    # One round in which each arm is drawn with its probability: the mean over arms is the truth.
    theta, level = RNG.standard_normal(3), 5.0
    p = RNG.dirichlet(np.ones(5))
    coefficients = RNG.standard_normal((4, 5))
    coefficients -= coefficients.mean(axis=1, keepdims=True)
    guess = np.zeros(5) if values is None else 3.0 + ARMS.features @ RNG.standard_normal(3)
    unbounded = (np.array(-np.inf), np.array(np.inf))
    start = ContrastSequence.start(ARMS, coefficients=coefficients)
    mean = np.zeros(4)
    for arm in range(5):
        reward = float(ARMS.features[arm] @ theta) + level
        plan = Plan(p, 1, Centre(guess, *unbounded))
        residual = plan.residuals(np.array([arm]), [reward], 1.3)
        mean += p[arm] * start.add(plan, Tally.of([arm], residual, 5)).evidence.estimates
    assert mean == pytest.approx(coefficients @ ARMS.features @ theta, abs=1e-9)


def test_pairs_are_coefficients_and_two_sides_cost_half_of_delta():
    plan, tally = batch(ARMS, np.full(5, 0.2), RNG.standard_normal(300))
    by_pairs = ContrastSequence.start(ARMS, PAIRS, delta=0.1).add(plan, tally)
    every = np.eye(5)
    rows = np.array([every[1] - every[0], every[4] - every[2]])
    by_rows = ContrastSequence.start(ARMS, coefficients=rows, delta=0.1).add(plan, tally)
    assert np.array_equal(by_pairs.intervals()[0], by_rows.intervals()[0])
    one_sided = ContrastSequence.start(ARMS, PAIRS, delta=0.05, sides=1).add(plan, tally)
    assert one_sided.intervals()[0] == pytest.approx(by_pairs.intervals()[0])
    assert np.all(np.isinf(one_sided.intervals()[1]))
    low, high = by_pairs.intervals()
    assert (low + high) / 2 == pytest.approx(by_pairs.evidence.estimates)


def test_plans_are_weighted_by_what_they_tell():
    # Two plans with variance factors v: estimates are pooled with weights 1/v.
    arms = ArmSet.one_hot(2)
    sequence, sums, weights = ContrastSequence.start(arms, [[1, 0]]), 0.0, 0.0
    for p in (0.5, 0.2):
        plan, tally = batch(arms, np.array([1 - p, p]), RNG.standard_normal(40))
        sequence = sequence.add(plan, tally)
        v = 1 / p + 1 / (1 - p)
        sums += (tally.sums[1] / p - tally.sums[0] / (1 - p)) / v
        weights += 40 / v
    assert sequence.evidence.estimates[0] == pytest.approx(sums / weights)


def test_what_a_plan_cannot_estimate_stays_unknown_until_one_can():
    arms = ArmSet.one_hot(3)
    sequence = ContrastSequence.start(arms, [[1, 0], [2, 0]])
    assert np.all(np.isinf(sequence.intervals()[0]))
    sequence = sequence.add(*batch(arms, np.array([0.5, 0.5, 0.0]), RNG.standard_normal(200)))
    low, high = sequence.intervals()
    assert np.isfinite([low[0], high[0]]).all()
    assert low[1] == -np.inf
    assert high[1] == np.inf
    sequence = sequence.add(*batch(arms, np.array([0.2, 0.2, 0.6]), RNG.standard_normal(200)))
    assert np.isfinite(sequence.intervals()).all()


def test_increments_keep_to_the_scale_of_the_first_plan():
    arms, confidence = ArmSet.one_hot(3), Bounded(0.0, 1.0)
    sequence = ContrastSequence.start(arms, [[1, 0], [2, 1]], confidence)
    first = None
    for p in ([0.4, 0.3, 0.3], [0.98, 0.01, 0.01], [0.1, 0.1, 0.8]):
        plan = Plan(p, 50, sequence.centre())
        drawn = RNG.choice(3, 50, p=p)
        residuals = plan.residuals(drawn, RNG.random(50), 0.5)
        before, sequence = sequence, sequence.add(plan, Tally.of(drawn, residuals, 3))
        first = sequence.tuning.scale if first is None else first
        assert np.array_equal(sequence.tuning.scale, first)
        weight = (sequence.evidence.weights - before.evidence.weights) / 50
        pull = np.array([[1 / p[0], 1 / p[1], 0], [0, 1 / p[1], 1 / p[2]]])
        assert np.all(weight[:, np.newaxis] * pull * confidence.limit <= first[:, np.newaxis] * (1 + 1e-9))


@pytest.mark.parametrize(
    ("pairs", "settings", "message"),
    [
        ([[0, 5]], {}, "outside 0 to 4"),
        ([0, 1], {}, r"shape \(2,\)"),
        ([[0.0, 1.0]], {}, "type float64"),
        (np.zeros((0, 2), dtype=int), {}, r"shape \(0, 2\)"),
        (None, {}, "pairs of arms or coefficients"),
        (PAIRS, {"coefficients": np.eye(5)}, "one of the two"),
        (None, {"coefficients": [[0.5, 0.5, 0.0, 0.0, 0.0]]}, "sum to 0"),
        (None, {"coefficients": [[1, -1]]}, r"numbers \(m, 5\)"),
        (PAIRS, {"delta": 0.0}, "delta=0.0"),
        (PAIRS, {"sides": 3}, "sides=3"),
        (PAIRS, {"noise": 0.0}, "noise=0.0"),
        (PAIRS, {"rounds": 0}, "rounds=0"),
    ],
)
def test_wrong_settings_are_refused(pairs, settings, message):
    with pytest.raises(ParameterError, match=message):
        ContrastSequence.start(ARMS, pairs, **settings)


@pytest.mark.parametrize("mode", [Asymptotic(), Bounded(0.0, 1.0)])
def test_plans_side_by_side_count_as_one_after_the_other(mode):
    rng = np.random.default_rng(3)
    start = ContrastSequence.start(ARMS, PAIRS, mode)
    first = Plan(np.full(5, 0.2), 200, start.centre())
    known = start.add(first, Tally.of(rng.integers(0, 5, 200), rng.random(200) - 0.5, 5))
    p = np.stack([rng.dirichlet(np.ones(5)), [0.5, 0.0, 0.3, 0.2, 0.0]])
    drawn = [rng.choice(5, 80, p=row) for row in p]
    tallies = [Tally.of(arms, rng.random(80) - 0.5, 5) for arms in drawn]
    plan = Plan(p, [80, 80], known.centre())
    parts = ("counts", "sums", "squares", "largest")
    both = Tally(*(np.stack([getattr(one, name) for one in tallies]) for name in parts))
    together, apart = known.add(plan, both), known
    for row, tally in zip(p, tallies, strict=True):
        apart = apart.add(Plan(row, 80, known.centre()), tally)
    for name in ("totals", "weights", "variances"):
        assert getattr(together.evidence, name) == pytest.approx(getattr(apart.evidence, name), rel=1e-12)
    assert together.seen.drawn.tolist() == apart.seen.drawn.tolist()
    # What the second plan should have drawn is judged with the first one's rounds known or not.
    assert together.intervals()[0] == pytest.approx(apart.intervals()[0], rel=0.02)


def test_wrong_rounds_are_refused():
    sequence = ContrastSequence.start(ARMS, PAIRS)
    with pytest.raises(TallyError, match="one replication of 5 arms"):
        sequence.add(Plan([0.5, 0.5], 2), Tally.of([0, 1], [1.0, 2.0], 2))
    with pytest.raises(TallyError, match="does not play"):
        sequence.add(Plan([0.5, 0.5, 0.0, 0.0, 0.0], 1), Tally.of([3], [1.0], 5))
    bent = Centre(np.arange(5.0) ** 2, np.array(-np.inf), np.array(np.inf))
    with pytest.raises(ParameterError, match="linear in the features"):
        sequence.add(Plan(np.full(5, 0.2), 1, bent), Tally.of([3], [1.0], 5))


def test_exact_modes_need_residuals_within_the_range():
    sequence = ContrastSequence.start(ARMS, PAIRS, SubGaussian(-1.0, 1.0, 0.5))
    p, tally = np.full(5, 0.2), Tally.of([3], [0.5], 5)
    with pytest.raises(ParameterError, match=r"sequence\.centre"):
        sequence.add(Plan(p, 1), tally)
    with pytest.raises(ParameterError, match=r"sequence\.centre"):
        sequence.add(Plan(p, 1, ContrastSequence.start(ARMS, PAIRS, Asymptotic()).centre()), tally)
    with pytest.raises(RewardError, match="exceed the limit"):
        sequence.add(Plan(p, 1, sequence.centre()), Tally.of([3], [50.0], 5))
    with pytest.raises(ParameterError, match="values spread by"):
        sequence.centre(ARMS.features @ [9.0, 0.0, 0.0])
    assert sequence.add(Plan(p, 1, sequence.centre()), tally).evidence.weights.all()


def test_a_common_level_does_not_hide_values_that_are_not_linear():
    # Three collinear arms: (0, 1, 0) is no linear function of them, however far the level is.
    arms = ArmSet([[0.0], [1.0], [2.0]])
    sequence = ContrastSequence.start(arms, [[1, 0]], Bounded(0.0, 2.0))
    plan = Plan([0.4, 0.3, 0.3], 1, sequence.centre(1e8 + np.array([0.0, 1.0, 0.0])))
    with pytest.raises(ParameterError, match="must be linear in the features"):
        sequence.add(plan, Tally.of([0], [0.0], 3))
    plan = Plan([0.4, 0.3, 0.3], 1, sequence.centre(1e8 + np.array([0.0, 0.1, 0.2])))
    sequence.add(plan, Tally.of([0], [0.0], 3))


@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(-5.0, 5.0)])
@pytest.mark.parametrize("guess", [(1e6, 10**9), (1e-9, 1), (1e-3, 10**12)])
def test_intervals_hold_whatever_the_guess(confidence, guess):
    arms, rng = ArmSet.one_hot(2), np.random.default_rng(3)
    noise, rounds = guess
    sequence = ContrastSequence.start(arms, [[1, 0]], confidence, noise=noise, rounds=rounds)
    plan = Plan([0.5, 0.5], 4000, sequence.centre())
    drawn = rng.integers(0, 2, 4000)
    rewards = np.clip(0.5 * drawn + rng.standard_normal(4000), -5.0, 5.0)
    (low,), (high,) = sequence.add(plan, Tally.of(drawn, plan.residuals(drawn, rewards), 2)).intervals()
    assert low < 0.5 < high


def test_a_tally_of_unknown_sizes_counts_as_one_round():
    arms, rng = ArmSet.one_hot(2), np.random.default_rng(3)
    drawn, rewards = rng.integers(0, 2, 4000), rng.standard_normal(4000)
    plan, known = Plan([0.5, 0.5], 4000), Tally.of(drawn, rewards, 2)
    unknown = Tally(known.counts, known.sums, known.squares)
    start = ContrastSequence.start(arms, [[1, 0]])
    assert np.all(np.isfinite(start.add(plan, known).intervals()))
    assert np.all(np.isinf(start.add(plan, unknown).intervals()))


def test_nothing_is_claimed_before_anything_has_happened():
    # A thousand visitors and not one sale: the difference is not 0 ± nothing.
    arms = ArmSet.one_hot(2)
    sequence = ContrastSequence.start(arms, [[1, 0]], noise=0.05)
    drawn = np.arange(1000) % 2
    sequence = sequence.add(Plan([0.5, 0.5], 1000), Tally.of(drawn, np.zeros(1000), 2))
    assert np.all(np.isinf(sequence.intervals()))


def uneven(*phases, arms=2):
    """Return the sequence of one gap after phases of so many draws of each arm, as many as were planned.

    Residuals are ±1 in turn.
    """
    sequence = ContrastSequence.start(ArmSet.one_hot(arms), [[0, 1]])
    for counts in phases:
        drawn = np.repeat(np.arange(arms), counts)
        plan = Plan(np.array(counts) / sum(counts), sum(counts))
        sequence = sequence.add(plan, Tally.of(drawn, np.resize([1.0, -1.0], len(drawn)), arms))
    return sequence


def speaks(sequence):
    return bool(np.isfinite(sequence.intervals()).all())


def test_what_a_contrast_rests_on_is_summed_over_all_plans():
    # An arm with 15 draws carries 19 of 20 parts of the first plan's variance, and of all of it nearly as
    # much: five rounds of a plan in which it carries a fifth do not change that.
    assert not speaks(uneven([15, 285]))
    assert not speaks(uneven([15, 285], [4, 1]))
    assert speaks(uneven([30, 570], [4, 1]))
    assert speaks(uneven([4, 1], [30, 570]))


def test_draws_that_carry_little_do_not_make_up_for_few_that_carry_much():
    # Fifteen draws of an arm at 5 % carry 0.9 each, twenty at 80 % carry 0.04.
    assert not speaks(uneven([15, 285], [20, 5]))
    assert not speaks(uneven([20, 5], [15, 285]))
    assert speaks(uneven([30, 570], [20, 5]))


def test_rounds_of_other_arms_do_not_make_up_for_draws():
    others = [0, 0, 40, 40]
    assert not speaks(uneven(others, [15, 285, 0, 0], [4, 1, 0, 0], arms=4))
    assert speaks(uneven(others, [30, 30, 0, 0], arms=4))


def test_a_contrast_waits_for_draws_not_for_plans_that_expect_them():
    sequence = ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]])
    drawn = np.repeat([0, 1], [5, 595])
    tally = Tally.of(drawn, np.resize([1.0, -1.0], 600), 2)
    assert not speaks(sequence.add(Plan([0.1, 0.9], 600), tally))


def test_rounds_that_come_one_by_one_are_heard():
    # A tally of one round has no scatter around its mean; four in a row have as many as one tally of four.
    rng, plan = np.random.default_rng(5), Plan([0.5, 0.5], 1)
    sequence = ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]])
    drawn, residuals = rng.integers(0, 2, 400), rng.normal(size=400)
    for arm, residual in zip(drawn, residuals, strict=True):
        sequence = sequence.add(plan, Tally.of([arm], [residual], 2))
    fours = residuals.reshape(-1, 4)
    scattered = ((fours - fours.mean(axis=1, keepdims=True)) ** 2).sum()
    assert sequence.seen.sizes.scattered == pytest.approx(scattered)
    assert speaks(sequence)
    stored = ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]]).resumed(sequence.to_json())
    assert stored.to_json() == sequence.to_json()


def test_a_level_that_is_missed_round_by_round_is_no_event():
    sequence = ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]])
    for t in range(1000):
        sequence = sequence.add(Plan([0.5, 0.5], 1), Tally.of([t % 2], [-0.1], 2))
    assert not speaks(sequence)


def test_a_stored_sequence_knows_what_it_rests_on():
    early = uneven([10, 190], [2, 38])
    stored = ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]]).resumed(early.to_json())
    assert stored.to_json() == early.to_json()
    plan, tally = Plan([0.8, 0.2], 5), Tally.of([0, 0, 0, 0, 1], [1.0, -1.0, 1.0, -1.0, 1.0], 2)
    assert not speaks(stored.add(plan, tally))


def test_more_rounds_than_the_plan_had_are_refused():
    sequence = ContrastSequence.start(ArmSet.one_hot(2), [[1, 0]])
    with pytest.raises(TallyError, match="the tally has 20 rounds but its plan is in force for 10"):
        sequence.add(Plan([0.5, 0.5], 10), Tally.of([0, 1] * 10, np.ones(20), 2))
