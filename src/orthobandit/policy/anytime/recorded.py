"""Anytime elimination whose plans are recorded facts: :class:`~orthobandit.policy.contract.Policy`.

    observe  adds tallies to those of the same plan
    plan     counts them on a copy, and decides: what to drop, who leads, what is claimed, where to play next
    adopt    counts them, and takes a plan that was made, with all that was decided

Counting depends on the order of the plans that rounds were drawn under. So tallies wait until a plan is made:
in which order and in how many parts they arrive makes no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.types import Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate import Baseline, Plan, Tally
from orthobandit.policy._states import check_possible
from orthobandit.policy.anytime.fields import Place
from orthobandit.policy.anytime.policy import AnytimeElimination
from orthobandit.policy.anytime.stages import AnytimeState
from orthobandit.policy.base import Decision
from orthobandit.policy.contract import Batch, PlanRecord, Space

if TYPE_CHECKING:
    from orthobandit.policy.contextual.offers import Offer


class ObservedState(NamedTuple):
    """The memory of :class:`RecordedElimination`.

    Attributes
    ----------
    state : AnytimeState
        All that was counted when the plan in force was adopted.
    batches : tuple of Batch
        Rounds observed since, one entry for each plan, in the order of their numbers.
    """

    state: AnytimeState
    batches: tuple[Batch, ...] = ()


@dataclass(frozen=True)
class RecordedElimination:
    """Anytime elimination by the contract of recorded plans.

    Parameters
    ----------
    settings : AnytimeElimination

    Examples
    --------
    >>> policy = RecordedElimination(AnytimeElimination(delta=0.1))
    >>> observed = policy.start(ArmSet([[0.0], [1.0]]))
    >>> plan, record = policy.plan(observed)
    >>> plan.probabilities.tolist(), int(record.declared)
    ([0.5, 0.5], -1)
    """

    settings: AnytimeElimination

    @property
    def baseline(self) -> Baseline:
        """Settings of the forecaster that runs beside the policy."""
        return self.settings.baseline

    def start(
        self,
        space: Space,
        batch: tuple[int, ...] = (),
        *,
        seed: int = 0,  # noqa: ARG002 - the policy draws no random numbers
        replications: Whole | None = None,  # noqa: ARG002
    ) -> ObservedState:
        """Return the state before the first plan."""
        if not isinstance(space, ArmSet):
            raise ParameterError(f"{type(self.settings).__name__} plays arms that stay; give an ArmSet")
        return ObservedState(self.settings.start(space, batch))

    def observe(self, observed: ObservedState, batches: Sequence[Batch]) -> ObservedState:
        """Return the state with further rounds, of any recorded plans."""
        by_numbers = {_numbers(batch): batch for batch in observed.batches}
        for batch in batches:
            plan, tally = batch.plan, batch.tally
            self._check(observed.state, plan, tally)
            if not tally.rounds.any():
                continue
            before = by_numbers.get(_numbers(batch))
            if before is None:
                # How many rounds were left when the plan was asked for says nothing about these rounds.
                plan = Plan(plan.probabilities, 0, plan.centre, plan.number, plan.rivals)
                by_numbers[_numbers(batch)] = Batch(plan, tally)
            else:
                by_numbers[_numbers(batch)] = Batch(before.plan, before.tally + tally)
        return ObservedState(observed.state, tuple(by_numbers[numbers] for numbers in sorted(by_numbers)))

    def _check(self, state: AnytimeState, plan: Plan, tally: Tally) -> None:
        if not state.active.shape == plan.probabilities.shape == tally.counts.shape:
            raise TallyError(
                f"plan and tally have shapes {plan.probabilities.shape} and {tally.counts.shape};"
                f" the state needs {state.active.shape}"
            )
        check_possible(plan, tally)
        self.settings.confidence.check_residuals(tally)

    def plan(self, observed: ObservedState, offer: "Offer | None" = None) -> tuple[Plan, PlanRecord]:  # noqa: ARG002
        """Return the next plan where a batch is complete, and all that was decided with it.

        Elsewhere the plan in force, with the rounds that are left of it.
        """
        confidence = self.settings.confidence
        added = self._added(observed.state, observed.batches)
        due = added.is_due
        details = dict[str, NDArray[Any]]()

        def plan_next(place: Place, counted: AnytimeState) -> AnytimeState:
            planned = counted.plan_next(self.settings)
            for name, detail in planned.details_since(counted).items():
                shape = (*due.shape, *detail.shape[len(planned.batch) :])
                details.setdefault(name, np.zeros(shape, dtype=detail.dtype))[place] = detail
            return planned

        planned = added.close(due, confidence, plan_next) if due.any() else added
        record = PlanRecord(
            planned.active,
            planned.leader,
            planned.declared,
            planned.epsilon,
            planned.stage,
            {
                "values": planned.values,
                "length": planned.length,
                "designed": planned.designed,
                **details,
            },
        )
        return self.settings.plan(planned), record

    def adopt(self, observed: ObservedState, plan: Plan, record: PlanRecord) -> ObservedState:
        """Return the state in which a recorded plan is in force."""
        is_new = np.asarray(plan.number != observed.state.plans)
        if not is_new.any():
            return observed
        counted = self._added(observed.state, _only(observed.batches, is_new))

        def take(place: Place, run: AnytimeState) -> AnytimeState:
            return run.adopt(plan.at(place), record.at(place))

        adopted = counted.close(is_new, self.settings.confidence, take)
        return ObservedState(adopted, _only(observed.batches, ~is_new))

    def _added(self, state: AnytimeState, batches: Sequence[Batch]) -> AnytimeState:
        """Count rounds of earlier plans, and add those of the plan in force to its tally."""
        late = [part for batch in batches for part in _only([batch], batch.plan.number != state.plans)]
        state = state.count_late(self.settings.confidence, late)
        for batch in batches:
            for part in _only([batch], batch.plan.number == state.plans):
                state = state.observe(part.tally)
        return state

    def decide(self, observed: ObservedState, record: PlanRecord) -> Decision:  # noqa: ARG002
        """Return what the newest record says; see :meth:`AnytimeElimination.decide`."""
        return Decision(
            active=record.active,
            leader=record.leader,
            declared=record.declared,
            epsilon=record.epsilon,
            certainty=1 - self.settings.delta,
            mode=self.settings.confidence.name,
        )


def _numbers(batch: Batch) -> tuple[int, ...]:
    """Return the numbers of a batch's plans, one for each replication."""
    return tuple(batch.plan.number.ravel().tolist())


def _only(batches: Sequence[Batch], where: Mask) -> tuple[Batch, ...]:
    """Return the rounds of some replications (...)."""
    parts = (Batch(batch.plan, batch.tally.without(np.asarray(~where))) for batch in batches)
    return tuple(batch for batch in parts if batch.tally.rounds.any())
