"""The contract of policies whose plans are recorded: one that keeps it passes, and no other does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from orthobandit import ArmSet, Decision, Plan
from orthobandit.policy.contract import Batch, OfferSpace, PlanRecord, Policy
from orthobandit.testing.contract import check_contract


class Memory(NamedTuple):
    """Sums of a regression (…, d, d) and (…, d), and the rows of fixed arms."""

    gram: np.ndarray
    moment: np.ndarray
    plans: np.ndarray
    features: np.ndarray | None


@dataclass(frozen=True)
class Greedy:
    """Plays what a regression without an intercept says is best, and a fifth of the time anything."""

    exploration: float = 0.2
    baseline = None

    def start(
        self,
        space: Any,
        batch: tuple[int, ...] = (),
        **_: Any,
    ) -> Memory:
        d = space.dimension if isinstance(space, OfferSpace) else space.features.shape[1]
        features = None if isinstance(space, OfferSpace) else space.features
        return Memory(
            np.zeros((*batch, d, d)), np.zeros((*batch, d)), np.zeros(batch, dtype=np.int64), features
        )

    def plan(self, state: Memory, offer: Any = None) -> tuple[Plan, PlanRecord]:
        features = state.features if offer is None else offer.features
        count, d = features.shape
        theta = np.linalg.solve(state.gram + np.eye(d), state.moment[..., np.newaxis])[..., 0]
        leader = np.argmax(np.sum(features * theta[..., np.newaxis, :], axis=-1), axis=-1)
        batch = state.moment.shape[:-1]
        p = np.full((*batch, count), self.exploration / count)
        np.put_along_axis(p, leader[..., np.newaxis], 1 - self.exploration * (count - 1) / count, axis=-1)
        record = PlanRecord(
            np.ones((*batch, count), dtype=bool),
            leader,
            np.full(batch, -1),
            np.full(batch, np.inf),
            np.zeros(batch),
        )
        return Plan(p, 1 if offer is not None else 100, number=state.plans), record

    def observe(self, state: Memory, batches: Sequence[Batch]) -> Memory:
        gram, moment = state.gram, state.moment
        for batch in batches:
            x = state.features if batch.offer is None else batch.offer.features
            gram = gram + np.einsum("...k,ki,kj->...ij", batch.tally.counts, x, x)
            moment = moment + np.einsum("...k,ki->...i", batch.tally.sums, x)
        return state._replace(gram=gram, moment=moment)

    def adopt(self, state: Memory, plan: Plan, _: PlanRecord) -> Memory:
        return state._replace(plans=np.asarray(plan.number + 1))

    def decide(self, _: Memory, record: PlanRecord) -> Decision:
        return Decision(record.active, record.leader, record.declared, record.epsilon, 0.0, "none")


# Features are halves and quarters here, so that sums are exact in any order.
SPACES = [ArmSet(np.array([[0.0, 0.0], [1.0, 0.5], [0.25, -1.0], [1.0, 0.5]])), ArmSet.one_hot(1)]


@pytest.mark.parametrize("space", SPACES, ids=["four arms", "one arm"])
def test_a_policy_that_keeps_the_contract_passes(space: ArmSet) -> None:
    policy: Policy[Memory] = Greedy()
    check_contract(policy, space)


class Planner(Greedy):
    """Remembers what it planned in a place of its own."""

    asked: list[int] = []  # noqa: RUF012 - the fault that the contract must find

    def plan(self, state: Memory, offer: Any = None) -> tuple[Plan, PlanRecord]:
        self.asked.append(1)
        plan, record = super().plan(state, offer)
        return Plan(plan.probabilities, 50 + len(self.asked), number=plan.number), record


class Recorder(Greedy):
    """Adopts something that its record does not hold."""

    def adopt(self, state: Memory, plan: Plan, record: PlanRecord) -> Memory:
        return state._replace(plans=np.asarray(plan.number + 1 + id(record) % 1000))


class Declarer(Greedy):
    """Declares while it observes."""

    def decide(self, state: Memory, record: PlanRecord) -> Decision:
        best = np.argmax(state.moment @ state.features.T, axis=-1)
        return Decision(record.active, record.leader, best, record.epsilon, 0.0, "none")


class Counter(Greedy):
    """Counts calls instead of rounds."""

    def observe(self, state: Memory, batches: Sequence[Batch]) -> Memory:
        return super().observe(state, batches)._replace(plans=state.plans + len(batches))


class Writer(Greedy):
    """Adds to the sums of the state that it was given."""

    def observe(self, state: Memory, batches: Sequence[Batch]) -> Memory:
        out = super().observe(state, batches)
        state.gram[...] = out.gram
        return out


class Dropper(Greedy):
    """Drops an arm and draws it all the same."""

    def plan(self, state: Memory, offer: Any = None) -> tuple[Plan, PlanRecord]:
        plan, record = super().plan(state, offer)
        active = np.array(record.active)
        np.put_along_axis(active, (record.leader[..., np.newaxis] + 1) % plan.count, values=False, axis=-1)
        return plan, PlanRecord(active, record.leader, record.declared, record.epsilon, record.stage)


class Mixer(Greedy):
    """Lets replications of a batch learn from each other."""

    def plan(self, state: Memory, offer: Any = None) -> tuple[Plan, PlanRecord]:
        mean = state.moment.mean(axis=tuple(range(state.moment.ndim - 1)), keepdims=True)
        return super().plan(state._replace(moment=np.broadcast_to(mean, state.moment.shape)), offer)


@pytest.mark.parametrize(
    ("policy", "clause"),
    [
        (Planner(), "asking twice for the plan"),
        (Recorder(), "leads to another state when adopted"),
        (Declarer(), "observing changes what is declared"),
        (Counter(), "a tally of no rounds changes the state"),
        (Writer(), "changes its arguments"),
        (Dropper(), "an arm that is not active may be drawn"),
        (Mixer(), "plans otherwise than its single run|has another"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Greedy) else "",
)
def test_a_broken_clause_is_named(policy: Greedy, clause: str) -> None:
    with pytest.raises(AssertionError, match=clause):
        check_contract(policy, SPACES[0])


def test_rounds_with_features_of_their_own_keep_the_same_contract() -> None:
    check_contract(Greedy(), OfferSpace(2))


def test_a_class_is_no_policy() -> None:
    with pytest.raises(AssertionError, match="check an object of it"):
        check_contract(Greedy, SPACES[0])  # type: ignore[arg-type]
