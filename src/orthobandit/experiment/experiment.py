"""The experiment: ask for an arm, tell its reward, at any time and in any order."""

import time
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TypeVar

from orthobandit._foundation.release import check_format, stamp
from orthobandit._foundation.types import Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    CopyError,
    ExperimentExistsError,
    UnknownExperimentError,
)
from orthobandit.estimate.certificate import Certificate
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.estimate.forecast.rounds import check_restartable
from orthobandit.experiment.arguments import (
    OfferedFeatures,
    check_clock,
    check_is_policy,
    read_clock,
    settings_of,
    unit_of,
    units_of,
)
from orthobandit.experiment.certificate import certify_rules
from orthobandit.experiment.commit.group_commit import SharedLedger
from orthobandit.experiment.commit.requests import ManyRewards, Methods, Rewards, check_key, once
from orthobandit.experiment.commit.transaction import Request, Turn
from orthobandit.experiment.differences import other_arms, other_settings
from orthobandit.experiment.draw.audit import Audit, Replay, audit_draws, replay_log
from orthobandit.experiment.draw.edge_plan import EdgePlan
from orthobandit.experiment.draw.exposures import Exposed, Known
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.refusals import Refusal
from orthobandit.experiment.report.export import write_export
from orthobandit.experiment.report.overview import Glance
from orthobandit.experiment.report.report import Report
from orthobandit.experiment.settings import Metric, Options, RewardRange, Settings, Silence, Unknown
from orthobandit.experiment.store import MemoryStore, Store
from orthobandit.policy import Policy

if TYPE_CHECKING:  # it needs the packages of an extra
    from orthobandit.experiment.store import SQLStore

Value = TypeVar("Value")
# The state of a policy, which nobody but the policy looks into.
PolicyState = TypeVar("PolicyState")
Closable = TypeVar("Closable", Store, "SQLStore", "Experiment")


class Experiment:
    """An experiment on live traffic.

    Make one with :meth:`open_or_create`, :meth:`create`, :meth:`open` or :meth:`memory`.

    All methods may be called from several threads, and several processes may open the same file. Once
    :meth:`ask` or :meth:`tell` has returned, its effect is on disk.

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
        self._store = store
        self._settings = settings
        self._shared = SharedLedger(store, settings)
        self._methods = Methods(store, settings, lambda: read_clock(clock))
        self._once: Callable[[Request], Request] | None = None
        self._do(self._methods.begin)

    def _do(self, request: Callable[[Turn], Value]) -> Value:
        """Do a request while this thread waits."""
        done: Value = self._shared.do(request if self._once is None else self._once(request))
        return done

    def _soon(self, request: Callable[[Turn], Value]) -> Future[Value]:
        """Do a request while a coroutine waits; see :class:`AsyncExperiment`."""
        return self._shared.soon(request if self._once is None else self._once(request))

    # Making one

    @classmethod
    def create(
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
    ) -> "Experiment":
        """Start an experiment that is stored in a file or a database.

        Parameters
        ----------
        where : str or Path
            A file (SQLite), or the URL of a database.
        arms : ArmSet
        policy : Policy, optional
            By default :class:`AnytimeElimination` with the given `rewards` and `expect`.
        rewards : (float, float) or "unknown"
            The lowest and the highest reward that can occur: claims are then exact. Or 'unknown': claims are
            then asymptotic. May be left out only if the policy's own confidence is exact: ``Bounded`` or
            ``SubGaussian``. A policy that makes no claims needs it too: the report's intervals rest on it.
        expect : float, optional
            The gap between the best arm and the second that you expect, in units of the reward. A hint about
            its order of magnitude, which saves rounds if it is right; no claim depends on it. A policy that
            is given has its own.
        window : str or float, optional
            How long to wait for a reward: seconds, or text such as '7d'; for ever by default.
        silence : {"zero", "missing"}
            How a proposal without a reward in its window counts: as 0 ('zero'), or not at all ('missing').
        sticky : bool
            Whether a unit that comes again gets its first proposal.
        reference : int or str
            The arm that others are compared with, by number or label; the first by default.
        holdout : float
            Share of proposals that always get the reference arm and are reported separately.
        objective : str
            The name of the reward.
        add : bool
            Whether several rewards of one proposal add up; the sum is final at the end of the window.
        metrics : sequence of Metric
            Other numbers that are reported for proposals.
        guardrails : sequence of Guardrail
            Metrics that retire an arm once it is proven worse.
        key : str, optional
            64 or 32 hexadecimal digits that draws are computed from; by default random, and stored with the
            experiment.
        name : str
            Name of the experiment; several may share a database.
        clock : callable
            Returns the time in seconds.

        Raises
        ------
        ParameterError
            If a setting cannot be used, or `rewards` is left out where it is needed.
        """
        options = Options(
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
        )
        check_clock(clock)
        return cls._begin(where, settings_of(arms, policy, options), name, clock)

    @classmethod
    def open(
        cls,
        where: str | Path,
        policy: Policy[PolicyState] | None = None,
        *,
        name: str = "experiment",
        clock: Callable[[], float] = time.time,
    ) -> "Experiment":
        """Continue an experiment that this release or an earlier one created.

        Recorded plans are used as they are, whichever release made them: opening recomputes nothing.
        :meth:`replay` and :meth:`audit` do.

        Parameters
        ----------
        where, name, clock
            As in :meth:`create`.
        policy : Policy, optional
            Must equal the policy that the experiment was started with; needed for policies of other packages.

        Raises
        ------
        VersionError
            If a newer release wrote it in a format that this one does not know, or a release before 0.5; the
            message names the release that opens it.
        """
        check_clock(clock)
        if policy is not None:
            check_is_policy(policy)
        with _closed_on_error(_stored(where, name)) as store:
            return cls(store, Settings.from_json(store.settings(), policy), clock)

    @classmethod
    def open_or_create(
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
    ) -> "Experiment":
        """Continue an experiment, or start it if there is none: for programs that are run more than once.

        Arguments are as in :meth:`create`. If the experiment exists, they must be those that it was started
        with: a setting that differs would otherwise be ignored without a word. The arms may also be those of
        today, after :meth:`extend`. Any `key` will do if none is given. Several processes may start at once.

        Raises
        ------
        ConflictError
            If the experiment was started with other settings; the message says which.
        ParameterError
            If a setting cannot be used, or `rewards` is left out where it is needed.
        """
        options = Options(
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
        )
        check_clock(clock)
        chosen = settings_of(arms, policy, options)
        try:
            return cls._continue(where, chosen, key, name, clock)
        except UnknownExperimentError:
            pass
        try:
            return cls._begin(where, chosen, name, clock)
        except ExperimentExistsError:  # another process has begun it in between
            return cls._continue(where, chosen, key, name, clock)

    @classmethod
    def _begin(
        cls, where: str | Path, settings: Settings, name: str, clock: Callable[[], float]
    ) -> "Experiment":
        """Start an experiment with settings that were checked."""
        for metric in settings.metrics:
            check_restartable(metric.baseline)
        if settings.policy.baseline is not None:
            check_restartable(settings.policy.baseline)
        with _closed_on_error(_stored(where, name)) as store:
            store.create({**settings.to_json(), **stamp()})
            return cls(store, settings, clock)

    @classmethod
    def _continue(
        cls, where: str | Path, wanted: Settings, key: str | None, name: str, clock: Callable[[], float]
    ) -> "Experiment":
        """Continue an experiment that must have been started with these settings."""
        with _closed_on_error(_stored(where, name)) as store:
            kept = store.settings()
            check_format("the settings of the experiment", kept)
            _refuse_other(store.title, other_settings(kept, wanted, key))
            settings = Settings.from_json(kept, wanted.policy)
            experiment = cls(store, settings, clock)
        with _closed_on_error(experiment):
            _refuse_other(store.title, other_arms(wanted.arms, settings.arms, experiment.arms))
        return experiment

    @classmethod
    def memory(
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
    ) -> "Experiment":
        """Start an experiment that lasts as long as the process; arguments as in :meth:`create`."""
        options = Options(
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
        )
        check_clock(clock)
        chosen = settings_of(arms, policy, options)
        store = MemoryStore()
        store.create({})
        return cls(store, chosen, clock)

    # Using it

    @property
    def arms(self) -> ArmSet:
        """The current arms."""
        return self._do(self._methods.arms)

    @property
    def settings(self) -> Settings:
        """The settings of the experiment."""
        return self._settings

    def ask(
        self,
        unit: str | None = None,
        *,
        available: Sequence[int | str] | None = None,
        covariates: Covariates | None = None,
        context: Covariates | None = None,
        features: OfferedFeatures | None = None,
    ) -> Proposal:
        """Return an arm to show.

        Parameters
        ----------
        unit : str, optional
            Who is asking, e.g. a user's name. A unit that comes back gets its first proposal again and counts
            once.
        available : sequence of int or str, optional
            Arms, by number or label, that can be shown; all by default. The plan is restricted to them.
        covariates : dict, optional
            Numbers that the baseline is forecast from, by name.
        context : dict, optional
            What is known of the visitor, by name, if the experiment is :class:`Personalised`: a number for
            every column of its context. Forecasts may use it too.
        features : mapping of str to (d,) sequence, or array (K, d), optional
            Of each arm for this visitor, if the experiment is made with ``Personalised(features=[…])``: rows
            by label for the arms that are on offer, or a row for every arm.
        """
        own = None if features is None else [features]
        [found] = self._do(self._methods.ask([unit_of(unit)], available, covariates, context, own))
        return found

    def ask_many(
        self,
        count: int | None = None,
        *,
        units: Sequence[str] | None = None,
        available: Sequence[int | str] | None = None,
        covariates: Covariates | Sequence[Covariates] | None = None,
        context: Covariates | Sequence[Covariates] | None = None,
        features: Sequence[OfferedFeatures] | None = None,
    ) -> list[Proposal]:
        """Return several arms to show, all drawn from what is known now: `count` of them, or one per unit.

        Parameters
        ----------
        count : int, optional
            How many; or give `units`.
        units : sequence of str, optional
            Who is asking, one proposal each. A unit that comes back gets its first proposal again and counts
            once.
        available : sequence of int or str, optional
            As in :meth:`ask`, for all of them.
        covariates : sequence of dict, or dict, optional
            As in :meth:`ask`: one dict for each proposal, or one for all.
        context : sequence of dict, or dict, optional
            Likewise.
        features : sequence, optional
            As in :meth:`ask`, one for each proposal.
        """
        return self._do(self._methods.ask(units_of(count, units), available, covariates, context, features))

    def known(self, unit: str) -> Proposal | None:
        """Return the first proposal of a unit, or None if it was never asked for; draws nothing."""
        return self._do(self._methods.known(unit))

    def tell(self, id: int, reward: Rewards) -> None:  # noqa: A002
        """Report the reward of a proposal, or several metrics by name; at any time and in any order.

        Repeating a value changes nothing and a different value is refused, unless the metric adds up. Reports
        count what was refused.
        """
        self._do(self._methods.tell(id, reward))

    def tell_many(self, ids: Sequence[int] | Whole, rewards: ManyRewards) -> tuple[Refusal, ...]:
        """Report the rewards of several proposals (n,), or several metrics by name (n,) each.

        Rows are taken or refused one by one, as :meth:`tell` would: what is late, unknown, contradicts a
        value that was told before or cannot be used is left out, and everything else is taken. An empty batch
        changes nothing. Reports count what was refused.

        Returns
        -------
        refused : tuple of Refusal
            Rows that were not taken, with the error that :meth:`tell` would have raised; empty if all were.

        Raises
        ------
        ParameterError, RewardError
            If `ids` are no whole numbers, there are not as many values, or there is no such metric: nothing
            is taken then.
        """
        return self._do(self._methods.tell_many(ids, rewards)) or ()

    def edge_plan(self) -> EdgePlan:
        """Return the current plan for clients that draw by themselves; it holds a secret, the plan's salt."""
        return self._do(self._methods.edge_plan)

    def expose(
        self,
        plan: int,
        units: Sequence[str],
        arms: Sequence[int] | Whole,
        rewards: Known | Mapping[str, Known] | None = None,
        *,
        covariates: Sequence[Covariates] | None = None,
        context: Sequence[Covariates] | None = None,
    ) -> Exposed:
        """Log draws that clients made by :meth:`edge_plan`, with their rewards; each draw is recomputed.

        Posting a unit again is the same exposure. A draw that the plan would not have made is refused; the
        others are taken. Post every exposure when it happens, whatever its arm.

        Parameters
        ----------
        plan : int
            Number of the plan that they were drawn under, current or not.
        units, arms : sequences (n,)
        rewards : (n,), or mapping of such by metric
            None or NaN where the reward is not known yet; post the exposure again once it is.
        covariates : sequence of dict (n,), optional
            As they were before the draw.
        context : sequence of dict (n,), optional
            What the arms were drawn from, if the experiment is personalised.
        """
        return self._do(self._methods.expose(plan, units, arms, rewards, covariates, context))

    def tick(self) -> None:
        """Settle proposals whose window has passed; `ask` and `tell` do this too."""
        self._do(self._methods.note("tick"))

    def pause(self) -> None:
        """Refuse to draw until :meth:`resume`; rewards are still accepted."""
        self._do(self._methods.note("pause"))

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        self._do(self._methods.note("resume"))

    def stop(self, reason: str = "") -> None:
        """End the experiment: no more proposals; rewards of open ones are still accepted."""
        self._do(self._methods.note("stop", reason))

    def retire(self, arm: int | str) -> None:
        """Take an arm out; :meth:`AnytimeElimination.retire` says what claims mean afterwards."""
        self._do(self._methods.retire(arm))

    def extend(self, arms: ArmSet | Callable[[ArmSet], ArmSet]) -> None:
        """Add arms: give the present ones in their order, then the new ones.

        Parameters
        ----------
        arms : ArmSet, or function
            A function is called with the present arms, while nobody else can change them.
        """
        self._do(self._methods.extend(arms))

    def once(self, key: str, words: str = "") -> "Experiment":
        """Return this experiment for one call that may be retried: it takes effect once, whatever happens.

        The key is stored together with the effect and kept for at least a week. So when a caller who lost the
        answer calls again, values that add up are not added twice, and an :meth:`ask` without a unit draws
        nothing new. Another call with the same key, or with other arguments, is a
        :class:`~orthobandit.errors.ConflictError`. Calls that only read take no notice of the key.

        Parameters
        ----------
        key : str
            Unique to this call, e.g. a UUID.
        words : str
            Describes the call further; the same key with other words is a conflict too.

        Examples
        --------
        >>> from orthobandit import ArmSet, Experiment
        >>> pages = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 9), window="7d", add=True)
        >>> sale = pages.ask()
        >>> pages.once("order 17").tell(sale.id, 5.0)
        >>> pages.once("order 17").tell(sale.id, 5.0)  # otherwise it would be 10, which is too much
        """
        check_key(key)
        keyed = object.__new__(type(self))
        keyed.__dict__.update(self.__dict__)
        keyed._once = lambda request: once(self._store, key, words, request)
        return keyed

    # Looking at it

    def report(self) -> Report:
        """Return the report: what is known now, and what to do. It prints, and has JSON, a page and a figure.

        Look as often as you like: all intervals hold at all times at once. Nothing is written unless a window
        has passed, which settles proposals.
        """
        return self._do(self._methods.report)

    def glance(self) -> Glance:
        """Return the report, provisional rewards and health, without writing anything.

        Unlike :meth:`report` it does not settle proposals whose window has passed since the newest entry.
        """
        return self._do(self._methods.glance)

    def audit(self) -> Audit:
        """Recompute every draw from the key, and report the first that differs from the log."""
        return audit_draws(self._settings, self._store.entries())

    def replay(self) -> Replay:
        """Rebuild the state from the log alone, and compare it with the one in use, bit by bit.

        If another release made the plans, only what does not depend on planning is compared.
        """
        state = self._do(lambda turn: (turn.seq, turn.ledger.to_json()))
        return replay_log(self._settings, self._store.entries(), *state)

    def export(self, path: str | Path, *, raw: bool = False) -> None:
        """Write every proposal with its probabilities and rewards to a CSV or Parquet file.

        In CSV, units, labels and names that begin with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return
        get a ``'`` in front, so that no spreadsheet evaluates them; `raw` leaves them as they are.

        The column ``settled`` marks final rewards. Analyse these alone, as :func:`orthobandit.analyse` does:
        rewards that arrive early differ from those that arrive late.
        """
        settled = self._do(self._methods.settle)
        write_export(path, self._settings, self._store, settled, raw=raw)

    def certificate(self) -> Certificate:
        """Return the certificate of the decision, which anybody can recompute with ``orthobandit verify``.

        It has no user's data: plans, tallies of each, tuning and the claim. Rounds of a batch that is not
        complete yet are not in it, nor in the claim.

        That of a personalised experiment certifies what each rule has earned. It has an entry or two for each
        visitor, without the unit: the probabilities, the columns that rules look at, the arm and the reward.
        """
        if not self._settings.is_personal:
            return self._do(self._methods.certificate)
        self._do(self._methods.settle)
        return certify_rules(self._settings, self._store.entries())

    def head(self) -> str:
        """Return a line to publish while the experiment runs: the number of entries and a hash of them all.

        The entries are plans, recorded before their draws, and the sums of rewards under each; the hash
        starts from the key and the settings. A certificate that does not go on from a published head is
        refused by ``orthobandit verify decision.json --head "…"``. The head changes when a plan ends; in a
        personalised experiment, with every visitor and every settled reward.
        """
        return self._do(self._methods.head)

    def close(self) -> None:
        """Save the state and close the file; a second call does nothing."""
        self._shared.close()

    def __enter__(self) -> "Experiment":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        # Debuggers ask for it at any time: it reads nothing.
        place = getattr(self._store, "title", "in memory")
        return f"Experiment({place!r}, {len(self._shared.last_seen_arms)} arms)"

    def __str__(self) -> str:
        """Return the advice and the table of arms as of the newest entry; writes nothing."""
        try:
            return str(self._shared.do(self._methods.printed))
        except ClosedError:
            return f"{self!r}, closed"

    def _repr_html_(self) -> str:
        from orthobandit.showing.html import html_words

        try:
            report: Report = self._shared.do(self._methods.printed)
            return report._repr_html_()
        except ClosedError:
            return html_words(f"{self!r}, closed")

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, and say what to do instead."""
        refuse_copies(self)

    def _now(self) -> Ledger:
        """Return the ledger, up to date with other processes."""
        return self._do(lambda turn: turn.ledger)


def refuse_copies(thing: object) -> NoReturn:
    """Raise `CopyError`, which says how another process can open the same experiment."""
    name = type(thing).__name__
    raise CopyError(
        f"{name} cannot be pickled or copied: it holds a connection and a thread; pass the experiment's path"
        f" and name, and call `{name}.open(path, name=...)` there. One in memory belongs to its process"
    )


@contextmanager
def _closed_on_error(holder: Closable) -> Iterator[Closable]:
    """Close a store or an experiment if an error leaves the block, because it may hold connections."""
    try:
        yield holder
    except BaseException:
        holder.close()
        raise


def _refuse_other(title: str, differences: Sequence[str]) -> None:
    """Raise :class:`ConflictError` if there are differences between settings."""
    if differences:
        raise ConflictError(
            f"{title!r} was begun with other settings: {'; '.join(differences)}. Settings are fixed when an"
            " experiment begins: give the same ones again, call `open`, which needs none, or begin another"
            " experiment in another file or under another `name`"
        )


def _stored(where: str | Path, name: str) -> "SQLStore":
    """Return a store in a file or a database; it needs the packages of an extra."""
    from orthobandit.experiment.store import SQLStore

    return SQLStore(where, name)
