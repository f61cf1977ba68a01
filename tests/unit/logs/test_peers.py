"""Rival methods: each from cells as by brute force on rows, and as reference packages compute them."""

import numpy as np
import pytest
from scipy.stats import norm

from cells_by_hand import Rows, cells_of, drawn
from orthobandit.logs import Question
from orthobandit.logs.peers import (
    APART,
    ASSUMES,
    MIXTURE,
    NAIVE,
    STRATIFIED,
    TOGETHER,
    WEIGHTED,
    compare,
)

PLANS = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
ASK = Question("arm", "reward", delta=0.1)
Z = norm.isf(0.1 / 2 / 2)  # two gaps share δ


def log(seed=0, size=600, level=5.0):
    rng = np.random.default_rng(seed)
    bucket = np.sort(rng.integers(0, 6, size))
    plan = np.where(bucket < 2, 0, np.where(rng.random(size) < 0.5, 1, 2))
    return drawn(rng, PLANS, plan, bucket, level + 0.5 * bucket, [0.0, 0.4, -0.2])


def answers(rows, arm="1", **settings):
    return {one.method: one for one in compare(cells_of(rows, **settings), ASK) if one.arm == arm}


def centre_and_half(rival):
    low, high = rival.interval
    assert rival.estimate == pytest.approx((low + high) / 2)
    return rival.estimate, (high - low) / 2


@pytest.mark.parametrize("offset", [0.0, 4.5])
def test_the_difference_in_means_is_that_of_statsmodels(offset):
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    rows = log()
    parts = [weightstats.DescrStatsW(rows.reward[rows.arm == arm]) for arm in (1, 0)]
    low, high = weightstats.CompareMeans(*parts).tconfint_diff(alpha=0.05, usevar="unequal")
    assert answers(rows, offset=offset)[NAIVE].interval == pytest.approx((low, high), rel=1e-9)


def test_strata_are_dummies_of_a_regression():
    api = pytest.importorskip("statsmodels.api")
    rows = log(1)
    mine = rows.arm < 2
    strata = np.unique(np.stack([rows.bucket, rows.plan])[:, mine], axis=1, return_inverse=True)[1].ravel()
    columns = np.column_stack([rows.arm[mine], np.eye(strata.max() + 1)[strata]])
    fitted = api.OLS(rows.reward[mine], columns).fit()
    estimate, half = centre_and_half(answers(rows)[STRATIFIED])
    assert estimate == pytest.approx(fitted.params[0], rel=1e-9)
    # The regression has one variance for both arms; here each has its own.
    assert half == pytest.approx(Z * fitted.bse[0], rel=0.05)


def test_strata_with_variances_by_arm_as_by_hand():
    rows = log(2)
    scatter, freedom, parts = np.zeros(2), np.zeros(2), []
    for bucket in range(6):
        for plan in range(3):
            here = (rows.bucket == bucket) & (rows.plan == plan)
            two = [rows.reward[here & (rows.arm == arm)] for arm in (0, 1)]
            if min(map(len, two)):
                scatter += [((one - one.mean()) ** 2).sum() for one in two]
                freedom += [len(one) - 1 for one in two]
                parts.append((two[1].mean() - two[0].mean(), len(two[0]), len(two[1])))
    gap, n, k = np.array(parts).T
    weight = n * k / (n + k)
    variance = scatter / freedom
    error = np.sum(weight**2 * (variance[0] / n + variance[1] / k)) / weight.sum() ** 2
    found = centre_and_half(answers(rows)[STRATIFIED])
    assert found == pytest.approx((weight @ gap / weight.sum(), Z * np.sqrt(error)), rel=1e-9)


def test_inverse_probabilities_are_weights_of_a_regression():
    api = pytest.importorskip("statsmodels.api")
    rows = log(3)
    mine = rows.arm < 2
    fitted = api.WLS(
        rows.reward[mine], api.add_constant(rows.arm[mine]), weights=1 / rows.probability[mine]
    ).fit(cov_type="HC0")
    found = centre_and_half(answers(rows)[WEIGHTED])
    assert found == pytest.approx((fitted.params[1], Z * fitted.bse[1]), rel=1e-9)


def plug_ins(rows, arm):
    """Return the mean of an arm over earlier buckets, row by row; NaN in the first."""
    out = np.full(len(rows.arm), np.nan)
    for bucket in range(1, rows.bucket.max() + 1):
        before = rows.bucket < bucket
        out[rows.bucket == bucket] = rows.reward[before & (rows.arm == arm)].mean()
    return out


def scores(rows, arm):
    plug = plug_ins(rows, arm)
    return plug + np.where(rows.arm == arm, (rows.reward - plug) / rows.plans[rows.plan, arm], 0.0)


@pytest.mark.parametrize("offset", [0.0, 4.5])
def test_adaptive_weights_as_row_by_row(offset):
    rows = log(4)
    later = rows.bucket > 0
    p = rows.plans[rows.plan][later]
    total, terms = [], []
    for arm in (1, 0):
        h, score = np.sqrt(p[:, arm]), scores(rows, arm)[later]
        total.append(h @ score / h.sum())
        terms.append(h * (score - total[-1]) / h.sum())
    found = answers(rows, offset=offset)
    apart = (total[0] - total[1], Z * np.sqrt(np.sum((terms[0] - terms[1]) ** 2)))
    assert centre_and_half(found[APART]) == pytest.approx(apart, rel=1e-9)
    h, score = 1 / np.sqrt(1 / p[:, 1] + 1 / p[:, 0]), (scores(rows, 1) - scores(rows, 0))[later]
    estimate = h @ score / h.sum()
    half = Z * np.sqrt(np.sum(h**2 * (score - estimate) ** 2)) / h.sum()
    assert centre_and_half(found[TOGETHER]) == pytest.approx((estimate, half), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 4.5])
def test_the_mixture_design_is_that_of_pyssed(offset):
    mad = pytest.importorskip("pyssed.mad")
    rows = log(5, size=300)

    class Replay:
        """What pyssed asks of a bandit that has already been played."""

        _active_arms = (0, 1, 2)

        def k(self):
            return 3

        def control(self):
            return 0

    theirs = mad.MADBase(Replay(), alpha=0.1, delta=lambda t: 1.0, t_star=300)
    for arm, reward, p in zip(rows.arm, rows.reward, rows.probability, strict=True):
        theirs._compute_ite(selected_arm=arm, outcome=reward, propensity=p)
    for arm in (1, 2):
        found = centre_and_half(answers(rows, str(arm), offset=offset)[MIXTURE])
        assert found == pytest.approx(theirs._compute_ate(arm, "Bonferroni"), rel=1e-9)


def test_every_method_says_what_it_assumes_and_all_arms_are_there():
    rivals = compare(cells_of(log()), Question("arm", "reward", reference="1"))
    assert [(one.arm, one.over) for one in rivals[:: len(ASSUMES)]] == [("0", "1"), ("2", "1")]
    assert [one.method for one in rivals] == [*ASSUMES, *ASSUMES]
    assert all(one.assumes == ASSUMES[one.method] for one in rivals)


def test_what_a_log_cannot_tell_is_none():
    plans = np.array([[0.5, 0.5, 0.0]])
    zeros = np.zeros(40, dtype=int)
    rows = drawn(np.random.default_rng(6), plans, zeros, np.arange(40) // 10)
    unknown = answers(rows, "2")
    assert {one.method for one in unknown.values() if one.estimate is None} == set(ASSUMES)
    assert unknown[NAIVE].interval == (None, None)
    single = Rows(plans, np.arange(4), zeros[:4], np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 1.0, 2.0]))
    assert answers(single)[STRATIFIED].estimate is None  # no bucket has both arms
    assert answers(single)[NAIVE].interval == (1.0, 1.0)


def test_a_log_of_one_bucket_has_its_own_means_as_forecasts():
    rows = drawn(np.random.default_rng(7), [[0.5, 0.5]], np.zeros(100, dtype=int), np.zeros(100, dtype=int))
    found = answers(rows)
    assert found[TOGETHER].estimate == pytest.approx(found[NAIVE].estimate)
    assert found[APART].estimate == pytest.approx(found[NAIVE].estimate)


def test_a_log_without_values_or_with_one_arm_has_no_gaps():
    rows = log()
    rows.lost = np.ones(600, dtype=bool)
    assert {one.estimate for one in compare(cells_of(rows), ASK)} == {None}
    alone = drawn(np.random.default_rng(8), [[1.0]], np.zeros(9, dtype=int), np.arange(9))
    assert compare(cells_of(alone), ASK) == ()
