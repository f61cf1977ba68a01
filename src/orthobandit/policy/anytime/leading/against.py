"""Evidence of many arms against one: of the survivors only, so that a dropped arm costs nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.confidence.bets import BOLDEST
from orthobandit.estimate.confidence.boundaries import WIDE
from orthobandit.estimate.confidence.evidence import Batch, Evidence, Tuning, draws_waited
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.policy.anytime.rounds import EVIDENCE

AT_A_TIME = 1 << 16  # arms whose boundaries are computed together, so that what is made on the way is small
# Arms whose upper bounds are solved for one by one; the others need only be shown to be no higher.
SOLVED = 64


@dataclass(frozen=True, eq=False)
class Shown:
    """What residuals have shown so far, on which the asymptotic mode decides whether it may speak.

    Attributes
    ----------
    events : float
        See :attr:`~orthobandit.estimate.confidence.evidence.Sizes.events`.
    quiet : (n,) array of bool
        Whether a survivor, or the arm it is held against, is quiet.
    """

    events: float
    quiet: Mask

    def only(self, some: Mask | Whole) -> "Shown":
        """Return that of some survivors."""
        return Shown(self.events, self.quiet[some])


@dataclass(frozen=True, eq=False)
class Against:
    """Sums of what each survivor is better by than another arm, with the boundary that holds for them.

    Attributes
    ----------
    arm : int
        The other arm; −1 for tests, whose rival is the leader of the moment.
    alpha : float
        Probability that the bound of any one survivor is ever wrong.
    since : int
        Number of the first plan whose rounds count: the arm was chosen before.
    totals, weights, variances, slack, pooled, peaks : (n,) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Evidence`; one entry a survivor, in ascending
        order.
    rho, scale : (n,) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Tuning`.
    """

    arm: int
    alpha: float
    since: int
    totals: Array
    weights: Array
    variances: Array
    slack: Array
    pooled: Array
    peaks: Array
    rho: Array
    scale: Array

    @classmethod
    def fresh(cls, arm: int, alpha: float, since: int, tuning: Tuning) -> "Against":
        """Return the sums before the first round; one array of zeros serves all of them."""
        nothing = np.zeros(len(tuning.rho))
        nothing.flags.writeable = False
        sums = dict.fromkeys(EVIDENCE, nothing)
        return cls(arm, alpha, since, **sums, rho=tuning.rho, scale=tuning.scale)

    def copied(self, arm: int, alpha: float) -> "Against":
        """Return the same sums, as long as they are the same, against an arm at a level of its own."""
        return replace(self, arm=arm, alpha=alpha)

    def is_same_as(self, other: "Against") -> bool:
        """Tell whether these are the very sums of another: they then need to be updated and kept once."""
        return self.totals is other.totals

    def with_sums_of(self, other: "Against") -> "Against":
        """Return these with the sums of another that they are the same as."""
        return other.copied(self.arm, self.alpha)

    def and_of(self, batch: Batch, confidence: Confidence) -> "Against":
        """Return the sums with a batch of rounds."""
        before = Evidence(**{name: getattr(self, name) for name in EVIDENCE})
        now = before.and_of(batch, self._tuning(slice(None)), confidence)
        return replace(self, **{name: getattr(now, name) for name in EVIDENCE})

    def only(self, left: Mask | Whole) -> "Against":
        """Return the entries of the survivors (n,) that are left."""
        names = (part.name for part in fields(self) if part.name not in ("arm", "alpha", "since"))
        return replace(self, **{name: getattr(self, name)[left] for name in names})

    def lost(self, confidence: Confidence, shown: Shown) -> Mask:
        """Tell which survivors (n,) are proven worse than the other arm."""
        out = np.zeros(len(self.totals), dtype=np.bool_)
        for block in self._blocks(np.flatnonzero((self.totals < 0) & self._may_lose(confidence))):
            evidence = self._evidence(block, shown)
            out[block] = confidence.exceeds(replace(evidence, totals=-evidence.totals), self._tuning(block))
        return out

    def _may_lose(self, confidence: Confidence) -> Mask:
        """Tell which survivors (n,) are worth a closer look: no others can be proven worse.

        A normal mixture is above √(2V·log(1/2α)). A mixture of bets is at most the best of them, which gains
        λS − λ²V/2 at most.
        """
        if not confidence.is_exact:
            least = 2.0 * max(np.log(0.5 / self.alpha), 0.0) * self.variances
            return np.asarray(self.totals**2 > least)
        total = np.abs(self.totals)
        cap = BOLDEST / self.scale
        bet = np.minimum(cap, total / np.where(self.variances > 0, self.variances, 1e-300))
        return np.asarray(bet * (total - 0.5 * bet * self.variances) >= -np.log(self.alpha) - 1e-9)

    def upper_bounds(self, confidence: Confidence, shown: Shown) -> Array:
        """Return the most (n,) that each survivor can be better than the other arm; +inf if not known."""
        out = np.empty(len(self.totals))
        for block in self._blocks(np.arange(len(out))):
            evidence = self._evidence(block, shown)
            out[block] = evidence.estimates + confidence.width(evidence, self._tuning(block))
        return out

    def highest(self, confidence: Confidence, shown: Shown, among: Mask) -> float:
        """Return the largest upper bound of some survivors (n,), without computing all of them.

        A bound is at most h exactly where h less the estimate exceeds the boundary, which is asked sooner
        than the boundary is solved for.
        """
        rest = np.flatnonzero(among)
        if np.any(self.weights[rest] == 0):
            return float("inf") if rest.size else 0.0
        highest = 0.0
        while rest.size:
            # What promises to be highest first: the estimate, some standard errors and, where one round can
            # be felt, some of its largest steps.
            far = 4.0 * np.sqrt(self.variances[rest]) + (
                5.0 * self.scale[rest] if confidence.is_exact else 0.0
            )
            promise = (self.totals[rest] + far) / self.weights[rest]
            order = np.argpartition(-promise, min(SOLVED, rest.size - 1))
            first = rest[order[:SOLVED]]
            rest = rest[order[SOLVED:]]
            bounds = self.only(first).upper_bounds(confidence, shown.only(first))
            highest = max(highest, float(bounds.max()))
            if not np.isfinite(highest):
                return highest
            rest = rest[~self._below(rest, highest, confidence, shown)]
        return highest

    def _below(self, some: Whole, most: float, confidence: Confidence, shown: Shown) -> Mask:
        """Tell which of some survivors have an upper bound of at most `most`."""
        out = np.zeros(len(some), dtype=np.bool_)
        for start in range(0, len(some), AT_A_TIME):
            block = some[start : start + AT_A_TIME]
            evidence = self._evidence(block, shown)
            room = most * evidence.weights - evidence.totals
            out[start : start + len(block)] = confidence.exceeds(
                replace(evidence, totals=room), self._tuning(block)
            )
        return out

    def _blocks(self, some: Whole) -> Iterator[Whole]:
        for start in range(0, len(some), AT_A_TIME):
            yield some[start : start + AT_A_TIME]

    def _evidence(self, some: Any, shown: Shown) -> Evidence:
        parts = {name: getattr(self, name)[some] for name in EVIDENCE}
        waited = draws_waited(parts["totals"], parts["weights"], parts["variances"], shown.quiet[some])
        return Evidence(**parts, events=np.asarray(shown.events), waited=waited)

    def _tuning(self, some: Any) -> Tuning:
        return Tuning(np.asarray(self.alpha), self.rho[some], self.scale[some], grid=WIDE)
