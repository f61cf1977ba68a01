"""The requests that an experiment's methods make: arguments checked, to be done in turn with those of others.

:class:`Experiment` waits for a request in its thread, :class:`AsyncExperiment` in a coroutine. What a method
means is said here, once for both.
"""

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.certificate import Certificate
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.arguments import arm_of, covariates_of, numbers_of, values_of
from orthobandit.experiment.certificate import certify_book, head_of
from orthobandit.experiment.commit import requests
from orthobandit.experiment.commit.group import Asking, Telling
from orthobandit.experiment.commit.transaction import Turn
from orthobandit.experiment.draw.edge_plan import EdgePlan
from orthobandit.experiment.draw.exposures import Exposed, Known, batch_of, expose, named
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.report.overview import Glance, glance_of
from orthobandit.experiment.report.report import Report, report_of
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store import Store

Rewards = float | Mapping[str, float]
ManyRewards = ArrayLike | Mapping[str, ArrayLike]
LARGEST = 2**63 - 1  # number that a proposal can have


class Methods:
    """Makes requests of one experiment; arguments as those of :class:`~orthobandit.Experiment`."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

    def ask(
        self,
        names: Sequence[str | None],
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
    ) -> Asking:
        """Return what draws a proposal for each name."""
        return Asking(self._ask, names, available, covariates_of(covariates, len(names)))

    def _ask(
        self,
        turn: Turn,
        names: Sequence[str | None],
        available: Sequence[int | str] | None,
        covariates: Sequence[Covariates] | None,
    ) -> list[Proposal]:
        turn.ledger.settle(self._clock())
        shown = None if available is None else [arm_of(turn.ledger.arms, arm) for arm in available]
        return requests.ask(turn, self._store, names, shown, covariates)

    def tell(self, number: int, reward: Rewards) -> Telling:
        """Return what tells the reward of one proposal."""
        if type(number) is int and type(reward) is float and 0 < number <= LARGEST:
            return Telling(self._tell, [number], {self._settings.names[0]: [reward]})
        many = reward if isinstance(reward, Mapping) else {self._settings.names[0]: reward}
        return self.tell_many([number], {name: [value] for name, value in many.items()})

    def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> Telling:
        """Return what tells rewards of several proposals."""
        many = rewards if isinstance(rewards, Mapping) else {self._settings.names[0]: rewards}
        numbers = numbers_of(ids)
        values = {name: values_of(name, given, len(numbers)) for name, given in many.items()}
        return Telling(self._tell, numbers, values)

    def _tell(self, turn: Turn, numbers: Whole, values: Mapping[str, Array]) -> None:
        turn.ledger.settle(self._clock())
        requests.tell(turn, self._store, numbers, values)

    def expose(
        self,
        plan: int,
        units: Sequence[str],
        arms: Sequence[int] | Whole,
        rewards: Known | Mapping[str, Known] | None = None,
        covariates: Sequence[Covariates] | None = None,
    ) -> Callable[[Turn], Exposed]:
        """Return what takes in draws of others."""
        batch = batch_of(plan, units, arms, named(rewards, self._settings.names[0]), covariates)

        def request(turn: Turn) -> Exposed:
            turn.ledger.settle(self._clock())
            return expose(turn, self._store, batch)

        return request

    def begin(self, turn: Turn) -> None:
        """Log what binds the experiment, and with it the first plan, unless that was done before."""
        if not turn.seq:
            turn.ledger.note(self._clock(), "begin", commitment=self._settings.commitment())

    def note(self, kind: str, reason: str | None = None) -> Callable[[Turn], None]:
        """Return what logs a tick, a pause, a resumption, or a stop with its reason."""
        data = {} if reason is None else {"reason": reason}
        return lambda turn: turn.ledger.note(self._clock(), kind, **data)

    def retire(self, arm: int | str) -> Callable[[Turn], None]:
        """Return what takes an arm out."""

        def request(turn: Turn) -> None:
            turn.ledger.note(self._clock(), "retire", arm=arm_of(turn.ledger.arms, arm))

        return request

    def extend(self, arms: ArmSet | Callable[[ArmSet], ArmSet]) -> Callable[[Turn], None]:
        """Return what adds arms."""

        def request(turn: Turn) -> None:
            new = arms if isinstance(arms, ArmSet) else arms(turn.ledger.arms)
            turn.ledger.note(self._clock(), "extend", features=new.features.tolist(), labels=list(new.labels))

        return request

    def known(self, unit: str) -> Callable[[Turn], Proposal | None]:
        """Return what looks up the first proposal of a unit."""
        return lambda turn: requests.known(turn, self._store, unit)

    def arms(self, turn: Turn) -> ArmSet:
        """Return the arms by now."""
        return turn.ledger.arms

    def edge_plan(self, turn: Turn) -> EdgePlan:
        """Return the plan in force for those who draw without asking."""
        return EdgePlan.of(turn.ledger)

    def report(self, turn: Turn) -> Report:
        """Return what is known now, after settling what the clock has settled."""
        self.settle(turn)
        return report_of(turn.ledger)

    def settle(self, turn: Turn) -> int:
        """Settle what the clock has settled; return how many proposals, the first ones, are settled."""
        now = self._clock()
        if turn.ledger.is_due(now):
            turn.ledger.settle(now)
        return turn.ledger.waiting.first - 1

    def glance(self, turn: Turn) -> Glance:
        """Return what can be seen without writing anything."""
        return glance_of(turn.ledger)

    def certificate(self, turn: Turn) -> Certificate:
        """Return what the decision rests on."""
        return certify_book(turn.ledger.book)

    def head(self, turn: Turn) -> str:
        """Return the number of entries and the hash over all of them, to publish."""
        return head_of(turn.ledger.book)
