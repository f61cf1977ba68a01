"""What every policy is: a rule that turns past tallies into the next plan, and says what it knows."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan, Tally

# Rounds of a plan that no later observation will change: play on until the horizon.
FOREVER = 2**62

StateT = TypeVar("StateT")


@dataclass(frozen=True, eq=False)
class Decision:
    """What a policy can say at this moment.

    Attributes
    ----------
    active : (..., K) array of bool
        Arms that may still be best.
    leader : (...) array of int
        The arm that looks best now; the first active arm before any data.
    declared : (...) array of int
        The arm declared best, or −1 while none is.
    epsilon : (...) array
        The leader is within ε of the best arm with the stated confidence; +inf while nothing is claimed.
    confidence : float
        Probability with which all claims hold at once, 1 − δ; 0 for policies that claim nothing.
    mode : str
        The guarantee behind the claims, e.g. ``"paper constants"`` or ``"none"``.
    """

    active: Mask
    leader: Whole
    declared: Whole
    epsilon: Array
    confidence: float
    mode: str


class Policy(Protocol[StateT]):
    """Immutable settings; all memory is in the state. A policy never draws, stores or plots.

    The state's leading axes are replications: a batch of R behaves as R single runs with the same
    `replications` numbers. Plans of a batch may have different numbers of rounds.
    """

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> StateT:
        """Return the state before the first round.

        Parameters
        ----------
        arms : ArmSet
        batch : tuple of int
            Leading axes; () for a single live experiment.
        seed, replications : int, array of int (batch)
            Name the streams of policies that randomise their plans; ``arange`` by default.
        """
        ...

    def plan(self, state: StateT) -> Plan:
        """Return the distribution to draw from and for how many further rounds it stays in force."""
        ...

    def observe(self, state: StateT, plan: Plan, tally: Tally) -> StateT:
        """Return the state after the tallied rounds, which may be fewer than the plan asked for.

        A replication whose tally has no rounds keeps its state. Tallies of one plan may arrive in any
        number of parts; nothing is eliminated before all its rounds are in.
        """
        ...

    def decide(self, state: StateT) -> Decision:
        """Return what is known now."""
        ...

    def dump(self, state: StateT) -> dict[str, Any]:
        """Return the state as plain lists and numbers that survive ``json.dumps`` exactly."""
        ...

    def load(self, arms: ArmSet, data: dict[str, Any]) -> StateT:
        """Invert :meth:`dump`."""
        ...
