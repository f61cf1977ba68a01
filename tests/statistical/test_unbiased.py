"""No shift that is fixed before the arm is drawn biases the estimate, shown by an exact sign test.

The arms are opposite pairs c ± e_j, drawn uniformly. Exchanging every drawn arm for its opposite flips all
centred features and leaves V as it is, so it flips the error of the estimate, provided the shift does not
change: it may depend on time, on past noise, and on the size (not the sign) of past errors. The estimate is
then above the truth with probability exactly 1/2, and the number of replications above it is binomial.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from inside._foundation import draw_arms, stream
from orthobandit import ArmSet, OrthogonalRegression, Plan, Tally

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6  # for all shifts together
CENTRE, THETA = np.array([3.0, -2.0]), np.array([0.5, 0.2])
ARMS = ArmSet(CENTRE + np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
PLAN = Plan([0.25, 0.25, 0.25, 0.25], rounds=60)
REPLICATIONS, ROUNDS = 4000, 60
TIME = np.arange(ROUNDS)

SHIFTS = {
    "none": lambda t, noise, error: 0.0,
    "constant": lambda t, noise, error: 10.0,
    "season": lambda t, noise, error: 2 * np.sin(t / 10),
    "alternating": lambda t, noise, error: 3.0 * (-1) ** t,
    "trend": lambda t, noise, error: 0.1 * t,
    "step": lambda t, noise, error: 5.0 if t > ROUNDS / 2 else -5.0,
    "past noise": lambda t, noise, error: 3 * np.sign(noise.sum(axis=1)),
    "past error": lambda t, noise, error: np.where(np.abs(error) > np.sqrt(t), 4.0, -1.0),
}


def play(shift, seed):
    """Return the arms drawn and the rewards seen, both (replication, round)."""
    size = REPLICATIONS * ROUNDS
    drawn = draw_arms(stream(seed, "arms"), PLAN.probabilities, size).reshape(REPLICATIONS, ROUNDS)
    noise = stream(seed, "noise").standard_normal((REPLICATIONS, ROUNDS))
    rewards = ARMS.features[drawn] @ THETA + noise
    centred, error = ARMS.features[drawn, 0] - CENTRE[0], np.zeros(REPLICATIONS)
    for t in TIME:
        value = shift(t, noise[:, :t], error)
        rewards[:, t] += value
        error += centred[:, t] * (value + noise[:, t])
    return drawn, rewards


def tallied(drawn, rewards):
    counts, sums, squares = (np.zeros((REPLICATIONS, 4)) for _ in range(3))
    for arm in range(4):
        chosen = drawn == arm
        counts[:, arm] = chosen.sum(axis=1)
        sums[:, arm] = (rewards * chosen).sum(axis=1)
        squares[:, arm] = (rewards**2 * chosen).sum(axis=1)
    return Tally(counts.astype(np.int64), sums, squares)


def above_the_truth(theta):
    """How many replications put arm 0 too far above arm 1."""
    return int(np.sum(theta[:, 0] > THETA[0]))


def least_squares(tally):
    gram = np.einsum("rk,ki,kj->rij", tally.counts, ARMS.features, ARMS.features)
    return np.linalg.solve(gram, (tally.sums @ ARMS.features)[..., np.newaxis])[..., 0]


@pytest.mark.parametrize("name", SHIFTS)
def test_the_estimate_is_as_often_above_the_truth_as_below(name):
    tally = tallied(*play(SHIFTS[name], seed=2))
    theta = OrthogonalRegression(ridge=1e-9).fit(ARMS, [(PLAN, tally)]).theta
    chance = binomtest(above_the_truth(theta), REPLICATIONS, 0.5).pvalue
    assert chance > FALSE_ALARM / len(SHIFTS)


@pytest.mark.parametrize("name", ["constant", "trend", "past error"])
def test_the_same_test_finds_the_bias_of_least_squares(name):
    tally = tallied(*play(SHIFTS[name], seed=2))
    assert binomtest(above_the_truth(least_squares(tally)), REPLICATIONS, 0.5).pvalue < FALSE_ALARM
