"""Experiments for coroutines: many can wait for the disk without a thread each."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import TracebackType
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from orthobandit._foundation.types import Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.arguments import OfferedFeatures, unit_of, units_of
from orthobandit.experiment.commit.requests import ManyRewards, Rewards
from orthobandit.experiment.draw.edge_plan import EdgePlan
from orthobandit.experiment.draw.exposures import Exposed, Known
from orthobandit.experiment.experiment import Experiment, refuse_copies
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.refusals import Refusal
from orthobandit.experiment.report.overview import Glance
from orthobandit.experiment.report.report import Report
from orthobandit.experiment.settings import Settings

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def _made_in_thread(
    make: Callable[Arguments, Experiment],
) -> Callable[Arguments, Coroutine[Any, Any, "AsyncExperiment"]]:
    """Turn a constructor of :class:`Experiment` into a coroutine that runs it in a thread."""

    @wraps(make)
    async def made(*args: Arguments.args, **kwargs: Arguments.kwargs) -> "AsyncExperiment":
        return AsyncExperiment(await asyncio.to_thread(make, *args, **kwargs))

    made.__signature__ = signature(make).replace(return_annotation="AsyncExperiment")  # type: ignore[attr-defined]
    return made


def _in_thread(
    method: Callable[Concatenate[Experiment, Arguments], Value],
) -> Callable[Concatenate["AsyncExperiment", Arguments], Coroutine[Any, Any, Value]]:
    """Turn a method of :class:`Experiment` that takes long into a coroutine that runs it in a thread."""

    @wraps(method)
    async def done(self: "AsyncExperiment", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        return await asyncio.to_thread(method, self._experiment, *args, **kwargs)

    return done


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
        if not isinstance(experiment, Experiment):
            raise ParameterError(
                f"experiment={experiment!r} must be an Experiment; to open one, await"
                " AsyncExperiment.open(path)"
            )
        self._experiment = experiment
        self._methods = experiment._methods
        self._soon = experiment._soon

    # Making one

    open_or_create = staticmethod(_made_in_thread(Experiment.open_or_create))
    create = staticmethod(_made_in_thread(Experiment.create))
    open = staticmethod(_made_in_thread(Experiment.open))
    memory = staticmethod(_made_in_thread(Experiment.memory))

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

    async def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> tuple[Refusal, ...]:
        """Tell the rewards of several proposals; see :meth:`Experiment.tell_many`."""
        return await self._soon(self._methods.tell_many(ids, rewards)) or ()

    async def edge_plan(self) -> EdgePlan:
        """Return the current plan for clients that draw by themselves; see :meth:`Experiment.edge_plan`."""
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
        """Refuse new proposals until :meth:`resume`; see :meth:`Experiment.pause`."""
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

    audit = _in_thread(Experiment.audit)
    replay = _in_thread(Experiment.replay)
    export = _in_thread(Experiment.export)
    certificate = _in_thread(Experiment.certificate)
    close = _in_thread(Experiment.close)

    async def head(self) -> str:
        """Return a line to publish while the experiment runs; see :meth:`Experiment.head`."""
        return await self._soon(self._methods.head)

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
