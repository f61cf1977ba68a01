"""The paper's formulas, written out again as printed and with numbers small enough for floats."""

from math import ceil, log, sqrt

import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.theory import (
    adaptive_phase_rounds,
    adaptive_regret_bound,
    bai_rounds,
    error_bound,
    experiments_phase_rounds,
    gap_regret_bound,
    pac_epsilon,
    pac_rounds,
    phase_ridge,
    phases_needed,
    regret_bound,
    theory_phase_rounds,
)

SIZES = [(1, 1), (1, 2), (2, 10), (5, 10), (20, 30), (64, 1000)]


def printed_theory(phase, delta, d, K):
    e = 2.0**-phase
    share = phase * (phase + 1) / delta
    return ceil(d / e**2 * log(d * K * share / e) + d**1.5 / e * log(d * K * share))


def printed_free(phase, delta, d):
    e = 2.0**-phase
    return ceil(d**2 / e**2 * log(d * phase * (phase + 1) / (delta * e)))


def printed_experiments(phase, delta, d, K):
    e = 2.0**-phase
    with_arms = ceil(d * log(d * K * phase / (delta * e)) / e**2 + d**1.5 * log(d * K * phase / delta) / e)
    return min(with_arms, ceil(d**2 / e**2 * log(d * phase / (e * delta))))


@pytest.mark.parametrize(("d", "K"), SIZES)
@pytest.mark.parametrize("phase", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_phase_lengths_are_as_printed(phase, delta, d, K):
    setting = (phase, delta, d, K)
    with_arms, free = printed_theory(*setting), printed_free(phase, delta, d)
    assert theory_phase_rounds(*setting) == 4 * with_arms
    assert theory_phase_rounds(*setting, C2=3) == 12 * with_arms
    assert adaptive_phase_rounds(*setting) == 4 * min(with_arms, free)
    assert adaptive_phase_rounds(*setting, C2=3, C3=2) == 4 * min(3 * with_arms, 2 * free)
    assert experiments_phase_rounds(*setting) == printed_experiments(*setting)
    assert experiments_phase_rounds(*setting, scale=8) == 8 * printed_experiments(*setting)


def test_phase_length_by_hand():
    # d = K = 1, δ = 2/e (any phase-1 share): ε = 1/2, ℓ(ℓ+1)/δ = e, so ⌈4·(1 + log 2) + 2·1⌉ = 9.
    assert theory_phase_rounds(1, 2 / np.e, 1, 1) == 36
    # With δ = 1/e the experiments' ℓ/δ is e: min(⌈4(1 + log 2) + 2⌉, ⌈4(1 + log 2)⌉) = 7.
    assert experiments_phase_rounds(1, 1 / np.e, 1, 1) == 7


def test_fractional_constants_round_up():
    whole = experiments_phase_rounds(1, 0.05, 5, 10)
    assert experiments_phase_rounds(1, 0.05, 5, 10, scale=0.5) == ceil(whole / 2)
    assert theory_phase_rounds(1, 0.05, 5, 10, C2=1e-9) == 1


@pytest.mark.parametrize("phase", [31, 100, 600, 2000])
def test_late_phases_do_not_overflow(phase):
    rounds = theory_phase_rounds(phase, 0.05, 20, 30)
    assert isinstance(rounds, int)
    # Leading term 4·d·4^ℓ·log(·); the logarithm is at most 10ℓ here.
    assert 80 * 4**phase < rounds < 80 * 4**phase * 10 * phase
    assert experiments_phase_rounds(phase, 0.05, 20, 30) < rounds
    assert adaptive_phase_rounds(phase, 0.05, 20, 30) <= rounds


@pytest.mark.parametrize(("d", "K"), SIZES)
@pytest.mark.parametrize("epsilon", [0.9, 0.25, 1e-3])
def test_pac_rounds_are_as_printed(epsilon, d, K):
    delta = 0.05
    leading, lower_order = (
        d * log(d * K / (epsilon * delta)) / epsilon**2,
        d**1.5 * log(d * K / delta) / epsilon,
    )
    assert pac_rounds(epsilon, delta, d, K) == ceil(leading + lower_order)
    assert pac_rounds(epsilon, delta, d, K, C=2.5) == ceil(2.5 * (leading + lower_order))
    assert pac_rounds(epsilon, delta, d) == ceil(d**2 / epsilon**2 * log(d / (epsilon * delta)))


def test_pac_rounds_at_the_edges():
    assert pac_rounds(1e-200, 0.05, 3, 10) > 10**400
    assert pac_rounds(1e9, 0.5, 1) == 1
    assert pac_rounds(0.5, 5e-324, 3, 10) > pac_rounds(0.5, 1e-300, 3, 10)


@pytest.mark.parametrize("rounds", [1, 2, 307, 10**6, 10**15, 2**62])
@pytest.mark.parametrize("count", [None, 10])
def test_pac_epsilon_is_the_smallest(rounds, count):
    epsilon = pac_epsilon(rounds, 0.05, 5, count)
    assert pac_rounds(epsilon, 0.05, 5, count) <= rounds
    assert pac_rounds(np.nextafter(epsilon, 0), 0.05, 5, count) > rounds


def test_error_bound_is_as_printed():
    L, M, t, delta, d = 4.0, 9.0, 1000, 0.05, 5
    printed = sqrt(L * log(t / delta)) / sqrt(t) + sqrt(L) * M * log(d / delta) / t
    assert error_bound(L, M, t, delta, d) == pytest.approx(printed, rel=1e-14)
    assert error_bound(L, M, t, delta, d, C=3) == pytest.approx(3 * printed, rel=1e-14)
    assert error_bound(0.0, np.inf, t, delta, d) == 0.0
    assert error_bound(np.inf, M, t, delta, d) == np.inf


def test_phase_ridge_is_as_printed():
    assert phase_ridge(3, 1000, 0.05) == pytest.approx(log(1000 * 3 * 4 / 0.05), rel=1e-14)


@pytest.mark.parametrize(
    ("gap", "phases"), [(2.0, 1), (1.0, 1), (0.75, 2), (0.5, 2), (0.49, 3), (0.25, 3), (2.0**-40, 41)]
)
def test_phases_needed(gap, phases):
    assert phases_needed(gap) == phases
    assert 2 * 2.0**-phases <= gap


def test_bai_rounds_add_up_the_phases():
    expected = 4 * sum(printed_theory(phase, 0.05, 5, 10) for phase in (1, 2, 3))
    assert bai_rounds(0.3, 0.05, 5, 10) == expected
    adaptive = sum(adaptive_phase_rounds(phase, 0.05, 2, 1000) for phase in (1, 2, 3))
    assert bai_rounds(0.3, 0.05, 2, 1000, C3=1.0) == adaptive


def test_regret_bounds_are_as_printed():
    T, delta, d, K, gap = 20_000, 0.05, 20, 30, 0.1
    minimax = (
        sqrt(d * T * log(K / delta)) + sqrt(d * T) * log(T) + d**1.5 * log(d * K * T / delta) * log(T / d)
    )
    assert regret_bound(T, delta, d, K) == pytest.approx(minimax, rel=1e-13)
    assert regret_bound(T, delta, d, K, C=2) == pytest.approx(2 * minimax, rel=1e-13)
    with_gap = (d / gap + d**1.5) * log(d * K / (delta * gap)) * log(1 / gap)
    assert gap_regret_bound(gap, delta, d, K) == pytest.approx(with_gap, rel=1e-13)
    free = d * sqrt(T) * log(T / d) * log(d * T / delta)
    assert adaptive_regret_bound(T, delta, d, K) == pytest.approx(min(minimax, free), rel=1e-13)
    assert adaptive_regret_bound(1000, delta, 5, 10**300) == pytest.approx(
        5 * sqrt(1000) * log(200) * log(5000 / delta), rel=1e-13
    )


def test_regret_bounds_stay_positive_where_the_printed_logarithms_vanish():
    assert regret_bound(1, 0.05, 20, 30) > 0
    assert adaptive_regret_bound(20, 0.05, 20, 30) > 0
    assert gap_regret_bound(1.0, 0.05, 5, 10) == pytest.approx(
        (5 + 5**1.5) * (log(50 / 0.05) + log(2)) * log(2), rel=1e-13
    )


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2.0, float("nan"), "0.1", None])
def test_delta_must_be_a_fraction(delta):
    for call in (
        lambda: pac_rounds(0.1, delta, 2, 3),
        lambda: theory_phase_rounds(1, delta, 2, 3),
        lambda: experiments_phase_rounds(1, delta, 2, 3),
        lambda: regret_bound(10, delta, 2, 3),
        lambda: gap_regret_bound(0.1, delta, 2, 3),
        lambda: error_bound(1, 1, 10, delta, 2),
        lambda: phase_ridge(1, 10, delta),
    ):
        with pytest.raises(ParameterError, match="delta="):
            call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: pac_rounds(0.0, 0.1, 2, 3), "epsilon=0.0"),
        (lambda: pac_rounds(float("inf"), 0.1, 2), "epsilon=inf"),
        (lambda: pac_rounds(0.1, 0.1, 0, 3), "dimension=0"),
        (lambda: pac_rounds(0.1, 0.1, 2.5, 3), "dimension=2.5"),
        (lambda: pac_rounds(0.1, 0.1, 2, 0), "count=0"),
        (lambda: pac_rounds(0.1, 0.1, 2, 3, C=0), "C=0"),
        (lambda: pac_epsilon(0, 0.1, 2), "rounds=0"),
        (lambda: theory_phase_rounds(0, 0.1, 2, 3), "phase=0"),
        (lambda: theory_phase_rounds(True, 0.1, 2, 3), "phase=True"),
        (lambda: theory_phase_rounds(1, 0.1, 2, None), "count=None"),
        (lambda: theory_phase_rounds(1, 0.1, 2, 3, C2=-1), "C2=-1"),
        (lambda: adaptive_phase_rounds(1, 0.1, 2, 3, C3=float("nan")), "C3=nan"),
        (lambda: experiments_phase_rounds(1, 0.1, 2, 3, scale=-1), "scale=-1"),
        (lambda: experiments_phase_rounds(0, 0.1, 2, 3), "phase=0"),
        (lambda: regret_bound(0, 0.1, 2, 3), "horizon=0"),
        (lambda: adaptive_regret_bound(0, 0.1, 2, 3), "horizon=0"),
        (lambda: gap_regret_bound(0.0, 0.1, 2, 3), "gap=0.0"),
        (lambda: bai_rounds(-1.0, 0.1, 2, 3), "gap=-1.0"),
        (lambda: error_bound(-1.0, 1, 10, 0.1, 2), "L=-1.0"),
        (lambda: error_bound(1.0, float("nan"), 10, 0.1, 2), "M=nan"),
        (lambda: error_bound(1.0, 1, 0, 0.1, 2), "rounds=0"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ParameterError, match=name):
        call()


def test_with_the_deltas_of_theorem_18_no_number_of_arms_that_can_be_run_shortens_late_phases():
    # d = 2, T = 2^20, δ = 1/T². The fewest arms, as a power of 2, from which a phase is shorter than with K.
    delta = 2.0**-40

    def fewest(phase):
        return next(
            power
            for power in range(1, 100)
            if adaptive_phase_rounds(phase, delta, 2, 2**power)
            < theory_phase_rounds(phase, delta, 2, 2**power)
        )

    assert [fewest(phase) for phase in (1, 2, 3, 4, 5, 8)] == [8, 23, 34, 42, 47, 55]
    # The first two phases, which such numbers can shorten, have few of the rounds.
    ends = np.cumsum([theory_phase_rounds(phase, delta, 2, 2**14) for phase in range(1, 5)])
    assert ends[1] < 2**20 / 100
