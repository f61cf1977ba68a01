"""How often the claims of anytime elimination fail, at any time: a check that anybody can run."""

from dataclasses import dataclass

import numpy as np

from orthobandit._checks import check_whole
from orthobandit._types import Whole
from orthobandit.policy import AnytimeElimination
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.player import Player


@dataclass(frozen=True, eq=False)
class Misses:
    """When the best arm was dropped, or some bound on what it is better by was wrong.

    Attributes
    ----------
    first, last : (R,) arrays of int
        Rounds played when this was first and last so, after any complete batch; −1 for never.
    rounds : (R,) array of int
        Rounds played when the run ended, by a declaration or at the horizon.
    """

    first: Whole
    last: Whole
    rounds: Whole


def misses(
    policy: AnytimeElimination,
    environment: Environment,
    *,
    horizon: int,
    replications: int,
    seed: int = 0,
    first: int = 0,
) -> Misses:
    """Play and compare the bounds with the truth after every batch.

    The policy claims that a run has a miss with probability at most δ: exactly in its exact modes if the
    environment keeps to what was declared, for large samples in the asymptotic one.

    Parameters
    ----------
    policy : AnytimeElimination
    environment : Environment
    horizon : int
        Rounds at which runs without a declaration end.
    replications : int
    seed : int
    first : int
        Number of the first replication.

    Examples
    --------
    >>> from orthobandit.simulation import exact_gap
    >>> found = misses(AnytimeElimination(), exact_gap(2, 3, 0.5, seed=1), horizon=500, replications=2)
    >>> found.first.tolist()
    [-1, -1]
    """
    check_whole("horizon", horizon, least=1)
    check_whole("replications", replications, least=1)
    numbers = np.arange(first, first + replications)
    player = Player(environment, np.array([horizon]), seed, numbers, policy.baseline)
    state = policy.start(environment.arms, (replications,))
    best, early, late = environment.best, np.full(replications, -1), np.full(replications, -1)
    truth = environment.means[best] - environment.means
    while True:
        plan, left = policy.plan(state), np.where(state.declared < 0, horizon - player.memory.clock, 0)
        rounds = np.minimum(plan.rounds, left)
        if not rounds.any():
            return Misses(early, late, player.memory.clock.copy())
        was_active = state.active[:, best]
        state = policy.observe(state, plan, player.play(plan.probabilities, rounds, plan.centre))
        wrong = np.any(truth > policy.upper_bounds(state, of=best), axis=1) & (rounds > 0)
        wrong |= was_active & ~state.active[:, best]
        late[wrong] = player.memory.clock[wrong]
        early = np.where(early < 0, late, early)
