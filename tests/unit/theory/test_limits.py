"""Limits that no method can beat."""

import math

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.simulation import near_degenerate
from orthobandit.theory import identification_limit, regret_limit

LEVEL = 2.0 * 0.95 * math.log(0.95 / 0.05)


def test_two_arms_take_half_the_rounds_each():
    # ‖x_1 − x_2‖² in Σ⁻¹ is 1/p + 1/(1 − p), 4 at best.
    assert identification_limit(ArmSet.one_hot(2), [0.5, 0.0], 0.05) == pytest.approx(
        LEVEL * 4.0 / 0.25, rel=2e-4
    )


def test_the_best_of_two_arms_costs_nothing_to_play():
    # (1 − p)·Δ·(1/p + 1/(1 − p))/Δ² falls to 1/Δ as p grows to 1.
    assert regret_limit(ArmSet.one_hot(2), [0.5, 0.0], 0.05) == pytest.approx(LEVEL / 0.5, rel=3e-3)


def test_equal_rivals_of_one_arm_as_by_hand():
    # p = (√n, 1, …, 1)/(√n + n) minimises 1/p_0 + 1/p_1 for n rivals: (1 + √n)².
    n = 5
    means = [1.0] + [0.0] * n
    found = identification_limit(ArmSet.one_hot(n + 1), means, 0.05)
    assert found == pytest.approx(LEVEL * (1.0 + math.sqrt(n)) ** 2, rel=1e-3)


@pytest.mark.parametrize("limit", [identification_limit, regret_limit])
def test_limits_grow_as_they_should(limit):
    rng = np.random.default_rng(1)
    arms = ArmSet(rng.standard_normal((8, 3)))
    means = arms.features @ rng.standard_normal(3)
    one = limit(arms, means, 0.05)
    power = 2 if limit is identification_limit else 1
    assert limit(arms, 2.0 * means, 0.05) == pytest.approx(one / 2.0**power, rel=1e-2)
    assert limit(arms, means + 7.0, 0.05) == pytest.approx(one, rel=1e-2)
    assert limit(arms, means, 0.05, sigma=3.0) == pytest.approx(9.0 * one, rel=1e-2)
    assert limit(arms, means, 0.01) > 1.5 * one


@pytest.mark.parametrize(
    ("means", "delta", "message"),
    [
        ([1.0, 1.0], 0.05, "two arms share the largest mean"),
        ([1.0], 0.05, "shape"),
        ([1.0, math.nan], 0.05, "finite"),
        ([1.0, 0.0], 0.5, "a guess would do"),
        ([1.0, 0.0], 0.0, "delta"),
    ],
)
def test_what_has_no_limit_is_refused(means, delta, message):
    with pytest.raises(ParameterError, match=message):
        identification_limit(ArmSet.one_hot(2), means, delta)


@pytest.mark.parametrize("error", [-0.01, 0.06, math.nan])
def test_an_error_above_delta_is_refused(error):
    with pytest.raises(ParameterError, match="error="):
        identification_limit(ArmSet.one_hot(2), [1.0, 0.0], 0.05, error=error)


def test_the_small_gap_needs_what_the_derivation_says():
    environment = near_degenerate(10, 0.2)
    setting = (environment.arms, environment.means, 0.1)
    assert identification_limit(*setting) == pytest.approx(9962, rel=1e-3)
    assert identification_limit(*setting, error=0.0065) == pytest.approx(11_400, rel=3e-3)


@pytest.mark.parametrize("limit", [identification_limit, regret_limit])
def test_fewer_errors_need_more_rounds(limit):
    setting = (ArmSet.one_hot(2), [0.5, 0.0], 0.1)
    found = [limit(*setting, error=error) for error in (0.0, 0.001, 0.01, 0.1)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == limit(*setting)
    # Without any error, log(1/δ).
    assert found[0] / found[-1] == pytest.approx(math.log(10) / (0.9 * math.log(9)), rel=1e-3)
