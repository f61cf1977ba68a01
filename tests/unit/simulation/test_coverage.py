"""When claims of anytime elimination fail, and that a broken claim is noticed."""

from dataclasses import dataclass

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Environment
from orthobandit.errors import ParameterError
from orthobandit.estimate import NoBaseline
from orthobandit.simulation import Gaussian, Sine, exact_gap, misses

POLICY = AnytimeElimination(0.1, baseline=NoBaseline(), growth=0.5)


def test_runs_end_at_a_declaration_or_at_the_horizon():
    clear = misses(POLICY, exact_gap(2, 3, 1.0, seed=1), horizon=5000, replications=3)
    assert np.all(clear.rounds < 5000)
    tied = Environment(ArmSet.one_hot(2), [0.3, 0.3 - 1e-6], Sine(), Gaussian(1.0))
    assert misses(POLICY, tied, horizon=700, replications=3).rounds.tolist() == [700] * 3


def test_a_run_depends_on_its_own_number_alone():
    environment = exact_gap(3, 5, 0.05, seed=2, shift=Sine())
    whole = misses(POLICY, environment, horizon=2000, replications=6, seed=4)
    part = misses(POLICY, environment, horizon=2000, replications=2, seed=4, first=3)
    assert np.array_equal(whole.rounds[3:5], part.rounds)
    assert np.array_equal(whole.first[3:5], part.first)
    assert np.array_equal(whole.last[3:5], part.last)


@dataclass(frozen=True)
class TooSure(AnytimeElimination):
    """Claims that every arm is worse than every other by a thousand, from round 300 to round 600."""

    def upper_bounds(self, state, *, of=None, over=None):
        bounds = super().upper_bounds(state, of=of, over=over)
        during = (state.rounds >= 300) & (state.rounds < 600)
        return np.where(during[:, np.newaxis], -1000.0, bounds)


def test_wrong_bounds_are_dated():
    environment = exact_gap(3, 5, 0.001, seed=2, shift=Sine())
    found = misses(TooSure(0.1, baseline=NoBaseline(), growth=0.2), environment, horizon=2000, replications=2)
    assert np.all((found.first >= 300) & (found.first < 400))
    assert np.all((found.last > 450) & (found.last < 600))


@dataclass(frozen=True)
class Careless(AnytimeElimination):
    """Drops the best arm, number 1, when 200 rounds are over, and keeps its bounds to itself."""

    def observe(self, state, plan, tally):
        after = super().observe(state, plan, tally)
        active = np.array(after.active)
        active[after.rounds >= 200, 1] = False
        object.__setattr__(after, "active", active)
        return after

    def upper_bounds(self, state, **_):
        return np.full(state.active.shape, np.inf)


def test_a_dropped_best_arm_is_dated():
    environment = Environment(ArmSet.one_hot(3), [0.0, 0.01, 0.0], Sine(), Gaussian(1.0))
    found = misses(Careless(baseline=NoBaseline()), environment, horizon=500, replications=2)
    assert np.all((found.first >= 200) & (found.first < 260))
    assert np.array_equal(found.first, found.last)


def test_wrong_sizes_are_refused():
    with pytest.raises(ParameterError, match="horizon=0"):
        misses(POLICY, exact_gap(2, 3, 0.5, seed=1), horizon=0, replications=1)
    with pytest.raises(ParameterError, match="replications=0"):
        misses(POLICY, exact_gap(2, 3, 0.5, seed=1), horizon=10, replications=0)
