"""An adversary that sees the whole past cannot stop the estimate from converging as 1/√t.

The experimenter favours one arm after the other. In every round the adversary chooses the shift, at most 1
in size, from the plan in force and from all that was drawn and returned before this round.
"""

import numpy as np
import pytest

from inside._foundation import draw_arms, stream
from orthobandit import ArmSet, Moments, OrthogonalRegression, Plan, Tally

pytestmark = pytest.mark.statistical

ARMS = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.75]])
THETA = np.array([0.75, 0.25])
VALUES = ARMS.features @ THETA
BEST = int(np.argmax(VALUES))
PLANS = Plan(np.full((4, 4), 0.15) + 0.4 * np.eye(4), rounds=10**6)  # row i favours arm i
REPLICATIONS = 200
CHECKPOINTS = 2 ** np.arange(10, 15)


def blackens_the_best(favoured, leader, error):
    """Rewards are low whenever the best arm is likely to be drawn."""
    return np.full(len(leader), -1.0 if favoured == BEST else 1.0)


def cancels_the_leader(favoured, leader, error):
    """Rewards are low whenever the arm with the highest mean so far is likely to be drawn."""
    return np.where(leader == favoured, -1.0, 1.0)


def follows_the_error(favoured, leader, error):
    """Push on in the direction in which the best arm is wrong already."""
    return np.where(error > 0, 1.0, -1.0) * (1.0 if favoured == BEST else -1.0)


def play(adversary, seed):
    """Return tallies (replication, plan, arm) of the same experiments at the checkpoints."""
    horizon, everyone = int(CHECKPOINTS[-1]), np.arange(REPLICATIONS)
    noise = np.stack([stream(seed, "noise", i).standard_normal(horizon) for i in everyone], axis=1)
    drawn = np.empty((horizon, REPLICATIONS), dtype=np.int64)
    for i in everyone:
        generators = stream(seed, "arms", i).spawn(4)
        for plan, generator in enumerate(generators):
            drawn[plan::4, i] = draw_arms(generator, PLANS.probabilities[plan], horizon // 4)
    counts, sums, squares = (np.zeros((REPLICATIONS, 4, 4)) for _ in range(3))
    error, tallies = np.zeros(REPLICATIONS), []
    for t in range(horizon):
        favoured = t % 4
        leader = np.argmax(sums.sum(axis=1) / (counts.sum(axis=1) + 1), axis=1)
        shift, arm = adversary(favoured, leader, error), drawn[t]
        reward = VALUES[arm] + shift + noise[t]
        counts[everyone, favoured, arm] += 1
        sums[everyone, favoured, arm] += reward
        squares[everyone, favoured, arm] += reward**2
        centred = ARMS.features[arm] - PLANS.probabilities[favoured] @ ARMS.features
        error += (centred @ ARMS.features[BEST]) * (reward - centred @ THETA)
        if t + 1 in CHECKPOINTS:
            tallies.append(Tally(counts.astype(np.int64), sums, squares))
    return tallies


def orthogonalised(tally):
    """Values of the arms relative to the first, from all four plans together: (replication, 4)."""
    parts = Moments.of(ARMS, PLANS, tally)
    moments = Moments(parts.gram.sum(axis=1), parts.moment.sum(axis=1), parts.rounds.sum(axis=1))
    gaps = OrthogonalRegression().solve(ARMS, moments).gaps
    return gaps[:, :1] - gaps


def least_squares(tally):
    """Ordinary least squares of the rewards on the features and an intercept: (replication, 4)."""
    design = np.column_stack([np.ones(4), ARMS.features])
    counts, sums = tally.counts.sum(axis=1), tally.sums.sum(axis=1)
    gram = np.einsum("rk,ki,kj->rij", counts, design, design)
    theta = np.linalg.solve(gram, (sums @ design)[..., np.newaxis])[..., 0]
    values = theta @ design.T
    return values - values[:, :1]


def errors(tallies, method):
    """Root mean square error over arms and replications at every checkpoint."""
    return np.array([np.sqrt(np.mean((method(tally) - VALUES) ** 2)) for tally in tallies])


def slope(values):
    return float(np.polyfit(np.log(CHECKPOINTS), np.log(values), 1)[0])


@pytest.mark.parametrize("adversary", [blackens_the_best, cancels_the_leader, follows_the_error])
def test_the_error_shrinks_with_the_root_of_time_while_least_squares_stays_wrong(adversary):
    tallies = play(adversary, seed=1)
    ours, theirs = errors(tallies, orthogonalised), errors(tallies, least_squares)
    assert -0.6 <= slope(ours) <= -0.4
    assert slope(theirs) > -0.1
    assert theirs[-1] > 0.15
    assert ours[-1] < 0.05
