"""The simulator has the law it says it has. Each check raises a false alarm with probability ≤ 1e-6."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from inside._foundation import DrawTable, compiled_stream, tally_draws
from inside.simulation import CHUNK_ROUNDS, Player, add_gaussian, next_gamma, next_normal
from orthobandit.simulation import (
    Adaptive,
    Bernoulli,
    Clipped,
    Constant,
    Gaussian,
    Noise,
    Oblivious,
    RandomWalk,
    Sine,
    StudentT,
    Uniform,
    one_hot,
)

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-8  # of one comparison; a test makes fewer than 100
MEANS = [0.3, -0.2, 1.0]
PROBABILITIES = np.array([0.5, 0.2, 0.3])


def _assert_same_law(first, second):
    assert stats.ks_2samp(first, second).pvalue > FALSE_ALARM


def _assert_law(sample, distribution):
    assert stats.kstest(sample, distribution.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("path", [[0.7], [0.5, -1.0], [2.0, 2.0, 2.0], [1.0, 0.0, -3.0, 0.5, 0.5]], ids=str)
def test_tally_of_gaussian_noise_has_the_law_of_single_rounds(path):
    size, mean, sigma = 20_000, 0.4, 1.3
    path = np.array(path)
    state = compiled_stream(1, "noise")
    sums = np.tile([path.size, path.sum(), (path**2).sum()], (size, 1))
    for row in sums:
        add_gaussian(state, mean, sigma, row)
    rewards = mean + path + sigma * np.random.default_rng(2).standard_normal((size, path.size))
    total, squares = rewards.sum(axis=1), (rewards**2).sum(axis=1)
    _assert_same_law(sums[:, 1], total)
    _assert_same_law(sums[:, 2], squares)
    # Joint law: a few directions of the pair.
    for weight in (-1.0, 0.5, 2.0):
        _assert_same_law(sums[:, 2] + weight * sums[:, 1], squares + weight * total)
        _assert_same_law(sums[:, 2] * np.sign(sums[:, 1]), squares * np.sign(total))


@dataclass(frozen=True)
class RoundByRound(Adaptive):
    """An oblivious shift that pretends to adapt."""

    shift: Oblivious

    def values(self, past):
        return self.shift.values(int(past.rounds[0]), 1).repeat(past.rounds.size)


def _tallies(shift, noise, seed, size=3000, plans=((PROBABILITIES, 7), (PROBABILITIES[::-1], 13))):
    player = Player(one_hot(MEANS, shift=shift, noise=noise), np.array([20]), seed, np.arange(size))
    parts = [player.play(np.tile(p, (size, 1)), np.full(size, n)) for p, n in plans]
    return np.concatenate([[part.counts, part.sums, part.squares] for part in parts], axis=-1)


@pytest.mark.parametrize("noise", [Gaussian(0.5), Uniform(), Bernoulli()], ids=repr)
def test_blocks_and_rounds_have_the_same_law(noise):
    shift = Sine(0.0)
    block, rounds = _tallies(shift, noise, 1), _tallies(RoundByRound(shift), noise, 2)
    for found, expected in zip(block, rounds, strict=True):
        for column in range(found.shape[1]):
            _assert_same_law(found[:, column], expected[:, column])
    # Across arms and plans: what a centred regression would use.
    weights = np.array([0.5, -0.2, 0.4, -0.3, 0.8, -0.5])
    _assert_same_law(block[1] @ weights, rounds[1] @ weights)
    _assert_same_law(
        block[1] @ weights + block[0] @ weights[::-1], rounds[1] @ weights + rounds[0] @ weights[::-1]
    )
    _assert_same_law(np.prod(block[2][:, :3] + 1, axis=1), np.prod(rounds[2][:, :3] + 1, axis=1))


@pytest.mark.parametrize(
    ("noise", "distribution"),
    [
        (Gaussian(2.0), stats.norm(0.3 + 0.5, 2.0)),
        (Uniform(2.0), stats.uniform(0.3 + 0.5 - 2.0, 4.0)),
        (StudentT(3.0, 2.0), stats.t(3.0, 0.3 + 0.5, 2.0)),
        (StudentT(1.2), stats.t(1.2, 0.3 + 0.5)),
    ],
    ids=lambda value: repr(value) if isinstance(value, Noise) else "law",
)
@pytest.mark.parametrize("is_adaptive", [False, True])
def test_rewards_have_the_stated_law(noise, distribution, is_adaptive):
    shift = RoundByRound(Constant(0.5)) if is_adaptive else Constant(0.5)
    tally = _tallies(shift, noise, 5, size=20_000, plans=[(np.array([1.0, 0.0, 0.0]), 1)])
    _assert_law(tally[1][:, 0], distribution)
    np.testing.assert_allclose(tally[2], tally[1] ** 2)


def test_bounded_rewards_have_the_stated_law():
    plan = [(np.array([1.0, 0.0, 0.0]), 1)]
    # A constant level outside [0, 1] is refused; a level that moves is clipped round by round.
    ones = _tallies(RoundByRound(Constant(0.5)), Bernoulli(), 5, size=20_000, plans=plan)[1][:, 0]
    assert set(np.unique(ones)) == {0.0, 1.0}
    assert stats.binomtest(int(ones.sum()), ones.size, 0.8).pvalue > FALSE_ALARM
    assert np.all(_tallies(RoundByRound(Constant(5.0)), Bernoulli(), 5, plans=plan)[1][:, 0] == 1)
    clipped = _tallies(Constant(0.5), Clipped(0.0, 1.0, 0.4), 5, size=20_000, plans=plan)[1][:, 0]
    assert stats.binomtest(int((clipped == 1).sum()), clipped.size, stats.norm.sf(0.5)).pvalue > FALSE_ALARM
    inside = clipped[(clipped > 0) & (clipped < 1)]
    _assert_law(inside, stats.truncnorm(-2.0, 0.5, 0.8, 0.4))


@pytest.mark.parametrize("shape", [0.3, 0.5, 1.0, 7.5, 4e8])
def test_gamma_numbers(shape):
    state = compiled_stream(1, "noise", 2)
    sample = np.array([next_gamma(state, shape) for _ in range(20_000)])
    _assert_law(sample, stats.gamma(shape))


def test_normal_numbers():
    state = compiled_stream(1, "noise", 3)
    sample = np.array([next_normal(state) for _ in range(100_000)])
    _assert_law(sample, stats.norm)
    assert abs(np.corrcoef(sample[1:], sample[:-1])[0, 1]) < 5.8 / np.sqrt(sample.size)


@pytest.mark.parametrize("count", [2, 11, 100])
def test_arms_are_drawn_with_their_probabilities_and_independently(count):
    probabilities = np.random.default_rng(count).dirichlet(np.ones(count))
    table = DrawTable.of(probabilities[np.newaxis])
    state, sums, rounds = compiled_stream(7, "arms", count), np.zeros((count, 3)), 10**6
    # ν_t tells even rounds from odd ones: independent draws share both alike.
    tally_draws(table, 0, state, np.tile([0.0, 1.0], rounds // 2), sums)
    assert stats.chisquare(sums[:, 0], probabilities * rounds).pvalue > FALSE_ALARM
    assert stats.chisquare(sums[:, 1], probabilities * rounds / 2).pvalue > FALSE_ALARM


def test_random_walk_steps_are_independent_gaussians_across_all_seams():
    size = 2000
    places = np.array([1, 2, CHUNK_ROUNDS - 1, CHUNK_ROUNDS, CHUNK_ROUNDS + 1])
    walks = np.array(
        [RandomWalk(0.5).values(0, CHUNK_ROUNDS + 2, seed=9, replication=r)[places] for r in range(size)]
    )
    seam = 256 * CHUNK_ROUNDS
    spans = np.array([RandomWalk(0.5).values(seam - 1, 2, seed=9, replication=r) for r in range(size)])
    _assert_law(np.diff(walks[:, :2])[:, 0], stats.norm(0, 0.5))
    _assert_law(walks[:, 3] - walks[:, 2], stats.norm(0, 0.5))
    _assert_law(walks[:, 4] - walks[:, 3], stats.norm(0, 0.5))
    _assert_law(walks[:, 2] - walks[:, 1], stats.norm(0, 0.5 * np.sqrt(CHUNK_ROUNDS - 3)))
    _assert_law(spans[:, 0], stats.norm(0, 0.5 * np.sqrt(seam)))
    _assert_law(spans[:, 1] - spans[:, 0], stats.norm(0, 0.5))
    across = stats.pearsonr(walks[:, 3] - walks[:, 2], walks[:, 4] - walks[:, 3])
    assert across.pvalue > FALSE_ALARM
