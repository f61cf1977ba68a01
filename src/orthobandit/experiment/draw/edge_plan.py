"""Draws without asking: a plan that can be handed out, and the arm that a unit has under it."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from orthobandit._foundation.random import cumulative_probabilities
from orthobandit.errors import ConflictError
from orthobandit.experiment.draw.hashing import HOLDOUT, PLAN, name_of, salt_of, salted
from orthobandit.experiment.ledger.ledger import Ledger

# Seconds for which a plan that was handed out may be drawn from before it is asked for again.
PLAN_SECONDS = 60.0


class Drawn(NamedTuple):
    """The arm of a unit under a plan; all that its exposure is posted by."""

    unit: str
    plan: int
    arm: int
    label: str


@dataclass(frozen=True)
class EdgePlan:
    """All that is needed to draw: whoever has it draws the same arms as the server would.

    Attributes
    ----------
    plan : int
        Its number.
    labels : tuple of str
        Of the arms.
    probabilities : tuple of float
        What arms are drawn from, in their order.
    thresholds : tuple of float
        Their running sums: a unit has the first arm whose threshold lies beyond the unit's position.
    salt : str
        Secret of this plan's positions.
    holdout : float
        Share of units that have the reference arm, whatever the plan.
    holdout_salt : str
        Secret of their positions.
    reference : int
    lasts : float
        Seconds after which to ask for the plan again.

    Examples
    --------
    >>> from orthobandit import ArmSet, Experiment
    >>> pages = Experiment.memory(ArmSet.one_hot(2, labels=["old", "new"]), rewards=(0, 1), key="0" * 64)
    >>> pages.edge_plan().draw("user-17")
    Drawn(unit='user-17', plan=1, arm=1, label='new')
    """

    plan: int
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    thresholds: tuple[float, ...]
    salt: str
    holdout: float
    holdout_salt: str
    reference: int
    lasts: float = PLAN_SECONDS

    @classmethod
    def of(cls, ledger: Ledger) -> "EdgePlan":
        """Return the plan in force.

        Raises
        ------
        ConflictError
            If draws do not go by units; :class:`ClosedError` if the experiment takes no more proposals now.
        """
        settings = ledger.settings
        ledger.settle(ledger.at)  # a plan that is handed out must be on record
        plan = ledger.book.plans[ledger.book.current]  # as it was logged, to the last bit
        check_edge(ledger)
        ledger.check_open()
        number = int(plan.number)
        return cls(
            plan=number,
            labels=tuple(ledger.arms.labels),
            probabilities=tuple(plan.probabilities.tolist()),
            thresholds=tuple(cumulative_probabilities(plan.probabilities).tolist()),
            salt=salt_of(settings.key, PLAN, number),
            holdout=settings.holdout,
            holdout_salt=salt_of(settings.key, HOLDOUT, 0) if settings.holdout else "",
            reference=settings.reference,
        )

    def draw(self, unit: str) -> Drawn:
        """Return the arm of a unit."""
        names = [name_of(unit)]
        if self.holdout and salted(self.holdout_salt, names).item() < self.holdout:
            arm = self.reference
        else:
            arm = bisect_right(self.thresholds, salted(self.salt, names).item())
        return Drawn(unit, self.plan, arm, self.labels[arm])

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "EdgePlan":
        """Return a plan that was sent as JSON."""
        values = {name: data[name] for name in cls.__dataclass_fields__}
        for name in ("labels", "probabilities", "thresholds"):
            values[name] = tuple(values[name])
        return cls(**values)


def check_edge(ledger: Ledger) -> None:
    """Raise :class:`ConflictError` if nobody else can draw what the experiment would."""
    ledger.check_same_for_all()
    if not ledger.settings.sticky:
        raise ConflictError("draws go by number where `sticky` is false, so only the server can draw")
    salt_of(ledger.settings.key, PLAN, 0)  # says so if the experiment is too old
