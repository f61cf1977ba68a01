"""Sizes of residuals, and what evidence makes of a batch, by hand."""

from dataclasses import astuple

import numpy as np
import pytest

from orthobandit import ArmSet, ContrastSequence, Plan, Tally
from orthobandit.estimate import Asymptotic, Bounded, Evidence, SubGaussian, Tuning
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Sizes,
    draws_waited,
    expected_shares,
    quiet_arms,
    relative_squares,
)


def sizes(*tallies):
    out = Sizes()
    for tally in tallies:
        out = out.and_of(tally)
    return out


def test_rare_successes_are_counted_as_events():
    rewards = np.zeros(1000)
    rewards[[10, 500, 700]] = 1.0
    found = sizes(Tally.of(np.arange(1000) % 2, rewards, 2))
    assert found.events == pytest.approx(3.0, rel=0.01)
    assert found.excess == 1.0  # one success is far beyond what light tails would show


def test_normal_residuals_have_no_excess():
    rng = np.random.default_rng(0)
    found = sizes(*(Tally.of(np.zeros(300, dtype=int), rng.standard_normal(300), 1) for _ in range(20)))
    assert found.excess == 0.0
    assert 200 < found.events < 1000


def test_a_missed_level_is_no_event():
    assert sizes(Tally.of([0, 1, 0, 1], [-0.3] * 4, 2)).events == pytest.approx(0.0, abs=1e-12)
    assert sizes(Tally.of([0, 1], [0.0, 0.0], 2)).events == 0.0


def test_a_round_that_dwarfs_the_past_takes_events_away():
    rng = np.random.default_rng(1)
    calm = Tally.of(np.zeros(500, dtype=int), rng.standard_normal(500), 1)
    burst = Tally.of([0, 0], [1000.0, 0.0], 1)
    assert sizes(calm).events > 30
    assert sizes(calm, burst).events < 1


def test_sizes_do_not_depend_on_units():
    rng = np.random.default_rng(2)
    rewards = rng.standard_t(3, 400)
    one, other = (sizes(Tally.of(np.zeros(400, dtype=int), by * rewards, 1)) for by in (1.0, 2.0**20))
    assert other.events == one.events
    assert other.excess == one.excess * 2.0**20


def test_a_tally_without_rounds_changes_nothing():
    assert sizes(Tally.zeros(3)) == Sizes()


@pytest.mark.parametrize("mode", [Asymptotic(), Bounded(0.0, 2.0)])
def test_a_batch_by_hand(mode):
    zeros = np.zeros(1)
    tuning = Tuning(np.array([0.05]), np.array([1.0]), np.array([3.0]))
    batch = Batch(
        rounds=10.0,
        largest=1.5,
        excess=0.5,
        factor=np.array([4.0]),
        square=np.array([4.0]),
        reach=np.array([8.0]),
        estimates=np.array([20.0]),
        squares=np.array([32.0]),
        pooled=np.array([24.0]),
    )
    found = Evidence(zeros, zeros, zeros, zeros).and_of(batch, tuning, mode)
    w = 0.25 if mode == Asymptotic() else 3.0 / (2.0 * 8.0)  # 1/v, or what keeps w·reach·limit to the scale
    assert found.totals == pytest.approx(20.0 * w)
    assert found.weights == pytest.approx(10.0 * w)
    assert found.variances == pytest.approx(32.0 * w**2)
    peak = w * 8.0 * (0.5 if mode == Asymptotic() else 1.5)
    assert found.peaks == pytest.approx(peak)
    # What is expected of the squares; or, in exact modes, at least the sum of the cubes.
    assert found.pooled == pytest.approx(w**2 * (24.0 if mode == Asymptotic() else peak * 32.0))


@pytest.mark.parametrize("mode", [Bounded(0.0, 1.0), SubGaussian(0.0, 1.0, 0.1)])
def test_a_tally_that_does_not_know_its_largest_never_narrows_exact_intervals(mode):
    # √squares of 400 rounds is far beyond the limit; a bet must not be paid for having lost more than all.
    start, rng = ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]], mode), np.random.default_rng(3)
    plan = Plan([0.5, 0.5], 400, start.centre())
    arms, rewards = plan.draw(rng), (rng.random(400) < 0.5).astype(float)
    known = Tally.of(arms, plan.residuals(arms, rewards, np.full(400, 0.5)), 2)
    unknown = Tally(known.counts, known.sums, known.squares)
    assert unknown.largest.max() > mode.limit
    (low, high), (lower, higher) = (start.add(plan, tally).intervals() for tally in (known, unknown))
    assert lower <= low < 0 < high <= higher


def test_arms_that_scatter_alike_have_shares_like_their_probabilities():
    tally = Tally.of([0, 0, 0, 1], [1.0, -1.0, 1.0, -1.0], 2)
    p = np.array([0.75, 0.25])
    assert expected_shares(p, relative_squares(tally), tally.counts) == pytest.approx(p)


def test_an_arm_that_scatters_more_carries_more_than_it_was_drawn_for():
    # Arm 1 has four times the squares of arm 0 and should be drawn once in four; it was drawn once in ten.
    tally = Tally.of([0] * 9 + [1], [1.0] * 9 + [2.0], 2)
    first, second = expected_shares(np.array([0.75, 0.25]), relative_squares(tally), tally.counts)
    assert second / first == pytest.approx(4.0 / 3.0)


def test_a_burst_that_all_arms_share_does_not_make_one_of_them_larger():
    calm = Tally.of([0] * 4 + [1] * 4, [1.0] * 4 + [2.0] * 4, 2)
    burst = Tally.of([0, 1], [1000.0, 1000.0], 2)
    relative, drawn = relative_squares(calm) + relative_squares(burst), calm.counts + burst.counts
    first, second = expected_shares(np.full(2, 0.5), relative, drawn)
    assert 2.0 < second / first < 4.0


def test_an_arm_that_was_never_drawn_counts_as_average():
    tally = Tally.of([0, 0], [3.0, -3.0], 2)
    assert expected_shares(np.full(2, 0.5), relative_squares(tally), tally.counts).tolist() == [0.5, 0.5]


def test_residuals_that_are_all_zero_say_that_arms_are_alike():
    tally = Tally.of([0, 1, 1], [0.0, 0.0, 0.0], 2)
    assert relative_squares(tally).tolist() == [1.0, 2.0]


def test_sizes_of_residuals_are_plain_numbers_as_they_are_when_loaded():
    # Of fourteen residuals one is not 0: it is beyond what light tails show, by less than in full.
    found = sizes(Tally.of([0] * 14, [0.0] * 13 + [1.0], 2))
    assert 0 < found.excess < found.largest
    assert [type(one) for one in astuple(found)] == [int, float, float, float, float]


def test_a_claim_waits_for_effective_draws_of_its_pair():
    # 30 rounds of each arm are an effective 15, and the wait is 4 per log(1/α) at a small gap.
    totals, weights, variances = np.array([3.0]), np.array([15.0]), np.array([15.0])
    assert draws_waited(totals, weights, variances, False) == pytest.approx(15.0 / 4.0)
    assert draws_waited(totals, weights, variances, True) == pytest.approx(15.0 / 50.0)


@pytest.mark.parametrize(("gap", "per_level"), [(1.0, 4.0), (2.0, 6.0), (4.0, 24.0), (10.0, 50.0)])
def test_arms_that_are_far_apart_beside_their_spread_wait_longer(gap, per_level):
    weights, spread = np.array([30.0]), 0.7
    waited = draws_waited(gap * spread * weights, weights, spread**2 * weights, False)
    assert waited == pytest.approx(30.0 / per_level)


def test_a_pair_without_any_spread_waits_and_is_not_immortal():
    none = np.zeros(1)
    waited = draws_waited(np.array([500.0]), np.array([500.0]), none, False)
    assert waited == pytest.approx(10.0)  # enough for a level of e⁻¹⁰


def test_an_arm_is_quiet_if_it_scatters_by_less_than_half_of_what_others_do():
    relative, drawn = np.array([2.0, 3.0, 20.0, 0.0]), np.array([10.0, 10.0, 10.0, 0.0])
    assert quiet_arms(relative, drawn).tolist() == [True, False, False, False]
