"""When a race may end: what moves the forecast, and in which direction."""

from dataclasses import replace

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet
from orthobandit.policy.anytime.forward import FAR_FROM_START, ends_of, race_for_gap, race_of

POLICY = AnytimeElimination()


def guess(gap, arms=2, **settings):
    return race_for_gap(AnytimeElimination(**settings), ArmSet.one_hot(arms), gap, 0.09)


def test_a_gap_of_half_the_size_takes_about_four_times_as_long():
    large, small = (ends_of(guess(gap), FAR_FROM_START) for gap in (0.02, 0.01))
    assert large.soonest < large.middle < large.latest
    assert 3.0 < small.middle / large.middle < 5.5


def test_the_same_state_has_the_same_forecast():
    assert ends_of(guess(0.01)) == ends_of(guess(0.01))


def test_more_arms_take_longer_and_an_epsilon_ends_sooner():
    two, many = (ends_of(guess(0.02, arms), FAR_FROM_START) for arms in (2, 6))
    assert many.middle > two.middle
    loose = ends_of(guess(0.005, epsilon=0.02), FAR_FROM_START)
    assert loose.middle < ends_of(guess(0.005), FAR_FROM_START).middle


def test_nothing_ends_before_enough_was_seen_to_claim_anything():
    race = guess(0.05)
    waiting = ends_of(replace(race, wait=30_000.0), FAR_FROM_START)
    assert waiting.soonest + race.rounds >= 30_000.0


def test_where_a_fifth_of_the_paths_does_not_end_no_latest_end_is_named():
    race = replace(guess(0.01), errors=0.02 * np.eye(2), estimates=np.zeros(2))
    ending = ends_of(race)
    assert ending.latest == np.inf


@pytest.mark.parametrize("state", [POLICY.start(ArmSet.one_hot(2)), POLICY.start(ArmSet.one_hot(1))])
def test_there_is_no_race_before_the_first_evidence_and_none_that_is_over(state):
    assert race_of(POLICY, state) is None


def test_arms_that_share_features_go_on_with_their_split():
    race = race_for_gap(POLICY, ArmSet([[0.0], [1.0], [2.0]]), 0.05, 0.09)
    assert race.split.shape == (3, 1)
    assert np.isfinite(ends_of(race, FAR_FROM_START).middle)
