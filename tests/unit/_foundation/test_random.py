"""Streams that depend on nothing but their name, and arms drawn from exact slices of [0, 1)."""

import re

import numpy as np
import pytest

from orthobandit._foundation.random import arm_at, cumulative_probabilities, draw_arms, stream
from orthobandit.errors import ParameterError


def numbers(*name):
    return stream(*name).random(4).tolist()


def test_the_same_name_gives_the_same_numbers():
    assert numbers(7, "noise", 3) == numbers(7, "noise", 3)


def test_asking_for_other_streams_changes_nothing():
    alone = numbers(7, "noise", 3)
    numbers(7, "arms", 3), numbers(7, "noise", 2)
    assert numbers(7, "noise", 3) == alone


def test_numbers_stay_the_same_from_version_to_version():
    assert stream(0, "noise").integers(2**32, size=3).tolist() == [3170261399, 559929065, 2462053098]
    assert stream(7, "arms", 3, 1).integers(2**32, size=3).tolist() == [2534653148, 2662187737, 940689861]


def test_different_names_give_different_numbers():
    names = [
        (seed, purpose, *indices)
        for seed in (0, 1, 2**32, 2**64)
        for purpose in ("noise", "arms", "", "noise ")
        for indices in ((), (0,), (1,), (0, 0), (0, 1), (1, 0), (2**32 - 1,))
    ]
    assert len({tuple(numbers(*name)) for name in names}) == len(names)


@pytest.mark.parametrize("name", [(-1, "noise"), (0, "noise", -1), (0, "noise", 3, 2**32)])
def test_names_out_of_range_are_refused(name):
    is_seed = name[0] < 0
    message = (
        f"seed={name[0]} must be a whole number of at least 0"
        if is_seed
        else f"indices={name[2:]} must lie in [0, 2³²)"
    )
    with pytest.raises(ParameterError, match=re.escape(message)):
        stream(*name)


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ([1.0], [1.0]),
        ([0.5, 0.25, 0.25], [0.5, 0.75, 1.0]),
        ([0.0, 1.0, 0.0], [0.0, 1.0, 1.0]),
        ([0.5, 0.5 - 1e-10, 0.0], [0.5, 1.0, 1.0]),
        ([0.5, 0.5 + 1e-10, 0.0], [0.5, 1.0, 1.0]),
        ([[1.0, 0.0], [0.25, 0.75]], [[1.0, 1.0], [0.25, 1.0]]),
    ],
)
def test_running_sums_end_in_exactly_one(probabilities, expected):
    assert cumulative_probabilities(np.array(probabilities)).tolist() == expected


def test_running_sums_never_fall():
    # Ten times 0.1 is a little less than one; eleven times 1/11 a little more.
    for count in (10, 11, 49, 1000):
        cumulative = cumulative_probabilities(np.full(count, 1 / count))
        assert cumulative[-1] == 1.0
        assert np.all(np.diff(cumulative) >= 0)


@pytest.mark.parametrize(
    ("position", "arm"),
    [(0.0, 1), (0.25, 1), (np.nextafter(0.5, 0), 1), (0.5, 3), (0.75, 3), (np.nextafter(1.0, 0), 3)],
)
def test_the_slices_of_arms_are_half_open(position, arm):
    cumulative = cumulative_probabilities(np.array([0.0, 0.5, 0.0, 0.5, 0.0]))
    assert arm_at(cumulative, position) == arm


def test_drawn_arms_follow_the_stream():
    probabilities = np.array([0.2, 0.0, 0.3, 0.5])
    drawn = draw_arms(stream(1, "arms"), probabilities, 1000)
    positions = stream(1, "arms").random(1000)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == np.searchsorted(np.cumsum(probabilities), positions, side="right").tolist()


def test_drawing_in_parts_draws_the_same_arms():
    probabilities = np.array([0.2, 0.3, 0.5])
    whole = draw_arms(stream(1, "arms"), probabilities, 100)
    generator = stream(1, "arms")
    parts = [draw_arms(generator, probabilities, size) for size in (0, 1, 59, 40)]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_drawing_leaves_the_probabilities_alone():
    probabilities = np.array([0.5, 0.5 - 1e-10])
    draw_arms(stream(1, "arms"), probabilities, 10)
    assert probabilities.tolist() == [0.5, 0.5 - 1e-10]
