"""Is the log what it says: every draw computed again, and the whole state rebuilt from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.random import cumulative_probabilities
from orthobandit.errors import ConflictError
from orthobandit.estimate import Plan
from orthobandit.experiment.draw.hashing import drawn, held_out, names_of
from orthobandit.experiment.ledger.entries import NUMBERED, Asked, Entry, Noted
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.settings import Settings


@dataclass(frozen=True)
class Audit:
    """What computing every draw again has found.

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


def audited(settings: Settings, entries: Iterable[tuple[int, Entry]]) -> Audit:
    """Compute every draw of a log again."""
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
    """What rebuilding the state from the log has found.

    Attributes
    ----------
    entries : int
    difference : str
        Where the rebuilt state differs first, in words; empty if nowhere.
    """

    entries: int
    difference: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether the rebuilt state is the one in use, bit by bit."""
        return not self.difference

    def __str__(self) -> str:
        if self.is_equal:
            return f"{self.entries:,} entries give the state in use, bit by bit"
        return f"{self.entries:,} entries give another state: {self.difference}"


def replayed(
    settings: Settings, entries: Iterable[tuple[int, Entry]], seq: int, state: Mapping[str, Any]
) -> Replay:
    """Fold a log up to entry `seq`, and compare with a state."""
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
    return Replay(last, _difference(ledger.to_json(), state, "state"))


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
