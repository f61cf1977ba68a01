"""Do gaps drift? The test of ``experiment.constancy`` on what was known at the ends of a log's buckets."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate import ContrastSequence
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import SUMMED, Evidence, events
from orthobandit.estimate.health.constancy import FIRST, Drift, ends_of, evidence_since, level_of
from orthobandit.logs.follow import Snapshot

ALPHA = 1e-3  # chance of a false alarm


@dataclass(frozen=True)
class DriftFound:
    """A drift, with the last bucket before the split and the one at whose end it was found."""

    drift: Drift
    split: int
    seen: int


def find_drift(
    snapshots: Sequence[Snapshot], others: Sequence[int], reference: int, alpha: float = ALPHA
) -> tuple[DriftFound | None, int]:
    """Return the first drift of a gap that the log shows, if any, and how many splits were tried.

    As :class:`~orthobandit.estimate.health.constancy.Constancy`: after 64 rounds and each time that their
    number has doubled, at a snapshot, the intervals so far are compared with those of what follows, at every
    later snapshot, all at once; the largest residual is that of the whole log.

    Parameters
    ----------
    snapshots : sequence of Snapshot
    others : sequence of int
        The arms whose gaps come first in the sequence.
    reference : int
        The arm they are compared with.
    alpha : float
        Chance of a false alarm.
    """
    splits = _splits(snapshots)
    found: tuple[int, float, DriftFound] | None = None
    whole = _Whole.of(snapshots, len(others)) if splits else None
    for number, place in enumerate(splits):
        if whole is None:
            break
        level = level_of(alpha, number, len(others))
        low, high = whole.before(place, level)
        after_low, after_high = whole.after(place, level)
        apart = np.maximum(after_low - high, low - after_high)
        hits = np.flatnonzero((apart > 0).any(axis=1))
        if not len(hits):
            continue
        look = int(hits[0])
        later = place + 1 + look
        arm = int(np.argmax(apart[look]))
        size = float(apart[look, arm])
        if found is None or (later, -size) < (found[0], -found[1]):
            before, after = snapshots[place], snapshots[later]
            drift = Drift(
                others[arm],
                reference,
                before.rows,
                after.rows,
                (float(low[arm]), float(high[arm])),
                (float(after_low[look, arm]), float(after_high[look, arm])),
            )
            found = later, size, DriftFound(drift, before.bucket, after.bucket)
    return (None if found is None else found[2]), len(splits)


def _splits(snapshots: Sequence[Snapshot]) -> list[int]:
    """Return the snapshots whose intervals are compared with what follows; the last has nothing after it."""
    out = list[int]()
    enough = FIRST
    for place, one in enumerate(snapshots[:-1]):
        if one.rows >= enough:
            out.append(place)
            enough = 2 * one.rows
    return out


@dataclass(frozen=True, eq=False)
class _Whole:
    """The evidence (S, m) at all snapshots, their scatter and largest residual (S,), and the mode."""

    evidence: Evidence
    scattered: Array
    largest: Array
    sequence: ContrastSequence

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], gaps: int) -> "_Whole":
        sequences = [one.sequence for one in snapshots]
        shape = sequences[0].evidence.totals.shape
        parts = {
            part.name: np.stack(
                [np.broadcast_to(getattr(one.evidence, part.name), shape)[:gaps] for one in sequences]
            )
            for part in fields(Evidence)
        }
        scattered, largest = (
            np.array([getattr(one.seen.sizes, name) for one in sequences])
            for name in ("scattered", "largest")
        )
        return cls(Evidence(**parts), scattered, largest, sequences[0])

    def before(self, place: int, level: Array) -> tuple[Array, Array]:
        """Return the ends (m,) up to a snapshot."""
        rho = self.sequence.tuning.rho[: len(level)]
        return ends_of(self.sequence, self.evidence.at(place), level, rho)

    def after(self, place: int, level: Array) -> tuple[Array, Array]:
        """Return the ends (S − place − 1, m) from a snapshot up to each later one."""
        split = self.evidence.at(place)
        later = self.evidence.at(slice(place + 1, None))
        seen = events(self.scattered[place + 1 :] - self.scattered[place], self.largest[place + 1 :])
        since = evidence_since(later, {name: getattr(split, name) for name in SUMMED}, seen)
        return ends_of(self.sequence, since, level, tightest_rho(split.variances, level))
