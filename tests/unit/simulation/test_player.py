import numpy as np
import pytest

from orthobandit.simulation import Clipped, Constant, Gaussian, Sine, Uniform, one_hot
from orthobandit.simulation.player import Player


def _player(shift, noise, size=2):
    return Player(one_hot([0.0, 0.5], shift=shift, noise=noise), np.array([10]), 0, np.arange(size))


def test_rewards_without_noise_by_hand():
    for noise in (Gaussian(0.0), Uniform(0.0)):
        player = _player(Constant(2.0), noise)
        tally = player.play(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3, 5]))
        assert tally.counts.tolist() == [[3, 0], [0, 5]]
        np.testing.assert_allclose(tally.sums, [[6, 0], [0, 12.5]])
        np.testing.assert_allclose(tally.squares, [[12, 0], [0, 31.25]])
        assert player.memory.clock.tolist() == [3, 5]


def test_a_replication_without_rounds_rests():
    player = _player(Sine(), Gaussian())
    streams = player.memory.arm_stream.copy(), player.memory.noise_stream.copy()
    tally = player.play(np.full((2, 2), 0.5), np.array([0, 4]))
    assert tally.rounds.tolist() == [0, 4]
    assert np.array_equal(player.memory.arm_stream[0], streams[0][0])
    assert np.array_equal(player.memory.noise_stream[0], streams[1][0])


@pytest.mark.parametrize("noise", [Gaussian(0.0), Clipped(sigma=0.0), Uniform(0.0)], ids=repr)
def test_equal_rewards_keep_their_digits_over_long_plans(noise):
    player = _player(Constant(0.1), noise, size=1)
    tally = player.play(np.array([[1.0, 0.0]]), np.array([5_000_000]))
    assert tally.sums[0, 0] == pytest.approx(5e5, rel=1e-9)
    assert tally.squares[0, 0] == pytest.approx(5e4, rel=1e-9)
