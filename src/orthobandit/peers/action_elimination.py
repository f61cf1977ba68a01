"""Action elimination: the best of K arms without features, the survivors in turn."""

from dataclasses import dataclass
from typing import ClassVar

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.peers._linear_rounds import leader_of, unplayed
from orthobandit.peers.race import RaceMemory, RacePolicy, RaceSettings, means_and_bounds
from orthobandit.policy.every_round import ObserveStep


@compiled
def observe_elimination(
    settings: RaceSettings, memory: RaceMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one reward; after a pass through all arms that are in, drop those that the leader beats."""
    memory.counts[i, arm] += 1
    memory.sums[i, arm] += reward
    active = memory.active[i]
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    for a in range(arm + 1, active.size):
        if active[a]:
            memory.upcoming[i] = a
            return True
    means, bounds = means_and_bounds(settings, memory, i)
    leader = leader_of(means, active)
    left = 0
    memory.upcoming[i] = leader
    for a in range(active.size):
        active[a] = active[a] and (a == leader or means[leader] - bounds[leader] < means[a] + bounds[a])
        left += active[a]
    if left == 1:
        memory.declared[i] = leader
        return True
    for a in range(active.size):
        if active[a]:
            memory.upcoming[i] = a
            break
    return True


@dataclass(frozen=True)
class ActionElimination(RacePolicy):
    """Action elimination (Even-Dar, Mannor & Mansour 2002) with the bounds of Jamieson & Nowak (2014).

    Plays all arms that are in, in turn; after each pass drops those whose mean + 2U is not above the leader's
    mean − 2U, U as in :class:`~orthobandit.peers.LUCB`; declares the last. Features are ignored.

    **Under a shift** the rule is blind, though its turns make the harm small: arms that are in have been
    played at almost the same times. A shift whose period fits a pass still favours one arm for ever.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = ActionElimination()
    >>> policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.tolist()
    [1.0, 0.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_elimination)
    factor: ClassVar[float] = 2.0
