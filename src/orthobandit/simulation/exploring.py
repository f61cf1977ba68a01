"""Explore with one fixed distribution and look at the tallies along the way."""

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._checks import check_whole
from orthobandit.errors import ProbabilityError
from orthobandit.estimate import Tally
from orthobandit.estimate.plan import checked_probabilities
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.player import Player
from orthobandit.simulation.runner import checked_checkpoints


def explore(
    environment: Environment,
    probabilities: ArrayLike,
    *,
    checkpoints: ArrayLike,
    replications: int,
    seed: int,
) -> Tally:
    """Draw from one distribution and return what was tallied by each checkpoint.

    Parameters
    ----------
    environment : Environment
    probabilities : array-like (K,)
        In force from the first round to the last.
    checkpoints : array-like (C,) of int
        Ascending numbers of rounds.
    replications, seed : int
        As in :func:`~orthobandit.simulation.simulate`.

    Returns
    -------
    Tally
        Of shape (R, C, K); each checkpoint includes the rounds before it.

    Examples
    --------
    >>> from orthobandit.simulation import one_hot
    >>> tally = explore(one_hot([0, 1]), [0.5, 0.5], checkpoints=[10, 30], replications=3, seed=1)
    >>> tally.counts.sum(axis=-1).tolist()
    [[10, 30], [10, 30], [10, 30]]
    """
    chosen = checked_probabilities(probabilities)
    if chosen.shape != (len(environment.arms),):
        raise ProbabilityError(
            f"probabilities has shape {chosen.shape} for {len(environment.arms)} arms; give one an arm"
        )
    count = check_whole("replications", replications)
    check_whole("seed", seed, least=0)
    marks = checked_checkpoints(checkpoints)
    player = Player(environment, marks, seed, np.arange(count))
    plans = np.tile(chosen, (count, 1))
    total, seen = Tally.zeros(len(environment.arms), (count,)), []
    for rounds in np.diff(marks, prepend=0):
        total = total + player.play(plans, np.full(count, rounds))
        seen.append(total)
    parts = ("counts", "sums", "squares", "largest")
    return Tally(*(np.stack([getattr(t, part) for t in seen], axis=1) for part in parts))
