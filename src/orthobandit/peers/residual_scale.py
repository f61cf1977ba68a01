"""The scale of residuals that Thompson sampling for offers measures its spread in."""

from orthobandit._foundation.compile import compiled
from orthobandit.policy.contextual.regression import (
    CentredMemory,
)

FIRST = 10  # rounds whose residuals do not count for the scale


@compiled
def follow_scale(memory: CentredMemory, i: int, residual: float) -> None:
    """Count a round, and follow the mean square of all residuals but the first."""
    memory.rounds[i] += 1
    # The first residuals hold what θ̂ did not know yet, not what rewards scatter.
    if memory.rounds[i] > FIRST:
        memory.squares[i] += residual * residual
        memory.variance[i] = memory.squares[i] / (memory.rounds[i] - FIRST)
