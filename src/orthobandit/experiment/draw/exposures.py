"""Exposures: draws that were made at the edge, recomputed before they are accepted.

An exposure enters the log when it arrives, and is numbered then. Let F_n hold potential rewards, plans,
forecasts and arrival times of exposures 1 to n. The arm of exposure n is a hash, by a secret of its plan, of
a unit that has not been seen before: given F_{n−1}, it has the probabilities of its plan, as long as neither
its arrival nor the time of its arrival depends on its arm or its reward. The ledger's sums are then
martingales as they are for proposals, whether or not the plan is still in force. Exposures of one batch may
arrive with their rewards, and a client might have sorted them by reward. So a batch is entered in the order
of another hash of the units, which depends on neither arms nor rewards.
"""

import reprlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.random import cumulative_probabilities
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    ParameterError,
    RewardError,
)
from orthobandit.estimate import Plan
from orthobandit.estimate.forecast.contract import Covariates
from orthobandit.experiment.commit import transaction
from orthobandit.experiment.commit.transaction import Turn
from orthobandit.experiment.draw.edge_plan import check_edge
from orthobandit.experiment.draw.hashing import ORDER, drawn_each, held_out, name_of, positions
from orthobandit.experiment.ledger.entries import check_asked
from orthobandit.experiment.ledger.ledger import DrawnElsewhere
from orthobandit.experiment.ledger.personal_feed import PersonalFeed, Version
from orthobandit.experiment.ledger.policy_feed import Visitor
from orthobandit.experiment.refusals import Refusal
from orthobandit.experiment.store import Store

Known = Sequence[float | None] | Array  # values, None or NaN where nothing is known


class Batch(NamedTuple):
    """Exposures (n,) under one plan, and what is known of their rewards: (n,) by metric, NaN for nothing."""

    plan: int
    units: Sequence[str]
    arms: Whole
    rewards: Mapping[str, Array]
    covariates: Sequence[Covariates] | None


def named(rewards: Known | Mapping[str, Known] | None, objective: str) -> Mapping[str, Known]:
    """Return rewards by metric; a plain sequence belongs to the objective."""
    if rewards is None:
        return {}
    return rewards if isinstance(rewards, Mapping) else {objective: rewards}


def batch_of(
    plan: int,
    units: Sequence[str],
    arms: Sequence[int] | Whole,
    rewards: Mapping[str, Known],
    covariates: Sequence[Covariates] | None,
) -> Batch:
    """Check the arguments of a batch and return it."""
    if isinstance(plan, bool) or not isinstance(plan, int | np.integer):
        raise ParameterError(f"plan={plan!r} must be the number of the plan that they were drawn under")
    if isinstance(units, str):  # otherwise each of its letters would be a unit
        raise ParameterError(f"units={units!r} must be a list of text: [{units!r}]")
    given = list(units)
    drawn = np.asarray(arms)
    if not given or not all(isinstance(unit, str) and unit for unit in given):
        raise ParameterError(
            "units must be a list of text with at least one entry; turn numbers into str(number)"
        )
    if drawn.shape != (len(given),) or drawn.dtype.kind not in "iu":
        raise ParameterError(
            f"arms={reprlib.repr(arms)} must be whole numbers of arms, as many as units: {len(given)}"
        )
    if covariates is not None and len(covariates) != len(given):
        raise ParameterError(f"covariates are {len(covariates)} for {len(given)} units; give one dict each")
    check_asked(given, covariates or (), len(given))
    values = {}
    for name, some in rewards.items():
        try:
            if not isinstance(some, np.ndarray) and any(isinstance(one, str) for one in some):
                raise TypeError  # text is no number, though it can be converted to one
            values[name] = np.asarray(some, dtype=np.float64)  # None becomes NaN
        except (TypeError, ValueError):
            raise RewardError(f"{name}={some!r} must be numbers, or None where nothing is known") from None
        if values[name].shape != (len(given),):
            raise RewardError(f"{name} has {values[name].size} values for {len(given)} units; give one each")
    return Batch(plan, given, drawn.astype(np.int64, copy=False), values, covariates)


@dataclass
class Exposed:
    """The result of a batch of exposures.

    Attributes
    ----------
    taken : int
        Exposures that are new.
    known : int
        Exposures that were posted before.
    told : int
        Rewards that were accepted now or before.
    refused : list of Refusal
    """

    taken: int = 0
    known: int = 0
    told: int = 0
    refused: list[Refusal] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        refused = [refusal.to_json() for refusal in self.refused]
        return {"taken": self.taken, "known": self.known, "told": self.told, "refused": refused}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Exposed":
        """Invert :meth:`to_json`."""
        refused = [Refusal.from_json(row) for row in data["refused"]]
        return cls(data["taken"], data["known"], data["told"], refused)


def expose(turn: Turn, store: Store, batch: Batch) -> Exposed:
    """Accept exposures whose arms the server would have drawn too, and their rewards."""
    ledger = turn.ledger
    out = Exposed()
    check_edge(ledger)
    for name in batch.rewards:
        ledger.metric(name)  # one that is not known is nobody's
    if ledger.is_personal:
        return _expose_each(turn, store, batch)
    number, plan = _plan(turn, store, batch.plan)
    names = [name_of(unit) for unit in batch.units]
    draws = ledger.draws(batch.plan, cumulative_probabilities(plan.probabilities), names)
    is_good = np.asarray(draws[0] == batch.arms)
    for row in np.flatnonzero(~is_good).tolist():
        _refuse_draw(batch, row, out)
    ids = _numbers(turn, store, batch, is_good, out)
    fresh = _fresh(turn, batch, ids, is_good, out)
    new: dict[str, int] = {}
    if len(fresh):
        if number not in ledger.feed.plans:
            ledger.note(ledger.at, "recall", number=number, plan=plan.to_json())
        new = _enter(turn, batch, number, draws, fresh)
        out.taken = len(fresh)
    _tell(turn, store, batch, _with_new(new, batch, ids, is_good, out), out)
    out.refused.sort(key=lambda one: one.index)
    return out


def _refuse_draw(batch: Batch, row: int, out: Exposed) -> None:
    words = f"arm {batch.arms[row]} of unit {batch.units[row]!r} is not what plan {batch.plan} draws for it"
    out.refused.append(Refusal(row, None, ConflictError(f"{words}; draw by its salt")))


def _order(turn: Turn, batch: Batch, fresh: Whole) -> Whole:
    """Return new exposures sorted by a hash of their units, which depends on neither arms nor rewards."""
    names = [name_of(batch.units[row]) for row in fresh]
    return np.asarray(fresh[np.argsort(positions(turn.ledger.settings.key, ORDER, batch.plan, names))])


def _expose_each(turn: Turn, store: Store, batch: Batch) -> Exposed:
    """Accept exposures of a personalised experiment: each has its own distribution, from its context."""
    ledger = turn.ledger
    out = Exposed()
    version = _version(turn, store, batch.plan)
    is_good = np.ones(len(batch.units), dtype=np.bool_)
    # What is known of units that came before is on record; their context need not be sent again.
    ids = _numbers(turn, store, batch, is_good, out)
    contexts: dict[int, Covariates] = {}
    for row in np.flatnonzero(is_good & (ids == 0)).tolist():
        given = batch.covariates[row] if batch.covariates is not None else {}
        try:
            ledger.check_visitor(batch.units[row], version.plan.arms, Visitor(given))
            contexts[row] = {name: float(value) for name, value in given.items()}
        except ParameterError as error:
            is_good[row] = False
            out.refused.append(Refusal(row, None, error))
    draws = _drawn_again(turn, batch, version, contexts)
    for row, draw in draws.items():
        if draw.arm != batch.arms[row]:
            is_good[row] = False
            _refuse_draw(batch, row, out)
    fresh = _fresh(turn, batch, ids, is_good, out)
    new: dict[str, int] = {}
    for row in _order(turn, batch, fresh).tolist():
        unit = batch.units[row]
        entry = ledger.enter_drawn(version, unit, contexts[row], draws[row])
        turn.entered.append(({unit: 0}, entry, ledger.feed.plans[entry.distribution].probabilities))
        new[unit] = entry.first
    out.taken = len(fresh)
    _tell(turn, store, batch, _with_new(new, batch, ids, is_good, out), out)
    out.refused.sort(key=lambda one: one.index)
    return out


def _drawn_again(
    turn: Turn, batch: Batch, version: Version, contexts: Mapping[int, Covariates]
) -> dict[int, DrawnElsewhere]:
    """Recompute the draws of some rows, all at once."""
    if not contexts:
        return {}
    settings = turn.ledger.settings
    names = [name_of(batch.units[row]) for row in contexts]
    shares = version.plan.shares(list(contexts.values()))
    every = np.zeros((len(names), len(turn.ledger.arms)))
    every[:, list(version.plan.arms)] = shares
    arms = drawn_each(settings.key, version.number, cumulative_probabilities(every), names)
    # What cannot be shown cannot be held to.
    share = settings.holdout if settings.reference in version.plan.arms else 0.0
    held = held_out(settings.key, share, names)
    arms = np.where(held, settings.reference, arms)
    return {
        row: DrawnElsewhere(shares[place], int(arms[place]), bool(held[place]))
        for place, row in enumerate(contexts)
    }


def _version(turn: Turn, store: Store, wanted: int) -> Version:
    """Return the personalised plan that was handed out under a number."""
    feed = turn.ledger.feed
    newest = feed.newest if isinstance(feed, PersonalFeed) else None
    if newest is not None and wanted == newest.number:
        return newest
    try:
        data = store.distribution(wanted)
    except ParameterError:
        data = {}
    if "handed" not in data:
        last = "none was" if newest is None else f"the newest is {newest.number}"
        raise ParameterError(f"plan={wanted} was never handed out; {last}")
    return Version.of_note(data)


def _enter(turn: Turn, batch: Batch, number: int, draws: tuple[Whole, Mask], fresh: Whole) -> dict[str, int]:
    """Enter new exposures in order; return the proposals of their units."""
    ledger = turn.ledger
    (arms, held) = draws
    order = _order(turn, batch, fresh)
    units = [batch.units[row] for row in order]
    given = None if batch.covariates is None else [batch.covariates[row] for row in order]
    entry = ledger.enter(number, units, (arms[order], held[order]), given)
    places = dict(zip(units, range(len(units)), strict=True))
    turn.entered.append((places, entry, ledger.feed.plans[number].probabilities))
    return {unit: entry.first + place for unit, place in places.items()}


def _plan(turn: Turn, store: Store, wanted: int) -> tuple[int, Plan]:
    """Return the distribution of a plan, in force or not, and the plan."""
    feed = turn.ledger.feed
    if wanted == int(feed.plan.number):
        return feed.current, feed.plans[feed.current]

    def number_of(distribution: int) -> int:
        """Return the number of the plan that a distribution belongs to."""
        found = feed.plans.get(distribution)
        if found is not None:
            return int(found.number)
        try:
            return int(store.distribution(distribution)["plan"]["number"])
        except ParameterError:  # of this very commit, so that nobody has drawn from it yet
            return int(feed.plan.number)

    # Restrictions of a plan come after it, so the first of its number is the whole plan.
    known = range(1, feed.current + 1)
    number = bisect_left(known, wanted, key=number_of) + 1 if 1 <= wanted < int(feed.plan.number) else 0
    if not number or number_of(number) != wanted:
        raise ParameterError(f"plan={wanted} was never in force; the plan now is {int(feed.plan.number)}")
    if number in feed.plans:
        return number, feed.plans[number]
    return number, feed.fitted(Plan.from_json(store.distribution(number)["plan"]))


def _numbers(turn: Turn, store: Store, batch: Batch, is_good: Mask, out: Exposed) -> Whole:
    """Return the proposals (n,) of known units, 0 for others; refuse units that have another arm."""
    ids = np.zeros(len(batch.units), dtype=np.int64)
    found = transaction.known_units(turn, store, batch.units)
    if not found:
        return ids
    for row in np.flatnonzero(is_good).tolist():
        one = found.get(batch.units[row])
        if one is None:
            continue
        if (one.plan, one.arm) == (batch.plan, batch.arms[row]):
            ids[row] = one.id
            out.known += 1
            continue
        is_good[row] = False
        error = ConflictError(
            f"unit {batch.units[row]!r} has arm {one.arm} of plan {one.plan} since it first came, and counts"
            f" for that; show it that arm, not arm {batch.arms[row]} of plan {batch.plan}"
        )
        out.refused.append(Refusal(row, None, error))
    return ids


def _fresh(turn: Turn, batch: Batch, ids: Whole, is_good: Mask, out: Exposed) -> Whole:
    """Return the rows of new units, each unit once, if the experiment is open."""
    rows = np.flatnonzero(is_good & (ids == 0))
    if not len(rows):
        return rows
    try:
        turn.ledger.check_open()
    except ClosedError as error:
        is_good[rows] = False
        out.refused.extend(Refusal(row, None, error) for row in rows.tolist())
        return rows[:0]
    first = {batch.units[row]: row for row in reversed(rows.tolist())}
    return rows if len(first) == len(rows) else np.array(sorted(first.values()))


def _with_new(new: Mapping[str, int], batch: Batch, ids: Whole, is_good: Mask, out: Exposed) -> Whole:
    """Return the proposals (n,), new ones included; rows of one unit share a proposal."""
    rows = np.flatnonzero(is_good & (ids == 0))
    if len(rows):
        ids[rows] = [new[batch.units[row]] for row in rows.tolist()]
        out.known += len(rows) - out.taken
    return ids


def _tell(turn: Turn, store: Store, batch: Batch, ids: Whole, out: Exposed) -> None:
    objective = turn.ledger.settings.names[0]
    # The objective last: it may settle a proposal, and then nothing more can be told of it.
    for name in sorted(batch.rewards, key=lambda name: name == objective):
        rows = np.flatnonzero(~np.isnan(batch.rewards[name]) & (ids > 0))
        refused = transaction.tell(turn, store, ids[rows], {name: batch.rewards[name][rows]})
        out.told += len(rows) - len(refused)
        out.refused.extend(Refusal(int(rows[row.index]), name, row.error) for row in refused)
