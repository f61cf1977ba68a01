"""Modes of confidence: what they declare, and the intervals that follow."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from inside.estimate import EXPECTED, NEAR, WIDE, normal_boundary
from orthobandit.errors import ParameterError
from orthobandit.estimate import Asymptotic, Bounded, Evidence, SubGaussian, Tuning
from orthobandit.estimate.confidence.bets import Spent, bets_boundary

MODES = [Asymptotic(), Bounded(0.0, 1.0), SubGaussian(-1.0, 1.0, sigma=0.5)]


def evidence(totals, weights=100.0, variances=50.0, slack=0.0):
    shape = np.shape(totals)
    return Evidence(
        np.array(totals, dtype=float), *(np.full(shape, value) for value in (weights, variances, slack))
    )


def tuning(shape, alpha=0.05, rho=20.0, scale=2.0):
    return Tuning(*(np.full(shape, value) for value in (alpha, rho, scale)))


def test_the_asymptotic_width_by_hand():
    # V = (50 + 2·80)/3; 90 % of α belong to the guessed ρ, l = log(1 + √(90/20)/(2·0.045)); peak 1.5.
    given = replace(evidence([0.0]), pooled=np.full(1, 80.0), peaks=np.full(1, 1.5))
    level = np.log1p(np.sqrt(90.0 / 20.0) / 0.09)
    width = Asymptotic().width(given, tuning((1,)))
    assert width[0] == pytest.approx((normal_boundary(70.0, 0.05, 20.0, NEAR) + 1.5 * level) / 100)
    # Near what that component alone would give, and never above it.
    assert 0.99 < width[0] * 100 / (np.sqrt(2.0 * 90.0 * level) + 1.5 * level) < 1


def test_the_asymptotic_mode_says_nothing_while_one_round_may_carry_it_all():
    for events, is_known in ((0.0, False), (9.99, False), (10.0, True)):
        given = replace(evidence([1e6]), events=np.asarray(events))
        assert np.isfinite(Asymptotic().width(given, tuning((1,)))[0]) == is_known
        assert Asymptotic().exceeds(given, tuning((1,)))[0] == is_known
        assert np.isfinite(Bounded(0.0, 1.0).width(given, tuning((1,)))[0])


def test_smaller_levels_take_more_events_and_more_draws():
    # 3·log(1/α) events and log(1/α) of what was waited, and 10 events at least.
    level = -np.log(0.001)
    for events, waited, is_known in (
        (3 * level + 0.01, level + 0.01, True),
        (3 * level - 0.01, level + 0.01, False),
        (3 * level + 0.01, level - 0.01, False),
    ):
        given = replace(evidence([1e6]), events=np.asarray(events), waited=np.asarray(waited))
        assert Asymptotic().exceeds(given, tuning((1,), alpha=0.001))[0] == is_known
        assert Asymptotic().exceeds(given, tuning((1,), alpha=0.05))[0]


def test_a_contrast_waits_for_events_of_its_own():
    for variances, is_known in ((22.6, True), (22.4, False)):
        given = replace(evidence([1e6], variances=variances), peaks=np.full(1, 1.5))
        assert Asymptotic().exceeds(given, tuning((1,)))[0] == is_known


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("factor", [1e-7, 1e-4, 1e4, 1e7])
def test_a_guess_that_is_wrong_by_orders_costs_less_than_three_times(mode, factor):
    given = evidence([0.0], variances=1e4)
    right, wrong = (mode.width(given, tuning((1,), rho=rho)) for rho in (1e3, 1e3 * factor))
    assert right[0] < wrong[0] < 3.0 * right[0]


def test_the_exact_width_by_hand():
    given = replace(evidence([0.0], slack=3.0), pooled=np.array([40.0]), peaks=np.array([1.5]))
    bound = bets_boundary(Spent(50.0, 40.0, 1.5), Tuning(0.05, 20.0, 2.0, NEAR))
    assert Bounded(0.0, 1.0).width(given, tuning((1,)))[0] == pytest.approx((bound + 3.0) / 100)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_without_evidence_the_width_is_infinite_and_nothing_is_proven(mode):
    nothing = evidence([0.0, 5.0], weights=0.0, variances=0.0)
    assert np.all(np.isinf(mode.width(nothing, tuning((2,)))))
    assert not mode.exceeds(evidence([0.0], weights=0.0, variances=0.0), tuning((1,))).any()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_proof_is_the_lower_end_above_zero(mode):
    totals = np.linspace(-50.0, 120.0, 2001)
    given, tuned = evidence(totals, slack=1.5), tuning(totals.shape)
    lower = totals / 100.0 - mode.width(given, tuned)
    proven = mode.exceeds(given, tuned)
    clear = np.abs(lower) > 1e-6
    assert np.array_equal(proven[clear], lower[clear] > 0)
    assert proven.any()
    assert not proven.all()


@pytest.mark.parametrize("mode", [Asymptotic(), Bounded(0.0, 1.0)])
@pytest.mark.parametrize("grid", [WIDE, EXPECTED])
def test_what_is_worth_no_closer_look_is_not_proven(mode, grid):
    totals = np.linspace(0.1, 60.0, 500)
    seen = evidence(totals)
    tuned = replace(tuning(totals.shape), grid=grid)
    proven = mode.exceeds(seen, tuned)
    looked = mode.may_exceed(totals, seen.variances, tuned.alpha, tuned.scale)
    assert proven.any()
    assert not proven.all()
    assert not np.any(proven & ~looked)
    assert not looked.all()


def test_units_do_not_matter():
    one = SubGaussian(-1.0, 1.0)
    small, large = evidence([0.0]), evidence([0.0], variances=50.0 * 1e6, slack=0.0)
    width = one.width(small, tuning((1,)))
    assert one.width(large, tuning((1,), rho=20.0 * 1e6, scale=2.0 * 1e3)) == pytest.approx(1e3 * width)


def test_bounded_residuals_never_need_a_clip():
    mode = Bounded(-2.0, 3.0)
    assert (mode.limit, mode.bias, mode.reward_range) == (5.0, 0.0, (-2.0, 3.0))


@pytest.mark.parametrize("level", [-2.0, -0.7, 0.0, 1.3, 2.0])
@pytest.mark.parametrize("tail", [1e-2, 1e-5])
def test_clipping_normal_noise_moves_the_mean_by_less_than_the_bias(level, tail):
    # |E residual| ≤ high − low = 2; the clipped mean is integrated numerically.
    mode = SubGaussian(-1.0, 1.0, sigma=0.7, tail=tail)
    mean = quad(
        lambda z: np.clip(level + 0.7 * z, -mode.limit, mode.limit) * norm.pdf(z),
        -12,
        12,
        points=[(mode.limit - level) / 0.7, (-mode.limit - level) / 0.7],
        epsabs=1e-13,
        limit=200,
    )[0]
    assert abs(mean - level) <= mode.bias
    assert mode.bias < 10 * tail


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bounded(1.0, 1.0), "low < high"),
        (lambda: Bounded(0.0, np.inf), "finite"),
        (lambda: SubGaussian(2.0, 1.0), "low < high"),
        (lambda: SubGaussian(0.0, 1.0, sigma=0.0), "sigma=0.0"),
        (lambda: SubGaussian(0.0, 1.0, tail=1.0), "tail=1.0"),
    ],
)
def test_wrong_declarations_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
