"""The policy's side of a personalised experiment: a distribution for every visitor."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from orthobandit._foundation.release import UNSTAMPED_RELEASE
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ConflictError, ParameterError
from orthobandit.estimate import Plan
from orthobandit.experiment.ledger.policy_feed import Book
from orthobandit.policy import Policy
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.contextual.personalised import Personalised, PersonalState


class PersonalBook(Book):
    """Plans for each visitor, and feeds the policy settled visitors one by one, in the order of draws.

    The plan in force says nothing but its number. Arms are drawn from distributions, one per visitor, which
    are logged with the visitor's context before the draw. Reading a log takes them as they are.
    """

    policy: Personalised
    state: PersonalState

    def __init__(self, policy: Policy[Any], arms: ArmSet, reference: int | None = None) -> None:
        self._offers: dict[int, Offer] = {}
        super().__init__(policy, arms, reference)

    def distribution(
        self, available: Sequence[int] | None, context: Mapping[str, float] | None = None
    ) -> int:
        """Return the number of a new distribution, for one visitor.

        Parameters
        ----------
        available : sequence of int, optional
            Arms that can be shown; all by default. Those that were retired cannot.
        context : mapping of str to float
        """
        asked = range(len(self.arms)) if available is None else sorted(set(available))
        if not asked or asked[0] < 0 or asked[-1] >= len(self.arms):
            raise ParameterError(f"available={available} must name at least one of the arms")
        shown = [arm for arm in asked if not self.retired[arm]]
        if not shown:
            raise ParameterError(f"available={available}: all of these arms were retired")
        offer = self._offer(shown, context)
        plan = self._planned(shown, offer)
        self._numbers += 1
        self.plans[self._numbers] = plan
        self._offers[self._numbers] = offer
        data = {
            "number": self._numbers,
            "plan": plan.to_json(),
            "available": shown,
            "context": dict(offer.context),
        }
        self.news.append(("distribution", data))
        return self._numbers

    def _offer(self, shown: Sequence[int], context: Mapping[str, float] | None) -> Offer:
        labels = self.arms.labels
        return self.policy.offer(self.arms, context, [labels[arm] for arm in shown])

    def _planned(self, shown: Sequence[int], offer: Offer) -> Plan:
        """Return the distribution over all arms (K,), with what they are estimated to earn."""
        count = len(self.arms)
        probabilities = np.zeros(count)
        probabilities[list(shown)] = self.policy.plan_for(self.state, offer).probabilities
        # Forecasts of the level learn from rewards less these.
        values = np.zeros(count)
        values[list(shown)] = self.policy.estimate(self.state, offer)
        centre = self.policy.confidence.centre(values, probabilities > 0)
        return Plan(probabilities, 1, centre, int(self.plan.number))

    def adopt(self, kind: str, data: Mapping[str, Any]) -> list[int]:
        """Take in a note of the log: the plan in force, or the distribution of one visitor."""
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
        self.plans[number] = Plan.from_json(data["plan"])
        self._offers[number] = self._offer(data["available"], data["context"])
        return []

    def learn(self, number: int, arms: Whole, rewards: Array, forecasts: Array) -> None:
        """Learn from settled visitors (n,) of one distribution, in the order of draws."""
        offer = self._offers[number]
        plan = self.plans[number]
        shown = [self.arms.index(label) for label in offer.labels]
        own = Plan(plan.probabilities[shown], 1, number=plan.number)
        for arm, reward, forecast in zip(arms.tolist(), rewards, forecasts, strict=True):
            self.state = self.policy.learn(
                self.state, offer, own, shown.index(arm), float(reward), float(forecast)
            )

    def forget(self, in_use: Collection[int]) -> None:
        """Forget distributions that no proposal belongs to any more."""
        kept = {*in_use, self.current}
        self.plans = {number: plan for number, plan in self.plans.items() if number in kept}
        self._offers = {number: offer for number, offer in self._offers.items() if number in kept}

    def now(self) -> PersonalState:
        """Return the policy's state, which has learnt from all that is settled."""
        return self.state

    def retire(self, arm: int) -> None:
        """Take an arm out: it is offered to nobody any more."""
        if np.count_nonzero(~self.retired) <= 1:
            raise ParameterError("the last arm cannot be retired; stop the experiment instead")
        self.retired = self.retired | (np.arange(len(self.arms)) == arm)

    def extend(self, arms: ArmSet) -> None:  # noqa: ARG002 - the contract
        """Refuse new arms: the rules and their share of δ were fixed before the first visitor."""
        raise ParameterError("a personalised experiment cannot take in new arms; begin another one")

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        offers = {
            str(number): {
                "available": [self.arms.index(label) for label in offer.labels],
                "context": dict(offer.context),
            }
            for number, offer in self._offers.items()
        }
        return {**super().to_json(), "offers": offers}

    @classmethod
    def from_json(
        cls,
        policy: Policy[Any],
        arms: ArmSet,
        data: Mapping[str, Any],
        reference: int | None = None,
        release: str = UNSTAMPED_RELEASE,
    ) -> "PersonalBook":
        """Invert :meth:`to_json`."""
        out = super().from_json(policy, arms, data, reference, release)
        if not isinstance(out, PersonalBook):
            raise TypeError(f"{type(out).__name__} is not a {cls.__name__}")
        out._offers = {
            int(number): out._offer(one["available"], one["context"])
            for number, one in data["offers"].items()
        }
        return out
