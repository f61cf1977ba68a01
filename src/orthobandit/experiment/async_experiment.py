"""Experiments for coroutines: many can wait for the disk without a thread each."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from orthobandit._foundation.types import Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.certificate import Certificate
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.arguments import OfferedFeatures, unit_of, units_of
from orthobandit.experiment.commit.requests import ManyRewards, Rewards
from orthobandit.experiment.draw.audit import Audit, Replay
from orthobandit.experiment.draw.edge_plan import EdgePlan
from orthobandit.experiment.draw.exposures import Exposed, Known
from orthobandit.experiment.experiment import Experiment, PolicyState, refuse_copies
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.report.overview import Glance
from orthobandit.experiment.report.report import Report
from orthobandit.experiment.settings import Metric, Options, RewardRange, Settings, Silence, Unknown
from orthobandit.policy import Policy


class AsyncExperiment:
    """An :class:`Experiment` whose methods are awaited: the same names, arguments, answers and errors.

    Once a method has been awaited, its effect is on disk. Requests of coroutines and threads share commits. A
    request that is cancelled may still be carried out. The property :attr:`Experiment.arms`, which may have
    to wait, is a method here.

    Parameters
    ----------
    experiment : Experiment
        May be the result of :meth:`Experiment.once`. Both may be used side by side.

    Examples
    --------
    >>> import asyncio
    >>> from orthobandit import ArmSet
    >>> async def visit():
    ...     async with await AsyncExperiment.memory(ArmSet.one_hot(2), rewards=(0, 1)) as pages:
    ...         proposal = await pages.ask("user-17")
    ...         await pages.tell(proposal.id, 1.0)
    ...         return (await pages.report()).settled
    >>> asyncio.run(visit())
    1
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._methods = experiment._methods
        self._soon = experiment._soon

    # Making one

    @classmethod
    async def create(
        cls,
        where: str | Path,
        arms: ArmSet,
        policy: Policy[PolicyState] | None = None,
        *,
        rewards: RewardRange | Unknown | None = Options.rewards,
        expect: float | None = Options.expect,
        window: str | float | None = Options.window,
        silence: Silence = Options.silence,
        sticky: bool = Options.sticky,
        reference: int | str = Options.reference,
        holdout: float = Options.holdout,
        objective: str = Options.objective,
        add: bool = Options.add,
        metrics: Sequence[Metric] = Options.metrics,
        guardrails: Sequence[Guardrail] = Options.guardrails,
        key: str | None = Options.key,
        name: str = "experiment",
        clock: Callable[[], float] = time.time,
    ) -> "AsyncExperiment":
        """Begin an experiment that is kept in a file or a database; see :meth:`Experiment.create`."""
        made = await asyncio.to_thread(
            Experiment.create,
            where,
            arms,
            policy,
            rewards=rewards,
            expect=expect,
            window=window,
            silence=silence,
            sticky=sticky,
            reference=reference,
            holdout=holdout,
            objective=objective,
            add=add,
            metrics=metrics,
            guardrails=guardrails,
            key=key,
            name=name,
            clock=clock,
        )
        return cls(made)

    @classmethod
    async def open(
        cls,
        where: str | Path,
        policy: Policy[PolicyState] | None = None,
        *,
        name: str = "experiment",
        clock: Callable[[], float] = time.time,
    ) -> "AsyncExperiment":
        """Go on with an experiment that was created before; see :meth:`Experiment.open`."""
        return cls(await asyncio.to_thread(Experiment.open, where, policy, name=name, clock=clock))

    @classmethod
    async def memory(
        cls,
        arms: ArmSet,
        policy: Policy[PolicyState] | None = None,
        *,
        rewards: RewardRange | Unknown | None = Options.rewards,
        expect: float | None = Options.expect,
        window: str | float | None = Options.window,
        silence: Silence = Options.silence,
        sticky: bool = Options.sticky,
        reference: int | str = Options.reference,
        holdout: float = Options.holdout,
        objective: str = Options.objective,
        add: bool = Options.add,
        metrics: Sequence[Metric] = Options.metrics,
        guardrails: Sequence[Guardrail] = Options.guardrails,
        key: str | None = Options.key,
        clock: Callable[[], float] = time.time,
    ) -> "AsyncExperiment":
        """Begin an experiment that lasts as long as the process; see :meth:`Experiment.memory`."""
        made = await asyncio.to_thread(
            Experiment.memory,
            arms,
            policy,
            rewards=rewards,
            expect=expect,
            window=window,
            silence=silence,
            sticky=sticky,
            reference=reference,
            holdout=holdout,
            objective=objective,
            add=add,
            metrics=metrics,
            guardrails=guardrails,
            key=key,
            clock=clock,
        )
        return cls(made)

    # Using it

    async def arms(self) -> ArmSet:
        """Return the current arms; see :attr:`Experiment.arms`."""
        return await self._soon(self._methods.arms)

    @property
    def settings(self) -> Settings:
        """The settings of the experiment."""
        return self._experiment.settings

    async def ask(
        self,
        unit: str | None = None,
        *,
        available: Sequence[int | str] | None = None,
        covariates: Covariates | None = None,
        context: Covariates | None = None,
        features: OfferedFeatures | None = None,
    ) -> Proposal:
        """Return an arm to show; see :meth:`Experiment.ask`."""
        own = None if features is None else [features]
        [found] = await self._soon(self._methods.ask([unit_of(unit)], available, covariates, context, own))
        return found

    async def ask_many(
        self,
        count: int | None = None,
        *,
        units: Sequence[str] | None = None,
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
        context: Covariates | Sequence[Covariates] | None = None,
        features: Sequence[OfferedFeatures] | None = None,
    ) -> list[Proposal]:
        """Return several arms to show; see :meth:`Experiment.ask_many`."""
        return await self._soon(
            self._methods.ask(units_of(count, units), available, covariates, context, features)
        )

    async def known(self, unit: str) -> Proposal | None:
        """Return the first proposal of a unit, if it has one; see :meth:`Experiment.known`."""
        return await self._soon(self._methods.known(unit))

    async def tell(self, id: int, reward: Rewards) -> None:  # noqa: A002
        """Tell the reward of a proposal; see :meth:`Experiment.tell`."""
        await self._soon(self._methods.tell(id, reward))

    async def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> None:
        """Tell the rewards of several proposals; see :meth:`Experiment.tell_many`."""
        await self._soon(self._methods.tell_many(ids, rewards))

    async def edge_plan(self) -> EdgePlan:
        """Return the plan in force for those who draw without asking; see :meth:`Experiment.edge_plan`."""
        return await self._soon(self._methods.edge_plan)

    async def expose(
        self,
        plan: int,
        units: Sequence[str],
        arms: Sequence[int] | Whole,
        rewards: Known | Mapping[str, Known] | None = None,
        *,
        covariates: Sequence[Covariates] | None = None,
        context: Sequence[Covariates] | None = None,
    ) -> Exposed:
        """Log draws that were made elsewhere; see :meth:`Experiment.expose`."""
        return await self._soon(self._methods.expose(plan, units, arms, rewards, covariates, context))

    async def tick(self) -> None:
        """Settle proposals whose window has passed; see :meth:`Experiment.tick`."""
        await self._soon(self._methods.note("tick"))

    async def pause(self) -> None:
        """Refuse to be asked until :meth:`resume`; see :meth:`Experiment.pause`."""
        await self._soon(self._methods.note("pause"))

    async def resume(self) -> None:
        """Go on after :meth:`pause`."""
        await self._soon(self._methods.note("resume"))

    async def stop(self, reason: str = "") -> None:
        """End the experiment by hand; see :meth:`Experiment.stop`."""
        await self._soon(self._methods.note("stop", reason))

    async def retire(self, arm: int | str) -> None:
        """Take an arm out; see :meth:`Experiment.retire`."""
        await self._soon(self._methods.retire(arm))

    async def extend(self, arms: ArmSet | Callable[[ArmSet], ArmSet]) -> None:
        """Add arms; see :meth:`Experiment.extend`."""
        await self._soon(self._methods.extend(arms))

    def once(self, key: str, words: str = "") -> "AsyncExperiment":
        """Return this experiment for one change that may be repeated; see :meth:`Experiment.once`."""
        return AsyncExperiment(self._experiment.once(key, words))

    # Looking at it

    async def report(self) -> Report:
        """Return the report; see :meth:`Experiment.report`."""
        return await self._soon(self._methods.report)

    async def glance(self) -> Glance:
        """Return the report without writing anything; see :meth:`Experiment.glance`."""
        return await self._soon(self._methods.glance)

    async def audit(self) -> Audit:
        """Compute every draw again from the key; see :meth:`Experiment.audit`."""
        return await asyncio.to_thread(self._experiment.audit)

    async def replay(self) -> Replay:
        """Rebuild the state from the log alone, and compare; see :meth:`Experiment.replay`."""
        return await asyncio.to_thread(self._experiment.replay)

    async def export(self, path: str | Path, *, raw: bool = False) -> None:
        """Write every proposal to a CSV or Parquet file; see :meth:`Experiment.export`."""
        await asyncio.to_thread(self._experiment.export, path, raw=raw)

    async def certificate(self) -> Certificate:
        """Return the certificate of the decision; see :meth:`Experiment.certificate`."""
        return await asyncio.to_thread(self._experiment.certificate)

    async def head(self) -> str:
        """Return a line to publish while the experiment runs; see :meth:`Experiment.head`."""
        return await self._soon(self._methods.head)

    async def close(self) -> None:
        """Save the state and close the file; a second call does nothing."""
        await asyncio.to_thread(self._experiment.close)

    async def __aenter__(self) -> "AsyncExperiment":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied; see :class:`Experiment`."""
        refuse_copies(self)
