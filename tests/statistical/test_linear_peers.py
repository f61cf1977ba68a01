"""Peers for linear rewards beside their released code: same instances, same errors, same stopping times.

Tests reject at 1e-4: that is how often they would be wrong if both came from the same distribution.
"""

import math

import numpy as np
import pytest
import scipy

from inside.policy import adjacent_design
from orthobandit import ArmSet, Environment, simulate
from orthobandit.policy import GBAI, AdjacentBAI, LazyTrackAndStop, LinGapE, ODLinBAI, P1Peace, Peace

FALSE_ALARM = 1e-4


def near_parallel(width, angle=0.1):
    """Return Soare's arms and θ = 2e_1."""
    extra = np.zeros(width)
    extra[:2] = math.cos(angle), math.sin(angle)
    return Environment(ArmSet(np.vstack([np.eye(width), extra])), 2 * np.eye(width)[0])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "runs", "wrong"),
    [
        # Wrong of the 21,000 released runs at T = 1010, d = 10, ω = .1 (FFTypeZero/bobw_linear).
        (ODLinBAI(1010), 1000, 9317),
        (GBAI(1010), 1000, 3411),
        (Peace(1010), 500, 1786),
        (P1Peace(1010), 500, 2020),
    ],
)
def test_errors_are_those_of_the_released_curves(policy, runs, wrong):
    result = simulate(policy, near_parallel(10), horizon=1010, replications=runs, seed=7)
    mine = int(np.count_nonzero(result.decision.declared != 0))
    table = [[mine, runs - mine], [wrong, 21_000 - wrong]]
    assert scipy.stats.fisher_exact(table).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_adjacent_bai_errs_as_often_as_the_law_of_its_estimate_says():
    # No code was released. Given the counts, least squares is normal around θ with covariance A⁻¹.
    environment = near_parallel(10)
    features = environment.arms.features
    runs = 1000
    result = simulate(AdjacentBAI(1010), environment, horizon=1010, replications=runs, seed=7)
    mine = int(np.count_nonzero(result.decision.declared != 0))
    rng = np.random.default_rng(8)
    design = adjacent_design(environment.arms)[0]
    wrong = 0
    for counts in rng.multinomial(1010, design / design.sum(), size=10_000):
        covariance = np.linalg.inv((features * counts[:, None]).T @ features)
        estimate = environment.theta + np.linalg.cholesky(covariance) @ rng.standard_normal(10)
        wrong += int(np.argmax(features @ estimate) != 0)
    table = [[mine, runs - mine], [wrong, 10_000 - wrong]]
    assert scipy.stats.fisher_exact(table).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_lingape_stops_when_the_released_code_does():
    # Twelve runs of the authors' script (liyuan9988/LinGapE) with ω = .1 and ε = the gap, seeds 1 to 12.
    released = [3940, 3016, 2586, 3943, 3075, 3391, 2905, 3581, 2820, 2668, 3711, 2635]
    policy = LinGapE(0.05, epsilon=2 * (1 - math.cos(0.1)))
    environment = near_parallel(5)
    result = simulate(policy, environment, horizon=20_000, replications=200, seed=1, stop_when_declared=True)
    assert scipy.stats.ks_2samp(result.stop_times, released).pvalue > FALSE_ALARM
    assert scipy.stats.ttest_ind(result.stop_times, released, equal_var=False).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_lazy_track_and_stop_stops_when_the_released_code_does():
    # Thirty runs of a transcript of the released class, seeds 1 to 30, d = 10, ω = .2, δ = .1. It draws arms
    # that span the features; here it was given e_1 to e_10, which ours takes, because the threshold depends
    # on them.
    released = [
        *(1226, 1888, 1921, 1990, 2058, 2161, 2169, 2255, 2266, 2385, 2391, 2401, 2532, 2574, 2712),
        *(2724, 2842, 2953, 2978, 3054, 3060, 3097, 3192, 3318, 3473, 3599, 3685, 3980, 4302, 4567),
    ]
    result = simulate(
        LazyTrackAndStop(0.1),
        near_parallel(10, 0.2),
        horizon=100_000,
        replications=200,
        seed=1,
        stop_when_declared=True,
    )
    assert scipy.stats.ks_2samp(result.stop_times, released).pvalue > FALSE_ALARM
    assert scipy.stats.ttest_ind(result.stop_times, released, equal_var=False).pvalue > FALSE_ALARM
