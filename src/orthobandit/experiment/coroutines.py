"""Experiments for coroutines: many can wait for the disk without a thread each."""

from collections.abc import Mapping, Sequence
from typing import Any

from orthobandit._types import Whole
from orthobandit.estimate.forecaster import Covariates
from orthobandit.experiment.arguments import units_of
from orthobandit.experiment.experiment import Experiment
from orthobandit.experiment.exposures import Exposed, Known
from orthobandit.experiment.methods import ManyRewards, Rewards
from orthobandit.experiment.proposal import Proposal


class AsyncExperiment:
    """Asks and tells an experiment as its own methods do; when awaited, what was done is on disk.

    Requests of coroutines and of threads share commits. One that is cancelled may be done all the same.

    Parameters
    ----------
    experiment : Experiment
        May be what :meth:`Experiment.once` returned.

    Examples
    --------
    >>> import asyncio
    >>> from orthobandit import ArmSet
    >>> pages = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1))
    >>> async def visit():
    ...     proposal = await AsyncExperiment(pages).ask(unit="user-17")
    ...     await AsyncExperiment(pages).tell(proposal.id, 1.0)
    >>> asyncio.run(visit())
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment, self._methods = experiment, experiment._methods

    async def ask(
        self,
        count: int | None = None,
        *,
        unit: str | None = None,
        units: Sequence[str] | None = None,
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
    ) -> Any:
        """Return an arm to show; see :meth:`Experiment.ask`."""
        names = units_of(count, unit, units)
        found: list[Proposal] = await self._experiment._soon(self._methods.ask(names, available, covariates))
        return found[0] if count is None and units is None else found

    async def tell(self, id: int, reward: Rewards) -> None:  # noqa: A002
        """Tell the reward of a proposal; see :meth:`Experiment.tell`."""
        await self._experiment._soon(self._methods.tell(id, reward))

    async def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> None:
        """Tell the rewards of several proposals; see :meth:`Experiment.tell_many`."""
        await self._experiment._soon(self._methods.tell_many(ids, rewards))

    async def expose(
        self,
        plan: int,
        units: Sequence[str],
        arms: Sequence[int] | Whole,
        rewards: Known | Mapping[str, Known] | None = None,
        *,
        covariates: Sequence[Covariates] | None = None,
    ) -> Exposed:
        """Take in draws that others made; see :meth:`Experiment.expose`."""
        request = self._methods.expose(plan, units, arms, rewards, covariates)
        return await self._experiment._soon(request)  # type: ignore[no-any-return]
