"""Orthogonalised regression: cases by hand, the textbook formula, and pairs that do not fit."""

import re
from dataclasses import fields

import numpy as np
import pytest

from orthobandit import ArmSet, Estimate, Moments, OrthogonalRegression, Plan, Tally
from orthobandit.errors import ParameterError, ProbabilityError, RewardError, TallyError

# p = (1/2, 1/4, 1/4) has mean 1, so the centred features are −1, 0, 2.
LINE = ArmSet([[0.0], [1.0], [3.0]])
PLAN = Plan([0.5, 0.25, 0.25], rounds=4)
# Σ x̃x̃ᵀ = 2·1 + 1·0 + 1·4 = 6 and Σ x̃·reward = −2 + 0 + 2·4 = 6.
TALLY = Tally([2, 1, 1], [2.0, 1.0, 4.0], [2.0, 1.0, 16.0])


def textbook(arms, history, ridge):
    """Sum over rounds in the original features: (Σ x̃x̃ᵀ + βI)⁻¹ Σ x̃ r."""
    features = arms.features
    gram, moment = ridge * np.eye(features.shape[1]), np.zeros(features.shape[1])
    for plan, tally in history:
        centred = features - plan.probabilities @ features
        gram += np.einsum("k,ki,kj->ij", tally.counts, centred, centred)
        moment += tally.sums @ centred
    return np.linalg.solve(gram, moment)


def test_three_arms_on_a_line_by_hand():
    estimate = OrthogonalRegression(ridge=2.0).fit(LINE, [(PLAN, TALLY)])
    assert estimate.theta == pytest.approx([0.75])
    assert estimate.gaps == pytest.approx([2.25, 1.5, 0.0])
    assert int(estimate.best) == 2
    assert int(estimate.rounds) == 4


def test_a_ridge_answers_before_the_first_round():
    estimate = OrthogonalRegression(ridge=2.0).solve(LINE, Moments.zeros(LINE))
    assert estimate.gaps.tolist() == [0, 0, 0]
    assert estimate.theta.tolist() == [0]
    assert int(estimate.rounds) == 0
    batch = OrthogonalRegression(ridge=2.0).fit(LINE, [(PLAN, Tally.zeros(3, (2,)))])
    assert batch.gaps.tolist() == [[0, 0, 0]] * 2


def test_an_estimate_claims_no_interval():
    assert {field.name for field in fields(Estimate)} == {"gaps", "theta", "rounds"}


def test_the_default_ridge_is_log_of_rounds_over_delta():
    estimate = OrthogonalRegression(delta=0.1).fit(LINE, [(PLAN, TALLY)])
    assert estimate.theta == pytest.approx([6 / (6 + np.log(4 / 0.1))])
    assert OrthogonalRegression().fit(LINE, [(PLAN, TALLY)]).theta == pytest.approx([6 / (6 + np.log(80))])


def test_every_tally_is_centred_with_its_own_plan():
    # Uniform on {0, 1} has mean 1/2: x̃ = −1/2, 1/2; adds Σ x̃² = 1 and Σ x̃ r = (10 − 4)/2 = 3.
    second = Plan([0.5, 0.5, 0.0], rounds=4), Tally([2, 2, 0], [4.0, 10.0, 0.0], [8.0, 50.0, 0.0])
    estimate = OrthogonalRegression(ridge=2.0).fit(LINE, [(PLAN, TALLY), second])
    assert estimate.theta == pytest.approx([9 / 9])
    assert int(estimate.rounds) == 8


@pytest.mark.parametrize(
    "features",
    [
        [[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]],
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [5.0, 10.0, 15.0]],
        [[1.0, 0.0, 0.0, 7.0], [0.0, 1.0, 0.0, 7.0], [0.0, 0.0, 1.0, 7.0]],
        [[1.0, 1.0], [1.0, 1.0], [2.0, 0.0]],
    ],
    ids=["plane", "collinear", "more features than arms", "duplicates"],
)
def test_the_basis_of_the_hull_changes_nothing(features):
    arms = ArmSet(features)
    history = [(PLAN, TALLY), (Plan([0.2, 0.3, 0.5], 4), Tally([1, 1, 2], [1, 5, 3], [1, 25, 5]))]
    expected = textbook(arms, history, ridge=0.7)
    estimate = OrthogonalRegression(ridge=0.7).fit(arms, history)
    values = arms.features @ expected
    assert estimate.theta == pytest.approx(expected, abs=1e-12)
    assert estimate.gaps == pytest.approx(values.max() - values, abs=1e-12)


def test_plain_arms_without_features():
    arms = ArmSet.one_hot(3)
    history = [(PLAN, TALLY)]
    values = textbook(arms, history, ridge=0.3)
    assert OrthogonalRegression(ridge=0.3).fit(arms, history).gaps == pytest.approx(values.max() - values)


def test_a_single_arm_has_no_gap():
    estimate = OrthogonalRegression().fit(ArmSet([[3.0]]), [(Plan([1.0], 2), Tally([2], [1.0], [1.0]))])
    assert estimate.gaps.tolist() == [0.0]
    assert int(estimate.best) == 0
    assert estimate.theta.tolist() == [0.0]


def test_the_first_of_equal_arms_is_called_best():
    tally = Tally([1, 1, 1], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    plan = Plan([1 / 3, 1 / 3, 1 / 3], 3)
    assert int(OrthogonalRegression().fit(ArmSet([[1.0], [1.0], [1.0]]), [(plan, tally)]).best) == 0


def test_one_plan_serves_a_batch_of_tallies():
    batch = Tally([[2, 1, 1], [1, 1, 2]], [[2, 1, 4], [0, 0, 0]], [[2, 1, 16], [0, 0, 0]])
    estimate = OrthogonalRegression(ridge=2.0).fit(LINE, [(PLAN, batch)])
    assert estimate.gaps.shape == (2, 3)
    assert estimate.gaps[0] == pytest.approx([2.25, 1.5, 0.0])
    assert estimate.gaps[1] == pytest.approx([0.0, 0.0, 0.0])
    assert estimate.rounds.tolist() == [4, 4]


def test_moments_of_nothing_add_nothing():
    moments = Moments.of(LINE, PLAN, TALLY)
    sums = Moments.zeros(LINE) + moments
    assert np.array_equal(sums.gram, moments.gram)
    assert np.array_equal(sums.moment, moments.moment)
    assert int(sums.rounds) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge=0.0 must be a positive number"),
        ({"ridge": -1.0}, "ridge=-1.0 must be a positive number"),
        ({"ridge": np.nan}, "ridge=nan must be a positive number"),
        ({"ridge": np.inf}, "ridge=inf must be a positive number"),
        ({"delta": 0.0}, "delta=0.0 must lie strictly between 0 and 1"),
        ({"delta": 1.0}, "delta=1.0 must lie strictly between 0 and 1"),
        ({"delta": np.nan}, "delta=nan must lie strictly between 0 and 1"),
    ],
)
def test_settings_without_meaning_are_refused(settings, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        OrthogonalRegression(**settings)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([], "history is empty; at least one (plan, tally) pair is needed"),
        (
            [(PLAN, Tally.zeros(3))],
            "the tally has no rounds, so that the default ridge log(t/δ) does not exist",
        ),
        ([(PLAN, Tally.zeros(2))], "the tally has 2 arms; the arm set has 3"),
        ([(PLAN, TALLY), (PLAN, Tally.zeros(4))], "the tally has 4 arms; the arm set has 3"),
        (
            [(Plan([0.5, 0.5, 0.0], 4), TALLY)],
            "arm 2 was played 1 times but its plan gives it probability 0; pair every tally with the plan",
        ),
        (
            [(Plan([[0.5, 0.25, 0.25]] * 2, 4), TALLY)],
            "the plan has batch (2,) and the tally (); pair every tally with the plan",
        ),
        (
            [(PLAN, TALLY), (PLAN, Tally.zeros(3, batch=(2,)))],
            "moments of shape (1,) and (2, 1) cannot be merged; both must be of the same arms and batch",
        ),
    ],
)
def test_a_history_that_does_not_fit_is_refused(history, message):
    with pytest.raises(TallyError, match=re.escape(message)):
        OrthogonalRegression().fit(LINE, history)


def test_a_plan_of_other_arms_is_refused():
    message = "the plan has 2 probabilities for 3 arms; give one per arm"
    with pytest.raises(ProbabilityError, match=re.escape(message)):
        OrthogonalRegression().fit(LINE, [(Plan([0.5, 0.5], 4), TALLY)])


def test_moments_of_other_arms_are_refused():
    message = "moments have dimension 2 but the arms 1; they belong to different arms"
    with pytest.raises(TallyError, match=re.escape(message)):
        OrthogonalRegression().solve(LINE, Moments.of(ArmSet.one_hot(3), PLAN, TALLY))


def test_only_moments_can_be_added():
    with pytest.raises(TypeError):
        Moments.zeros(LINE) + TALLY


@pytest.mark.parametrize(
    ("probabilities", "arm", "reward", "error", "message"),
    [
        ([0.5, 0.25, 0.25], 3, 1.0, TallyError, "arms row 0 is 3; arms are numbered 0 to 2"),
        ([0.5, 0.25, 0.25], 0, np.nan, RewardError, "rewards row 0 is nan; every reward must be a finite"),
        ([0.5, 0.25, 0.30], 0, 1.0, ProbabilityError, "probabilities sum to 1.05; they must sum to 1"),
        ([0.5, 0.5], 0, 1.0, ProbabilityError, "the plan has 2 probabilities for 3 arms"),
        ([0.5, 0.5, 0.0], 2, 1.0, TallyError, "arm 2 was played 1 times but its plan gives it probability 0"),
    ],
)
def test_a_round_that_does_not_fit_is_refused(probabilities, arm, reward, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Moments.of_round(LINE, probabilities, arm, reward)
