"""What a run of anytime elimination reads of its policy, and what follows from it before any data."""

from typing import Protocol

from orthobandit.arms import ArmSet
from orthobandit.estimate.confidence.modes import Confidence

# Rounds per dimension of the warm-up, and again of the pilot; where they cost regret, fewer.
PILOT = {"identify": 10, "earn": 5}


class Settings(Protocol):
    """What is read of the policy."""

    @property
    def delta(self) -> float:
        """Failure probability of a run."""

    @property
    def epsilon(self) -> float:
        """Accuracy that ends it."""

    @property
    def goal(self) -> str:
        """Identify or earn."""

    @property
    def confidence(self) -> Confidence:
        """The mode of its intervals."""

    @property
    def growth(self) -> float:
        """Rounds that a batch adds, as a share of those so far."""

    @property
    def mixing(self) -> float:
        """Share of the exact centred design in plans that identify."""

    @property
    def pilot(self) -> int | None:
        """Fewest rounds of warm-up and pilot together, if set."""


def warm_up(policy: Settings, arms: ArmSet) -> int:
    """Return the rounds of the warm-up, and the fewest of the pilot."""
    per_dimension = PILOT[policy.goal] * (arms.dimension + 1)
    return max(policy.pilot // 2, 1) if policy.pilot is not None else per_dimension
