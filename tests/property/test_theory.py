"""What the paper's sizes and bounds must do whatever the numbers."""

from hypothesis import given
from hypothesis import strategies as st

from orthobandit.theory import (
    adaptive_phase_rounds,
    adaptive_regret_bound,
    bai_rounds,
    error_bound,
    experiments_phase_rounds,
    gap_regret_bound,
    pac_epsilon,
    pac_rounds,
    regret_bound,
    theory_phase_rounds,
)

deltas = st.floats(1e-300, 1, exclude_max=True)
dimensions = st.integers(1, 10**4)
counts = st.integers(1, 10**9)
gaps = st.floats(1e-200, 2)


@given(epsilon=gaps, factor=st.floats(1.01, 100), delta=deltas, dimension=dimensions, count=counts)
def test_a_coarser_claim_needs_no_more_rounds(epsilon, factor, delta, dimension, count):
    for setting in ((delta, dimension, count), (delta, dimension)):
        assert pac_rounds(epsilon * factor, *setting) <= pac_rounds(epsilon, *setting)


@given(rounds=st.integers(1, 2**62), delta=deltas, dimension=dimensions, count=counts | st.none())
def test_pac_epsilon_inverts_pac_rounds(rounds, delta, dimension, count):
    epsilon = pac_epsilon(rounds, delta, dimension, count)
    assert pac_rounds(epsilon, delta, dimension, count) <= rounds
    assert pac_rounds(epsilon * (1 - 1e-12), delta, dimension, count) > rounds


@given(phase=st.integers(1, 300), delta=deltas, dimension=dimensions, count=counts)
def test_phases_grow_and_the_schedules_are_ordered(phase, delta, dimension, count):
    setting = (delta, dimension, count)
    lengths = (experiments_phase_rounds, adaptive_phase_rounds, theory_phase_rounds)
    now = [length(phase, *setting) for length in lengths]
    later = [length(phase + 1, *setting) for length in lengths]
    assert 1 <= now[0] <= now[1] <= now[2]
    # ε halves and every logarithm grows: about four times as long, at least twice.
    assert all(2 * a <= b for a, b in zip(now, later, strict=True))


@given(gap=gaps, delta=deltas, dimension=dimensions, count=counts)
def test_a_smaller_gap_costs_more(gap, delta, dimension, count):
    setting = (delta, dimension, count)
    assert bai_rounds(gap / 2, *setting) > bai_rounds(gap, *setting) or gap > 1
    assert gap_regret_bound(gap / 2, *setting) > gap_regret_bound(gap, *setting) > 0
    assert bai_rounds(gap, *setting, C3=1.0) <= bai_rounds(gap, *setting)


@given(horizon=st.integers(1, 10**12), delta=deltas, dimension=dimensions, count=counts)
def test_regret_bounds_grow_with_the_horizon(horizon, delta, dimension, count):
    setting = (delta, dimension, count)
    assert 0 < regret_bound(horizon, *setting) < regret_bound(2 * horizon, *setting)
    assert 0 < adaptive_regret_bound(horizon, *setting) <= regret_bound(horizon, *setting)


@given(L=st.floats(1e-6, 1e6), M=st.floats(1, 1e6), rounds=st.integers(10, 10**12), dimension=dimensions)
def test_the_error_shrinks_with_more_rounds(L, M, rounds, dimension):
    assert error_bound(L, M, 2 * rounds, 0.05, dimension) < error_bound(L, M, rounds, 0.05, dimension)
    assert error_bound(4 * L, M, rounds, 0.05, dimension) > error_bound(L, M, rounds, 0.05, dimension)
