"""Audit of a log: recompute every draw, and rebuild the whole state from its entries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.random import cumulative_probabilities
from orthobandit._foundation.release import __version__, without_stamp
from orthobandit.errors import ConflictError
from orthobandit.estimate import Plan
from orthobandit.experiment.draw.hashing import drawn, held_out, names_of
from orthobandit.experiment.ledger.entries import NUMBERED, Asked, Entry, Noted
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.recorded_plans import Differences, is_same
from orthobandit.experiment.settings import Settings


@dataclass(frozen=True)
class Audit:
    """The result of recomputing every draw.

    Attributes
    ----------
    proposals : int
        How many draws were computed.
    mismatch : str
        The first that differs, in words; empty if none does.
    """

    proposals: int
    mismatch: str = ""

    @property
    def passed(self) -> bool:
        """Whether all draws are as they should be."""
        return not self.mismatch

    def __str__(self) -> str:
        if self.passed:
            return f"all {self.proposals:,} draws are what the key, the plans and the units make them"
        return f"after {self.proposals:,} draws: {self.mismatch}"


def audit_draws(settings: Settings, entries: Iterable[tuple[int, Entry]]) -> Audit:
    """Recompute every draw of a log."""
    plans: dict[int, Plan] = {}
    without = set[int]()  # distributions that the reference arm was not available to
    count = 0
    for seq, entry in entries:
        if not isinstance(entry, Asked):
            if isinstance(entry, Noted) and entry.kind in NUMBERED:
                plans[int(entry.data["number"])] = Plan.from_json(entry.data["plan"])
                if settings.reference not in entry.data.get("available", [settings.reference]):
                    without.add(int(entry.data["number"]))
            continue
        plan = plans.get(entry.distribution)
        if plan is None:
            return Audit(count, f"entry {seq} is drawn from distribution {entry.distribution}, never noted")
        if int(plan.number) != entry.plan:
            return Audit(count, f"entry {seq} names plan {entry.plan}, its distribution {int(plan.number)}")
        names = names_of(entry.units, np.arange(entry.count) + entry.first, sticky=settings.sticky)
        held = held_out(settings.key, settings.holdout, names) & (entry.distribution not in without)
        arms = drawn(settings.key, entry.plan, cumulative_probabilities(plan.probabilities), names)
        arms = np.where(held, settings.reference, arms)
        wrong = (arms != entry.arms) | (held != entry.held)
        if wrong.any():
            row = int(np.argmax(wrong))
            return Audit(
                count + row,
                f"proposal {entry.first + row} has arm {entry.arms[row]}, and its draw gives {arms[row]}",
            )
        count += entry.count
    return Audit(count)


@dataclass(frozen=True)
class Replay:
    """The result of rebuilding the state from the log.

    Attributes
    ----------
    entries : int
    difference : str
        Where the rebuilt state differs first, in words; empty if nowhere.
    planned_by : tuple of str
        Other releases that planned the experiment, if they plan differently from this one. Their plans cannot
        be rebuilt bit by bit; everything that does not depend on planning can.
    contradiction : str
        The first difference in what does not depend on planning, in words; empty if there is none.
    is_rounding : bool
        Whether all differences are rounding errors of another processor or linear-algebra library.
    """

    entries: int
    difference: str = ""
    planned_by: tuple[str, ...] = ()
    contradiction: str = ""
    is_rounding: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether the rebuilt state is the one in use, bit by bit."""
        return not self.difference

    @property
    def passed(self) -> bool:
        """Whether the state in use is right, as far as this release can tell."""
        is_explained = self.is_rounding or bool(self.planned_by)
        return self.is_equal or (is_explained and not self.contradiction)

    def __str__(self) -> str:
        if self.is_equal:
            return f"{self.entries:,} entries give the state in use, bit by bit"
        if self.is_rounding:
            return f"{self.entries:,} entries give the state in use, but for rounding on another processor"
        if self.passed:
            makers = " and ".join(self.planned_by)
            return (
                f"planned by {makers}, which this release cannot re-derive; tallies, open proposals and"
                f" claims of {self.entries:,} entries check"
            )
        return f"{self.entries:,} entries give another state: {self.contradiction or self.difference}"


def replay_log(
    settings: Settings, entries: Iterable[tuple[int, Entry]], seq: int, state: Mapping[str, Any]
) -> Replay:
    """Fold a log up to entry `seq`, and compare with a state.

    If another release made the plans, only what does not depend on planning is compared: draws, rewards, open
    proposals, and that the claims do not contradict each other.
    """
    ledger = Ledger(settings)
    last = 0
    try:
        for place, entry in entries:
            if place > seq:
                break
            ledger.apply(entry)
            last = place
    except ConflictError as error:
        return Replay(last, str(error))
    rebuilt = ledger.to_json()
    difference = _difference(without_stamp(rebuilt), without_stamp(state), "state")
    makers = _makers(ledger.feed.differences)
    if not difference or not makers:
        is_rounding = bool(difference) and is_same(_without_hashes(rebuilt), _without_hashes(state))
        return Replay(last, difference, makers, is_rounding=is_rounding)
    contradiction = _difference(_facts(rebuilt), _facts(state), "state")
    if not contradiction:
        contradiction = _clash(ledger, Ledger.from_json(settings, state))
    return Replay(last, difference, makers, contradiction)


def _makers(differences: Differences) -> tuple[str, ...]:
    """Return the other releases whose plans this state continues."""
    others = {*differences.releases} - {__version__}
    # Two servers of one release may differ as well, where one of them was built by hand.
    return tuple(sorted(others)) or ("another release",) * bool(differences.count)


def _without_hashes(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without the hashes of its record, which differ even where numbers differ by rounding."""
    feed = {name: value for name, value in state["book"].items() if name != "record"}
    return {**without_stamp(state), "book": feed}


def _facts(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a state that the log fixes, whichever release planned it."""
    names = ("at", "status", "arms", "waiting", "drawn", "silent", "holdout")
    feed = state["book"]
    in_force = feed["plans"][str(feed["current"])]
    return {name: state[name] for name in names} | {"distributions": feed["numbers"], "plan": in_force}


def _clash(rebuilt: Ledger, in_use: Ledger) -> str:
    """Say which claims of the ledger rebuilt from the log and of that in use contradict; empty if none.

    Both rest on the same rewards, so their winners must agree and their intervals must overlap.
    """
    winners = [int(ledger.feed.policy.decide(ledger.feed.state).declared) for ledger in (rebuilt, in_use)]
    if min(winners) >= 0 and winners[0] != winners[1]:
        labels = [rebuilt.arms.labels[arm] for arm in winners]
        return f"the winner is {labels[0]!r} by the log, and {labels[1]!r} by the state in use"
    names = rebuilt.settings.names
    for metric, by_log, by_state in zip(names, rebuilt.gap_intervals, in_use.gap_intervals, strict=True):
        _, low, high = by_log.intervals(rebuilt.feed.plans)
        _, other_low, other_high = by_state.intervals(in_use.feed.plans)
        apart = (low > other_high) | (other_low > high)
        if apart.any():
            arm = int(np.argmax(apart))
            return (
                f"the gap of {rebuilt.arms.labels[arm]!r} in {metric!r} is in [{low[arm]:g}, {high[arm]:g}]"
                f" by the log, and in [{other_low[arm]:g}, {other_high[arm]:g}] by the state in use"
            )
    return ""


def _difference(one: Any, other: Any, where: str) -> str:
    """Say where two plain values differ first; empty if nowhere."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                return f"{where}.{key} is in one of them only"
            found = _difference(one[key], other[key], f"{where}.{key}")
            if found:
                return found
        return ""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return f"{where} has {len(one)} and {len(other)} parts"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (_difference(a, b, f"{where}[{k}]") for k, (a, b) in pairs)), "")
    return "" if one == other and type(one) is type(other) else f"{where} is {one!r} and {other!r}"
