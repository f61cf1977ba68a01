"""The policy's side of a personalised experiment: a distribution for every visitor."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ConflictError, ParameterError
from orthobandit.estimate import Plan
from orthobandit.experiment.ledger.policy_feed import ANYBODY, PolicyFeed, Visitor
from orthobandit.experiment.ledger.record import RuleRecord, rule_columns
from orthobandit.policy import Policy
from orthobandit.policy.contextual.handed_plan import HandedPlan
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.contextual.personalised import Personalised, PersonalState
from orthobandit.policy.contextual.rules import RuleComparison

# Seconds for which a plan that was handed out may be drawn from before it is asked for again, and in which no
# other one is made.
PLAN_SECONDS = 60.0


@dataclass(frozen=True)
class Version:
    """A personalised plan that was handed out to clients.

    Attributes
    ----------
    number : int
        Clients post their draws under it.
    plan : HandedPlan
    at : float
        When it was made.
    learnt : int
        Number of visitors that it was learnt from.
    """

    number: int
    plan: HandedPlan
    at: float
    learnt: int

    @classmethod
    def of_note(cls, data: Mapping[str, Any]) -> "Version":
        """Return the version that a note of the log holds."""
        handed = data["handed"]
        return cls(
            int(data["number"]),
            HandedPlan.from_json(handed["plan"]),
            float(handed["at"]),
            int(handed["learnt"]),
        )


class _Met(NamedTuple):
    """A visitor without a reward yet: the offer and the proposal's number, 0 until the arm is drawn."""

    offer: Offer
    proposal: int = 0


class PersonalFeed(PolicyFeed):
    """Plans for each visitor, and feeds the policy settled visitors one by one, in the order of draws.

    The current plan is no more than a number. Arms are drawn from distributions, one per visitor, which are
    logged with the visitor's context before the draw and used as they are when the log is read.

    For clients that draw by themselves, a plan for all visitors is logged and handed out as data. It is
    numbered like a distribution, and its number salts its draws.
    """

    policy: Personalised
    state: PersonalState
    record: RuleRecord | None  # type: ignore[assignment]

    def __init__(self, policy: Policy[Any], arms: ArmSet, reference: int | None = None) -> None:
        self._met: dict[int, _Met] = {}
        self.newest: Version | None = None
        self.keeps_entries = False  # whether the record keeps entries, and not their hash alone
        super().__init__(policy, arms, reference)

    def commit(self, settings: Mapping[str, Any] | None) -> None:
        """Start the record, before the first draw."""
        if settings is not None:
            self.record = RuleRecord.start(settings, keeps_entries=self.keeps_entries)

    # Distributions

    def distribution(self, available: Sequence[int] | None, visitor: Visitor = ANYBODY) -> int:
        """Return the number of a new distribution, for one visitor.

        Parameters
        ----------
        available : sequence of int, optional
            Arms that can be shown; all by default. Those that were retired cannot.
        visitor : Visitor
        """
        offer = self._offer(self._shown(available), visitor)
        plan = self._planned(offer)
        return self._note_distribution(offer, plan, visitor.features is not None)

    def can_show(self, number: int, arm: int, available: Sequence[int] | None) -> bool:  # noqa: ARG002
        """Tell whether an arm is among those that a visitor was offered."""
        return self.arms.labels[arm] in self._met[number].offer.labels

    def check_visitor(self, available: Sequence[int] | None, visitor: Visitor) -> None:
        """Raise the error of :meth:`distribution` if nothing can be planned for this visitor."""
        self._offer(self._shown(available), visitor)

    def admit(self, version: Version, context: Mapping[str, float], shares: Array) -> int:
        """Record the distribution (K_t,) that a visitor was drawn from at the edge; return its number."""
        shown = version.plan.arms
        offer = self._offer(shown, Visitor(context))
        plan = self._centred(shown, shares, version.plan.values(context), version.number)
        return self._note_distribution(offer, plan, has_features=False)

    def _note_distribution(self, offer: Offer, plan: Plan, has_features: bool) -> int:
        """Keep a visitor's distribution under a new number, and note it for the log."""
        self._numbers += 1
        self.plans[self._numbers] = plan
        self._met[self._numbers] = _Met(offer)
        data = {
            "number": self._numbers,
            "plan": plan.to_json(),
            **self._offer_data(offer, has_features=has_features),
        }
        self.news.append(("distribution", data))
        return self._numbers

    def _offer_data(self, offer: Offer, *, has_features: bool) -> dict[str, Any]:
        """Return an offer as plain values, for the log."""
        out = {
            "available": [self.arms.index(label) for label in offer.labels],
            "context": dict(offer.context),
        }
        if has_features:
            out["features"] = dict(zip(offer.labels, offer.features.tolist(), strict=True))
        return out

    def _offer_of(self, data: Mapping[str, Any]) -> Offer:
        """Return the offer that a note or a state holds."""
        return self._offer(data["available"], Visitor(data["context"], data.get("features")))

    def _shown(self, available: Sequence[int] | None) -> list[int]:
        """Return the arms that can be shown to a visitor."""
        asked = range(len(self.arms)) if available is None else sorted(set(available))
        if not asked or asked[0] < 0 or asked[-1] >= len(self.arms):
            raise ParameterError(f"available={available} must name at least one of the arms")
        shown = [arm for arm in asked if not self.retired[arm]]
        if not shown:
            raise ParameterError(f"available={available}: all of these arms were retired")
        return shown

    def _offer(self, shown: Sequence[int], visitor: Visitor) -> Offer:
        labels = [self.arms.labels[arm] for arm in shown]
        return self.policy.offer(self.arms, visitor.context, labels, visitor.features)

    def _planned(self, offer: Offer) -> Plan:
        """Return the distribution over all arms (K,), with their estimated rewards."""
        shown = [self.arms.index(label) for label in offer.labels]
        shares = self.policy.plan_for(self.state, offer).probabilities
        return self._centred(shown, shares, self.policy.estimate(self.state, offer), int(self.plan.number))

    def _centred(self, shown: Sequence[int], shares: Array, values: Array, number: int) -> Plan:
        """Extend a plan over the arms shown to all arms; forecasts learn from rewards minus `values`."""
        count = len(self.arms)
        probabilities = np.zeros(count)
        probabilities[list(shown)] = shares
        every = np.zeros(count)
        every[list(shown)] = values
        centre = self.policy.confidence.centre(every, probabilities > 0)
        return Plan(probabilities, 1, centre, number)

    # Plans that are handed out

    def needs_version(self, at: float) -> bool:
        """Tell whether a new plan is due: the newest is old, or offers an arm that was retired."""
        newest = self.newest
        if newest is None or list(newest.plan.arms) != self._shown(None):
            return True
        learnt = int(self.state.learnt.rounds)
        return learnt > newest.learnt and at >= newest.at + PLAN_SECONDS

    def hand_out(self, at: float) -> Version:
        """Make a plan for all visitors from what is known, for the log and for clients."""
        shown = self._shown(None)
        plan = self.policy.hand_out(self.state, shown)
        self._numbers += 1
        version = Version(self._numbers, plan, float(at), int(self.state.learnt.rounds))
        self.newest = version
        self.news.append(("distribution", self._version_note(version)))
        return version

    def _version_note(self, version: Version) -> dict[str, Any]:
        """Return a plan that was handed out as plain values, for the log."""
        shares = np.zeros(len(self.arms))
        shares[list(version.plan.arms)] = 1.0 / len(version.plan.arms)
        return {
            "number": version.number,
            # The plan of visitors of whom nothing is known; nobody is drawn from it.
            "plan": Plan(shares, 1, number=version.number).to_json(),
            "available": list(version.plan.arms),
            "handed": {"plan": version.plan.to_json(), "at": version.at, "learnt": version.learnt},
        }

    # Reading a log

    def adopt(self, kind: str, data: Mapping[str, Any]) -> list[int]:
        """Apply a note of the log: the current plan, or the distribution of one visitor."""
        if kind == "plan":
            return super().adopt(kind, data)
        self._drop_drafts()
        number = int(data["number"])
        if number <= self._numbers:
            return []
        if number != self._numbers + 1:
            raise ConflictError(
                f"{kind} {number} of the log comes after number {self._numbers}; restore a copy"
            )
        self._numbers = number
        if "handed" in data:
            self.newest = Version.of_note(data)
            return []
        self.plans[number] = Plan.from_json(data["plan"])
        self._met[number] = _Met(self._offer_of(data))
        return []

    # What is learnt

    def meet(self, number: int, proposal: int, arm: int, forecast: float, *, is_held: bool) -> None:
        """Note that a visitor's arm was drawn from a distribution; the reward is not known yet."""
        offer = self._met[number].offer
        self._met[number] = _Met(offer, proposal)
        if self.record is not None:
            context = {name: float(offer.context[name]) for name in self._rule_columns}
            self.record.visitor(proposal, self.plans[number], arm, context, forecast, is_held=is_held)

    @cached_property
    def _rule_columns(self) -> tuple[str, ...]:
        return rule_columns(self.policy, self.arms)

    def learn(self, number: int, arms: Whole, rewards: Array, forecasts: Array) -> None:
        """Learn from the settled visitor of a distribution; `rewards` is empty if it is missing."""
        met = self._met[number]
        if self.record is not None:
            self.record.reward(met.proposal, float(rewards[0]) if len(rewards) else None)
        offer, own, shown = self._own(number)
        for arm, reward, forecast in zip(arms.tolist(), rewards, forecasts, strict=True):
            self.state = self.policy.learn(
                self.state,
                offer,
                own,
                shown.index(arm),
                float(reward),
                float(forecast),
                self.plans[number].values[shown],
            )

    def compare(
        self, before: RuleComparison, number: int, arms: Whole, values: Array, forecasts: Array
    ) -> RuleComparison:
        """Return a metric's comparison of rules, updated with the settled visitor of a distribution."""
        offer, own, shown = self._own(number)
        out = before
        for arm, value, forecast in zip(arms.tolist(), values, forecasts, strict=True):
            out = out.add(offer, own, shown.index(arm), float(value), forecast=float(forecast))
        return out

    def _own(self, number: int) -> tuple[Offer, Plan, list[int]]:
        """Return the visitor's offer, the plan over its rows, and the arm of each row."""
        offer = self._met[number].offer
        plan = self.plans[number]
        shown = [self.arms.index(label) for label in offer.labels]
        return offer, Plan(plan.probabilities[shown], 1, number=plan.number), shown

    def forget(self, in_use: Collection[int]) -> None:
        """Forget distributions that no proposal belongs to any more."""
        kept = {*in_use, self.current}
        self.plans = {number: plan for number, plan in self.plans.items() if number in kept}
        self._met = {number: met for number, met in self._met.items() if number in kept}

    def now(self) -> PersonalState:
        """Return the policy's state, which includes everything that is settled."""
        return self.state

    def retire(self, arm: int) -> None:
        """Retire an arm: it is no longer offered to anybody."""
        if np.count_nonzero(~self.retired) <= 1:
            raise ParameterError("the last arm cannot be retired; stop the experiment instead")
        out: Mask = np.arange(len(self.arms)) == arm
        self.retired = self.retired | out
        if self.record is not None:
            self.record.retire(arm)

    def extend(self, arms: ArmSet) -> None:  # noqa: ARG002 - the contract
        """Refuse new arms: the rules and their share of δ were fixed before the first visitor."""
        raise ParameterError("a personalised experiment cannot take in new arms; begin another one")

    # As JSON

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        brings_features = bool(self.policy.features)
        offers = {
            str(number): {
                **self._offer_data(met.offer, has_features=brings_features),
                "proposal": met.proposal,
            }
            for number, met in self._met.items()
        }
        newest = None if self.newest is None else self._version_note(self.newest)
        return {**super().to_json(), "offers": offers, "newest": newest}

    @classmethod
    def from_json(
        cls,
        policy: Policy[Any],
        arms: ArmSet,
        data: Mapping[str, Any],
        reference: int | None = None,
    ) -> "PersonalFeed":
        """Invert :meth:`to_json`."""
        out = super().from_json(policy, arms, {**data, "record": None}, reference)
        if not isinstance(out, PersonalFeed):
            raise TypeError(f"{type(out).__name__} is not a {cls.__name__}")
        out._met = {
            int(number): _Met(out._offer_of(one), int(one["proposal"]))
            for number, one in data["offers"].items()
        }
        newest = data["newest"]
        out.newest = None if newest is None else Version.of_note(newest)
        out.keeps_entries = False
        record = data["record"]
        out.record = None if record is None else RuleRecord.from_json(record)
        return out
