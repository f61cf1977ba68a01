"""The experiment: ask for an arm, tell its reward, at any time and in any order."""

import time
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any

from orthobandit._types import Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.certificate import Certificate
from orthobandit.estimate.forecaster import Covariates
from orthobandit.experiment import requests
from orthobandit.experiment.arguments import arm_of, settings_of, units_of
from orthobandit.experiment.audit import Audit, Replay, audited, replayed
from orthobandit.experiment.certificate import certify_book, head_of
from orthobandit.experiment.edge import EdgePlan
from orthobandit.experiment.export import write_export
from orthobandit.experiment.exposures import Exposed, Known
from orthobandit.experiment.glance import Glance, glance_of
from orthobandit.experiment.ledger import Ledger
from orthobandit.experiment.levels import check_kept
from orthobandit.experiment.methods import ManyRewards, Methods, Rewards
from orthobandit.experiment.once import check_key, once
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.report import Report, report_of
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.shared import SharedLedger
from orthobandit.experiment.store import MemoryStore, Store
from orthobandit.experiment.turn import Request, Turn
from orthobandit.policy import Policy


class Experiment:
    """An experiment on live traffic; make one with :meth:`create`, :meth:`open` or :meth:`memory`.

    All methods may be called from several threads, and several processes may have the same file open. When
    :meth:`ask` or :meth:`tell` has returned, what it did is on disk.

    Examples
    --------
    >>> from orthobandit import ArmSet, AnytimeElimination, Bounded, Experiment
    >>> policy = AnytimeElimination(confidence=Bounded(0, 1))
    >>> pages = Experiment.memory(ArmSet.one_hot(3, labels=["a", "b", "c"]), policy)
    >>> proposal = pages.ask(unit="user-17")
    >>> proposal.id, pages.ask(unit="user-17").id
    (1, 1)
    >>> pages.tell(proposal.id, 1.0)
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        self._shared, self._methods = SharedLedger(store, settings), Methods(store, settings, clock)
        self._once: Callable[[Request], Request] | None = None
        self._do(self._begin)

    def _do(self, request: Request) -> Any:
        return self._shared.do(request if self._once is None else self._once(request))

    def _soon(self, request: Request) -> Future[Any]:
        """Do a request while a coroutine waits; see :class:`AsyncExperiment`."""
        return self._shared.soon(request if self._once is None else self._once(request))

    def _begin(self, turn: Turn) -> None:
        """Log the beginning with what binds the experiment, and with it the first plan."""
        if not turn.seq:
            turn.ledger.note(self._clock(), "begin", commitment=self._settings.commitment())

    # Making one

    @classmethod
    def create(
        cls,
        where: str | Path,
        arms: ArmSet,
        policy: Policy[Any] | None = None,
        *,
        name: str = "experiment",
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> "Experiment":
        """Begin an experiment that is kept in a file or a database.

        Parameters
        ----------
        where : str or Path
            A file (SQLite), or the URL of a database.
        arms : ArmSet
        policy : Policy, optional
            By default :class:`AnytimeElimination` with the given `rewards`.
        name : str
            Several experiments may share a database.
        clock : callable
            Returns the time in seconds.
        **settings
            rewards : (float, float) — where every reward lies, if that is known: claims are then exact.
            window : str or float — how long rewards may take, e.g. ``"7d"``; by default for ever.
            silence : {"zero", "missing"} — what a proposal counts as that is silent within the window.
            sticky : bool — a unit that comes again gets its first proposal; True by default.
            reference : int or str — the arm that others are compared with; the first by default.
            holdout : float — share that is shown the reference arm for ever, reported apart.
            objective : str — the name of the reward, ``"reward"`` by default.
            add : bool — rewards of one proposal add up, and are final at the end of the window.
            metrics : sequence of :class:`Metric` — other numbers that are told.
            guardrails : sequence of :class:`Guardrail`
            key : str — 64 or 32 hexadecimal digits that draws are computed from; by default random, and kept
            with the experiment.
        """
        chosen = settings_of(arms, policy, settings)
        for metric in chosen.metrics:
            check_kept(metric.baseline)
        if chosen.policy.baseline is not None:
            check_kept(chosen.policy.baseline)
        with _closed_on_error(_stored(where, name)) as store:
            store.create(chosen.to_json())
            return cls(store, chosen, clock)

    @classmethod
    def open(
        cls,
        where: str | Path,
        policy: Policy[Any] | None = None,
        *,
        name: str = "experiment",
        clock: Callable[[], float] = time.time,
    ) -> "Experiment":
        """Go on with an experiment that was created before.

        Parameters
        ----------
        where, name, clock
            As in :meth:`create`.
        policy : Policy, optional
            Checked to be the one that the experiment was begun with; needed for policies of other packages.
        """
        with _closed_on_error(_stored(where, name)) as store:
            return cls(store, Settings.from_json(store.settings(), policy), clock)

    @classmethod
    def memory(
        cls,
        arms: ArmSet,
        policy: Policy[Any] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> "Experiment":
        """Begin an experiment that lasts as long as the process; settings as in :meth:`create`."""
        chosen, store = settings_of(arms, policy, settings), MemoryStore()
        store.create({})
        return cls(store, chosen, clock)

    # Using it

    @property
    def arms(self) -> ArmSet:
        """The arms by now."""
        return self._now().arms

    @property
    def settings(self) -> Settings:
        """What it was set up with."""
        return self._settings

    def ask(
        self,
        count: int | None = None,
        *,
        unit: str | None = None,
        units: Sequence[str] | None = None,
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
    ) -> Any:
        """Return an arm to show: a :class:`Proposal`, or a list of them for `count` or `units`.

        Parameters
        ----------
        count : int, optional
            How many, all drawn from what is known now.
        unit, units : str, sequence of str
            For whom. A unit that comes again gets its first proposal, and counts once.
        available : sequence of int or str, optional
            Arms, by number or label, that can be shown; all by default. The plan is restricted to them.
        covariates : dict, or sequence of dict
            What the baseline forecasts from, by name, for each proposal.
        """
        names = units_of(count, unit, units)
        found: list[Proposal] = self._do(self._methods.ask(names, available, covariates))
        return found[0] if count is None and units is None else found

    def known(self, unit: str) -> Proposal | None:
        """Return the first proposal of a unit, or None if it was never asked for; draws nothing."""
        return self._do(lambda turn: requests.known(turn, self._store, unit))  # type: ignore[no-any-return]

    def tell(self, id: int, reward: Rewards) -> None:  # noqa: A002
        """Tell the reward of a proposal, or several metrics of it by name; at any time, in any order.

        The same value twice changes nothing, another one is refused; rewards that add up are added.
        """
        self._do(self._methods.tell(id, reward))

    def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> None:
        """Tell the rewards of several proposals (n,), or several metrics by name (n,) each; all or none."""
        self._do(self._methods.tell_many(ids, rewards))

    def edge_plan(self) -> EdgePlan:
        """Return the plan in force for those who draw without asking; it holds a secret, the plan's salt."""
        return self._do(lambda turn: EdgePlan.of(turn.ledger))  # type: ignore[no-any-return]

    def expose(
        self,
        plan: int,
        units: Sequence[str],
        arms: Sequence[int] | Whole,
        rewards: Known | Mapping[str, Known] | None = None,
        *,
        covariates: Sequence[Covariates] | None = None,
    ) -> Exposed:
        """Take in draws that others made by :meth:`edge_plan`, each computed again, and their rewards.

        A unit that was posted before is the same exposure. What would not have been drawn so is refused, one
        by one. Post an exposure when it happens, whatever its arm.

        Parameters
        ----------
        plan : int
            That they were drawn under, in force still or not.
        units, arms : sequences (n,)
        rewards : (n,), or mapping of such by metric
            None or NaN where nothing is known yet; post the exposure again with it.
        covariates : sequence of dict (n,), optional
            As they were before the draw.
        """
        return self._do(self._methods.expose(plan, units, arms, rewards, covariates))  # type: ignore[no-any-return]

    def tick(self) -> None:
        """Settle what the clock has settled; asking and telling do it by the way."""
        self._note("tick")

    def pause(self) -> None:
        """Refuse to be asked until :meth:`resume`; rewards are still taken."""
        self._note("pause")

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        self._note("resume")

    def stop(self, reason: str = "") -> None:
        """End the experiment by hand: no more proposals; rewards that are awaited are still taken."""
        self._note("stop", reason=reason)

    def retire(self, arm: int | str) -> None:
        """Take an arm out; what claims mean then, see :meth:`AnytimeElimination.retire`."""
        self._do(lambda turn: turn.ledger.note(self._clock(), "retire", arm=arm_of(turn.ledger.arms, arm)))

    def extend(self, arms: ArmSet | Callable[[ArmSet], ArmSet]) -> None:
        """Add arms: the ones so far, in their order, and the new ones after them.

        Parameters
        ----------
        arms : ArmSet, or function
            A function is given the arms so far while nobody else changes them.
        """

        def request(turn: Turn) -> None:
            new = arms if isinstance(arms, ArmSet) else arms(turn.ledger.arms)
            turn.ledger.note(self._clock(), "extend", features=new.features.tolist(), labels=list(new.labels))

        self._do(request)

    def once(self, key: str, words: str = "") -> "Experiment":
        """Return this experiment for one change that may be repeated: it is done once, whatever happens.

        What is remembered of the call is on disk together with what it did, for a week at least. So values
        that add up are not added twice, and an :meth:`ask` without a unit draws nothing new, when a caller
        who lost the answer calls again.

        Parameters
        ----------
        key : str
            Of this call and no other, e.g. a UUID.
        words : str
            What the call is; the same key with other words is a :class:`~orthobandit.errors.ConflictError`.

        Examples
        --------
        >>> from orthobandit import ArmSet, Experiment
        >>> pages = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 9), window="7d", add=True)
        >>> sale = pages.ask()
        >>> pages.once("order 17").tell(sale.id, 5.0)
        >>> pages.once("order 17").tell(sale.id, 5.0)  # otherwise it would be 10, which is too much
        """
        check_key(key)
        keyed = copy(self)
        keyed._once = lambda request: once(self._store, key, words, request)
        return keyed

    # Looking at it

    def report(self) -> Report:
        """Return what is known now, and what to do; print it, or make JSON, a page or a figure of it.

        Looking as often as you like is legal: all intervals hold at all times at once. Nothing is written
        unless a window has passed meanwhile, and settles proposals.
        """
        return self._do(self._reported)  # type: ignore[no-any-return]

    def _reported(self, turn: Turn) -> Report:
        now = self._clock()
        if turn.ledger.is_due(now):
            turn.ledger.settle(now)
        return report_of(turn.ledger)

    def glance(self) -> Glance:
        """Return what can be seen without writing anything: the report, provisional rewards, and health.

        Unlike :meth:`report` it does not settle what the clock has settled since the newest entry.
        """
        return self._do(lambda turn: glance_of(turn.ledger))  # type: ignore[no-any-return]

    def audit(self) -> Audit:
        """Compute every draw again from the key, and say where the first differs from the log."""
        return audited(self._settings, self._store.entries())

    def replay(self) -> Replay:
        """Rebuild the state from the log alone, and compare it with the one in use, bit by bit."""
        state = self._do(lambda turn: (turn.seq, turn.ledger.to_json()))
        return replayed(self._settings, self._store.entries(), *state)

    def export(self, path: str | Path) -> None:
        """Write every proposal with its probabilities and rewards to a CSV or Parquet file."""
        self._now()
        write_export(path, self._settings, self._store)

    def certificate(self) -> Certificate:
        """Return what the decision rests on, for anybody to recompute with ``orthobandit verify``.

        It has no user's data: plans, tallies of each, tuning and the claim. Rounds of a batch that is not
        complete yet are not in it, nor in the claim.
        """
        return self._do(lambda turn: certify_book(turn.ledger.book))  # type: ignore[no-any-return]

    def head(self) -> str:
        """Return a line to publish while the experiment runs: number of entries, and a hash over all of them.

        The entries are plans, made before their draws, and sums of what was returned under each; the hash
        begins with the key and the settings. A certificate that does not go on from a published head is
        refused by ``orthobandit verify decision.json --head "…"``. The head changes when a plan ends.
        """
        return self._do(lambda turn: head_of(turn.ledger.book))  # type: ignore[no-any-return]

    def close(self) -> None:
        """Keep the state, and let go of the file."""
        self._shared.keep()
        self._store.close()

    def __enter__(self) -> "Experiment":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _now(self) -> Ledger:
        """Return the ledger, with what other processes have done."""
        ledger: Ledger = self._do(lambda turn: turn.ledger)
        return ledger

    def _note(self, kind: str, **data: Any) -> None:
        self._do(lambda turn: turn.ledger.note(self._clock(), kind, **data))


@contextmanager
def _closed_on_error(store: Store) -> Iterator[Store]:
    """Let go of a store if nothing comes of it: it may hold connections."""
    try:
        yield store
    except BaseException:
        store.close()
        raise


def _stored(where: str | Path, name: str) -> Store:
    """Return a store in a file or a database, which takes packages that not everybody has."""
    from orthobandit.experiment.store import SQLStore

    return SQLStore(where, name)
