import numpy as np
import pytest

from orthobandit.errors import ParameterError, ProbabilityError
from orthobandit.simulation import Sine, explore, one_hot

ENVIRONMENT = one_hot([0.0, 1.0, 2.0], shift=Sine())


def test_tallies_grow_from_checkpoint_to_checkpoint():
    tally = explore(ENVIRONMENT, [0.5, 0.5, 0.0], checkpoints=[10, 100, 1000], replications=4, seed=1)
    assert tally.counts.shape == (4, 3, 3)
    assert tally.rounds.tolist() == [[10, 100, 1000]] * 4
    assert np.all(np.diff(tally.counts, axis=1) >= 0)
    assert not tally.counts[..., 2].any()


def test_mean_rewards_are_those_of_the_environment():
    tally = explore(ENVIRONMENT, [0.2, 0.3, 0.5], checkpoints=[40_000], replications=5, seed=2)
    means = (tally.sums.sum(axis=0) / tally.counts.sum(axis=0))[0]
    assert means == pytest.approx([1.0, 2.0, 3.0], abs=0.05)  # the sine adds 1 on average


def test_replications_depend_on_their_own_number_only():
    settings = {"checkpoints": [50, 80], "seed": 3}
    one = explore(ENVIRONMENT, [0.2, 0.3, 0.5], replications=1, **settings)
    three = explore(ENVIRONMENT, [0.2, 0.3, 0.5], replications=3, **settings)
    assert np.array_equal(three.sums[:1], one.sums)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"probabilities": [0.5, 0.5]}, ProbabilityError, "shape"),
        ({"checkpoints": [5, 3]}, ParameterError, "ascend"),
        ({"replications": 0}, ParameterError, "replications=0"),
        ({"seed": -1}, ParameterError, "seed=-1"),
    ],
)
def test_wrong_settings_are_refused(change, error, said):
    settings = {"probabilities": [0.2, 0.3, 0.5], "checkpoints": [5], "replications": 1, "seed": 0}
    with pytest.raises(error, match=said):
        explore(ENVIRONMENT, **(settings | change))
