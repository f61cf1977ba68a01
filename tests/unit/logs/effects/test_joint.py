"""Levels of two arms over the same rounds: against plain loops, and regions against points of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from inside.estimate import tightest_rho
from inside.logs import difference_of_ratios, follow_metric
from log_worlds import cells_from
from orthobandit.logs.effects.joint import (
    OTHER_DIRECTIONS_WEIGHT,
    SCALES,
    SINGULAR,
    CentredSeries,
    Joint,
    JointSums,
    Region,
    region_at_all_times,
    region_for_one_look,
    series_of,
    upper_bound,
)
from ratio_worlds import measure

ROUNDS, GUESS = 10_000.0, np.diag([4e4, 2e4, 4e4, 2e4])


def rows_of(seed=0, buckets=6, size=80):
    rng = np.random.default_rng(seed)
    plans = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.6, 0.4, 0.0]])
    bucket = np.repeat(np.arange(buckets), size)
    plan = rng.integers(0, 3, len(bucket))
    arm = (rng.random(len(bucket))[:, np.newaxis] > np.cumsum(plans, axis=1)[plan, :-1]).sum(axis=1)
    values = np.column_stack([5.0 + arm + rng.standard_normal(len(arm)), rng.poisson(3.0 + arm)]).astype(
        float
    )
    return bucket, plan, arm, values, plans


def joint_of(cells):
    alone = measure(denominator=None)
    followers = [follow_metric(cells, replace(alone, column=column)) for column in (0, 1)]
    return Joint(followers[0].cells, [one for follower in followers for one in series_of(follower)])


def sums(variances, estimates=(10.0, 5.0, 10.0, 5.0), **changed):
    given = {
        "totals": ROUNDS * np.array(estimates),
        "weights": np.array(ROUNDS),
        "variances": np.array(variances, dtype=float),
        "pooled": np.array(variances, dtype=float),
        "apart": np.array(variances, dtype=float),
        "drawn": np.full(2, ROUNDS / 2.0),
        "peaks": np.zeros(len(variances)),
        "most": np.ones(len(variances)),
        "scattered": np.full(2, ROUNDS),
        "largest": np.full(2, 4.0),
        "offsets": np.zeros(len(variances)),
        "guess": np.array(variances, dtype=float),
    }
    return JointSums(**(given | changed))


def boundary(region, count=200_000, seed=0):
    """Return points of the surface of a region."""
    z = np.random.default_rng(seed).standard_normal((count, len(region.centre)))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return region.centre + z @ np.linalg.cholesky(region.shape).T


@pytest.mark.parametrize(("arm", "over"), [(1, 0), (2, 1)])
def test_scores_are_those_of_a_plain_loop(arm, over):
    bucket, plan, arms, values, plans = rows_of()
    joint = joint_of(cells_from(bucket, plan, arms, values, plans))
    path = joint.pair(arm, over)
    begin = max(one.begin for one in joint.series)
    totals, squares, rounds = np.zeros(4), np.zeros((4, 4)), 0
    for row in np.flatnonzero(bucket >= begin):
        p = plans[plan[row]]
        if p[arm] == 0 or p[over] == 0:
            continue
        score, off = np.zeros(4), np.zeros(4)
        for place, one in enumerate((arm, over)):
            for line, series in enumerate(joint.series):
                centre = series.forecasts[bucket[row]] + series.values[bucket[row], one]
                if arms[row] == one:
                    off[2 * place + line] = (values[row, line] - centre) / p[one]
                score[2 * place + line] = centre + off[2 * place + line]
        totals, squares, rounds = totals + score, squares + np.outer(off, off), rounds + 1
    assert path.weights[-1] == rounds
    np.testing.assert_allclose(path.totals[-1], totals, rtol=1e-10)
    np.testing.assert_allclose(path.variances[-1], squares, rtol=1e-9, atol=1e-9)


def test_rounding_does_no_harm_where_every_row_has_its_own_plan():
    rng, count = np.random.default_rng(0), 10_000
    share = rng.uniform(0.1, 0.9, count)
    arm = (rng.random(count) < share).astype(int)
    values = rng.normal(1000.0, 1.0, (count, 2))
    plans = np.column_stack([1.0 - share, share])
    cells = cells_from(np.arange(count) // 500, np.arange(count), arm, values, plans)
    levels, none = np.full(20, 1000.0), np.zeros((20, 2))
    series = [CentredSeries(c, np.tile(np.eye(2)[c], (20, 1)), 1, levels, none) for c in (0, 1)]
    path = Joint(cells, series).pair(1, 0)
    np.testing.assert_allclose(path.at(-1).estimates, 1000.0, atol=0.2)


def test_sums_after_a_split_are_what_is_left():
    path = joint_of(cells_from(*rows_of())).pair(1, 0)
    after = path.since(1)
    for name in ("totals", "weights", "variances", "pooled", "drawn"):
        np.testing.assert_allclose(getattr(path.at(1), name) + getattr(after, name), getattr(path, name)[-1])


def test_what_values_are_counted_from_does_not_matter():
    bucket, plan, arm, values, plans = rows_of()
    plain = cells_from(bucket, plan, arm, values, plans)
    moved = replace(cells_from(bucket, plan, arm, values - 3.0, plans), offset=np.full(2, 3.0))
    ends = [joint_of(cells).pair(1, 0).at(-1).estimates for cells in (plain, moved)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)


def test_a_region_is_the_set_where_the_mixture_is_below_one_over_alpha():
    w, delta = np.diag([3e4, 1e4, 5e4, 2e4]), 0.05
    main = np.array([[1.0, -2.0, -1.0, 2.0]])
    region = region_at_all_times(sums(w, guess=GUESS), delta, main, main[0])
    off = ROUNDS * (boundary(region, 3) - region.centre)
    # Λ as in the module's docstring; the region is that of one of its multiples.
    guess = GUESS + np.diag(SINGULAR * GUESS.diagonal())
    weight = main.T @ main / tightest_rho(main[0] @ guess @ main[0], delta / 2.0)
    weight = weight + OTHER_DIRECTIONS_WEIGHT * np.linalg.inv(guess)
    reached = []
    for multiple, share in zip(*SCALES, strict=True):
        mixing = weight / multiple
        inside = np.einsum("ni,ij,nj->n", off, np.linalg.inv(w + np.linalg.inv(mixing)), off)
        log_mixture = 0.5 * inside - 0.5 * np.linalg.slogdet(np.eye(4) + mixing @ w)[1]
        reached.append(np.allclose(log_mixture, np.log(1.0 / (delta * share)), rtol=1e-3))
    assert sum(reached) == 1


def test_a_quotient_is_what_points_of_the_region_give():
    region = Region(np.array([3.0, 2.0]), np.array([[0.5, 0.2], [0.2, 0.3]]))
    points = boundary(region)
    low, high = region.quotient(0, 1)
    found = points[:, 0] / points[:, 1]
    assert (low, high) == pytest.approx((found.min(), found.max()), rel=1e-4)


@pytest.mark.parametrize("correlation", [0.0, 0.9, -0.5])
def test_a_difference_of_ratios_is_what_points_of_the_region_give(correlation):
    block = np.array([[1.0, correlation], [correlation, 1.0]])
    shape = np.kron(np.array([[1.0, 0.3], [0.3, 0.5]]), block)
    region = Region(np.array([10.0, 5.0, 6.0, 4.0]), shape)
    points = boundary(region, 1_000_000)
    found = points[:, 0] / points[:, 1] - points[:, 2] / points[:, 3]
    low, high = difference_of_ratios(region)
    assert low <= found.min()
    assert found.max() <= high
    assert (low, high) == pytest.approx((found.min(), found.max()), rel=0.02)


@pytest.mark.parametrize("nearly", [0.97, 0.999, 0.99999, 1 - 1e-9])
@pytest.mark.parametrize("place", [1, 3])
def test_no_point_is_left_out_where_a_denominator_may_be_all_but_nothing(nearly, place):
    centre = np.array([10.0, 5.0, 6.0, 4.0])
    shape = np.diag([0.5, 0.4, 0.3, 0.2])
    shape[place, place] = (nearly * centre[place]) ** 2
    region = Region(centre, shape)
    points = boundary(region, 200_000)
    found = points[:, 0] / points[:, 1] - points[:, 2] / points[:, 3]
    low, high = difference_of_ratios(region)
    assert low <= found.min()
    assert found.max() <= high
    # The ratio that is well known is no wider for it: the far end is that of the other one, or nearly.
    ends = [region.quotient(0, 1), region.quotient(2, 3)]
    assert high - low <= sum(end[1] - end[0] for end in ends)


def test_a_bound_of_two_variances_is_at_least_either_in_every_direction():
    rng = np.random.default_rng(0)
    one, other = (a @ a.T for a in rng.standard_normal((2, 4, 4)))
    bound = upper_bound(one, other)
    for matrix in (one, other):
        assert np.linalg.eigvalsh(bound - matrix).min() > -1e-4
    larger = upper_bound(np.diag([1.0, 4.0]), np.diag([2.0, 3.0]))
    np.testing.assert_allclose(larger, np.diag([2.0, 4.0]), rtol=1e-4)


def test_the_larger_of_two_variances_counts():
    main = np.array([[1.0, 0.0, -1.0, 0.0]])
    known = region_at_all_times(sums(3.0 * GUESS, guess=GUESS), 0.05, main, main[0])
    pooled = region_at_all_times(sums(GUESS, pooled=4.0 * GUESS, guess=GUESS), 0.05, main, main[0])
    np.testing.assert_allclose(pooled.shape, known.shape, rtol=1e-4)  # (1 + 2·4)/3 is 3


def test_heavy_tails_widen_a_region():
    main = np.array([[1.0, 0.0, -1.0, 0.0]])
    usual = region_at_all_times(sums(GUESS), 0.05, main, main[0])
    wider = region_at_all_times(sums(GUESS, peaks=np.full(4, 50.0)), 0.05, main, main[0])
    assert np.linalg.eigvalsh(wider.shape - usual.shape).min() > 0


@pytest.mark.parametrize(
    "changed",
    [{"drawn": np.array([5000.0, 12.0])}, {"scattered": np.array([1e4, 5.0]), "largest": np.ones(2)}],
    ids=["an arm is hardly drawn", "few events"],
)
def test_nothing_is_said_at_all_times_before_there_is_evidence(changed):
    main = np.array([[1.0, 0.0, -1.0, 0.0]])
    assert region_at_all_times(sums(GUESS), 0.05, main, main[0]) is not None
    assert region_at_all_times(sums(GUESS, **changed), 0.05, main, main[0]) is None


def test_one_look_is_less_sure_where_few_rows_carry_the_variance():
    below = np.eye(4)[[1, 3]]
    usual = region_for_one_look(sums(GUESS), 0.05, below)
    four = region_for_one_look(sums(GUESS, most=np.array([100.0, 1.0, 1.0, 1.0])), 0.05, below)
    # 4e4 is four times the largest square: eight degrees of freedom; otherwise as many as rows.
    expected = (stdtrit(8.0, 0.025) / stdtrit(4999.0, 0.025)) ** 2
    np.testing.assert_allclose(four.shape, expected * usual.shape, rtol=1e-9, atol=1e-12)


def test_one_look_divides_by_no_level_that_is_hardly_known():
    below = np.eye(4)[[1, 3]]
    assert region_for_one_look(sums(GUESS), 0.05, below) is not None
    nine = np.diag([4e4, (5.0 * ROUNDS / 3.0) ** 2 * 1.01, 4e4, 2e4])
    assert region_for_one_look(sums(nine), 0.05, below) is None
    assert region_for_one_look(sums(GUESS, estimates=(10.0, -5.0, 10.0, 5.0)), 0.05, below) is None
    assert region_for_one_look(sums(GUESS, drawn=np.array([5000.0, 4.0])), 0.05, below) is None
