"""What a policy was fed, batch by batch: all that its claims rest on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orthobandit.estimate import Plan, Tally


@dataclass(frozen=True, eq=False)
class Feed:
    """Rounds that a policy took in at once.

    Attributes
    ----------
    plan : Plan
        What they were drawn from, with the values and rivals that were fixed before.
    tally : Tally
        Their residuals.
    counted : bool
        Whether they are evidence; those of the pilot are not.
    """

    plan: Plan
    tally: Tally
    counted: bool

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {"plan": self.plan.to_json(), "tally": self.tally.to_json(), "counted": self.counted}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Feed":
        """Invert :meth:`to_json`."""
        return cls(Plan.from_json(data["plan"]), Tally.from_json(data["tally"]), bool(data["counted"]))
