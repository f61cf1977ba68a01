"""The D-optimal solver: what it starts from, what it skips, what it certifies."""

import numpy as np
import pytest

from inside._foundation import affine_frame
from orthobandit.design import _d_optimal
from orthobandit.design._d_optimal import d_optimal
from orthobandit.design._points import Points, View
from orthobandit.errors import DesignError


def points_of(features, *, has_intercept=True):
    frame = affine_frame(features, through_zero=not has_intercept)
    return Points.of(features, frame, has_intercept=has_intercept)


def leverages(features, p, *, has_intercept=True):
    z = np.hstack([np.ones((len(features), 1)), features]) if has_intercept else features
    return np.einsum("ij,ji->i", z, np.linalg.solve((z.T * p) @ z, z.T))


def full(found, count):
    p = np.zeros(count)
    p[found.chosen] = found.values
    return p


@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("count", [50, 3000])
def test_the_certificate_is_what_the_textbook_says(count, has_intercept, monkeypatch):
    monkeypatch.setattr("inside.design.SAMPLE_POINTS", 256)
    features = np.random.default_rng(0).standard_normal((count, 4)) + 1.0
    found = d_optimal(points_of(features, has_intercept=has_intercept), 1e-7)
    excess = leverages(features, full(found, count), has_intercept=has_intercept).max() - 4 - has_intercept
    assert excess / 4 == pytest.approx(found.gap, abs=1e-12)
    assert found.gap <= 1e-7


def clusters(count, seed):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((12, 3))
    return centres[rng.integers(12, size=count)] + 0.01 * rng.standard_normal((count, 3))


def test_bounds_never_miss_a_violator():
    # Every pass must agree with a pass that looks at all points.
    features = clusters(4000, 1)
    points = points_of(features)
    seen = []
    updated = _d_optimal._Bounds.updated

    def checked(self, now):
        largest = updated(self, now)
        everything = points.leverages(now.view)
        assert largest == pytest.approx(everything.max(), rel=1e-10)
        assert np.all(self.values >= everything * (1 - 1e-10))
        seen.append(np.count_nonzero(self.values != everything))
        return largest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_d_optimal._Bounds, "updated", checked)
        d_optimal(points, 1e-6)
    assert max(seen) > 1000


def test_a_sample_that_does_not_span_is_given_up(monkeypatch):
    monkeypatch.setattr("inside.design.SAMPLE_POINTS", 64)
    features = np.zeros((1000, 3))
    features[:, 0] = np.random.default_rng(2).standard_normal(1000)
    features[[501, 703], [1, 2]] = 1.0
    found = d_optimal(points_of(features), 1e-6)
    assert {501, 703} <= set(found.chosen)
    assert found.gap <= 1e-6


def test_a_sample_that_fails_is_given_up(monkeypatch):
    # The sample's own solve runs out of passes; the whole must not.
    monkeypatch.setattr("inside.design.SAMPLE_POINTS", 64)
    features = np.random.default_rng(3).standard_normal((1000, 3))
    whole = _d_optimal.d_optimal

    def failing(points, tolerance, *rest):
        if len(points) < 1000:
            raise DesignError("no", gap=1.0, tolerance=tolerance)
        return whole(points, tolerance, *rest)

    monkeypatch.setattr("inside.design.d_optimal", failing)
    assert whole(points_of(features), 1e-6).gap <= 1e-6


def test_exchanges_that_do_not_end_are_replaced(monkeypatch):
    monkeypatch.setattr("inside.design.exchange", lambda *arguments: arguments[-1])
    features = np.random.default_rng(4).standard_normal((300, 4))
    found = d_optimal(points_of(features), 1e-6)
    assert found.gap <= 1e-6
    assert len(found.chosen) <= 15


def test_a_start_on_all_points_is_not_worked_on_point_by_point(monkeypatch):
    most = []
    exchange = _d_optimal.exchange

    def watched(points, *rest):
        most.append(points.shape[1])
        return exchange(points, *rest)

    monkeypatch.setattr("inside.design.exchange", watched)
    features = np.random.default_rng(5).standard_normal((20_000, 3))
    assert d_optimal(points_of(features), 1e-6, np.full(20_000, 1 / 20_000)).gap <= 1e-6
    assert max(most) < 500


def test_points_seen_through_a_view_are_white():
    features = np.random.default_rng(6).standard_normal((30, 3)) * [1e-2, 1.0, 1e2] + 5.0
    points, p = points_of(features), np.full(30, 1 / 30)
    everything = np.arange(30)
    view = points.refined(points.rough_view()[0], everything, p)
    seen = points.through(view, everything)
    assert np.allclose(p @ seen, 0, atol=1e-12)
    assert np.allclose((seen.T * p) @ seen, np.eye(3), atol=1e-12)
    assert np.allclose(points.leverages(view), leverages(features, p), rtol=1e-6)
    assert np.allclose(points.leverages(view, np.array([3, 1])), points.leverages(view)[[3, 1]], rtol=1e-14)


def test_spanning_points_span_and_are_far_apart():
    features = np.random.default_rng(7).standard_normal((100, 4))
    for has_intercept in (True, False):
        points = points_of(features, has_intercept=has_intercept)
        view, sample = points.rough_view()
        chosen = points.spanning(view, sample)
        assert len(set(chosen)) == 4 + has_intercept
        assert np.linalg.cond(points.lifted(view, chosen)) < 20


def test_points_so_far_out_that_the_covariance_knows_nothing_else():
    rows = np.vstack([np.eye(3), np.full((1, 3), 1e9)])
    points = Points(rows, View(np.zeros(3), np.eye(3)), has_intercept=False)
    view, sample = points.rough_view()
    assert view is points.frame
    assert sample.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("length", [1e3, 1e6, 1e10])
def test_far_points_that_no_sample_has_seen(length, monkeypatch):
    monkeypatch.setattr("inside.design.SAMPLE_POINTS", 128)
    features = np.random.default_rng(8).standard_normal((2000, 4))
    features[[501, 777, 1503]] *= length
    found = d_optimal(points_of(features), 1e-6)
    assert {501, 777, 1503} <= set(found.chosen)
    assert found.gap <= 1e-6
