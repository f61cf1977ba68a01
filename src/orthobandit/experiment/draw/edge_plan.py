"""Draws at the edge: a plan that can be handed out, and the arm that it gives to a unit."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.random import cumulative_probabilities
from orthobandit.errors import ConflictError, ParameterError
from orthobandit.experiment.draw.hashing import HOLDOUT, PLAN, name_of, salt_of, salted
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.personal_feed import PLAN_SECONDS, PersonalFeed
from orthobandit.policy.contextual.handed_plan import HandedPlan


class Drawn(NamedTuple):
    """The arm of a unit under a plan, with everything needed to post the exposure.

    `context` is the visitor's, if the plan is personalised.
    """

    unit: str
    plan: int
    arm: int
    label: str
    context: Mapping[str, float] | None = None


@dataclass(frozen=True)
class EdgePlan:
    """Everything needed to draw the same arms as the server would.

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
    personal : HandedPlan or None
        Computes the distribution of each visitor, if the experiment is personalised; `probabilities` and
        `thresholds` are then empty.

    Examples
    --------
    >>> from orthobandit import ArmSet, Experiment
    >>> pages = Experiment.memory(ArmSet.one_hot(2, labels=["old", "new"]), rewards=(0, 1), key="0" * 64)
    >>> pages.edge_plan().draw("user-17")
    Drawn(unit='user-17', plan=1, arm=1, label='new', context=None)
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
    personal: HandedPlan | None = None

    @classmethod
    def of(cls, ledger: Ledger, at: float) -> "EdgePlan":
        """Return the plan in force at a time.

        Raises
        ------
        ConflictError
            If draws do not depend on units alone; :class:`ClosedError` if the experiment takes no more
            proposals.
        """
        settings = ledger.settings
        ledger.settle(ledger.at)  # a plan that is handed out must be on record
        check_edge(ledger)
        ledger.check_open()
        probabilities: tuple[float, ...] = ()
        thresholds: tuple[float, ...] = ()
        holdout = settings.holdout
        personal = None
        if ledger.is_personal:
            version = ledger.newest_version(at)
            number = version.number
            personal = version.plan
            if settings.reference not in personal.arms:
                holdout = 0.0  # what cannot be shown cannot be held to
        else:
            plan = ledger.feed.plans[ledger.feed.current]  # as it was logged, to the last bit
            number = int(plan.number)
            probabilities = tuple(plan.probabilities.tolist())
            thresholds = tuple(cumulative_probabilities(plan.probabilities).tolist())
        return cls(
            plan=number,
            labels=tuple(ledger.arms.labels),
            probabilities=probabilities,
            thresholds=thresholds,
            salt=salt_of(settings.key, PLAN, number),
            holdout=holdout,
            holdout_salt=salt_of(settings.key, HOLDOUT, 0) if holdout else "",
            reference=settings.reference,
            personal=personal,
        )

    def distribution(self, context: Mapping[str, float] | None = None) -> tuple[float, ...]:
        """Return the probabilities of the arms, for a visitor with this context if that matters."""
        if self.personal is None:
            return self.probabilities
        shares = self.personal.shares([context])[0].tolist()
        by_arm = dict(zip(self.personal.arms, shares, strict=True))
        return tuple(by_arm.get(arm, 0.0) for arm in range(len(self.labels)))

    def draw(self, unit: str, context: Mapping[str, float] | None = None) -> Drawn:
        """Return the arm of a unit.

        Parameters
        ----------
        unit : str
        context : mapping of str to float
            What is known of the visitor, if the experiment is personalised.
        """
        if not isinstance(unit, str):
            raise ParameterError(f"unit={unit!r} must be text; turn a number into str(number)")
        names = [name_of(unit)]
        thresholds: Sequence[float] = self.thresholds
        if self.personal is not None:
            thresholds = cumulative_probabilities(np.array(self.distribution(context))).tolist()
        if self.holdout and salted(self.holdout_salt, names).item() < self.holdout:
            arm = self.reference
        else:
            arm = bisect_right(thresholds, salted(self.salt, names).item())
        given = None if self.personal is None else dict(context or {})
        return Drawn(unit, self.plan, arm, self.labels[arm], given)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "EdgePlan":
        """Return a plan that was sent as JSON."""
        values = {name: data[name] for name in cls.__dataclass_fields__ if name != "personal"}
        for name in ("labels", "probabilities", "thresholds"):
            values[name] = tuple(values[name])
        personal = data.get("personal")
        return cls(**values, personal=None if personal is None else HandedPlan.from_json(personal))


def check_edge(ledger: Ledger) -> None:
    """Raise :class:`ConflictError` if only the server can draw for this experiment."""
    feed = ledger.feed
    if isinstance(feed, PersonalFeed) and feed.policy.features:
        raise ConflictError(
            "visitors bring features of their own to this experiment, so only the server can draw: `ask` for"
            " each"
        )
    if not ledger.settings.sticky:
        raise ConflictError("draws go by number where `sticky` is false, so only the server can draw")
    salt_of(ledger.settings.key, PLAN, 0)  # says so if the experiment is too old
