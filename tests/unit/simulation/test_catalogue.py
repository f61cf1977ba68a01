import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.simulation import (
    INSTANCES,
    NOISES,
    SHIFTS,
    Adaptive,
    CancelBest,
    Constant,
    Jumps,
    Limited,
    PushLeader,
    RandomWalk,
    Replay,
    Scaled,
    Sine,
    Trend,
    named_instance,
    named_noise,
    named_shift,
    within,
)

ROUNDS = 40_000


@pytest.mark.parametrize("name", [name for name in SHIFTS if not isinstance(named_shift(name), Adaptive)])
def test_no_path_exceeds_its_bound_nor_the_limit_it_is_brought_to(name):
    shift = named_shift(name)
    assert np.abs(shift.values(0, ROUNDS)).max() <= shift.bound
    bounded = within(shift)
    assert bounded.bound <= 1
    assert np.abs(bounded.values(0, ROUNDS)).max() <= 1
    assert np.any(bounded.values(0, ROUNDS)) == (name != "none")


def test_each_kind_is_brought_within_a_limit_in_its_own_way():
    assert within(Constant(0.5)) == Constant(0.5)
    assert within(Sine()) == Scaled(Sine(), 0.5)
    assert within(Trend()) == Limited(Trend())
    assert within(RandomWalk(), 0.5) == RandomWalk(limit=0.5)
    assert within(PushLeader(3.0), 2.0) == PushLeader(2.0)
    assert within(CancelBest(0.3), 2.0) == CancelBest(0.3)


def test_bounds_of_shifts_made_from_others():
    assert Replay([0.5, -3.0]).bound == 3
    assert Jumps(levels=(1.0, -2.0)).bound == 2
    assert Scaled(Sine(), -2.0, offset=1.0).bound == 5
    assert Scaled(Trend(), 0.0, offset=1.0).bound == 1
    assert Trend(slope=0.0, intercept=-2.0).bound == 2
    assert Limited(Trend(), 0.7).bound == 0.7


class Unruly(Adaptive):
    def values(self, past):
        return np.full(past.rounds.shape, 5.0)


def test_an_adversary_without_a_limit_cannot_be_bounded():
    with pytest.raises(ParameterError, match="no limit that could be set"):
        within(Unruly())
    with pytest.raises(ParameterError, match="limit=0"):
        within(Sine(), 0)


def test_names_take_settings_and_wrong_ones_are_refused():
    assert named_shift("constant") == Constant(1.0)
    assert named_shift("constant", level=2.0) == Constant(2.0)
    assert named_noise("gaussian", sigma=2.0).parameters == (2.0, 0.0, 0.0)
    assert all(named_noise(name) for name in NOISES)
    assert named_instance("one-hot", means=[0.0, 1.0]).best == 1
    for make, name in ((named_shift, "sinus"), (named_noise, "gauss"), (named_instance, "exact")):
        with pytest.raises(ParameterError, match="did you mean"):
            make(name)
    with pytest.raises(ParameterError, match="did you mean 'angle'"):
        named_instance("near-degenerate", angel=0.2)
    made = {"exact-gap", "near-degenerate", "one-hot", "uniform-sphere", "successor-sphere"}
    assert set(INSTANCES) == made
