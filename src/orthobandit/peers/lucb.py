"""LUCB: the best of K arms without features, by the leader and its strongest rival."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.peers._linear_rounds import unplayed
from orthobandit.peers.race import RaceMemory, RacePolicy, RaceSettings, means_and_bounds
from orthobandit.policy.every_round import ObserveStep


@compiled
def observe_lucb(
    settings: RaceSettings, memory: RaceMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one reward; after every second one, compare the leader with its strongest rival."""
    memory.counts[i, arm] += 1
    memory.sums[i, arm] += reward
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    if memory.second[i] >= 0:
        memory.upcoming[i] = memory.second[i]
        memory.second[i] = -1
        return True
    means, bounds = means_and_bounds(settings, memory, i)
    leader = int(np.argmax(means))
    highs = means + bounds
    highs[leader] = -np.inf
    rival = int(np.argmax(highs))
    memory.upcoming[i] = leader
    memory.second[i] = rival
    if means[leader] - bounds[leader] > highs[rival]:
        memory.declared[i] = leader
    return True


@dataclass(frozen=True)
class LUCB(RacePolicy):
    """LUCB (Kalyanakrishnan, Tewari, Auer & Stone 2012) with the bounds of Jamieson & Nowak (2014).

    Every arm once. Then, again and again: the leader has the largest mean, its rival the largest mean + U
    among the others; both are played. Stop when the leader's mean − U is above the rival's mean + U. With n
    plays of an arm U = 2σ(1 + √ε)√((1 + ε)·log(log((1 + ε)n + 2)/(δ/K))/(2n)), ε = 0.01: the constants with
    which SP-BAI's author compares. The law of the iterated logarithm justifies them up to a factor of δ.

    Features are ignored. **Under a shift** means depend on when arms were played: the rule is blind. Departs:
    the two arms are played in two rounds, one after the other.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = LUCB()
    >>> policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.tolist()
    [1.0, 0.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_lucb)
