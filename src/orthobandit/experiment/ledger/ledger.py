"""The ledger: what an experiment knows, as a fold over its log.

Rewards settle in the order of draws, not of arrivals. Let F_n hold potential rewards, plans, forecasts and
arrival times of proposals 1 to n, seen or not. Plan and forecast of proposal n + 1 use what was known when it
was drawn, and its arm is drawn independently of F_n from logged probabilities; so sums in the order of draws
are martingales, and a boundary that is uniform in time covers every prefix, however its length came about.
The policy is fed the longest settled prefix, and nothing else.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.release import __version__, check_format, stamp
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    OrthobanditError,
    ParameterError,
    RewardError,
    VersionError,
)
from orthobandit.estimate import Plan
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.estimate.forecast.rounds import Given
from orthobandit.experiment.draw.hashing import drawn, held_out, names_of
from orthobandit.experiment.ledger.accounts import Accounts
from orthobandit.experiment.ledger.entries import Asked, Entry, Noted, Told, check_asked
from orthobandit.experiment.ledger.personal_feed import PersonalFeed, Version
from orthobandit.experiment.ledger.policy_feed import Visitor
from orthobandit.experiment.ledger.snapshot import pack
from orthobandit.experiment.settings import Settings
from orthobandit.showing.numbers import duration_words

LOG = logging.getLogger("orthobandit.experiment")

OPEN = "open"
PAUSED = "paused"
STOPPED = "stopped"
# Rewards that a forecaster has learnt from when proposals begin to count for intervals of the asymptotic
# mode: before that it is far off the level, and one such residual outweighs a thousand others.
WARM_UP_REWARDS = 20
# Magnitude of a reward: squares of larger ones, and their sums, may be no numbers any more.
MAX_REWARD_MAGNITUDE = 1e100


class DrawnElsewhere(NamedTuple):
    """A recomputed draw: the distribution (K_t,) over the arms on offer, the arm, and the holdout."""

    shares: Array
    arm: int
    is_held: bool


class Ledger(Accounts):
    """The state of an experiment after some entries of its log.

    The same entries give the same state, bit by bit. Entries that :meth:`ask`, :meth:`tell_checked` and
    :meth:`note` make, and notes of the plans and distributions that follow, are put into :attr:`outbox`, for
    the log.

    Parameters
    ----------
    settings : Settings

    Attributes
    ----------
    at : float
        Time of the newest entry.
    status : {"open", "paused", "stopped"}
    refused : Counter
        How many rewards were refused, by reason.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.at = -np.inf
        self.status = OPEN
        self.refused: Counter[str] = Counter()
        self._is_stirred = True
        self.outbox: list[Entry] = []
        self._informed = np.zeros(len(settings.metrics), dtype=np.bool_)

    # What is done to it

    def apply(self, entry: Entry) -> None:
        """Apply the next entry of the log; nothing is added to the log.

        Recorded plans are used as they are: where the policy would have planned differently, the log is
        right.
        """
        feed = self.feed
        feed.is_reading = True
        is_plan = isinstance(entry, Noted) and entry.kind == "plan"
        if not is_plan:
            feed.drop_drafts()  # plans are logged with what they follow from, before anything else
        self._settle(entry.at)
        if not is_plan:
            feed.drop_drafts()
        if isinstance(entry, Asked):
            self._forecast(entry.count, entry.covariates)
            self._register(entry)
        elif isinstance(entry, Told):
            self._tell(entry)
        else:
            self._note(entry)
        self.outbox.clear()

    def ask(
        self,
        at: float,
        units: Sequence[str | None],
        count: int,
        available: Sequence[int] | None = None,
        covariates: Given = None,
        features: Mapping[str, Sequence[float]] | None = None,
    ) -> Asked:
        """Draw proposals and record them; `features` are the visitor's own features of each arm."""
        self.settle(at)
        self.check_open()
        numbers = np.arange(self.waiting.next, self.waiting.next + count)
        # In a personalised experiment `count` is 1, and the visitor has a distribution of their own.
        context = covariates[0] if self.is_personal and covariates else None
        number = self.feed.distribution(available, Visitor(context, features))
        self._tell_outbox(at)
        check_asked(units, covariates or (), count)
        names = names_of(units, numbers, sticky=self.settings.sticky)
        # What cannot be shown cannot be held to.
        can_hold = self.feed.can_show(number, self.settings.reference, available)
        plan = int(self.feed.plans[number].number)
        cumulative = self.feed.cumulative(number)
        return self.enter(number, units, self.draws(plan, cumulative, names, can_hold=can_hold), covariates)

    def draws(
        self, plan: int, cumulative: Array, names: Sequence[str], *, can_hold: bool = True
    ) -> tuple[Whole, Mask]:
        """Return the arms (n,) of names under a plan, and which (n,) are in the holdout."""
        settings = self.settings
        arms = drawn(settings.key, plan, cumulative, names)
        held = held_out(settings.key, settings.holdout if can_hold else 0.0, names)
        return (np.where(held, settings.reference, arms) if settings.holdout else arms), held

    def enter(
        self,
        number: int,
        units: Sequence[str | None],
        draws: tuple[Whole, Mask],
        covariates: Given = None,
    ) -> Asked:
        """Record proposals (n,) that :meth:`draws` has drawn, in this order."""
        for level in self.level_forecasts:
            level.check(covariates)
        arms, held = draws
        entry = Asked(
            self.at,
            self.waiting.next,
            int(self.feed.plans[number].number),
            number,
            arms,
            self._forecast(len(arms), covariates),
            tuple(units),
            held,
            tuple(covariates or ()),
        )
        self.outbox.append(entry)
        self._register(entry)
        return entry

    def enter_drawn(self, version: Version, unit: str, context: Covariates, draw: DrawnElsewhere) -> Asked:
        """Record a visitor whose arm was drawn at the edge, by a personalised plan."""
        number = self._personal_book.admit(version, context, draw.shares)
        self._tell_outbox(self.at)
        return self.enter(number, [unit], (np.array([draw.arm]), np.array([draw.is_held])), [context])

    def newest_version(self, at: float) -> Version:
        """Return the recorded personalised plan to hand out; make a new one if it is due."""
        feed = self._personal_book
        if self.is_due(at):
            self.settle(at)
        if feed.newest is not None and not feed.needs_version(at):
            return feed.newest
        self.settle(at)
        version = feed.hand_out(self.at)
        self._tell_outbox(self.at)
        return version

    @property
    def _personal_book(self) -> PersonalFeed:
        if not isinstance(self.feed, PersonalFeed):
            raise ParameterError("the experiment has one plan for all visitors")
        return self.feed

    def tell_checked(self, metric: str, numbers: Whole, values: Array) -> Told:
        """Record rewards (n,), at least one, that :meth:`check_told` has found to be new and right."""
        entry = Told(self.at, metric, numbers, values)
        self.outbox.append(entry)
        self._tell(entry)
        return entry

    def count_refused(self, counts: Mapping[str, int]) -> None:
        """Record how many rewards were refused, by reason: nothing else changes."""
        entry = Noted(self.at, "refused", {"rewards": dict(counts)})
        self.outbox.append(entry)
        self._note(entry)

    def note(self, at: float, kind: str, **data: Any) -> None:
        """Record any other event."""
        self.settle(at)
        if self.status == STOPPED and kind in ("retire", "extend"):
            self.check_open()
        entry = Noted(self.at, kind, data)
        place = len(self.outbox)
        self.outbox.append(entry)
        try:
            self._note(entry)
        except OrthobanditError:
            del self.outbox[place:]  # what was refused must not be in the log: nobody could replay it
            raise

    # How it is done

    def settle(self, at: float) -> None:
        """Advance the clock, and take in every proposal that is settled by then, in the order of draws."""
        if self.feed.is_reading:
            self.feed.write_on()
            self._is_stirred = self._is_stirred or bool(self.feed.news)
        self._settle(at)

    def _settle(self, at: float) -> None:
        """Move the clock on and take in what is settled; does nothing if nothing has changed since."""
        if at <= self.at and not self._is_stirred:
            return
        self.at = max(self.at, at)
        self._is_stirred = False
        while (ready := self.waiting.settled(self.at, self._needed)) is not None:
            self.take(ready)
        self._tell_outbox(self.at)

    def is_due(self, at: float) -> bool:
        """Tell whether any proposal is settled by then that has not been taken in yet."""
        return self.waiting.is_due(max(self.at, at), self._needed)

    @cached_property
    def _needed(self) -> int:
        """How many metrics, the objective first, must be known to settle a proposal early; 0 if none do."""
        metrics = self.settings.metrics
        if not np.isfinite(self.settings.window):
            return 1  # nothing else would ever settle it
        return 0 if any(metric.add for metric in metrics) else len(metrics)

    def _tell_outbox(self, at: float) -> None:
        if not self.feed.news:
            return
        self.outbox.extend(Noted(at, kind, data) for kind, data in self.feed.news)
        self.feed.news.clear()

    def _forecast(self, count: int, covariates: Given) -> Array:
        """Forecast proposals (m, n) before they are drawn, and return which metrics (m,) know their level."""
        first = self.waiting.next
        self._informed = np.array([level.learnt >= WARM_UP_REWARDS for level in self.level_forecasts])
        return np.array([level.ahead(first, count, covariates or None) for level in self.level_forecasts])

    def _register(self, entry: Asked) -> None:
        """Let proposals wait for their rewards until the end of the window."""
        deadline = entry.at + self.settings.window
        self._is_stirred = True
        self.waiting.add(
            entry.arms, entry.distribution, deadline, entry.forecasts, entry.held, self._informed
        )
        if isinstance(self.feed, PersonalFeed):
            [arm], [is_held] = entry.arms.tolist(), entry.held.tolist()
            forecast = float(entry.forecasts[0, 0])
            self.feed.meet(entry.distribution, entry.first, arm, forecast, is_held=is_held)

    def _tell(self, entry: Told) -> None:
        """Set or add up the rewards of open proposals, then settle."""
        place = self.metric(entry.metric)
        self._is_stirred = True
        if self.settings.metrics[place].add:
            for number, value in zip(entry.proposals, entry.values, strict=True):
                one = np.array([number])
                before = self.waiting.told(place, one)
                self.waiting.tell(place, one, np.where(np.isnan(before), 0.0, before) + value)
        else:
            self.waiting.tell(place, entry.proposals, entry.values)
        self._settle(entry.at)

    def _note(self, entry: Noted) -> None:
        """Apply a note of the log, by its kind."""
        if entry.kind == "plan" or "format" in entry.data:  # plans alone are stamped so far
            check_format(f"a {entry.kind!r} of the log", entry.data)
        if entry.kind == "begin":
            self.feed.commit(entry.data["commitment"])
        elif entry.kind == "pause":
            self.check_open()
            self.status = PAUSED
        elif entry.kind == "resume":
            if self.status == STOPPED:
                self.check_open()
            self.status = OPEN
        elif entry.kind == "stop":
            self.status = STOPPED
        elif entry.kind == "retire":
            self.retire(int(entry.data["arm"]), "by hand")
        elif entry.kind == "extend":
            self.extend(ArmSet(entry.data["features"], entry.data["labels"]))
        elif entry.kind in ("plan", "distribution"):
            for arm in self.feed.adopt(entry.kind, entry.data):
                self.retirements.append((arm, f"by release {entry.data['release']}, as the log says"))
        elif entry.kind == "refused":
            self.refused.update(entry.data["rewards"])
        elif entry.kind == "recall":
            self.feed.recall(int(entry.data["number"]), Plan.from_json(entry.data["plan"]))
        self._tell_outbox(entry.at)

    # What it checks

    def check_told(
        self, metric: str, numbers: Whole, values: Array
    ) -> tuple[Mask, dict[int, OrthobanditError]]:
        """Return which rewards (n,) of different open proposals are new, and what is wrong, by row."""
        place = self.metric(metric)
        before = self.waiting.told(place, numbers)
        is_new = np.isnan(before)
        if len(numbers) == 1 and is_new.item():  # most requests of a website tell one value, once
            return is_new, self._out_of_range(place, numbers, values)
        adds_up = self.settings.metrics[place].add
        totals = np.where(is_new, 0.0, before) + values if adds_up else values
        wrong = self._out_of_range(place, numbers, totals)
        if adds_up:
            return np.ones(len(numbers), dtype=np.bool_), wrong
        for row in np.flatnonzero(~is_new & (before != values)).tolist():
            words = (
                f"proposal {numbers[row]} was told {before[row]:g} for {metric!r} before, now"
                f" {values[row]:g}; the first value is final, or set `add=True` for values that add up"
            )
            wrong.setdefault(row, ConflictError(words))
        return np.asarray(is_new), wrong

    def too_late(self, number: int) -> ClosedError:
        """Return the error for a reward of a settled proposal."""
        return ClosedError(
            f"proposal {number} is settled: its reward was told, or its window of"
            f" {duration_words(self.settings.window)} has passed; a longer `window` waits longer"
        )

    def check_visitor(self, unit: str | None, available: Sequence[int] | None, visitor: Visitor) -> None:
        """Raise :class:`ParameterError` if a personalised experiment cannot plan for such a visitor."""
        given = [] if visitor.context is None else [visitor.context]
        check_asked([unit], given, 1)
        self.feed.check_visitor(available, visitor)
        for level in self.level_forecasts:
            level.check(given or None)

    def check_open(self) -> None:
        """Raise :class:`ClosedError` if the experiment takes no more proposals now."""
        if self.status != OPEN:
            raise ClosedError(
                f"the experiment is {self.status}; call `resume` first"
                if self.status == PAUSED
                else "the experiment was stopped; `report` says what it found, and begin another to go on"
            )

    def _out_of_range(self, place: int, numbers: Whole, values: Array) -> dict[int, OrthobanditError]:
        """Return the errors of values outside the declared range, by row."""
        declared = self.mode(place).reward_range
        low, high = max(declared[0], -MAX_REWARD_MAGNITUDE), min(declared[1], MAX_REWARD_MAGNITUDE)
        is_wrong = ~((values >= low) & (values <= high))
        if not is_wrong.any():
            return {}
        kind = "declared " * ((low, high) == declared)
        return {
            row: RewardError(
                f"{self.settings.names[place]}={values[row]} of proposal {numbers[row]} must be a finite"
                f" number in the {kind}range [{low:g}, {high:g}]"
            )
            for row in np.flatnonzero(is_wrong).tolist()
        }

    # As JSON

    def to_json(self, pack: Callable[[NDArray[Any]], Any] = pack) -> dict[str, Any]:
        """Return the whole state as plain lists and numbers, exactly; `pack` is for what may be very long."""
        at = None if np.isinf(self.at) else self.at
        about = {"at": at, "status": self.status, "refused": dict(self.refused)}
        return {**stamp(), **about, **super().to_json(pack)}

    @classmethod
    def from_json(cls, settings: Settings, data: Mapping[str, Any]) -> "Ledger":
        """Invert :meth:`to_json`.

        Raises
        ------
        VersionError
            If it has a format that this release does not know.
        """
        check_format("the state of the experiment", data)
        out = cls(settings)
        out.load(data)
        out.at = -np.inf if data["at"] is None else data["at"]
        out.status = data["status"]
        out.refused.update(data["refused"])
        return out


def resume(settings: Settings, seq: int, state: Mapping[str, Any]) -> tuple[int, Ledger]:
    """Return the ledger stored in a snapshot, and the log entry that it was taken after.

    If this release cannot read the state, the ledger starts before the first entry: the state can be rebuilt
    from the log.

    Raises
    ------
    VersionError
        If the state has a format that this release does not know.
    """
    try:
        return seq, Ledger.from_json(settings, state)
    except VersionError:
        raise
    except (OrthobanditError, LookupError, TypeError, ValueError, AttributeError) as error:
        release = state["release"]
        if release == __version__:
            raise
        LOG.warning("a state of release %s cannot be read (%s); it is rebuilt from the log", release, error)
        return 0, Ledger(settings)
