"""BOSE's filter with the simplest distribution: a fair coin between the two farthest survivors."""

from dataclasses import dataclass
from typing import ClassVar

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.design.ball import squared_distance
from orthobandit.peers.bose import FilterPolicy, FilterSettings, list_survivors
from orthobandit.peers.regression import ArmsView
from orthobandit.policy.every_round import PlanStep, settle_on


@compiled
def plan_pair(settings: FilterSettings, memory: ArmsView, i: int, probabilities: Array) -> int:
    """Toss a coin between the two survivors that are farthest apart; the first such pair on ties."""
    inner = memory.inner[i]
    among, are_alike = list_survivors(inner, memory.scores[i], settings.width)
    if are_alike:
        return settle_on(among[0], probabilities)
    first = 0
    second = 0
    largest = 0.0
    for j in range(among.size):
        for k in range(j):
            distance = squared_distance(inner, among[j], among[k])
            if distance > largest:
                first = among[k]
                second = among[j]
                largest = distance
    probabilities[:] = 0.0
    probabilities[first] = probabilities[second] = 0.5
    return 1


@dataclass(frozen=True)
class FarthestPair(FilterPolicy):
    """BOSE's filter, then ½–½ on the pair of survivors that is farthest apart in V⁻¹.

    With D² the largest squared distance, tr(V⁻¹Σ_p) = D²/4 and no survivor is farther than (√3/2)·D from the
    pair's middle: BOSE's condition ‖x_a − μ_p‖² ≤ tr(V⁻¹Σ_p) holds up to a factor 3, and its regret bound up
    to a constant. An explicit distribution of this kind is said to be that of GBOSE; the published GBOSE
    distribution could not be checked, hence the plain name.

    Parameters
    ----------
    horizon, delta, constants, scale, ridge, theta_bound, shift_bound, noise
        As in :class:`~orthobandit.peers.bose.BOSE`.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = FarthestPair(horizon=1000)
    >>> policy.plan(policy.start(ArmSet([[0.0], [1.0], [3.0]]))).probabilities.tolist()
    [0.5, 0.0, 0.5]
    """

    plan_into: ClassVar[PlanStep] = staticmethod(plan_pair)
