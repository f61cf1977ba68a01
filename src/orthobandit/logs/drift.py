"""Do gaps drift? The test of ``experiment.constancy`` on a whole log at once."""

from dataclasses import dataclass, replace

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Asymptotic, Evidence, Tuning
from orthobandit.estimate.boundaries import tightest_rho
from orthobandit.estimate.evidence import SUMMED
from orthobandit.experiment.constancy import FIRST, Drift
from orthobandit.logs.gathered import Gathered, gather
from orthobandit.logs.sizes import SizesInTime
from orthobandit.logs.strata import Strata

LOOKS = 1000  # ends of buckets at which gaps are compared, at most
GUESS = 1000  # rounds that intervals are made tightest for, as a sequence of contrasts does


@dataclass(frozen=True)
class DriftFound:
    """A drift, with the last bucket before the split and the one at whose end it was found."""

    drift: Drift
    split: int
    seen: int


@dataclass(frozen=True, eq=False)
class _Test:
    """What the comparisons of all splits have in common."""

    gathered: Gathered
    sizes: SizesInTime
    evidence: Evidence
    alpha: float
    looks: Whole

    def level(self, number: int) -> Array:
        """Return the α (m,) of one side of one of the two intervals of a split, counted from 0."""
        others = self.evidence.totals.shape[1]
        return np.full(others, self.alpha / ((number + 1) * (number + 2) * others * 4.0))

    def before(self, number: int, split: int, noise: float) -> tuple[Array, Array]:
        """Return the ends (m,) of the intervals up to a split."""
        rho = tightest_rho(GUESS * noise**2 / self.gathered.first, self.alpha / 2.0)
        return _ends(_at(self.evidence, np.array([split])), self.level(number), rho)

    def after(self, number: int, split: int) -> tuple[Whole, Array, Array]:
        """Return later looks (L,), and the ends (L, m) of the intervals from the split up to each."""
        looks = self.looks[self.looks > split]
        whole = {name: getattr(self.evidence, name) for name in SUMMED}
        since = {name: part[looks] - part[split] for name, part in whole.items()}
        seen = self.sizes.events_since(split)[looks - split - 1][:, np.newaxis]
        now = _at(self.evidence, looks)
        # Where the whole sequence may not speak yet, a part of it may not either.
        allowed = np.where(now.events > 0, seen, 0.0)
        rho = tightest_rho(self.evidence.variances[split], self.level(number))
        return looks, *_ends(replace(now, **since, events=allowed), self.level(number), rho)


def find_drift(
    arms: ArmSet, strata: Strata, reference: int, noise: float = 1.0, alpha: float = 1e-3
) -> tuple[DriftFound | None, int]:
    """Return the first drift of a gap that the log shows, if any, and how many splits were tried.

    As :class:`~orthobandit.experiment.constancy.Constancy`, with a bucket as a feed: after 64 rounds and each
    time that their number has doubled, at the end of a bucket, intervals so far are kept, and compared with
    those of what follows. All plans of a bucket are added up at once. In very long logs the comparison is
    made at the ends of a thousand buckets.

    Parameters
    ----------
    arms : ArmSet
    strata : Strata
        Of residuals: each bucket minus a level that was known before it.
    reference : int
        The arm that others are compared with.
    noise : float
        A guess of their standard deviation; intervals are tightest there, and valid whatever it is.
    alpha : float
        Chance of a false alarm.
    """
    sizes = SizesInTime.of(strata)
    gathered = gather(arms, strata, sizes, reference)
    count = len(sizes.buckets)
    looks = np.unique(np.linspace(0, count - 1, min(count, LOOKS)).astype(np.int64))
    test = _Test(gathered, sizes, gathered.evidence(sizes), alpha, looks)
    found: tuple[int, float, DriftFound] | None = None
    splits = _splits(sizes.rounds)
    for number, split in enumerate(splits):
        low, high = test.before(number, split, noise)
        times, after_low, after_high = test.after(number, split)
        apart = np.maximum(after_low - high[0], low[0] - after_high)
        hits = np.flatnonzero((apart > 0).any(axis=1))
        if not len(hits):
            continue
        look, arm = int(hits[0]), int(np.argmax(apart[hits[0]]))
        when, size = int(times[look]), float(apart[look, arm])
        if found is None or (when, -size) < (found[0], -found[1]):
            drift = Drift(
                arm + int(arm >= reference),
                reference,
                int(sizes.rounds[split]),
                int(sizes.rounds[when]),
                (float(low[0, arm]), float(high[0, arm])),
                (float(after_low[look, arm]), float(after_high[look, arm])),
            )
            found = when, size, DriftFound(drift, int(sizes.buckets[split]), int(sizes.buckets[when]))
    return (None if found is None else found[2]), len(splits)


def _splits(rounds: Array) -> list[int]:
    """Return the buckets after which gaps are compared with what follows; the last has nothing after it."""
    out: list[int] = []
    enough = float(FIRST)
    while (place := int(np.searchsorted(rounds, enough))) < len(rounds) - 1:
        out.append(place)
        enough = 2.0 * float(rounds[place])
    return out


def _at(evidence: Evidence, places: Whole) -> Evidence:
    return Evidence(*(getattr(evidence, name)[places] for name in vars(evidence)))


def _ends(evidence: Evidence, alpha: Array, rho: Array) -> tuple[Array, Array]:
    tuning = Tuning(alpha, np.where(rho > 0, rho, 1.0), np.ones_like(rho))
    width, estimates = Asymptotic().width(evidence, tuning), evidence.estimates
    return estimates - width, estimates + width
