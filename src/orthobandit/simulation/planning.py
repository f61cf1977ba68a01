"""How many rounds an experiment will need, by playing it before it begins."""

import numpy as np

from orthobandit._checks import check_positive
from orthobandit._types import Array, Progress
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy import AnytimeElimination
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.noise import Gaussian
from orthobandit.simulation.runner import simulate

LARGEST = 1e100  # σ whose squares can still be summed


def rounds_to_plan(
    arms: ArmSet,
    *,
    epsilon: float,
    delta: float = 0.05,
    sigma: float = 1.0,
    runs: int = 10,
    limit: int = 500_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Array:
    """Return the rounds (runs,) that anytime elimination plays until an arm is proven within ε of the best.

    Played where no arm is better than another, as a rule the hardest case: every arm has to be followed
    until the intervals are as narrow as ε, while a lead of some arm makes the others drop out early. Rewards
    scatter with standard deviation σ around a level that the forecast has to find by itself.

    Parameters
    ----------
    arms : ArmSet
    epsilon, delta : float
        Accuracy and failure probability of the policy.
    sigma : float
        Standard deviation σ of a reward around its mean, in the units of ε.
    runs : int
        How often the experiment is played.
    limit : int
        Rounds after which a run is given up; its entry is +inf.
    seed, progress
        As in :func:`~orthobandit.simulation.simulate`.

    Examples
    --------
    >>> needed = rounds_to_plan(ArmSet.one_hot(3), epsilon=0.5, runs=5)
    >>> bool(needed.min() > 50), bool(needed.max() < 5000)
    (True, True)
    """
    check_positive("epsilon", epsilon)
    if sigma > LARGEST:
        raise ParameterError(f"sigma={sigma!r} must be at most {LARGEST:g}; measure rewards in other units")
    environment = Environment(
        arms, np.zeros(arms.features.shape[1]), noise=Gaussian(check_positive("sigma", sigma))
    )
    result = simulate(
        AnytimeElimination(delta=delta, epsilon=epsilon),
        environment,
        horizon=limit,
        replications=runs,
        seed=seed,
        checkpoints=[limit],
        stop_when_declared=True,
        batch=1,
        progress=progress,
    )
    return np.where(result.stop_times < 0, np.inf, result.stop_times)
