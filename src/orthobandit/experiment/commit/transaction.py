"""A turn: the state that the requests of one commit share, and what asking and telling do in it.

Units come back and rewards are reported twice. What was committed before is looked up in the store; what this
commit adds is kept in the turn, because the store cannot show it before the commit ends.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import (
    ConflictError,
    OrthobanditError,
    ParameterError,
    RewardError,
    UnknownProposalError,
)
from orthobandit.estimate import Plan
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.ledger.entries import Asked, Entry, Told
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.policy_feed import Visitor
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.refusals import UNKNOWN_METRIC, Refusal, count_reasons
from orthobandit.experiment.store import Store
from orthobandit.experiment.store.contract import Row

Recorded = Mapping[int, Mapping[str, float]]  # rewards by proposal and metric
Wrong = tuple[str | None, OrthobanditError]  # what is wrong with a row, and the metric if it is one alone
Features = Mapping[str, Sequence[float]]  # of the arms that a visitor is offered, by label


class Lookup(Protocol):
    """The part of :class:`Writer` that asking and telling need: known units, and answers by key."""

    def known(self, units: Sequence[str]) -> dict[str, int]:
        """Return the number of the first proposal of each unit that has one."""
        ...

    def recall(self, key: str) -> str | None:
        """Return the text stored for the request with this key."""
        ...

    def remember(self, key: str, at: float, text: str) -> None:
        """Store a text for the request with this key."""
        ...


@dataclass
class Turn:
    """The state that the requests of one commit work on, one after the other.

    Attributes
    ----------
    ledger : Ledger
        Up to date with everything written so far.
    writer : Lookup
    units, done : dict
        Proposals of units, and answers by key, added by this commit: the store cannot show them yet.
    looked_up : dict
        Units that were looked up in the store for all requests of this commit at once: the number of the
        first proposal, or None.
    entered : list
        Positions of units in the entries that this commit adds, the entries, and their probabilities.
    told : list of Told
        Rewards that this commit adds.
    seq, kept : int
        The newest entry that the ledger holds, and the newest of a snapshot.
    logged_at : float
        Time of the newest entry.
    """

    ledger: Ledger
    writer: Lookup | None = None
    units: dict[str, Proposal] = field(default_factory=dict)
    done: dict[str, Any] = field(default_factory=dict)
    looked_up: dict[str, int | None] = field(default_factory=dict)
    entered: list[tuple[dict[str, int], Asked, Array]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    seq: int = 0
    kept: int = 0
    logged_at: float = -np.inf

    def look_up(self, units: Sequence[str]) -> None:
        """Look up units in the store together: one by one takes longer than everything else in `ask`."""
        if len(units) > 1 and self.writer is not None:
            self.looked_up = dict.fromkeys(units) | self.writer.known(list(dict.fromkeys(units)))

    def known(self, units: Sequence[str]) -> dict[str, int]:
        """Return the number of the first proposal of each unit that has one in the store."""
        left = [unit for unit in units if unit not in self.looked_up]
        found = self.writer.known(left) if left and self.writer is not None else {}
        for unit in units:
            number = self.looked_up.get(unit)
            if number is not None:
                found[unit] = number
        return found

    def take_in(self, entries: Iterable[tuple[int, Entry]]) -> None:
        """Apply entries of the store to the ledger."""
        for seq, entry in entries:
            self.ledger.apply(entry)
            self.seq = seq
            self.logged_at = entry.at

    def forget(self) -> None:
        """Forget what the commit added: the store shows it now."""
        self.writer = None
        self.units.clear()
        self.looked_up.clear()
        self.done.clear()
        self.entered.clear()
        self.told.clear()


Request = Callable[[Turn], Any]


def ask(
    turn: Turn,
    store: Store,
    names: Sequence[str | None],
    available: Sequence[int] | None,
    covariates: Sequence[Covariates] | None,
    features: Sequence[Features] | None = None,
) -> list[Proposal]:
    """Return a proposal for each name (n,): a new one, or the first of a unit that has come before."""
    ledger = turn.ledger
    is_sticky = turn.ledger.settings.sticky
    found: dict[str | int, Proposal] = {}
    if is_sticky:
        found.update(known_units(turn, store, names))
    # Whom a proposal is for: the unit, or the place in this request.
    whom = [place if name is None or not is_sticky else name for place, name in enumerate(names)]
    fresh = {key: place for place, key in reversed(list(enumerate(whom))) if key not in found}
    rows = sorted(fresh.values())
    if rows:
        units = [names[place] for place in rows]
        given = None if covariates is None else [covariates[place] for place in rows]
        if ledger.is_personal:
            own = None if features is None else [features[place] for place in rows]
            drawn = _draw_each(ledger, units, available, given, own)
        else:
            drawn = _draw(ledger, units, available, given)
        new = {whom[place]: one for place, one in zip(rows, drawn, strict=True)}
        turn.units.update({key: one for key, one in new.items() if isinstance(key, str)})
        found.update(new)
    return [found[key] for key in whom]


def _draw(
    ledger: Ledger,
    units: Sequence[str | None],
    available: Sequence[int] | None,
    covariates: Sequence[Covariates] | None,
    features: Features | None = None,
) -> list[Proposal]:
    """Return new proposals (n,) of one distribution."""
    entry = ledger.ask(ledger.at, units, len(units), available, covariates, features)
    probabilities = ledger.feed.plans[entry.distribution].probabilities
    return _proposals(entry, slice(0, None), ledger.arms.labels, probabilities)


def _draw_each(
    ledger: Ledger,
    units: Sequence[str | None],
    available: Sequence[int] | None,
    covariates: Sequence[Covariates] | None,
    features: Sequence[Features] | None,
) -> list[Proposal]:
    """Return new proposals (n,) of a personalised experiment: each has an entry and a distribution."""
    given: Sequence[Covariates | None] = covariates or [None] * len(units)
    brought: Sequence[Features | None] = features or [None] * len(units)
    visitors = [Visitor(*one) for one in zip(given, brought, strict=True)]
    ledger.check_open()
    for place, (unit, one) in enumerate(zip(units, visitors, strict=True), start=1):
        # All or none: whoever comes last must not find the others drawn.
        try:
            ledger.check_visitor(unit, available, one)
        except ParameterError as error:
            if len(units) > 1:
                raise ParameterError(f"visitor {place} of {len(units)} ({unit!r}): {error}") from None
            raise
    out = []
    for unit, one in zip(units, visitors, strict=True):
        row = None if one.context is None else [one.context]
        out += _draw(ledger, [unit], available, row, one.features)
    return out


def known_units(turn: Turn, store: Store, names: Sequence[str | None]) -> dict[str, Proposal]:
    """Return the first proposals of the units that have one."""
    units = [name for name in dict.fromkeys(names) if name is not None]
    found = {name: turn.units[name] for name in units if name in turn.units}
    for places, entry, probabilities in turn.entered:
        for name in units:
            if name in places:
                place = slice(places[name], places[name] + 1)
                [found[name]] = _proposals(entry, place, turn.ledger.arms.labels, probabilities)
    left = [name for name in units if name not in found]
    stored = turn.known(left) if left else {}
    if stored:
        rows = store.proposals(list(stored.values()))
        found.update((name, _again(turn, store, row)) for name, row in zip(stored, rows, strict=True))
    return found


def known(turn: Turn, store: Store, unit: str) -> Proposal | None:
    """Return the first proposal of a unit, if it has one."""
    return known_units(turn, store, [unit]).get(unit)


def drawn_before(turn: Turn, store: Store, numbers: Sequence[int]) -> list[Proposal]:
    """Return proposals that are in the store by number."""
    return [_again(turn, store, row) for row in store.proposals(numbers)]


def _again(turn: Turn, store: Store, row: Row) -> Proposal:
    plan = turn.ledger.feed.plans.get(row.distribution)
    if plan is None:
        plan = Plan.from_json(store.distribution(row.distribution)["plan"])
    label = turn.ledger.arms.labels[row.arm]
    return Proposal(row.number, row.arm, label, row.plan, plan.probabilities, row.forecasts[0], row.held)


def _proposals(entry: Asked, rows: slice, labels: Sequence[str], probabilities: Array) -> list[Proposal]:
    """Return proposals that were just drawn."""
    columns = (entry.arms[rows].tolist(), entry.held[rows].tolist(), entry.forecasts[0, rows].tolist())
    return [
        Proposal(number, arm, labels[arm], entry.plan, probabilities, forecast, held)
        for number, (arm, held, forecast) in enumerate(zip(*columns, strict=True), entry.first + rows.start)
    ]


def tell(turn: Turn, store: Store, numbers: Whole, values: Mapping[str, Array]) -> list[Refusal]:
    """Take in values (n,) of each metric of some proposals (n,), and return the rows that were refused.

    A row is a proposal with its values. It is taken whole or not at all, as if rows were told one by one.
    What is refused is counted in the log, because whoever told it may not look at the answer.

    Raises
    ------
    RewardError
        If there is no such metric: the caller is wrong, and nothing is taken.
    """
    ledger = turn.ledger
    for name in values:
        try:
            ledger.metric(name)
        except RewardError:
            if len(numbers):
                ledger.count_refused({UNKNOWN_METRIC: len(numbers)})
            raise
    # Read before anything is changed, because the store may fail.
    recorded = _rewards_in_store(turn, store, numbers)
    refused: list[Refusal] = []
    for rows in _without_repeats(numbers):
        wrong = _tell_once_each(turn, recorded, numbers[rows], {name: values[name][rows] for name in values})
        refused += [Refusal(int(rows[row]), metric, error) for row, (metric, error) in wrong.items()]
    if refused:
        ledger.count_refused(count_reasons(refused))
    return sorted(refused, key=lambda refusal: refusal.index)


def _without_repeats(numbers: Whole) -> list[Whole]:
    """Divide rows so that none of the parts has a proposal twice; the first part has the first of each."""
    if len(numbers) < 2:
        return [np.arange(len(numbers))]
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(numbers[order]) != 0))
    if len(starts) == len(numbers):
        return [np.arange(len(numbers))]
    # How often the proposal of each row, in this order, came before.
    lengths = np.diff(starts, append=len(numbers))
    before = np.arange(len(numbers)) - np.repeat(starts, lengths)
    by_turn = np.argsort(before, kind="stable")
    ends = np.cumsum(np.bincount(before))[:-1]
    return [np.sort(order[part]) for part in np.split(by_turn, ends)]


def _tell_once_each(
    turn: Turn, recorded: Recorded, numbers: Whole, values: Mapping[str, Array]
) -> dict[int, Wrong]:
    """Take in values of different proposals; return what is wrong with the other rows."""
    ledger = turn.ledger
    open_rows, wrong = _open_rows(turn, recorded, numbers, values)
    drawn = numbers[open_rows]
    new: dict[str, tuple[Mask, Array]] = {}
    # The objective last: it may settle a proposal, and then nothing more can be told of it.
    for name in sorted(values, key=lambda name: name == ledger.settings.names[0]):
        told = values[name][open_rows]
        is_new, errors = ledger.check_told(name, drawn, told)
        new[name] = (is_new, told)
        for row, error in errors.items():
            wrong.setdefault(int(open_rows[row]), (name, error))
    is_good = np.ones(len(numbers), dtype=np.bool_)
    is_good[list(wrong)] = False
    for name, (is_new, told) in new.items():
        taken = is_new & is_good[open_rows] if wrong else is_new
        if taken.any():
            turn.told.append(ledger.tell_checked(name, drawn[taken], told[taken]))
    return wrong


def _open_rows(
    turn: Turn, recorded: Recorded, numbers: Whole, values: Mapping[str, Array]
) -> tuple[Whole, dict[int, Wrong]]:
    """Return the rows of open proposals, and what is wrong with others.

    There is nothing wrong with a reward that a settled proposal was told before.
    """
    ledger = turn.ledger
    first = ledger.waiting.first
    wrong: dict[int, Wrong] = {}
    if len(numbers) == 1 and first <= numbers.item() < ledger.waiting.next:
        return np.zeros(1, dtype=np.int64), wrong
    is_known = (numbers >= 1) & (numbers < ledger.waiting.next)
    is_open = is_known & (numbers >= first)
    if is_open.all():
        return np.arange(len(numbers)), wrong
    for row in np.flatnonzero(~is_known).tolist():
        words = f"proposal {numbers[row]} was never asked for; tell what `ask` returned"
        wrong[row] = (None, UnknownProposalError(words))
    for row in np.flatnonzero(is_known & ~is_open).tolist():
        number = int(numbers[row])
        # What this commit has told is not in the store yet.
        rewards = {**recorded.get(number, {}), **_just_told(turn, number)}
        error = _error_of_settled(ledger, number, rewards, {name: values[name][row] for name in values})
        if error is not None:
            wrong[row] = error
    return np.flatnonzero(is_open), wrong


def _rewards_in_store(turn: Turn, store: Store, numbers: Whole) -> Recorded:
    """Return the rewards of those proposals that are settled, or may be by the time they come again."""
    first = turn.ledger.waiting.first
    if len(numbers) == 1 and numbers.item() >= first:
        return {}
    different, counts = np.unique(numbers, return_counts=True)
    # Proposals of this commit are not in the store yet.
    unseen = min((entry.first for _, entry, _ in turn.entered), default=turn.ledger.waiting.next)
    is_needed = (different >= 1) & (different < unseen) & ((different < first) | (counts > 1))
    stored = different[is_needed].tolist()
    outcomes = store.outcomes(stored) if stored else []
    return {outcome.proposal.number: outcome.rewards for outcome in outcomes}


def _just_told(turn: Turn, number: int) -> dict[str, float]:
    """Return the rewards of a proposal that are part of this commit, the first of each metric."""
    rewards: dict[str, float] = {}
    for entry in turn.told:
        for row in np.flatnonzero(entry.proposals == number).tolist():
            rewards.setdefault(entry.metric, float(entry.values[row]))
    return rewards


def _error_of_settled(
    ledger: Ledger, number: int, recorded: Mapping[str, float], values: Mapping[str, float]
) -> Wrong | None:
    """Return what is wrong with values of a settled proposal; None if all of them were told before."""
    for name, value in values.items():
        before = recorded.get(name)
        if before is None or ledger.settings.metrics[ledger.metric(name)].add:
            return None, ledger.too_late(number)
        if before != value:
            words = f"proposal {number} was told {before:g} for {name!r} before, now {value:g}"
            return name, ConflictError(f"{words}; the first value is final")
    return None
