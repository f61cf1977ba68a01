"""Measured by simulation: tallies under one distribution, rounds to plan for, how often claims fail."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.types import Array, Progress, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError, ProbabilityError
from orthobandit.estimate import Tally
from orthobandit.estimate.plan import checked_probabilities
from orthobandit.policy import AnytimeElimination
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.noise import Gaussian
from orthobandit.simulation.player import Player
from orthobandit.simulation.runner import checked_checkpoints, simulate

MAX_SIGMA = 1e100  # σ whose squares can still be summed


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
            f"probabilities has shape {chosen.shape} for {len(environment.arms)} arms; give one per arm"
        )
    count = check_whole("replications", replications)
    check_whole("seed", seed, least=0)
    marks = checked_checkpoints(checkpoints)
    player = Player(environment, marks, seed, np.arange(count))
    plans = np.tile(chosen, (count, 1))
    total = Tally.zeros(len(environment.arms), (count,))
    seen = []
    for rounds in np.diff(marks, prepend=0):
        total = total + player.play(plans, np.full(count, rounds))
        seen.append(total)
    parts = ("counts", "sums", "squares", "largest")
    return Tally(*(np.stack([getattr(t, part) for t in seen], axis=1) for part in parts))


def rounds_to_plan(
    arms: ArmSet,
    *,
    epsilon: float,
    delta: float = 0.05,
    goal: str = "identify",
    sigma: float = 1.0,
    runs: int = 10,
    limit: int = 500_000,
    seed: int = 0,
    progress: Progress | None = None,
    expect: float | None = None,
) -> Array:
    """Return the rounds (runs,) that anytime elimination plays until an arm is proven within ε of the best.

    Played where no arm is better than another, as a rule the hardest case: every arm has to be followed
    until the intervals are as narrow as ε, while a lead of some arm makes the others drop out early. Rewards
    scatter with standard deviation σ around a level that the forecast has to find by itself.

    The longest of n runs is no bound: a further run of the same kind takes longer in one of n + 1 cases, and
    lies between the shortest and the longest in (n − 1)/(n + 1), which is 82 % for ten. Where an arm leads by
    ε/2 or more it takes longer in fewer cases, most often less than the median; docs/measured.md has shares.

    Parameters
    ----------
    arms : ArmSet
    epsilon, delta : float
        Accuracy and failure probability of the policy.
    goal : {"identify", "earn"}
        Of the policy: to earn, arms that seem worse are played less, and rounds vary more.
    sigma : float
        Standard deviation σ of a reward around its mean, in the units of ε.
    runs : int
        How often the experiment is played.
    limit : int
        Rounds after which a run is given up; its entry is +inf.
    seed, progress
        As in :func:`~orthobandit.simulation.simulate`.
    expect : float, optional
        The gap that the policy is told to expect, in the units of ε.

    Examples
    --------
    >>> needed = rounds_to_plan(ArmSet.one_hot(3), epsilon=0.5, runs=5)
    >>> bool(needed.min() > 50), bool(needed.max() < 5000)
    (True, True)
    """
    if not isinstance(arms, ArmSet):
        raise ParameterError(f"arms is a {type(arms).__name__}; give an ArmSet, such as ArmSet.one_hot(3)")
    check_positive("epsilon", epsilon)
    if sigma > MAX_SIGMA:
        raise ParameterError(
            Argument("sigma", sigma), f" must be at most {MAX_SIGMA:g}; measure rewards in other units"
        )
    environment = Environment(
        arms, np.zeros(arms.features.shape[1]), noise=Gaussian(check_positive("sigma", sigma))
    )
    result = simulate(
        AnytimeElimination(delta=delta, epsilon=epsilon, goal=goal, expect=expect),
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


@dataclass(frozen=True, eq=False)
class Misses:
    """When the best arm was dropped, or a bound on how much better it is was wrong.

    Attributes
    ----------
    first, last : (R,) arrays of int
        Rounds played when this was first and last the case, after any complete batch; −1 for never.
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
    best = environment.best
    early = np.full(replications, -1)
    late = np.full(replications, -1)
    truth = environment.means[best] - environment.means
    while True:
        plan = policy.plan(state)
        left = np.where(state.declared < 0, horizon - player.memory.clock, 0)
        rounds = np.minimum(plan.rounds, left)
        if not rounds.any():
            return Misses(early, late, player.memory.clock.copy())
        was_active = state.active[:, best]
        state = policy.observe(state, plan, player.play(plan.probabilities, rounds, plan.centre))
        wrong = np.any(truth > policy.upper_bounds(state, of=best), axis=1) & (rounds > 0)
        wrong |= was_active & ~state.active[:, best]
        late[wrong] = player.memory.clock[wrong]
        early = np.where(early < 0, late, early)
