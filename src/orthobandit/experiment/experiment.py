"""The experiment: ask for an arm, tell its reward, at any time and in any order."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    OrthobanditError,
    ParameterError,
    RewardError,
)
from orthobandit.estimate import Bounded, Plan
from orthobandit.estimate.forecaster import Covariates
from orthobandit.experiment.audit import Audit, Replay, audited, replayed
from orthobandit.experiment.certificate import Certificate
from orthobandit.experiment.draw import new_key
from orthobandit.experiment.entries import Noted
from orthobandit.experiment.export import write_export
from orthobandit.experiment.ledger import Ledger
from orthobandit.experiment.levels import check_kept
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.report import Report, report_of
from orthobandit.experiment.settings import OBJECTIVE, Metric, Settings, seconds
from orthobandit.experiment.store import MemoryStore, Store, Writer
from orthobandit.experiment.store.base import Row
from orthobandit.policy import AnytimeElimination, Policy

SNAPSHOT = 5_000  # entries after which the state is kept, so that opening need not begin at the first
Rewards = float | Mapping[str, float]
ManyRewards = ArrayLike | Mapping[str, ArrayLike]


@dataclass
class _Job:
    """A request of one thread, done together with those of others in one commit."""

    call: Callable[[Ledger, Writer], Any]
    is_done: bool = False
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


@dataclass
class _Memory:
    """What an open experiment remembers of its store: the ledger after entry `seq`."""

    ledger: Ledger
    seq: int = 0
    kept: int = 0
    logged_at: float = -np.inf
    # What this commit has done, which the store cannot tell before its end.
    units: dict[str, Proposal] = field(default_factory=dict)
    told: dict[tuple[int, str], float] = field(default_factory=dict)


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
        self._lock, self._jobs = Lock(), deque[_Job]()
        self._memory: _Memory | None = None
        self._run(self._begin)

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
            key : str — 32 hexadecimal digits that draws are computed from; by default random, and kept with
            the experiment.
        """
        chosen = _settings(arms, policy, settings)
        for metric in chosen.metrics:
            check_kept(metric.baseline)
        if chosen.policy.baseline is not None:
            check_kept(chosen.policy.baseline)
        store = _stored(where, name)
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
        store = _stored(where, name)
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
        chosen, store = _settings(arms, policy, settings), MemoryStore()
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
        many = count is not None or units is not None
        names = _units(count, unit, units)
        given = _covariates(covariates, len(names))

        def call(ledger: Ledger, writer: Writer) -> list[Proposal]:
            shown = None if available is None else [_arm(ledger.arms, arm) for arm in available]
            return self._asked(ledger, writer, names, shown, given)

        found: list[Proposal] = self._run(call)
        return found if many else found[0]

    def tell(self, id: int, reward: Rewards) -> None:  # noqa: A002
        """Tell the reward of a proposal, or several metrics of it by name; at any time, in any order.

        The same value twice changes nothing, another one is refused; rewards that add up are added.
        """
        many = reward if isinstance(reward, Mapping) else {self._settings.names[0]: reward}
        self.tell_many([id], {name: [value] for name, value in many.items()})

    def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> None:
        """Tell the rewards of several proposals (n,), or several metrics by name (n,) each; all or none."""
        many = rewards if isinstance(rewards, Mapping) else {self._settings.names[0]: rewards}
        numbers = _numbers(ids)
        values = {name: _values(name, given, len(numbers)) for name, given in many.items()}
        # The objective last: it may settle a proposal, and then nothing more can be told of it.
        order = sorted(values, key=lambda name: name == self._settings.names[0])

        def call(ledger: Ledger, _writer: Writer) -> None:
            ledger.settle(self._clock())
            new = {}
            for name in order:
                left = self._not_yet_told(ledger, name, numbers, values[name])
                is_new = ledger.check_told(name, numbers[left], values[name][left])
                new[name] = (numbers[left][is_new], values[name][left][is_new])
            for name, (told, given) in new.items():
                if len(told):
                    ledger.tell_checked(name, told, given)
                if self._memory is not None:
                    pairs = zip(told.tolist(), given.tolist(), strict=True)
                    self._memory.told.update({(number, name): value for number, value in pairs})

        self._run(call)

    def tick(self) -> None:
        """Settle what the clock has settled; asking and telling do it by the way."""
        self._run(lambda ledger, _writer: ledger.note(self._clock(), "tick"))

    def pause(self) -> None:
        """Refuse to be asked until :meth:`resume`; rewards are still taken."""
        self._run(lambda ledger, _writer: ledger.note(self._clock(), "pause"))

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        self._run(lambda ledger, _writer: ledger.note(self._clock(), "resume"))

    def stop(self, reason: str = "") -> None:
        """End the experiment by hand: no more proposals; rewards that are awaited are still taken."""
        self._run(lambda ledger, _writer: ledger.note(self._clock(), "stop", reason=reason))

    def retire(self, arm: int | str) -> None:
        """Take an arm out; what claims mean then, see :meth:`AnytimeElimination.retire`."""

        def call(ledger: Ledger, _writer: Writer) -> None:
            ledger.note(self._clock(), "retire", arm=_arm(ledger.arms, arm))

        self._run(call)

    def extend(self, arms: ArmSet) -> None:
        """Add arms: the ones so far, in their order, and the new ones after them."""

        def call(ledger: Ledger, _writer: Writer) -> None:
            ledger.note(self._clock(), "extend", features=arms.features.tolist(), labels=list(arms.labels))

        self._run(call)

    # Looking at it

    def report(self) -> Report:
        """Return what is known now, and what to do; print it, or make JSON, a page or a figure of it.

        Looking as often as you like is legal: all intervals hold at all times at once.
        """
        return self._run(lambda ledger, _writer: self._reported(ledger))  # type: ignore[no-any-return]

    def _reported(self, ledger: Ledger) -> Report:
        ledger.settle(self._clock())
        if not ledger.outbox and self._memory is not None and ledger.at > self._memory.logged_at:
            ledger.note(ledger.at, "tick")
        return report_of(ledger)

    def audit(self) -> Audit:
        """Compute every draw again from the key, and say where the first differs from the log."""
        return audited(self._settings, self._store.entries())

    def replay(self) -> Replay:
        """Rebuild the state from the log alone, and compare it with the one in use, bit by bit."""
        state = self._run(lambda ledger, _writer: (self._memory.seq if self._memory else 0, ledger.to_json()))
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
        book = self._now().book
        if not isinstance(book.policy, AnytimeElimination):
            raise ParameterError(
                f"{type(book.policy).__name__} gives no certificates; AnytimeElimination does"
            )
        return Certificate.of(book.policy, book.state, book.feeds, book.since)

    def close(self) -> None:
        """Keep the state, and let go of the file."""
        self._run(self._keep)
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

    # How requests are done

    def _begin(self, ledger: Ledger, writer: Writer) -> None:
        """Log the beginning, and with it the first plan."""
        if not writer.last():
            ledger.note(self._clock(), "begin")

    def _now(self) -> Ledger:
        """Return the ledger, with what other processes have done, as it is now."""
        self._run(lambda _ledger, _writer: None)
        memory = self._memory
        if memory is None:
            raise ClosedError("the experiment could not be read; try again")
        return memory.ledger

    def _run(self, call: Callable[[Ledger, Writer], Any]) -> Any:
        """Do a request, in one commit with those of the threads that wait."""
        job = _Job(call)
        self._jobs.append(job)
        with self._lock:
            if not job.is_done:
                self._commit([self._jobs.popleft() for _ in range(len(self._jobs))])
        return job.result()

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            with self._store.exclusive() as writer:
                memory = self._caught_up(writer)
                for job in jobs:
                    self._attempt(job, memory, writer)
                self._append(memory, writer)
        except BaseException as error:
            self._memory = None  # what was done is not on disk; the next request reads what is
            for job in jobs:
                job.error, job.is_done = error, True
            if not isinstance(error, OrthobanditError):
                raise
            return
        memory.units.clear()
        memory.told.clear()
        for job in jobs:
            job.is_done = True

    def _attempt(self, job: _Job, memory: _Memory, writer: Writer) -> None:
        """Do one request; one that is refused changes nothing but the clock."""
        ledger = memory.ledger
        try:
            job.value = job.call(ledger, writer)
        except OrthobanditError as error:
            job.error = error
            last = ledger.outbox[-1].at if ledger.outbox else memory.logged_at
            if ledger.at > last:
                ledger.outbox.append(Noted(ledger.at, "tick", {}))

    def _append(self, memory: _Memory, writer: Writer) -> None:
        entries = memory.ledger.outbox
        if not entries:
            return
        memory.logged_at = entries[-1].at
        memory.seq = writer.append(entries)
        memory.ledger.outbox = []
        if memory.seq - memory.kept >= SNAPSHOT:
            self._keep(memory.ledger, writer)

    def _keep(self, ledger: Ledger, writer: Writer) -> None:
        memory = self._memory
        if memory is not None and not isinstance(self._store, MemoryStore) and not ledger.outbox:
            writer.keep(memory.seq, ledger.to_json())
            memory.kept = memory.seq

    def _caught_up(self, writer: Writer) -> _Memory:
        """Return the memory after all that anybody has written."""
        memory = self._memory
        if memory is None:
            memory = self._loaded()
        if writer.last() > memory.seq:
            for seq, entry in writer.entries(memory.seq):
                memory.ledger.apply(entry)
                memory.seq, memory.logged_at = seq, entry.at
        self._memory = memory
        return memory

    def _loaded(self) -> _Memory:
        snapshot = self._store.snapshot()
        if snapshot is None:
            return _Memory(Ledger(self._settings))
        seq, state = snapshot
        ledger = Ledger.from_json(self._settings, state)
        return _Memory(ledger, seq, seq, ledger.at)

    # Asking and telling

    def _asked(
        self,
        ledger: Ledger,
        writer: Writer,
        names: Sequence[str | None],
        available: Sequence[int] | None,
        covariates: Sequence[Covariates] | None,
    ) -> list[Proposal]:
        ledger.settle(self._clock())
        found = self._known(ledger, writer, names) if self._settings.sticky else {}
        fresh: dict[str | int, int] = {}
        for place, name in enumerate(names):
            if name is None or not self._settings.sticky:
                fresh[place] = place
            elif name not in found and name not in fresh:
                fresh[name] = place
        rows = list(fresh.values())
        new: dict[str | int, Proposal] = {}
        if rows:
            units = [names[place] for place in rows]
            given = None if covariates is None else [covariates[place] for place in rows]
            entry = ledger.ask(ledger.at, units, len(rows), available, given)
            made = _proposals(entry.first, entry, ledger)
            new = dict(zip(fresh, made, strict=True))
        if self._memory is not None and self._settings.sticky:
            self._memory.units.update({key: one for key, one in new.items() if isinstance(key, str)})
        out = []
        for place, name in enumerate(names):
            key: str | int = place if name is None or not self._settings.sticky else name
            out.append(found[name] if name in found else new[key])
        return out

    def _known(
        self, ledger: Ledger, writer: Writer, names: Sequence[str | None]
    ) -> dict[str | None, Proposal]:
        """Return the first proposals of the units that have one."""
        units = [name for name in dict.fromkeys(names) if name is not None]
        if not units:
            return {}
        recent = self._memory.units if self._memory is not None else {}
        found: dict[str | None, Proposal] = {name: recent[name] for name in units if name in recent}
        stored = writer.known([name for name in units if name not in found])
        if stored:
            rows = self._store.proposals(list(stored.values()))
            found.update((name, self._again(ledger, row)) for name, row in zip(stored, rows, strict=True))
        return found

    def _again(self, ledger: Ledger, row: Row) -> Proposal:
        plan = ledger.book.plans.get(row.distribution)
        if plan is None:
            plan = Plan.from_json(self._store.distribution(row.distribution)["plan"])
        return Proposal(
            row.number,
            row.arm,
            ledger.arms.labels[row.arm],
            row.plan,
            plan.probabilities,
            row.forecasts[0],
            row.held,
        )

    def _not_yet_told(self, ledger: Ledger, name: str, numbers: Whole, values: Array) -> Any:
        """Tell which rewards (n,) are of open proposals; those settled with the same value are done."""
        is_open = (numbers >= ledger.waiting.first) | (numbers < 1)
        if is_open.all() or name not in self._settings.names:
            return np.ones(len(numbers), dtype=np.bool_)
        metric = self._settings.metrics[self._settings.names.index(name)]
        for number, value in zip(numbers[~is_open].tolist(), values[~is_open].tolist(), strict=True):
            told = self._told(number, name)
            if told is None or metric.add:
                return np.ones(len(numbers), dtype=np.bool_)  # the check says what is wrong
            if told != value:
                raise ConflictError(
                    f"proposal {number} was told {told:g} for {name!r} before, now {value:g}; the first value"
                    " is final"
                )
        return is_open

    def _told(self, number: int, name: str) -> float | None:
        """Return what was told of a settled proposal, if anything."""
        recent = {} if self._memory is None else self._memory.told
        if (number, name) in recent:
            return recent[number, name]
        return self._store.outcomes([number])[0].rewards.get(name)


def _stored(where: str | Path, name: str) -> Store:
    """Return a store in a file or a database, which takes packages that not everybody has."""
    from orthobandit.experiment.store import SQLStore

    return SQLStore(where, name)


def _settings(arms: ArmSet, policy: Policy[Any] | None, given: dict[str, Any]) -> Settings:
    """Return the settings that the arguments of :meth:`Experiment.create` say."""
    known = ("rewards", "window", "silence", "sticky", "reference", "holdout", "objective", "add")
    for name in given:
        if name not in (*known, "metrics", "guardrails", "key"):
            raise ParameterError(
                f"{name!r} is not a setting; settings are {', '.join(known)}, metrics and guardrails"
            )
    if not isinstance(arms, ArmSet):
        raise ParameterError(f"arms={arms!r} must be an ArmSet: ArmSet.one_hot(2, labels=['a', 'b'])")
    rewards = given.get("rewards")
    chosen = AnytimeElimination(rewards=rewards) if policy is None else policy
    mode = getattr(chosen, "confidence", None)
    if rewards is not None and mode is not None and mode != Bounded(*map(float, rewards)):
        raise ParameterError(
            f"rewards={rewards!r} must be said to the policy: {type(chosen).__name__}(rewards={rewards!r})"
        )
    if isinstance(mode, Bounded):
        rewards = mode.reward_range
    objective = Metric(given.get("objective", OBJECTIVE), rewards, bool(given.get("add", False)))
    silence, window = given.get("silence", "zero"), given.get("window")
    return Settings(
        arms=arms,
        policy=chosen,
        key=given.get("key") or new_key(),
        window=seconds(window),
        silence=silence,
        sticky=bool(given.get("sticky", True)),
        reference=_arm(arms, given.get("reference", 0)),
        holdout=given.get("holdout", 0.0),
        metrics=(objective, *given.get("metrics", ())),
        guardrails=tuple(given.get("guardrails", ())),
    )


def _arm(arms: ArmSet, arm: int | str) -> int:
    if isinstance(arm, str):
        return arms.index(arm)
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < len(arms):
        raise ParameterError(f"arm={arm!r} is not an arm; arms are 0 to {len(arms) - 1}, or their labels")
    return int(arm)


def _units(count: int | None, unit: str | None, units: Sequence[str] | None) -> list[str | None]:
    """Return one unit, or None, for each proposal that is asked for."""
    if (count is not None) + (unit is not None) + (units is not None) > 1:
        raise ParameterError("give one of count, unit and units")
    if count is not None:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(f"count={count!r} must be a whole number of at least 1")
        return [None] * int(count)
    given = [unit] if units is None else list(units)
    if not given:
        raise ParameterError("units is empty; ask for at least one")
    for one in given:
        if one is None and units is None:
            continue
        if not isinstance(one, str) or not one:
            raise ParameterError(f"unit={one!r} must be text, e.g. a user's name; numbers as str(number)")
    return list(given)


def _covariates(given: Any, count: int) -> list[Covariates] | None:
    if given is None:
        return None
    many = [given] * count if isinstance(given, Mapping) else list(given)
    if len(many) != count:
        raise ParameterError(f"covariates are {len(many)} for {count} proposals; give one dict each")
    return many


def _numbers(ids: Sequence[int] | Whole) -> Whole:
    given = np.asarray(ids)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise ParameterError(f"ids={ids!r} must be numbers of proposals, as `ask` returned them in `.id`")
    return given.astype(np.int64)


def _values(name: str, given: ArrayLike, count: int) -> Array:
    try:
        values = np.atleast_1d(np.asarray(given)).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise RewardError(f"{name}={given!r} must be a number for each proposal") from None
    if values.shape != (count,):
        raise RewardError(f"{name} has {values.size} values for {count} proposals; give one each")
    return values


def _proposals(first: int, entry: Any, ledger: Ledger) -> list[Proposal]:
    probabilities, labels = ledger.book.plans[entry.distribution].probabilities, ledger.arms.labels
    forecasts = entry.forecasts[0].tolist()
    return [
        Proposal(first + k, arm, labels[arm], entry.plan, probabilities, forecasts[k], held)
        for k, (arm, held) in enumerate(zip(entry.arms.tolist(), entry.held.tolist(), strict=True))
    ]
