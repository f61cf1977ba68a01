"""Value of other probabilities: as by hand, as a contrast, and where it must not be asked."""

import numpy as np
import pytest

from cells_by_hand import Rows, cells_of, drawn, follow
from orthobandit import Bounded
from orthobandit.errors import InputError, ProbabilityError
from orthobandit.logs.effects.value import aim_of, value_of

PLAN = np.array([[0.5, 0.3, 0.2]])
WANTED = np.array([0.1, 0.3, 0.6])


def log(seed=0, plans=PLAN, buckets=12, size=200, level=3.0):
    bucket = np.repeat(np.arange(buckets), size)
    levels = level + np.sin(bucket)
    return drawn(np.random.default_rng(seed), plans, bucket % len(plans), bucket, levels, [0.0, 0.5, 1.0])


def valued(cells, wanted, *, once=False, **settings):
    """Return the value of probabilities on a log."""
    follower = follow(cells, [aim_of(cells, wanted)], **settings)
    score = follower.scores[1] if follower.scores else None
    return value_of(score, 0.05, "mode", once=once)


def test_with_one_plan_it_is_the_contrast_that_it_is():
    cells = cells_of(log(), offset=2.5)
    value, gaps = valued(cells, WANTED), follow(cells).sequence.evidence.estimates
    assert value.estimate == pytest.approx((WANTED - PLAN[0])[1:] @ gaps[:2], abs=0.02)
    low, high = value.interval
    assert low < (WANTED - PLAN[0]) @ [0.0, 0.5, 1.0] < high


def test_plans_that_differ_are_averaged_over_rows():
    plans = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.8, 0.1, 0.1]])
    wanted = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
    truth = np.mean((wanted - plans) @ [0.0, 0.5, 1.0])
    value = valued(cells_of(log(1, plans, buckets=61)), wanted)
    low, high = value.interval
    assert low < truth < high
    assert high - low < 0.25


def test_draws_as_planned_give_the_difference_exactly():
    # 50, 30 and 20 rows of each bucket, and rewards without noise.
    arm = np.tile(np.repeat([0, 1, 2], [50, 30, 20]), 4)
    bucket = np.repeat(np.arange(4), 100)
    rows = Rows(PLAN, bucket, 0 * bucket, arm, np.array([1.0, 2.0, 4.0])[arm] + bucket)
    want = (WANTED - PLAN[0]) @ [1.0, 2.0, 4.0]
    assert valued(cells_of(rows), WANTED).estimate == pytest.approx(want)
    exact = valued(cells_of(rows), WANTED, confidence=Bounded(0.0, 10.0))
    assert exact.estimate == pytest.approx(want)


def test_pulls_that_grow_keep_the_exact_interval_valid():
    # The pilot draws arm 2 often; later it is rare, and what other probabilities ask of it weighs more.
    plans = np.array([[0.3, 0.3, 0.4], [0.475, 0.475, 0.05]])
    bucket = np.repeat(np.arange(40), 100)
    rng = np.random.default_rng(3)
    rows = drawn(rng, plans, (bucket > 2).astype(int), bucket)
    rows.reward = (rng.random(4000) < np.array([0.2, 0.3, 0.6])[rows.arm]).astype(float)
    value = valued(cells_of(rows), WANTED, confidence=Bounded(0.0, 1.0))
    truth = np.mean((WANTED - plans[rows.plan[bucket > 0]]) @ [0.2, 0.3, 0.6])
    assert value.interval[0] < truth < value.interval[1]
    once = valued(cells_of(rows), WANTED, confidence=Bounded(0.0, 1.0), once=True)
    assert np.diff(once.interval) < np.diff(value.interval)


def test_the_probabilities_of_the_log_are_worth_nothing_more():
    value = valued(cells_of(log()), PLAN)
    assert value.estimate == pytest.approx(0.0, abs=1e-12)


def test_labels_name_arms_and_those_left_out_have_0():
    cells = cells_of(log())
    assert valued(cells, {"2": 1.0}).estimate == valued(cells, [0.0, 0.0, 1.0]).estimate
    with pytest.raises(InputError, match="'blue'"):
        aim_of(cells, {"blue": 1.0})


def test_arms_that_were_never_drawn_are_refused_with_their_place():
    plans = np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    cells = cells_of(log(4, plans))
    with pytest.raises(ProbabilityError, match=r"give '2' 0.6, but plan 0 never draws it") as caught:
        aim_of(cells, WANTED)
    place = "1,200 of 2,400 rows, in 6 of 12 buckets, from that of 1970-01-01 00:00 on; plans: 0."
    assert place in str(caught.value)
    # One row per plan may leave the arm out where it was left out; a plan without rows does not matter.
    assert valued(cells, [[0.3, 0.7, 0.0], WANTED]).interval[0] is not None
    assert valued(cells.only(cells.plan == 1), WANTED).interval[0] is not None


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([0.5, 0.5], r"have shape \(2,\); one per arm, \(3,\), or one row per plan, \(1, 3\)"),
        ([0.5, 0.6, 0.1], "sum to"),
    ],
)
def test_probabilities_that_cannot_be_are_named(wanted, words):
    with pytest.raises(InputError, match=words):
        aim_of(cells_of(log()), wanted)


def test_too_few_rows_have_no_interval():
    assert valued(cells_of(log(5, buckets=3, size=4)), WANTED).interval == (None, None)


@pytest.mark.parametrize("days", [1, 5])
def test_a_log_that_ends_in_the_wanted_probabilities_says_no_more_than_one_that_does_not(days):
    # Ten of a thousand rows are of the arm that carries nearly all of the value. Rows that are drawn as is
    # asked tell nothing of the difference, and do not make up for them.
    plans = np.array([[0.99, 0.01], [0.5, 0.5]])
    bucket = np.repeat(np.arange(10 + days), 100)
    arm = (np.arange(len(bucket)) % 100 == 0).astype(int)
    arm[bucket >= 10] = 0
    arm[1000:1010] = 1
    rewards = np.where(np.arange(len(bucket)) % 2 == 0, 1.0, -1.0) * (arm == 0)
    rows = Rows(plans, bucket, (bucket >= 10).astype(int), arm, rewards)
    assert valued(cells_of(rows), [0.5, 0.5]).interval == (None, None)


def test_draws_with_the_wanted_probabilities_do_not_count_as_draws_that_carry_the_value():
    # Ten draws of an arm carry nearly all of the value; the fifty of the last day carry nothing.
    plans = np.array([[0.99, 0.01], [0.5, 0.5]])
    bucket = np.repeat(np.arange(11), 100)
    arm = (np.arange(len(bucket)) % 100 == 0).astype(int)
    arm[bucket == 10] = np.arange(100) % 2
    rewards = np.where(np.arange(len(bucket)) // 2 % 2 == 0, 1.0, -1.0)
    rows = Rows(plans, bucket, (bucket == 10).astype(int), arm, rewards)
    assert valued(cells_of(rows), [0.5, 0.5]).interval == (None, None)
    # Forty such draws are enough, with the same last day.
    often = np.arange(len(bucket)) % 25 == 0
    rows = Rows(plans, bucket, (bucket == 10).astype(int), np.where(bucket == 10, arm, often), rewards)
    assert None not in valued(cells_of(rows), [0.5, 0.5]).interval
