"""The policy's side of an experiment: the current plan, its distributions, and when it is fed what."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.random import cumulative_probabilities
from orthobandit._foundation.release import __version__, stamp
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ConflictError, ParameterError
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.certificate import Chain
from orthobandit.estimate.follow.rounds import Sums, dump_pending, load_pending
from orthobandit.estimate.plan import Centre
from orthobandit.experiment.ledger.record import Record
from orthobandit.experiment.ledger.recorded_plans import (
    Differences,
    Draft,
    are_alike,
)
from orthobandit.policy import FOREVER, AnytimeElimination, Policy

LOG = logging.getLogger("orthobandit.experiment")

# Share of the reference arm while guardrails have not cleared every arm in play, and once the objective has
# nothing left to learn: then all that is open is the comparison of two arms.
GUARDED_SHARE = 0.2
COMPARED_SHARE = 0.5


class Visitor(NamedTuple):
    """What is known of one visitor, for policies that plan for each.

    Attributes
    ----------
    context : mapping of str to float, optional
    features : mapping of str to sequence of float, optional
        A row of features for each arm that is offered, by label.
    """

    context: Mapping[str, float] | None = None
    features: Mapping[str, Sequence[float]] | None = None


ANYBODY = Visitor()


class PolicyFeed:
    """Feeds a policy settled rounds, batch by batch.

    A distribution is a plan as it was drawn from: whole, or restricted to the arms that were available.
    Drawing goes on under the current plan while a batch waits for its last rewards. Rounds beyond the batch
    belong to that plan as well: policies with a method ``late`` count them for it. Other policies leave them
    out, and `unused` counts these.

    Guardrails compare arms with the reference arm, which the policy, unaware of guardrails, may drop. So
    until every arm in play is cleared, a share of the reference arm is mixed into each plan. Like
    restrictions, such plans are fixed and recorded before their rounds are drawn, and their rounds are fed to
    ``late`` with the distribution they were drawn from, so tests stay exact.

    A plan in the log is valid whoever made it. While a log is read, the policy's own plans are drafts. Where
    the log holds a different plan, that one counts, and its rounds are fed to ``late`` as well: plan,
    forecasts and rivals were fixed before the draws, and the policy's tuning depends on earlier rounds only.
    The policy plans again when its next batch is complete. Policies that cannot count such rounds leave them
    out.

    Parameters
    ----------
    policy : Policy
    arms : ArmSet
    reference : int, optional
        The arm that guardrails compare with, if there are any.

    Attributes
    ----------
    state : object
        The policy's state, without pending rounds.
    plan : Plan
        In force.
    current : int
        Number of its distribution.
    plans : dict
        Distributions in use, by number.
    record : Record or None
        What an :class:`AnytimeElimination` was fed, for certificates; None for other policies, before
        :meth:`commit`, and in experiments with plans that the policy would not have made.
    cleared : (K,) array of bool
        Arms that all guardrails have cleared.
    unused : int
        Rounds that the policy could not take.
    news : list
        Notes for the log: kind and data.
    is_reading : bool
        Whether entries of a log are taken in, so that plans are drafts until :meth:`write_on`.
    differences : Differences
        Plans of the log that the policy would not have made.
    """

    def __init__(self, policy: Policy[Any], arms: ArmSet, reference: int | None = None) -> None:
        self.policy = policy
        self.arms = arms
        self.state = policy.start(arms)
        self._reference = reference
        self._mixed = 0.0
        self.cleared = _cleared_at_first(len(arms), reference)
        self.plans: dict[int, Plan] = {}
        self.news: list[tuple[str, dict[str, Any]]] = []
        self.record: Record | None = None
        self.unused = 0
        self._total = 0
        self.retired: Mask = np.zeros(len(arms), dtype=np.bool_)
        self._pending: dict[int, Sums] = {}
        self._sums: tuple[int, Array] = (0, np.zeros(0))
        self._numbers = 0
        self._restricted = dict[tuple[int, ...], int]()
        self.current = 0
        self.is_reading = True
        self.differences = Differences()
        self._drafts: list[Draft] = []
        self._maker = __version__  # release that made the plan in force
        self._is_foreign = False
        self._offset = 0
        self._begin(policy.plan(self.state))

    def commit(self, settings: Mapping[str, Any] | None) -> None:
        """Start the record, before the first draw.

        Parameters
        ----------
        settings : mapping or None
            What :func:`~orthobandit.experiment.ledger.record.commitment_of` returned.
        """
        if self.differences.count:
            return  # a record of plans that the policy has not made could not be verified
        if settings is not None and isinstance(self.policy, AnytimeElimination):
            self.record = Record(Chain(settings))
            self._record_plan()

    def _begin(self, own: Plan) -> None:
        """Make a plan of the policy the current one."""
        self._mixed = self._needed_share(own)
        self._is_foreign = False
        self.plan = self._with_reference(self._by_log_number(own))
        number = self._numbers + 1
        decision = {"declared": self._declared, "retired": np.flatnonzero(self.retired).tolist()}
        data = {"number": number, "plan": self.plan.to_json(), **stamp(), "decision": decision}
        if self.is_reading:
            before = (self.current, dict(self.plans), self._restricted, self._maker)
            self._drafts.append(Draft(number, data, *before))
        else:
            self.news.append(("plan", data))
        self._maker = __version__
        self._numbers = number
        self.plans[number] = self.plan
        self.current = number
        self._restricted = {}
        self._record_plan()

    @property
    def _declared(self) -> int | None:
        """The arm that the policy has declared, if any."""
        declared = int(self.policy.decide(self.state).declared)
        return declared if declared >= 0 else None

    def _by_log_number(self, own: Plan) -> Plan:
        """Return the policy's plan under its number in the log."""
        return own if not self._offset else _with_number(own, int(own.number) + self._offset)

    def _by_own_number(self, plan: Plan) -> Plan:
        """Return a plan of the log under the policy's own number."""
        return plan if not self._offset else _with_number(plan, max(int(plan.number) - self._offset, 0))

    def _record_plan(self) -> None:
        """Record the plan in force, before its first draw, with the probabilities that it is drawn with."""
        if self.record is not None:
            drawn = self.plan.probabilities if self._mixed else None
            self.record.plan(self.policy, self.state, drawn)  # type: ignore[arg-type]

    def _needed_share(self, plan: Plan) -> float:
        """Return the share of the reference arm to mix in for guardrails; 0 if the plan has enough."""
        if self._reference is None or self.retired[self._reference] or not hasattr(self.policy, "late"):
            return 0.0
        decision = self.policy.decide(self.state)
        declared = int(decision.declared)
        in_play = np.asarray(decision.active)
        if declared >= 0:
            in_play = np.arange(len(self.arms)) == declared
        elif in_play[self._reference]:
            return 0.0  # the policy itself compares with it
        if np.all(self.cleared[in_play]):
            return 0.0
        wanted = GUARDED_SHARE if declared < 0 else COMPARED_SHARE
        has = float(plan.probabilities[self._reference])
        return (wanted - has) / (1.0 - has) if has < wanted else 0.0

    def _with_reference(self, plan: Plan) -> Plan:
        """Return the policy's plan with the share of the reference arm mixed in."""
        if not self._mixed or self._reference is None:
            return plan
        p = (1.0 - self._mixed) * plan.probabilities
        p[self._reference] += self._mixed
        centre = plan.centre
        if centre is not None:
            # Forecasts must keep residuals of the arm that was added to the declared range, too.
            centre = self.policy.confidence.centre(centre.values, p > 0)  # type: ignore[attr-defined]
        return Plan(p / p.sum(), plan.rounds, centre, plan.number, plan.rivals)

    def clear(self, arms: Mask) -> None:
        """Note arms (K,) that all guardrails have cleared; a cleared arm stays cleared."""
        self.cleared = self.cleared | arms
        declared = int(self.policy.decide(self.state).declared)
        is_compared = self._mixed > 0 or self._is_foreign
        if is_compared and declared >= 0 and self.cleared[declared]:
            # No batch will end any more: the declared arm is played alone from now on, by a plan of its own.
            self._feed()
            if self.record is not None:
                self.record.clear(declared)
            self.state = self.policy.renumber(self.state)  # type: ignore[attr-defined]
            self._begin(self.policy.plan(self.state))

    @property
    def is_held(self) -> bool:
        """Whether an arm is declared that guardrails have not cleared yet."""
        declared = int(self.policy.decide(self.state).declared)
        return declared >= 0 and not self.cleared[declared]

    @property
    def is_compared(self) -> bool:
        """Whether the reference arm is mixed into the plan in force, so that guardrails can compare."""
        return self._mixed > 0

    def distribution(
        self,
        available: Sequence[int] | None,
        visitor: Visitor = ANYBODY,  # noqa: ARG002 - for those that plan for each visitor
    ) -> int:
        """Return the number of the current plan, restricted to the available arms and renormalised.

        If the plan plays none of them, the one that looks best gets probability 1. The plan is the same for
        every visitor.
        """
        if available is None:
            return self.current
        key = tuple(sorted(set(available)))
        if not key or key[0] < 0 or key[-1] >= len(self.arms):
            raise ParameterError(f"available={list(available)} must name at least one of the arms")
        if len(key) == len(self.arms):
            return self.current
        if key not in self._restricted:
            chosen = np.zeros(len(self.arms))
            chosen[list(key)] = self.plan.probabilities[list(key)]
            if not chosen.any():
                chosen[max(key, key=lambda arm: self.plan.values[arm])] = 1.0
            limited = _with_probabilities(self.plan, chosen)
            self._numbers += 1
            self.plans[self._numbers] = limited
            self._restricted[key] = self._numbers
            data = {"number": self._numbers, "plan": limited.to_json(), "available": list(key)}
            self.news.append(("distribution", data))
            if self.record is not None:
                self.record.restrict(limited)
        return self._restricted[key]

    def can_show(self, number: int, arm: int, available: Sequence[int] | None) -> bool:  # noqa: ARG002
        """Tell whether an arm is among those that were available to a distribution."""
        return available is None or arm in available

    def check_visitor(self, available: Sequence[int] | None, visitor: Visitor) -> None:
        """Raise the error of :meth:`distribution` if nothing can be planned for this visitor."""

    def cumulative(self, number: int) -> Array:
        """Return the running sums (K,) of a distribution's probabilities."""
        if self._sums[0] != number:
            self._sums = (number, cumulative_probabilities(self.plans[number].probabilities))
        return self._sums[1]

    # Reading a log

    def adopt(self, kind: str, data: Mapping[str, Any]) -> list[int]:
        """Apply a note of the log: a plan or a distribution.

        Returns
        -------
        list of int
            Arms that the maker of the plan had retired and the policy had not.

        Raises
        ------
        ConflictError
            If the log contradicts itself.
        """
        number = int(data["number"])
        plan = Plan.from_json(data["plan"])
        if self._drafts and self._drafts[0].is_confirmed_by(number, plan):
            draft = self._drafts.pop(0)
            if draft.data["plan"] != plan.to_json():
                # Another processor rounds otherwise. Draws and residuals go by the plan on record; the
                # policy, which knows its own alone, is told of the same rounds.
                self.plans[number] = plan
            if self._drafts:
                self._drafts[0] = replace(self._drafts[0], maker=str(data["release"]))
            else:
                self._maker = str(data["release"])
            return []
        self._drop_drafts(to_first=True)
        if number in self.plans and self.plans[number].to_json() != plan.to_json():
            raise ConflictError(
                f"{kind} {number} of the log is there twice, and not the same; restore a copy"
            )
        if number <= self._numbers:
            return []
        if number != self._numbers + 1:
            raise ConflictError(
                f"{kind} {number} of the log comes after number {self._numbers}; restore a copy"
            )
        if kind == "plan":
            return self._follow(number, plan, data)
        self._numbers = number
        self.plans[number] = plan
        self._restricted[tuple(data["available"])] = number
        if self.record is not None:
            self.record.restrict(plan)
        return []

    def drop_drafts(self) -> None:
        """Discard draft plans and return to the recorded one: the next entry was written under it."""
        if self._drafts:
            self._drop_drafts()

    def _drop_drafts(self, *, to_first: bool = False) -> None:
        """Return to the plan before the first draft, which the log shows to be still current."""
        if not self._drafts:
            return
        first = self._drafts[0]
        if not first.current and not to_first:
            # A log that does not begin with a plan: nothing else can have been in force.
            self._drafts.pop(0)
            self._drop_drafts()
            return
        numbers = {draft.number for draft in self._drafts}
        since = {number: plan for number, plan in self.plans.items() if number not in numbers}
        self.plans = first.plans | since
        self.current = first.current
        self._restricted = first.restricted
        self._maker = first.maker
        self._numbers = first.number - 1
        self._sums = (0, np.zeros(0))
        self._drafts = []
        if self.current:
            self._put_in_force()
            self._note_difference()

    def _follow(self, number: int, plan: Plan, data: Mapping[str, Any]) -> list[int]:
        """Use a plan that the policy would not have made; return the arms that it retires."""
        self._feed()  # what is pending was drawn before
        self._numbers = number
        self.plans[number] = plan
        self.current = number
        self._restricted = {}
        out = [int(arm) for arm in data["decision"]["retired"] if not self.retired[arm]]
        for arm in out:
            self.state = self.policy.retire(self.state, arm)  # type: ignore[attr-defined]
            self.retired = self.retired | (np.arange(len(self.arms)) == arm)
        declared = data["decision"]["declared"]
        if declared is not None and declared != self._declared and hasattr(self.policy, "conclude"):
            self.state = self.policy.conclude(self.state, declared)
        self._put_in_force()
        self._maker = str(data["release"])
        self._note_difference()
        return out

    def _put_in_force(self) -> None:
        """Make the distribution `current` the plan in force, whether the policy would make it or not."""
        recorded = self.plans[self.current]
        number = int(recorded.number)
        if number != int(self.policy.plan(self.state).number) + self._offset:
            if self._can_follow:
                self.state = self.policy.renumber(self.state, number)  # type: ignore[attr-defined]
            else:
                self._offset = number - int(self.policy.plan(self.state).number)
        own = self._by_log_number(self.policy.plan(self.state))
        self._is_foreign = True
        for share in (self._mixed, 0.0, self._needed_share(own)):
            self._mixed = share
            plan = self._with_reference(own)
            if are_alike(plan, recorded):
                self._is_foreign = False
                self.plan = plan
                return
        self._mixed = 0.0
        self.plan = _with_rounds(recorded, int(own.rounds))

    @property
    def _can_follow(self) -> bool:
        """Whether the policy can count rounds of plans that it has not made."""
        return hasattr(self.policy, "late") and hasattr(self.policy, "renumber")

    def _note_difference(self) -> None:
        """Note that the current plan is not the policy's own: claims can no longer be certified."""
        self.differences = self.differences.and_one(int(self.plan.number), self._maker)
        if self.differences.count == 1:
            LOG.info("%s; the experiment goes on from the plans on record", self.differences)
        self.record = None

    def write_on(self) -> None:
        """End reading: drafts beyond the end of the log become plans, to be logged."""
        self.is_reading = False
        self.news.extend(("plan", draft.data) for draft in self._drafts)
        self._drafts = []
        if self._is_foreign and not self._can_go_on():
            in_force = int(self.plan.number)
            if self._can_follow:
                self.state = self.policy.renumber(self.state, in_force + 1)  # type: ignore[attr-defined]
            else:
                self._offset = in_force + 1 - int(self.policy.plan(self.state).number)
            self._begin(self.policy.plan(self.state))

    def _can_go_on(self) -> bool:
        """Tell whether another release's plan may stay until the policy makes its next one."""
        shown = self.plan.probabilities > 0
        if not self._can_follow or np.any(shown & self.retired):
            return False
        if self._left < FOREVER:
            # Rounds that are no evidence would never complete the policy's batch.
            return _is_evidence(self.plan)
        own = self.policy.plan(self.state)
        wanted = own.probabilities > 0
        if self._needed_share(own):
            wanted = wanted | (np.arange(len(wanted)) == self._reference)
        return np.array_equal(shown, wanted)

    def recall(self, number: int, plan: Plan) -> None:
        """Keep a distribution that was forgotten, for proposals that were drawn from it after all."""
        self.plans[number] = plan

    def fitted(self, plan: Plan) -> Plan:
        """Return an earlier plan for the current arms; it never plays those added since."""
        if plan.count == len(self.arms):
            return plan
        return _widened(plan, self.arms, _shares_of_old(self.arms, plan.count))

    @property
    def _left(self) -> int:
        return int(self.plan.rounds)

    @property
    def is_full(self) -> bool:
        """Whether what is pending completes a batch."""
        return self._total >= self._left

    def add(self, number: int, arms: Whole, residuals: Array) -> int:
        """Take in settled rounds (n,) of one distribution, up to the end of the batch; return how many."""
        plan = self.plans[number]
        is_late = number != self.current
        is_foreign = number == self.current and self._is_foreign
        is_lost = is_late and (not hasattr(self.policy, "late") or self._left >= FOREVER)
        if is_lost or (is_foreign and not self._can_follow):
            self.unused += len(arms)
            return len(arms)
        counts = not (is_late or is_foreign) or _is_evidence(plan)
        taken = min(len(arms), self._left - self._total) if counts else len(arms)
        if number not in self._pending:
            self._pending[number] = Sums(len(self.arms))
        self._pending[number].add(arms[:taken], residuals[:taken])
        self._total += taken if counts else 0
        return taken

    def flush(self, in_use: Collection[int] = ()) -> None:
        """Feed pending rounds to the policy, and make its next plan the current one.

        Parameters
        ----------
        in_use : collection of int
            Distributions to remember, because proposals still belong to them.
        """
        self._feed()
        self._replan()
        kept = {*in_use, self.current, *self._restricted.values()}
        self.plans = {number: plan for number, plan in self.plans.items() if number in kept}

    def _feed(self) -> None:
        """Feed the pending rounds to the policy, the current plan's last, and record them."""
        for number in self._order():
            tally = self._pending[number].tally
            if self.record is not None:
                self.record.rounds(number, tally)
            self.state = self._fed(self.state, number, tally)
        self._pending = {}
        self._total = 0

    def _order(self) -> list[int]:
        """Return the pending distributions, the plan in force last: it completes the batch."""
        return sorted(self._pending, key=lambda number: (number == self.current, number))

    def _is_whole(self, number: int) -> bool:
        """Tell whether a distribution is the current plan exactly as the policy made it."""
        return number == self.current and not self._mixed and not self._is_foreign

    def _fed(self, state: Any, number: int, tally: Tally) -> Any:
        if self._is_whole(number):
            return self.policy.observe(state, self._by_own_number(self.plan), tally)
        plan = self._by_own_number(self.plans[number])
        return self.policy.late(state, plan, tally)  # type: ignore[attr-defined]

    def _replan(self) -> None:
        """Take over the policy's next plan, or the new length of the current one."""
        own = self.policy.plan(self.state)
        if int(own.number) + self._offset != int(self.plan.number):
            self._begin(own)
        elif self._is_foreign:
            self.plan = _with_rounds(self.plan, int(own.rounds))
        else:
            self.plan = self._with_reference(self._by_log_number(own))

    def now(self) -> Any:
        """Return the policy's state with pending rounds included; nothing is changed."""
        state = self.state
        for number in self._order():
            if self._pending[number].counts.any():
                state = self._fed(state, number, self._pending[number].tally)
        return state

    def retire(self, arm: int) -> None:
        """Take an arm out of the race."""
        if not hasattr(self.policy, "retire"):
            raise ParameterError(f"{type(self.policy).__name__} cannot retire arms")
        changed = self.policy.retire(self.now(), arm)
        self._feed()
        if self.record is not None:
            self.record.retire(arm)
        self.retired = self.retired | (np.arange(len(self.arms)) == arm)
        self._go_on(changed)

    def extend(self, arms: ArmSet) -> None:
        """Add arms; distributions so far never play them."""
        if not hasattr(self.policy, "extend"):
            raise ParameterError(f"{type(self.policy).__name__} cannot take in new arms")
        changed = self.policy.extend(self.now(), arms)
        self._feed()
        if self.record is not None:
            self.record.extend(arms)
        new = len(arms) - len(self.arms)
        self.arms, self.retired = arms, np.pad(self.retired, (0, new))
        self.cleared = np.append(self.cleared, np.full(new, self._reference is None))
        shares = _shares_of_old(arms, len(arms) - new)
        self.plans = {number: _widened(plan, arms, shares) for number, plan in self.plans.items()}
        self._sums = (0, np.zeros(0))
        self._go_on(changed)

    def _go_on(self, changed: Any) -> None:
        """Continue from a state in which some tests restart."""
        self.state = changed
        self._begin(self.policy.plan(changed))

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers.

        Drafts are dropped first, because every plan of a stored state must be in the log as well.
        """
        self.drop_drafts()
        return {
            "state": self.policy.dump(self.state),
            "plans": {str(number): plan.to_json() for number, plan in self.plans.items()},
            "current": self.current,
            "numbers": self._numbers,
            "restricted": [[list(key), number] for key, number in self._restricted.items()],
            "pending": dump_pending(self._pending),
            "total": self._total,
            "record": None if self.record is None else self.record.to_json(),
            "retired": self.retired.tolist(),
            "unused": self.unused,
            "mixed": self._mixed,
            "cleared": self.cleared.tolist(),
            "maker": self._maker,
            "differences": self.differences.to_json(),
        }

    @classmethod
    def from_json(
        cls,
        policy: Policy[Any],
        arms: ArmSet,
        data: Mapping[str, Any],
        reference: int | None = None,
    ) -> "PolicyFeed":
        """Invert :meth:`to_json`."""
        out = cls.__new__(cls)
        out.policy = policy
        out.arms = arms
        out.state = policy.load(arms, data["state"])
        out.plans = {int(number): Plan.from_json(plan) for number, plan in data["plans"].items()}
        out.current = data["current"]
        out._numbers = data["numbers"]
        out._sums = (0, np.zeros(0))
        out._restricted = {tuple(key): number for key, number in data["restricted"]}
        out._reference = reference
        out._mixed = float(data["mixed"])
        out.cleared = np.array(data["cleared"], dtype=np.bool_)
        out.news = []
        out.is_reading = True
        out._drafts = []
        out._offset = 0
        out._pending = load_pending(data["pending"], len(arms))
        out._total = data["total"]
        out.unused = data["unused"]
        kept = data["record"]
        out.record = None if kept is None else Record.from_json(kept)
        out.retired = np.array(data["retired"], dtype=np.bool_)
        out._maker = str(data["maker"])
        out.differences = Differences.from_json(data["differences"])
        out._put_in_force()
        if out._is_foreign and not out.differences.count:
            out._note_difference()
        return out


def _cleared_at_first(count: int, reference: int | None) -> Mask:
    """Return a mask (K,) of arms that need no guardrail: the reference arm, or all without guardrails."""
    if reference is None:
        return np.ones(count, dtype=np.bool_)
    return np.asarray(np.arange(count) == reference)


def _is_evidence(plan: Plan) -> bool:
    """Tell whether late rounds of a plan bring its policy closer to the next plan."""
    return plan.rivals is None or bool(np.all(plan.rivals >= 0))


def _with_number(plan: Plan, number: int) -> Plan:
    return Plan(plan.probabilities, plan.rounds, plan.centre, number, plan.rivals)


def _with_rounds(plan: Plan, rounds: int) -> Plan:
    return Plan(plan.probabilities, rounds, plan.centre, plan.number, plan.rivals)


def _with_probabilities(plan: Plan, weights: Array) -> Plan:
    return Plan(weights / weights.sum(), plan.rounds, plan.centre, plan.number, plan.rivals)


def _shares_of_old(arms: ArmSet, before: int) -> Array:
    """Return shares (new, before) of the first arms that make up each new one, as far as they span it."""
    x = arms.features - arms.features[0]
    return np.asarray(np.linalg.lstsq(x[:before].T, x[before:].T, rcond=None)[0].T)


def _widened(plan: Plan, arms: ArmSet, shares: Array) -> Plan:
    """Return a plan with the arms after its own, which it never plays.

    Their values follow from those of its own arms by the features that they share: estimates of gaps to them
    are unbiased only if values are linear in the features.
    """
    centre = plan.centre
    new = len(arms) - plan.count
    if centre is not None:
        first = centre.values[0]
        values = np.append(centre.values, first + shares @ (centre.values - first))
        centre = Centre(values, centre.low, centre.high, centre.limit, centre.rewards)
    rivals = None if plan.rivals is None else np.pad(plan.rivals, (0, new))
    return Plan(np.pad(plan.probabilities, (0, new)), plan.rounds, centre, plan.number, rivals)
