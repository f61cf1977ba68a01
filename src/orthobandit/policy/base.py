"""What every policy is: a rule that turns past tallies into the next plan, and says what it knows."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from orthobandit._foundation.json_arrays import brief
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Baseline, Plan, Tally

# Rounds of a plan that no later observation will change: play on until the horizon. Half of what 64 bits
# hold, so that a clock can be added without overflow.
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
        The leader is within ε of the best arm with the stated certainty; +inf while nothing is claimed.
    certainty : float
        Probability with which all claims hold at once, 1 − δ; 0 for policies that claim nothing.
    mode : str
        The guarantee behind the claims, e.g. ``"paper constants"`` or ``"none"``.
    """

    active: Mask
    leader: Whole
    declared: Whole
    epsilon: Array
    certainty: float
    mode: str

    __repr__ = brief


class Policy(Protocol[StateT]):
    """The contract between a policy and whoever runs it: a simulator, a notebook or a service.

    :func:`orthobandit.testing.check_policy` plays every clause below on a policy of yours.

    **What it is.** Immutable settings; all memory is in the state. A policy never draws, stores or plots, and
    no method changes its arguments: a state that was kept can be asked again, and says the same.

    **Plans have numbers.** A plan is in force until all its rounds were observed, or for ever. Every plan of
    a run has a number of its own (:attr:`Plan.number`), and rounds belong to a plan by that number, not by
    looking alike. Asking for the plan twice gives the same plan; while some of its rounds are still out, it
    gives that plan again with the rounds that are left.

    **Order.** Rounds are observed plan by plan, in the order of the plans; within a plan in any order.

    **In parts.** The tally of a plan may arrive in any number of parts, and in a batch for some replications
    alone: one whose part has no rounds keeps its state. The parts end where the whole would. Nothing is
    dropped or declared before the last of them, so no arm can gain by being told of early.

    **Late.** A part may come as late as it likes while its plan is in force. ``observe`` refuses rounds of a
    plan that has ended, or more rounds than it asked for, with :class:`~orthobandit.errors.TallyError`, and
    so it does an arm that the plan does not play; the state stays as it was. A policy that can count rounds
    for the plan that they were drawn under, after it has ended, has a method ``late`` besides, with the same
    arguments.

    **Repeated.** A tally does not say which rounds it holds, so a policy cannot know one that was sent
    before: what is observed twice counts twice. Whoever runs the policy keeps each reward and tells it once.

    **Baseline.** `baseline` makes the forecaster to run beside the policy, one for each replication; it is
    None if rewards are to be tallied as they are. With a baseline every plan has a centre, and what is
    tallied are its residuals (:meth:`Plan.residuals`), each with the forecast that was made before its arm
    was drawn.

    **State and JSON.** ``json.dumps(dump(state), allow_nan=False)`` works, and ``load`` of what comes back
    plans, observes and decides as the state itself would, bit by bit. Arms are not part of the dump. Dumps of
    this package's policies say their format and the release that wrote them; ``load`` reads what releases
    from 0.5.0 to its own have dumped, and refuses the rest with :class:`~orthobandit.errors.VersionError`.

    **Plans of others.** An experiment may hold plans that the policy would not make: another release or
    another server made them. A policy with ``late`` and ``renumber(state, number)``, which puts its own plan
    under the number of the one in force, counts their rounds; others leave them out and plan anew. A policy
    with ``conclude(state, arm)`` takes over that an arm was declared.

    **A plan for every visitor.** A policy with an attribute ``is_personal`` that is true plans for each
    visitor by what is known of them (:class:`~orthobandit.Personalised`); all others plan for everybody.

    **Replications.** The state's leading axes are replications: a batch of R behaves as R single runs with
    the same `replications` numbers. Plans of a batch may have different numbers of rounds.
    """

    @property
    def baseline(self) -> Baseline | None:
        """Settings of the forecaster that runs beside the policy, or None."""
        return None

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
        """Return the state after the tallied rounds, which may be fewer than the plan asked for."""
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
