"""The facts of a live experiment: all that its log holds, and all that its state follows from.

    Asked       proposals were drawn from a plan
    Told        rewards came in
    PlanMade    a plan was made, with everything decided beside it
    Restricted  a plan was cut down to the arms that are available
    Changed     a person or a guardrail changed the experiment

Facts are recorded once, by the writer, before anything follows from them, and never worked out again by a
reader. They check themselves when they are made and hold read-only copies, so that what is appended to a
store is what comes back from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.json_arrays import brief, json_copy
from orthobandit._foundation.types import Array
from orthobandit.errors import ParameterError
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.plan import checked_probabilities
from orthobandit.experiment.ledger.entries import Asked, Told, checked_moment, is_storable
from orthobandit.policy.contract import PlanRecord

__all__ = ["Asked", "Change", "Changed", "Fact", "PlanMade", "Restricted", "Told", "Why"]


class Why(StrEnum):
    """Why a plan was due."""

    START = "start"  # the experiment begins
    BATCH = "batch"  # all rounds of the plan before are in
    CHANGE = "change"  # a change closed the plan before
    VISITOR = "visitor"  # a personalised policy learnt enough to plan anew


@dataclass(frozen=True, eq=False)
class PlanMade:
    """A plan, as it is drawn from, and all that was decided with it, recorded before its first draw.

    Parameters
    ----------
    at : float
        Seconds since the epoch.
    why : Why or str
    plan : Plan
        Its number is the log's; its probabilities are those that arms are drawn with, the share that
        guardrails ask for included.
    record : PlanRecord
    rests_on : mapping of int to Tally
        The rounds since the plan before, by the number of the plan that they were drawn under.

    Raises
    ------
    ParameterError
        If plan, record and tallies do not fit each other.
    """

    at: float
    why: Why
    plan: Plan
    record: PlanRecord
    rests_on: Mapping[int, Tally]

    __repr__ = brief

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", checked_moment(self.at))
        object.__setattr__(self, "why", Why(check_choice("why", self.why, Why)))
        if self.plan.probabilities.ndim != 1:
            raise ParameterError("a live experiment has one replication; the plan has a batch")
        if self.record.active.shape != self.plan.probabilities.shape:
            raise ParameterError(
                f"the record is of {self.record.active.shape[-1]} arms and the plan of {self.plan.count}"
            )
        for number, tally in self.rests_on.items():
            # Arms may have come since these rounds were drawn, never gone: retired arms keep their places.
            if number < 0 or number >= int(self.plan.number) or tally.count > self.plan.count:
                raise ParameterError(
                    f"plan {int(self.plan.number)} with {self.plan.count} arms cannot rest on rounds of plan"
                    f" {number} with {tally.count}"
                )
        object.__setattr__(self, "rests_on", dict(self.rests_on))

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly."""
        return {
            "at": self.at,
            "why": self.why.value,
            "plan": self.plan.to_json(),
            "record": self.record.to_json(),
            "rests_on": [[number, tally.to_json()] for number, tally in self.rests_on.items()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(
            data["at"],
            data["why"],
            Plan.from_json(data["plan"]),
            PlanRecord.from_json(data["record"]),
            {number: Tally.from_json(tally) for number, tally in data["rests_on"]},
        )


@dataclass(frozen=True, eq=False)
class Restricted:
    """A plan cut down to the arms that some visitors can get, recorded before its first draw.

    Parameters
    ----------
    at : float
        Seconds since the epoch.
    number : int
        Its own number among all plans.
    of : int
        Number of the plan that was cut down.
    available : tuple of int
        The arms that can be drawn, in rising order.
    probabilities : (K,) array
        0 for all other arms.

    Raises
    ------
    ParameterError
        If the probabilities draw an arm that is not available.
    """

    at: float
    number: int
    of: int
    available: tuple[int, ...]
    probabilities: Array

    __repr__ = brief

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", checked_moment(self.at))
        probabilities = checked_probabilities(self.probabilities)
        available = tuple(int(arm) for arm in self.available)
        if list(available) != sorted({*available} & {*range(len(probabilities))}) or not available:
            raise ParameterError(
                f"available={available} must name some of the {len(probabilities)} arms, in rising order"
            )
        drawn = set(np.flatnonzero(probabilities).tolist())
        if not drawn <= set(available):
            raise ParameterError(f"arms {sorted(drawn - set(available))} may be drawn and are not available")
        if not 0 <= self.of < self.number:
            raise ParameterError(
                f"plan {self.number} cannot be cut down from plan {self.of}, which is no earlier one"
            )
        object.__setattr__(self, "available", available)
        object.__setattr__(self, "probabilities", probabilities)

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly."""
        return {
            "at": self.at,
            "number": self.number,
            "of": self.of,
            "available": list(self.available),
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(**data)


class Change(StrEnum):
    """What can be changed while an experiment runs."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    RETIRE = "retire"  # an arm is taken out
    EXTEND = "extend"  # arms come in
    CLEAR = "clear"  # guardrails clear an arm
    EXCLUDE = "exclude"  # rounds of a period do not count
    SETTINGS = "settings"
    SHIP = "ship"  # the winner is shown to everybody


@dataclass(frozen=True, eq=False)
class Changed:
    """A person, or a guardrail, changed the experiment.

    Parameters
    ----------
    at : float
        Seconds since the epoch.
    kind : Change or str
    who : str
        The name of a token or user, ``"Python"``, or the guardrail.
    data : mapping
        What the change needs: the arm that is retired, the arms that come. Plain values, kept as JSON gives
        them back.

    Raises
    ------
    ParameterError
        If the data are not such values.
    """

    at: float
    kind: Change
    who: str
    data: Mapping[str, Any]

    __repr__ = brief

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", checked_moment(self.at))
        object.__setattr__(self, "kind", Change(check_choice("kind", self.kind, Change)))
        if not is_storable(self.who) or not self.who:
            raise ParameterError(f"who={self.who!r} must be a name")
        try:
            data = json_copy(dict(self.data), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ParameterError(
                f"data of a change {self.kind.value!r} cannot be kept as JSON: {error}"
            ) from None
        object.__setattr__(self, "data", data)

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly."""
        return {"at": self.at, "kind": self.kind.value, "who": self.who, "data": dict(self.data)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(**data)


Fact = Asked | Told | PlanMade | Restricted | Changed
