"""A metric followed through the buckets of a log."""

from dataclasses import replace

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn
from inside.estimate import Measure
from inside.logs import gaps_of
from orthobandit import ArmSet, Asymptotic, Bounded, ContrastSequence, Plan, Tally
from orthobandit.estimate.confidence.sequence import MOST_PAIRED, pairs_of
from orthobandit.estimate.follow.buckets import ArmValues, Follower

PLANS = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])


def measure(**settings):
    given = {"confidence": Asymptotic(), "delta": 0.05, "baseline": "mean", "reference": 0}
    return Measure(column=0, denominator=None, covariates=(), **(given | settings))


def half_widths(gaps):
    """Return those of the intervals for one look."""
    return (gaps.fixed_high - gaps.fixed_low) / 2.0


def log(seed=1, rows=4000, hours=80, gaps=(0.0, 0.5, 1.0), **settings):
    rng = np.random.default_rng(seed)
    bucket = np.sort(rng.integers(0, hours, rows))
    levels = 3.0 * np.sin(bucket / 8.0)
    return drawn(rng, PLANS, rng.integers(0, 2, rows), bucket, levels=levels, gaps=gaps, **settings)


def test_pairs_are_to_the_reference_arm_first():
    assert pairs_of(3, 1).tolist() == [[0, 1], [2, 1], [2, 0]]
    assert len(pairs_of(MOST_PAIRED + 1, 0)) == MOST_PAIRED


def test_estimates_are_those_of_rows_centred_by_earlier_buckets():
    rows = log()
    follower = Follower(cells_of(rows), measure()).run()
    # The same by hand: a running mean of earlier buckets less the values that were estimated from them.
    sequence = ContrastSequence.start(ArmSet.one_hot(3), follower.pairs, Asymptotic(), 0.025)
    total = count = 0.0
    values = np.zeros(3)
    for hour in range(80):
        mine = rows.bucket == hour
        if count >= 20:
            residuals = rows.reward[mine] - total / count - values[rows.arm[mine]]
            for plan in (0, 1):
                some = rows.plan[mine] == plan
                tally = Tally.of(rows.arm[mine][some], residuals[some], 3)
                centre = Asymptotic().centre(values, np.ones(3, dtype=bool))
                sequence = sequence.add(Plan(PLANS[plan], int(some.sum()), centre), tally)
        total += (rows.reward[mine] - values[rows.arm[mine]]).sum()
        count += mine.sum()
        if sequence.evidence.weights.any():
            e = sequence.evidence
            error = np.maximum(e.variances, e.pooled)[:2] / e.weights[:2] ** 2
            values = np.append(0.0, e.estimates[:2] ** 3 / (e.estimates[:2] ** 2 + error))
    found = follower.sequence.evidence
    assert found.weights == pytest.approx(sequence.evidence.weights)
    # The order of two plans of an hour decides a little of what is known of loud arms.
    assert found.totals == pytest.approx(sequence.evidence.totals, rel=1e-3)
    assert found.variances == pytest.approx(sequence.evidence.variances, rel=1e-3)


def test_a_moving_baseline_is_forecast_and_saves_variance():
    cells = cells_of(log())
    plain, best = (Follower(cells, measure(baseline=name)).run() for name in ("mean", "auto"))
    widths = [gaps_of(one.sequence).high - gaps_of(one.sequence).low for one in (plain, best)]
    assert np.all(widths[1] < 0.75 * widths[0])
    assert best.baseline in ("last", "autoregressive")
    assert plain.baseline == "mean"
    assert best.savings.shares()[best.baseline] > 0.5


def test_the_pilot_is_not_counted():
    rows = log()
    follower = Follower(cells_of(rows), measure()).run()
    assert 0 < len(rows.arm) - follower.rows < 200


def test_a_log_without_enough_rows_says_nothing():
    follower = Follower(cells_of(log(rows=15, hours=5)), measure()).run()
    assert follower.sequence is None
    assert not follower.snapshots


def test_units_of_rewards_change_no_decision():
    rows = log()
    one = Follower(cells_of(rows), measure(baseline="auto")).run()
    other = Follower(cells_of(replace(rows, reward=1000.0 * rows.reward)), measure(baseline="auto")).run()
    assert gaps_of(other.sequence).low == pytest.approx(1000.0 * gaps_of(one.sequence).low, rel=1e-6)


def test_the_level_of_the_reference_arm_is_its_mean_over_all_rounds():
    rows = log(rows=8000)
    follower = Follower(cells_of(rows), measure()).run()
    low, high = follower.scores[0].interval()
    truth = np.mean(3.0 * np.sin(rows.bucket[len(rows.arm) - follower.rows :] / 8.0))
    assert low < truth < high
    assert high - low < 0.5


def test_rewards_of_0_and_1_in_the_exact_mode():
    rng = np.random.default_rng(3)
    rows = log(rows=9000, noise=0.0)
    rows = replace(rows, reward=(rng.random(9000) < np.array([0.1, 0.1, 0.3])[rows.arm]).astype(float))
    follower = Follower(cells_of(rows), measure(confidence=Bounded(0.0, 1.0))).run()
    gaps = gaps_of(follower.sequence)
    assert gaps.low[1] > 0.0
    assert gaps.low[0] < 0.0 < gaps.high[0]
    assert gaps.high[1] < 0.35


def test_a_log_looked_at_once_gives_the_ordinary_interval():
    rng = np.random.default_rng(4)
    rows = drawn(rng, [[0.5, 0.5]], np.zeros(5000, dtype=int), np.zeros(5000, dtype=int), gaps=[0.0, 0.2])
    gaps = gaps_of(Follower(cells_of(rows), measure()).run_once().sequence)
    a, b = (rows.reward[rows.arm == arm] for arm in (0, 1))
    error = np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert gaps.estimates[0] == pytest.approx(b.mean() - a.mean(), abs=0.1 * error)
    assert half_widths(gaps)[0] == pytest.approx(1.96 * error, rel=0.02)


def test_arms_with_features_share_what_they_learn():
    rng = np.random.default_rng(6)
    arms = ArmSet(np.array([[0.0], [1.0], [2.0], [3.0]]))
    rows = drawn(
        rng, np.full((1, 4), 0.25), np.zeros(4000, dtype=int), np.arange(4000) // 50, gaps=0.2 * np.arange(4)
    )
    with_features = gaps_of(Follower(cells_of(rows, arms=arms), measure()).run().sequence)
    without = gaps_of(Follower(cells_of(rows), measure()).run().sequence)
    assert with_features.estimates[2] == pytest.approx(3 * with_features.estimates[0], rel=1e-6)
    assert half_widths(with_features)[0] < 0.6 * half_widths(without)[0]


def test_plans_of_their_own_for_every_row():
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(2), 3000) * 0.9 + 0.05
    rows = drawn(rng, p, np.arange(3000), np.arange(3000) // 30, gaps=[0.0, 1.0])
    gaps = gaps_of(Follower(cells_of(rows), measure()).run().sequence)
    assert gaps.low[0] < 1.0 < gaps.high[0]
    assert gaps.high[0] - gaps.low[0] < 0.6


def test_rewards_without_scatter_say_nothing_in_any_units():
    rows = log(rows=2000, hours=40)
    for scale in (1e-6, 1.0, 1e6):
        still = replace(rows, reward=np.full(2000, scale))
        assert Follower(cells_of(still), measure()).run().sequence is None


@pytest.mark.parametrize(
    ("plans", "confidence"),
    [
        (PLANS, Asymptotic()),
        (PLANS, Bounded(0.0, 1.0)),
        (np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]]), Bounded(0.0, 1.0)),
    ],
)
def test_blocks_give_what_one_bucket_after_another_gives(plans, confidence, monkeypatch):
    monkeypatch.setattr("inside.estimate.MOST", 200)  # a few buckets each
    rng, rows = np.random.default_rng(11), 3000
    bucket = np.sort(rng.integers(0, 60, rows))
    plan = rng.integers(0, 2, rows) * (bucket > 20)  # an arm may come late
    found = drawn(rng, plans, plan, bucket)
    found = replace(found, reward=(rng.random(rows) < np.array([0.2, 0.3, 0.5])[found.arm]).astype(float))
    follower = Follower(cells_of(found), measure(confidence=confidence, is_recorded=True)).run()
    first = Follower(cells_of(found), measure(confidence=confidence))
    first._begin(follower.sequence.tightest[0], np.array([0]))
    sequence, values = first.sequence, ArmValues(first.sequence, 0)
    for numbers, now, tally in follower.feeds:
        assert now == pytest.approx(values.now, rel=1e-9, abs=1e-12)
        centre = confidence.centre(now, np.ones(3, dtype=bool))
        sequence = sequence.add(Plan(plans[numbers], tally.rounds, centre), tally)
        values.learn_from(sequence.evidence)
    for name in ("totals", "weights", "variances", "pooled", "peaks", "events"):
        one, other = (getattr(some.evidence, name) for some in (follower.sequence, sequence))
        assert one == pytest.approx(other, rel=1e-9)
    assert follower.sequence.tuning.rho == pytest.approx(sequence.tuning.rho)
    assert follower.sequence.tuning.scale == pytest.approx(sequence.tuning.scale)
    assert follower.sequence.seen.drawn.tolist() == sequence.seen.drawn.tolist()
    assert follower.sequence.seen.sizes.excess == pytest.approx(sequence.seen.sizes.excess)
    assert np.all(sequence.evidence.weights > 0)
