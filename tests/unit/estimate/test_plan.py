"""Plans: what is accepted, what is refused and in which words."""

import re

import numpy as np
import pytest

from orthobandit import Plan
from orthobandit.errors import ParameterError, ProbabilityError
from orthobandit.estimate import Centre
from orthobandit.estimate.plan import checked_probabilities


def test_one_plan():
    plan = Plan([0.5, 0.25, 0.25], rounds=100)
    assert plan.count == 3
    assert plan.probabilities.tolist() == [0.5, 0.25, 0.25]
    assert plan.rounds.shape == ()
    assert int(plan.rounds) == 100


def test_one_number_of_rounds_serves_a_whole_batch():
    plan = Plan([[1.0, 0.0], [0.5, 0.5]], rounds=7)
    assert plan.count == 2
    assert plan.rounds.tolist() == [7, 7]


def test_replications_may_have_their_own_rounds():
    assert Plan([[1.0, 0.0], [0.5, 0.5]], rounds=[3, 0]).rounds.tolist() == [3, 0]


@pytest.mark.parametrize("given", [[1.0], [1, 0], [True, False], np.float32([0.25, 0.75]), [0.1] * 10])
def test_distributions_in_any_real_type_are_accepted(given):
    assert checked_probabilities(given).dtype == np.float64


def test_a_sum_within_the_tolerance_is_kept_as_it_is():
    given = np.array([0.5, 0.5 + 5e-10])
    assert np.array_equal(Plan(given, rounds=1).probabilities, given)


def test_arrays_are_copied_and_read_only():
    given = np.array([0.5, 0.5])
    plan = Plan(given, rounds=np.array(3))
    given[0] = 9.0
    assert plan.probabilities.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        plan.probabilities[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        plan.rounds[...] = 1


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([0.5, 0.6], "probabilities sum to 1.1; they must sum to 1"),
        ([0.5, 0.5000001], "probabilities sum to 1.0000001; they must sum to 1"),
        ([0.0, 0.0], "probabilities sum to 0; they must sum to 1"),
        ([[0.5, 0.5], [0.5, 0.4]], "probabilities[1] sum to 0.9; they must sum to 1"),
        ([[[1.0], [1.0]], [[1.0], [2.0]]], "probabilities[1, 1] sum to 2; they must sum to 1"),
        ([1.25, -0.25], "probabilities[1] is -0.25; every probability must be a number ≥ 0"),
        ([[1.0, 0.0], [np.nan, 1.0]], "probabilities[1, 0] is nan; every probability must be a number ≥ 0"),
        ([np.inf, 0.0], "probabilities[0] is inf; every probability must be a number ≥ 0"),
        ([], "probabilities have shape (0,); (..., K) with K ≥ 1 is needed"),
        (1.0, "probabilities have shape (); (..., K) with K ≥ 1 is needed"),
        ([[1.0], [0.5, 0.5]], "probabilities are not a table of real numbers; give one probability per arm"),
        (["1.0"], "probabilities are not a table of real numbers"),
        ([0.5, None], "probabilities are not a table of real numbers"),
        (np.array([1.0 + 0j]), "probabilities are not a table of real numbers"),
    ],
)
def test_what_is_not_a_distribution_is_refused(probabilities, message):
    with pytest.raises(ProbabilityError, match=re.escape(message)):
        Plan(probabilities, rounds=1)


def test_a_refused_argument_is_left_as_it_was():
    given = np.array([0.5, 0.6])
    with pytest.raises(ProbabilityError):
        Plan(given, rounds=1)
    assert given.tolist() == [0.5, 0.6]
    assert given.flags.writeable


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        (-1, "rounds=-1 must be whole numbers from 0"),
        (2.5, "rounds=2.5 must be whole numbers from 0"),
        (True, "rounds=True must be whole numbers from 0"),
        ("ten", "rounds='ten' must be whole numbers from 0"),
        (2**63, "rounds=9223372036854775808 must be whole numbers from 0 to 2⁶³ − 1"),
        ([1, 2, 3], "rounds has shape (3,); it must fit the batch (2,)"),
        ([1, [2]], "rounds=[1, [2]] is ragged; it must fit the batch (2,)"),
    ],
)
def test_rounds_that_cannot_be_counted_are_refused(rounds, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        Plan([[0.5, 0.5], [0.5, 0.5]], rounds=rounds)


def test_the_longest_plan_is_kept_exactly():
    assert int(Plan([1.0], rounds=2**63 - 1).rounds) == 2**63 - 1


@pytest.mark.parametrize(
    ("forecasts", "message"),
    [
        ([0.0, np.nan], "forecasts row 1 is nan"),
        ([[0.0], [1.0]], r"forecasts have shape \(2, 1\) for rewards of shape \(2,\)"),
        ([0.0, 1.0, 2.0], r"forecasts have shape \(3,\)"),
    ],
)
def test_forecasts_that_are_none_are_refused_by_name(forecasts, message):
    plan = Plan([0.5, 0.5], 2, Centre(np.zeros(2), np.array(-np.inf), np.array(np.inf)))
    with pytest.raises(ParameterError, match=message):
        plan.residuals(np.array([0, 1]), [1.0, 2.0], forecasts)


def test_forecasts_without_a_centre_are_refused():
    with pytest.raises(ParameterError, match="forecasts mean nothing to a plan without a centre"):
        Plan([0.5, 0.5], 2).residuals(np.array([0, 1]), [1.0, 2.0], [0.5, 0.5])


def test_draws_follow_the_probabilities_and_never_an_arm_without_any():
    plan = Plan([0.7, 0.0, 0.3], rounds=20_000)
    drawn = plan.draw(3)
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    # Six standard deviations of a binomial: 2e-9.
    assert abs(counts[0] - 14_000) < 6 * np.sqrt(20_000 * 0.7 * 0.3)


def test_a_seed_draws_the_same_again_and_a_generator_goes_on():
    plan, random = Plan([0.5, 0.5], rounds=50), np.random.default_rng(4)
    assert np.array_equal(plan.draw(4), plan.draw(4))
    first = plan.draw(random)
    assert np.array_equal(first, plan.draw(4))
    assert not np.array_equal(first, plan.draw(random))
    assert plan.draw(0, 7).shape == (7,)


def test_a_batch_is_drawn_from_one_by_one():
    plan = Plan([[0.5, 0.5], [1.0, 0.0]], rounds=[3, 4])
    with pytest.raises(ParameterError, match=r"batch \(2,\); draw from plan.at\(place\)"):
        plan.draw(0)
    assert plan.at((1,)).draw(0).tolist() == [0, 0, 0, 0]
    with pytest.raises(ParameterError, match="random=-1 must be a whole number"):
        plan.at((1,)).draw(-1)
