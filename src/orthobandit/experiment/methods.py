"""What asking, telling and exposing request: arguments checked, to be done in turn with those of others."""

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from orthobandit._types import Whole
from orthobandit.estimate.forecaster import Covariates
from orthobandit.experiment import requests
from orthobandit.experiment.arguments import arm_of, covariates_of, numbers_of, values_of
from orthobandit.experiment.exposures import Exposed, Known, batch_of, expose, named
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store import Store
from orthobandit.experiment.turn import Asking, Request, Turn

Rewards = float | Mapping[str, float]
ManyRewards = ArrayLike | Mapping[str, ArrayLike]


class Methods:
    """Makes requests of one experiment; arguments as those of :class:`~orthobandit.Experiment`."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store, self._settings, self._clock = store, settings, clock

    def ask(
        self,
        names: Sequence[str | None],
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
    ) -> Request:
        """Return what draws a proposal for each name."""
        given = covariates_of(covariates, len(names))

        def request(turn: Turn) -> list[Proposal]:
            turn.ledger.settle(self._clock())
            shown = None if available is None else [arm_of(turn.ledger.arms, arm) for arm in available]
            return requests.ask(turn, self._store, names, shown, given)

        return Asking(names, request) if self._settings.sticky else request

    def tell(self, number: int, reward: Rewards) -> Callable[[Turn], None]:
        """Return what tells the reward of one proposal."""
        many = reward if isinstance(reward, Mapping) else {self._settings.names[0]: reward}
        return self.tell_many([number], {name: [value] for name, value in many.items()})

    def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> Callable[[Turn], None]:
        """Return what tells rewards of several proposals."""
        many = rewards if isinstance(rewards, Mapping) else {self._settings.names[0]: rewards}
        numbers = numbers_of(ids)
        values = {name: values_of(name, given, len(numbers)) for name, given in many.items()}

        def request(turn: Turn) -> None:
            turn.ledger.settle(self._clock())
            requests.tell(turn, self._store, numbers, values)

        return request

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
