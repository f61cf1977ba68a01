"""Feeds: the rounds that a policy was given at a time, kept so that its claims can be recomputed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._types import Whole
from orthobandit.errors import ParameterError
from orthobandit.estimate import Plan, Tally
from orthobandit.policy.anytime import AnytimeState

USES = ("warm-up", "pilot", "evidence")  # by the stage of the policy; what it does not look at is ignored
IGNORED = "ignored"


@dataclass(frozen=True, eq=False)
class Feed:
    """Rounds under one plan, as :class:`~orthobandit.AnytimeElimination` took them in.

    Attributes
    ----------
    plan : Plan
        Number, probabilities as used, rivals, and the values that residuals were taken from.
    tally : Tally
        Residuals (K,).
    use : {"warm-up", "pilot", "evidence", "ignored"}
        What the policy made of them.
    length : int
        Rounds that the plan was made for; 0 if these came late, after its end.
    """

    plan: Plan
    tally: Tally
    use: str
    length: int

    @classmethod
    def of(cls, state: AnytimeState, plan: Plan, tally: Tally, *, late: bool = False) -> "Feed":
        """Return the feed that turns one state, of one replication, into the next.

        Parameters
        ----------
        state : AnytimeState
            Before the rounds were taken in. A plan's rounds are taken in when its batch is complete, or when
            an arm is retired or added.
        plan : Plan
            What they were drawn from.
        tally : Tally
            All rounds of the batch.
        late : bool
            Whether they go to ``policy.late``: of an earlier plan, or of one restricted to some arms.
        """
        if state.stage.shape:
            raise ParameterError(f"state has replications {state.stage.shape}; give one of them")
        unlooked = late and (plan.rivals is None or bool(np.any(plan.rivals < 0)))
        unlooked = unlooked or int(state.declared) >= 0 or not int(tally.rounds)
        use = IGNORED if unlooked else USES[int(state.stage)]
        return cls(plan, tally, use, 0 if late else int(state.length))

    @property
    def counted(self) -> bool:
        """Whether the policy took the rounds as evidence."""
        return self.use == USES[-1]

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {
            "plan": self.plan.to_json(),
            "tally": self.tally.to_json(),
            "use": self.use,
            "length": self.length,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Feed":
        """Invert :meth:`to_json`."""
        return cls(
            Plan.from_json(data["plan"]),
            Tally.from_json(data["tally"]),
            data["use"],
            int(data["length"]),
        )


class Feeds:
    """Feeds in their order, as texts: they are many, and a tenth of the room that their arrays would take.

    They are written once, so that states which hold them can be kept again and again.

    Parameters
    ----------
    kept : sequence
        What :meth:`to_json` returned, or dictionaries, as earlier releases kept them.
    """

    def __init__(self, kept: Sequence[str | dict[str, Any]] = ()) -> None:
        self._texts = [one if isinstance(one, str) else _text(one) for one in kept]

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, feed: Feed) -> None:
        """Add one at the end."""
        self._texts.append(_text(feed.to_json()))

    def all(self) -> list[Feed]:
        """Return all of them, read again."""
        return [Feed.from_json(json.loads(text)) for text in self._texts]

    def to_json(self) -> list[str]:
        """Return their texts."""
        return list(self._texts)


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"))


def since_of(since: ArrayLike, state: AnytimeState, count: int) -> Whole:
    """Return which feed each entry (K, K) of the evidence counts from, after arms were retired or added.

    Parameters
    ----------
    since : array-like (J, J) of int
        The same before, for the J ≤ K arms so far; zeros at first.
    state : AnytimeState
        After the change. Tests that have met no rival in it begin anew.
    count : int
        Number of feeds so far.
    """
    arms = len(state.arms)
    out = np.full((arms, arms), count, dtype=np.int64)
    known = np.asarray(since)
    out[: len(known), : len(known)] = known
    fresh = np.flatnonzero(~state.met.any(axis=1))
    out[fresh, fresh] = count
    return out
