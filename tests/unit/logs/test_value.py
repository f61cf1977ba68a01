"""Value of other probabilities: as by hand, as a sequence of contrasts, and where it must not be asked."""

from dataclasses import replace

import numpy as np
import pytest

from cells_by_hand import Rows, cells_of, drawn
from orthobandit import ArmSet, ContrastSequence, Plan, Tally
from orthobandit.errors import InputError, ParameterError, ProbabilityError, RewardError
from orthobandit.estimate.boundaries import gamma_mixture, tightest_rho
from orthobandit.logs.value import value_of

PLAN = np.array([[0.5, 0.3, 0.2]])
WANTED = np.array([0.1, 0.3, 0.6])


def log(seed=0, plans=PLAN, buckets=12, size=200, level=3.0):
    bucket = np.repeat(np.arange(buckets), size)
    levels = level + np.sin(bucket)
    return drawn(np.random.default_rng(seed), plans, bucket % len(plans), bucket, levels, [0.0, 0.5, 1.0])


def running_means(rows):
    return np.array([rows.reward[rows.bucket < bucket].mean() for bucket in range(1, rows.bucket.max() + 1)])


@pytest.mark.parametrize("offset", [0.0, 2.5])
def test_with_one_plan_it_is_a_contrast(offset):
    rows = log()
    first = rows.reward[rows.bucket == 0]
    sequence = ContrastSequence.start(
        ArmSet.one_hot(3),
        coefficients=[WANTED - PLAN[0]],
        delta=0.1,
        noise=first.std(),
        rounds=100 * len(first),
    )
    for bucket, mean in enumerate(running_means(rows), start=1):
        mine = rows.bucket == bucket
        sequence = sequence.add(Plan(PLAN[0], 200), Tally.of(rows.arm[mine], rows.reward[mine] - mean, 3))
    (low,), (high,) = sequence.intervals()
    value = value_of(cells_of(rows, offset=offset), WANTED, 0.1)
    assert value.interval == pytest.approx((low, high), rel=1e-9)
    assert value.estimate == pytest.approx(sequence.evidence.estimates[0], rel=1e-9)
    assert value.mode.startswith("asymptotic: holds at all times at once")


def test_plans_that_differ_are_averaged_over_rows():
    plans = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.8, 0.1, 0.1]])
    wanted = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
    rows = log(1, plans)
    later = rows.bucket > 0
    pull = (wanted[rows.plan, rows.arm] / rows.probability - 1.0)[later]
    residual = rows.reward[later] - running_means(rows)[rows.bucket[later] - 1]
    value = value_of(cells_of(rows, offset=1.0), wanted)
    assert value.estimate == pytest.approx(np.mean(pull * residual), rel=1e-9)
    low, high = value.interval
    assert 1.0 < (high - low) / 2 / (1.96 * np.std(pull * residual) / np.sqrt(len(pull))) < 2.5


def test_draws_as_planned_give_the_difference_exactly():
    # 50, 30 and 20 rows of each bucket, and rewards without noise.
    arm = np.tile(np.repeat([0, 1, 2], [50, 30, 20]), 4)
    bucket = np.repeat(np.arange(4), 100)
    rows = Rows(PLAN, bucket, 0 * bucket, arm, np.array([1.0, 2.0, 4.0])[arm] + bucket)
    want = (WANTED - PLAN[0]) @ [1.0, 2.0, 4.0]
    assert value_of(cells_of(rows), WANTED).estimate == pytest.approx(want)
    assert value_of(cells_of(rows), WANTED, bounds=(0.0, 10.0)).estimate == pytest.approx(want)
    single = replace(rows, bucket=0 * bucket, reward=rows.reward - bucket)
    assert value_of(cells_of(single), WANTED).estimate == pytest.approx(want * 400 / 399)


def test_bounds_make_it_exact():
    rows = log(2)
    rows.reward = (rows.reward > 3.5).astype(float)
    value = value_of(cells_of(rows, offset=0.25), WANTED, 0.1, bounds=(0.0, 1.0))
    means = np.concatenate([[0.5], running_means(rows)])
    psi = (WANTED[rows.arm] / rows.probability - 1.0) * (rows.reward - means[rows.bucket])
    # |q/p − 1| reaches 2, so that the second scale, 2, is the one that holds; it has a sixth of δ.
    alpha = 0.1 / 2 / 6
    rho = tightest_rho(250.0, alpha) / 4.0
    variance = (psi**2).sum() / 4.0
    grid = ((1e-6, 0.025), (1e-3, 0.025), (1.0, 0.9), (1e3, 0.025), (1e6, 0.025))
    boundaries = [gamma_mixture(variance, share * alpha, factor * rho) for factor, share in grid]
    width = 2.0 * min(boundaries) / 2400
    assert value.interval == pytest.approx((psi.mean() - width, psi.mean() + width), rel=1e-9)
    assert value.mode == "exact: holds at all times at once, for values between 0 and 1"
    with pytest.raises(RewardError, match=r"metric reach from 0 to 1, beyond bounds=\(0.0, 0.9\)"):
        value_of(cells_of(rows), WANTED, bounds=(0.0, 0.9))
    with pytest.raises(ParameterError, match="must be finite with low < high"):
        value_of(cells_of(rows), WANTED, bounds=(1.0, 0.0))


def test_one_bucket_is_one_look():
    rows = log(3, buckets=1, size=2000)
    value = value_of(cells_of(rows), WANTED)
    pull = WANTED[rows.arm] / rows.probability - 1.0
    psi = pull * (rows.reward - rows.reward.mean())
    assert value.estimate == pytest.approx(psi.sum() / 1999)
    low, high = value.interval
    assert (high - low) / 2 == pytest.approx(1.96 * psi.std() / np.sqrt(2000), rel=1e-3)
    assert "one look" in value.mode


def test_the_probabilities_of_the_log_are_worth_nothing_more():
    value = value_of(cells_of(log()), PLAN)
    assert (value.estimate, value.interval) == (0.0, (0.0, 0.0))


def test_arms_that_were_never_drawn_are_refused_with_their_place():
    plans = np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    cells = cells_of(log(4, plans))
    with pytest.raises(ProbabilityError, match=r"give '2' 0.6, but plan 0 never draws it") as caught:
        value_of(cells, WANTED)
    place = "1,200 of 2,400 rows, in 6 of 12 buckets, from that of 1970-01-01 00:00 on; plans: 0."
    assert place in str(caught.value)
    # One row a plan may leave the arm out where it was left out; a plan without rows does not matter.
    assert value_of(cells, [[0.3, 0.7, 0.0], WANTED]).interval[0] is not None
    assert value_of(cells.only(cells.plan == 1), WANTED).interval[0] is not None


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([0.5, 0.5], r"have shape \(2,\); one an arm, \(3,\), or one row a plan, \(1, 3\)"),
        ([0.5, 0.6, 0.1], "sum to"),
    ],
)
def test_probabilities_that_cannot_be_are_named(wanted, words):
    with pytest.raises(InputError, match=words):
        value_of(cells_of(log()), wanted)


def test_too_few_rows_have_no_interval():
    assert value_of(cells_of(log(5, buckets=3, size=4)), WANTED).interval == (None, None)


@pytest.mark.parametrize("bounds", [None, (-10.0, 20.0)])
def test_better_forecasts_make_it_narrower_and_do_not_depend_on_the_offset(bounds):
    rows = log(6, level=5.0)
    rows.reward += 2.0 * np.sin(rows.bucket)
    levels = 5.5 + 3.0 * np.sin(np.arange(12))
    if bounds is None:
        levels[0] = np.nan
    plain = value_of(cells_of(rows), WANTED, bounds=bounds)
    better = value_of(cells_of(rows), WANTED, bounds=bounds, levels=levels)
    assert np.diff(better.interval) < 0.9 * np.diff(plain.interval)
    moved = value_of(cells_of(rows, offset=4.0), WANTED, bounds=bounds, levels=levels)
    assert moved.interval == pytest.approx(better.interval, rel=1e-9)


def test_a_log_without_values_is_refused():
    cells = cells_of(log())
    with pytest.raises(RewardError, match="the log has no row with a value of 'reward'"):
        value_of(cells.only(cells.counts < 0), WANTED)
