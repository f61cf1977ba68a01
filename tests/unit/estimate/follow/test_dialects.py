"""Round by round and bucket by bucket are one way to follow a metric: same residuals, same evidence."""

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn
from inside.estimate import Follower, GapIntervals, Measure, Pulls, Steps
from orthobandit import ArmSet, Asymptotic, Bounded, Plan, Tally
from orthobandit.estimate.confidence.sequence import guess_noise, pairs_of, start_gaps

PLANS = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
ARMS = ArmSet.one_hot(3)
DELTA = 0.05
PARTS = ("counts", "sums", "squares", "largest")


def log(seed, buckets=12, size=60):
    bucket = np.repeat(np.arange(buckets), size)
    return drawn(
        np.random.default_rng(seed), PLANS, bucket // 2 % 2, bucket, levels=np.sin(bucket), noise=0.1
    )


@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(-2.0, 3.0)])
def test_residuals_of_both_are_the_same_evidence(confidence):
    rows = log(1)
    measure = Measure(0, None, (), confidence, DELTA, "none", 0, is_recorded=True)
    follower = Follower(cells_of(rows), measure).run()
    live = GapIntervals(confidence, ARMS, 0, DELTA)
    begun = live._sequences[0]
    tallies = []
    chosen = []
    for place, bucket in enumerate(follower.feeds.counted()):
        some = rows.bucket * 3600.0 == bucket.begins
        live.add(place, rows.arm[some], rows.reward[some])
        chosen += bucket.plans.tolist()
        ((_, tally),) = live.flush({place: Plan(PLANS[chosen[-1]], int(some.sum()), number=place)})
        tallies.append(tally)
        # Live metrics have no values of the arms; the log's, put back, leave the same residuals.
        counts = bucket.tally.counts[0]
        assert tally.counts.tolist() == counts.tolist()
        assert tally.sums == pytest.approx(bucket.tally.sums[0] + counts * bucket.values, rel=1e-9, abs=1e-9)
    whole = Tally(*(np.stack([getattr(one, part) for one in tallies]) for part in PARTS))
    places = np.arange(len(tallies))
    steps = Steps(PLANS[chosen], whole.rounds, whole, np.zeros((len(tallies), 3)), places)
    pulls = Pulls.of(ARMS.positions, begun.coefficients, PLANS[chosen])
    at_once = begun.along(steps, pulls).at(-1)
    for part in ("totals", "weights", "variances", "pooled"):
        want = getattr(live._sequences[0].evidence, part)
        assert getattr(at_once.evidence, part) == pytest.approx(want, rel=1e-12), part
    assert at_once.seen.sizes.rounds == follower.rows


def test_both_begin_with_the_same_boundaries():
    mode = Bounded(0.0, 1.0)
    live = GapIntervals(mode, ARMS, 0, DELTA)._sequences[0]
    pairs = pairs_of(3, 0)
    begun = start_gaps(ARMS, pairs[:2], mode, 0.95 * DELTA / 2, guess_noise(mode))
    plan = Plan(PLANS[0], 10, begun.centre())
    assert live.tuned_by(plan.probabilities).tuning.rho.tolist() == pytest.approx(
        begun.tuned_by(plan.probabilities).tuning.rho.tolist(), rel=1e-15
    )
    assert pairs.tolist() == [[1, 0], [2, 0], [2, 1]]


def test_the_guess_of_noise_keeps_to_the_declared_range():
    assert guess_noise(Bounded(0.0, 1.0)) == Bounded(0.0, 1.0).limit / 4.0
    assert guess_noise(Bounded(0.0, 100.0)) == 100.0 * guess_noise(Bounded(0.0, 1.0))
    assert guess_noise(Asymptotic()) == 1.0
