"""The contract of policies for which a plan is a recorded fact.

A plan is made once, by :meth:`Policy.plan`, together with a record of everything that was decided with it.
Whoever runs the policy keeps both. Everybody who reads them later (the same process after a crash, another
server, an auditor) takes them by :meth:`Policy.adopt` and never makes them again, so that two readers cannot
come to differ by a rounding.

    state ── plan ──► (Plan, PlanRecord) ── kept ──► adopt ──► draws, rewards ──► observe ──► state

:func:`orthobandit.testing.contract.check_contract` plays every clause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.json_arrays import brief, numbers_of, packed, plain, unpacked
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Baseline, Plan, Tally
from orthobandit.policy.base import Decision

if TYPE_CHECKING:
    from orthobandit.policy.contextual.offers import Offer

StateT = TypeVar("StateT")


class OfferSpace(NamedTuple):
    """What is known before the first round if every round brings arms with features of their own.

    Attributes
    ----------
    dimension : int
        The number of features of each arm that is offered.
    """

    dimension: int


Space = ArmSet | OfferSpace


class Batch(NamedTuple):
    """Rounds of one plan, or some of them.

    Attributes
    ----------
    plan : Plan
        That they were drawn under, found by its number; it may be an earlier one than that in force.
    tally : Tally
        Residuals by arm; of the rows of the offer, if there is one.
    offer : Offer, optional
        What the round offered, where rounds have features of their own.
    """

    plan: Plan
    tally: Tally
    offer: "Offer | None" = None


@dataclass(frozen=True, eq=False)
class PlanRecord:
    """Everything that was decided when a plan was made, beside the plan itself.

    Attributes
    ----------
    active : (..., K) array of bool
        Arms that may still be best.
    leader, declared : (...) arrays of int
        The arm that looks best, and the one declared best; −1 while none is.
    epsilon : (...) array
        The leader is within ε of the best arm; +inf while nothing is claimed.
    stage : (...) array of int
        Where the policy stands, by its own numbering; 0 for policies without stages.
    details : mapping of str to array (..., …)
        What else the policy decided and must not decide again: a design, which arm beat each dropped one,
        the tuning of tests that begin, or all the memory of a policy that decides while it observes.

    Examples
    --------
    >>> record = PlanRecord.undecided(3)
    >>> record.active.tolist(), int(record.declared), float(record.epsilon)
    ([True, True, True], -1, inf)
    >>> PlanRecord.from_json(record.to_json()).same_as(record)
    True
    """

    active: Mask
    leader: Whole
    declared: Whole
    epsilon: Array
    stage: Whole
    details: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    __repr__ = brief

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "active", _read_only(self.active, np.bool_))
        batch = self.active.shape[:-1]
        if not self.active.ndim or not self.active.shape[-1]:
            raise ParameterError(f"active has shape {self.active.shape}; (..., K) with K ≥ 1 is needed")
        for name, dtype in PER_REPLICATION.items():
            array = _read_only(getattr(self, name), dtype)
            if array.shape != batch:
                raise ParameterError(
                    f"{name} has shape {array.shape}; active {self.active.shape} needs {batch}"
                )
            set_field(self, name, array)
        details = {name: _read_only(array) for name, array in self.details.items()}
        for name, array in details.items():
            if array.shape[: len(batch)] != batch or array.dtype.kind not in "bif":
                raise ParameterError(
                    f"details[{name!r}] has type {array.dtype} and shape {array.shape}; numbers or truth"
                    f" values for the batch {batch} are needed"
                )
        set_field(self, "details", details)

    @classmethod
    def undecided(cls, count: int, batch: tuple[int, ...] = (), **details: NDArray[Any]) -> Self:
        """Return the record of a policy that drops and declares nothing; arm 0 leads."""
        return cls(
            np.ones((*batch, count), dtype=np.bool_),
            np.zeros(batch, dtype=np.int64),
            np.full(batch, -1, dtype=np.int64),
            np.full(batch, np.inf),
            np.zeros(batch, dtype=np.int64),
            details,
        )

    def at(self, place: tuple[Any, ...]) -> Self:
        """Return the record of some replications; `place` indexes the leading axes."""
        details = {name: array[place] for name, array in self.details.items()}
        decided = {name: getattr(self, name)[place] for name in PER_REPLICATION}
        return type(self)(self.active[place], **decided, details=details)

    def same_as(self, other: "PlanRecord") -> bool:
        """Tell whether two records are equal, bit by bit."""
        arrays, others = self._arrays(), other._arrays()
        return arrays.keys() == others.keys() and all(
            array.dtype == others[name].dtype
            and array.shape == others[name].shape
            and array.tobytes() == others[name].tobytes()
            for name, array in arrays.items()
        )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        decided = {name: getattr(self, name) for name in ("active", *PER_REPLICATION)}
        return decided | {f"details {name}": array for name, array in self.details.items()}

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly; an infinite epsilon as None."""
        return {
            "active": self.active.tolist(),
            **{
                name: plain(self.epsilon) if name == "epsilon" else getattr(self, name).tolist()
                for name in PER_REPLICATION
            },
            "details": {name: packed(array) for name, array in self.details.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(
            np.array(data["active"], dtype=np.bool_),
            epsilon=numbers_of(data["epsilon"]),
            **{name: np.array(data[name]) for name in PER_REPLICATION if name != "epsilon"},
            details={
                name: unpacked(name, array, np.dtype(array["type"]), tuple(array["shape"]))
                for name, array in data["details"].items()
            },
        )


# Fields of a record with one number for each replication, and their types.
PER_REPLICATION: Mapping[str, type] = {
    "leader": np.int64,
    "declared": np.int64,
    "epsilon": np.float64,
    "stage": np.int64,
}


class Policy(Protocol[StateT]):
    """What a policy promises to whoever runs it: a simulator, a notebook or a service.

    **What it is.** Immutable settings; all memory is in the state. A policy never draws, stores or plots, and
    no method changes its arguments.

    **Plans are made once.** :meth:`plan` is the only method that decides anything, and it changes nothing:
    the same state gives the same plan and the same record. What was made is kept by whoever asked, with a
    number of its own.

    **Records say all.** The state after :meth:`adopt` depends on the state before it, the plan and the record
    alone, also when both have been to JSON and back.

    **Observing adds.** :meth:`observe` adds sums, and neither drops, declares nor plans. A tally may arrive
    in parts, all at once or one by one, in any order: where sums are the same, the state is. Rounds count for
    the plan that they were drawn under, however late they come and whoever made it.

    **Repeated.** A tally does not say which rounds it holds: what is observed twice counts twice.

    **Baseline.** `baseline` makes the forecaster to run beside the policy, or is None if rewards are tallied
    as they are. With a baseline every plan has a centre, and what is tallied are its residuals, each with a
    forecast that was made before its arm was drawn.

    **Dropped arms.** An arm that the record calls inactive has probability 0 in its plan, unless the policy's
    documentation says that it still informs about others.

    **Replications.** Leading axes are replications: a batch of R behaves as R single runs with the same
    `replications` numbers.
    """

    @property
    def baseline(self) -> Baseline | None:
        """Settings of the forecaster that runs beside the policy, or None."""
        return None

    def start(
        self, space: Space, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Whole | None = None
    ) -> StateT:
        """Return the state before the first plan.

        Parameters
        ----------
        space : ArmSet or OfferSpace
            Arms that stay, or the number of features of arms that come with each round.
        batch : tuple of int
            Leading axes; () for a single live experiment.
        seed, replications : int, array of int (batch)
            Name the streams of policies that randomise their plans; ``arange`` by default.
        """
        ...

    def plan(self, state: StateT, offer: "Offer | None" = None) -> tuple[Plan, PlanRecord]:
        """Return what to draw from next and for how many rounds, and all that was decided with it."""
        ...

    def observe(self, state: StateT, batches: Sequence[Batch]) -> StateT:
        """Return the state with further rounds, of any recorded plans."""
        ...

    def adopt(self, state: StateT, plan: Plan, record: PlanRecord) -> StateT:  # noqa: ARG002
        """Return the state in which a recorded plan is in force; as it is, for policies that note nothing."""
        return state

    def decide(self, state: StateT, record: PlanRecord) -> Decision:
        """Return what is known now, given the newest record."""
        ...


def _read_only(values: Any, dtype: Any = None) -> NDArray[Any]:
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array
