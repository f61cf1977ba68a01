"""The test of constant gaps: if a gap between arms drifts, the model is violated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_fraction
from orthobandit._foundation.json_arrays import numbers_of, plain
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Asymptotic, Confidence, ContrastSequence, Evidence, Plan, Tally, Tuning
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import SUMMED, events

FIRST = 64  # rounds before the first split; every further one has at least twice as many


@dataclass(frozen=True)
class Drift:
    """A gap that was not the same before and after.

    Attributes
    ----------
    arm, reference : int
        The gap is that of the arm over the reference.
    split, found : int
        Rounds before the split, and rounds so far when it was found.
    before, after : (float, float)
        Ends of the intervals of the gap before and after the split, which do not overlap.
    """

    arm: int
    reference: int
    split: int
    found: int
    before: tuple[float, float]
    after: tuple[float, float]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Drift":
        """Return the drift whose fields survived JSON."""
        return cls(**{**data, "before": tuple(data["before"]), "after": tuple(data["after"])})

    def __str__(self) -> str:
        ends = [f"[{low:.4g}, {high:.4g}]" for low, high in (self.before, self.after)]
        return (
            f"the gap of arm {self.arm} over arm {self.reference} was in {ends[0]} in the first"
            f" {self.split:,} rounds, and in {ends[1]} after them (seen after {self.found:,})"
        )


def level_of(alpha: float, number: int, gaps: int) -> Array:
    """Return the α (m,) of one side of one of the two intervals of a split, counted from 0, of m gaps."""
    return np.full(gaps, alpha / ((number + 1) * (number + 2) * gaps * 4.0))


def ends_of(sequence: ContrastSequence, evidence: Evidence, alpha: Array, rho: Array) -> tuple[Array, Array]:
    """Return the ends (..., m) of intervals of the first m contrasts, by the mode of their sequence."""
    scale = sequence.tuning.scale[: len(alpha)]
    tuning = Tuning(alpha, np.where(rho > 0, rho, 1.0), np.where(scale > 0, scale, 1.0))
    width = sequence.confidence.width(evidence, tuning)
    estimates = evidence.estimates
    return estimates - width, estimates + width


def evidence_since(now: Evidence, before: Mapping[str, Array], seen: Array) -> Evidence:
    """Return the evidence (..., m) after a split.

    Parameters
    ----------
    now : Evidence
        Of all rounds.
    before : mapping of str to (m,) array
        What it was at the split, of its sums.
    seen : (...) array
        :func:`~orthobandit.estimate.confidence.evidence.events` of the rounds since.
    """
    since = {name: getattr(now, name) - part for name, part in before.items()}
    # Where the whole sequence may not speak yet, a part of it may not either.
    allowed = np.where(np.asarray(now.events) > 0, np.asarray(seen)[..., np.newaxis], 0.0)
    return replace(now, **since, events=allowed)


@dataclass(frozen=True, eq=False)
class Split:
    """What was known at a split: evidence and the intervals (m,) it gave; the largest residual since."""

    rounds: int
    parts: dict[str, Array]
    scattered: float
    rho: Array
    low: Array
    high: Array
    largest: float = 0.0


@dataclass(frozen=True, eq=False)
class Constancy:
    """Gaps of all arms to a reference arm, before and after split points that lie ever further apart.

    All inference assumes that gaps do not change; the level may move freely. After 64 rounds, and each time
    that their number has doubled, at the end of a feed, the intervals so far are kept, and a second sequence
    begins with the next round. For the j-th such split both have α/(j(j+1)(K−1)), in four one-sided parts.
    Under constant gaps all of them hold at all times at once with probability 1 − α, and then the interval
    after a split overlaps the one before it. Evidence after a split is a difference of sums, so that a split
    costs a few vectors: memory grows as K·log(rounds).

    Attributes
    ----------
    sequence : ContrastSequence
        All rounds so far; how many, ``rounds`` says.
    reference : int
        The arm that others are compared with.
    alpha : float
        Probability of ever raising an alarm although all gaps are constant.
    splits : tuple of Split
    found : Drift or None
        The first drift that was found; it stays.
    """

    sequence: ContrastSequence
    reference: int
    alpha: float
    rounds: int = 0
    splits: tuple[Split, ...] = ()
    found: Drift | None = None

    @classmethod
    def start(
        cls,
        arms: ArmSet,
        reference: int = 0,
        confidence: Confidence | None = None,
        alpha: float = 1e-3,
    ) -> "Constancy":
        """Return the test before the first round.

        Parameters
        ----------
        arms : ArmSet
        reference : int
            The arm that others are compared with.
        confidence : Confidence, optional
            :class:`Asymptotic` by default; leave the warm-up of a baseline out of that mode.
        alpha : float
            Chance of a false alarm, over the whole experiment.
        """
        if len(arms) < 2 or not 0 <= reference < len(arms):
            raise ParameterError(
                f"reference={reference} is not one of at least two arms; arms are 0 to {len(arms) - 1}"
            )
        check_fraction("alpha", alpha)
        pairs = [[arm, reference] for arm in range(len(arms)) if arm != reference]
        mode = Asymptotic() if confidence is None else confidence
        return cls(ContrastSequence.start(arms, pairs, mode, delta=alpha), reference, alpha)

    def and_of(self, plan: Plan, tally: Tally) -> "Constancy":
        """Return the test with the rounds (K,) of a plan, tallied as for a policy."""
        count = int(tally.rounds)
        if not count:
            return self
        # Rounds that came in beyond the end of a plan were drawn from it all the same.
        longer = Plan(plan.probabilities, max(int(plan.rounds), count), plan.centre, plan.number)
        most = float(tally.largest.max())
        now = replace(
            self,
            sequence=self.sequence.add(longer, tally),
            rounds=self.rounds + count,
            splits=tuple(replace(split, largest=max(split.largest, most)) for split in self.splits),
        )
        now = replace(now, found=self.found or now._drift())
        # Splits that double keep their number, and what they cost of α, logarithmic in the rounds.
        enough = 2 * now.splits[-1].rounds if now.splits else FIRST
        return now._with_split() if now.rounds >= enough else now

    @property
    def alarm(self) -> bool:
        """Whether some gap has changed."""
        return self.found is not None

    def _with_split(self) -> "Constancy":
        number = len(self.splits)
        evidence = self.sequence.evidence
        alpha = level_of(self.alpha, number, len(evidence.totals))
        low, high = ends_of(self.sequence, evidence, alpha, self.sequence.tuning.rho)
        split = Split(
            rounds=self.rounds,
            parts={name: getattr(evidence, name) for name in SUMMED},
            scattered=self.sequence.seen.sizes.scattered,
            rho=tightest_rho(evidence.variances, alpha),
            low=low,
            high=high,
        )
        return replace(self, splits=(*self.splits, split))

    def after(self, number: int) -> tuple[Array, Array]:
        """Return the ends (m,) of the intervals of all gaps after a split, counted from 0."""
        split = self.splits[number]
        now = self.sequence.evidence
        scattered = self.sequence.seen.sizes.scattered - split.scattered
        since = evidence_since(now, split.parts, events(scattered, split.largest))
        return ends_of(self.sequence, since, level_of(self.alpha, number, len(now.totals)), split.rho)

    def _drift(self) -> Drift | None:
        """Return the largest change, if there is any."""
        worst = 0.0
        found = None
        others = [arm for arm in range(len(self.sequence.arms)) if arm != self.reference]
        for number, split in enumerate(self.splits):
            low, high = self.after(number)
            apart = np.maximum(low - split.high, split.low - high)
            at = int(np.argmax(apart))
            if apart[at] > worst:
                worst = float(apart[at])
                before, after = (
                    (float(split.low[at]), float(split.high[at])),
                    (float(low[at]), float(high[at])),
                )
                found = Drift(others[at], self.reference, split.rounds, self.rounds, before, after)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly; null for infinity."""
        return {
            "reference": self.reference,
            "alpha": self.alpha,
            "rounds": self.rounds,
            "sequence": self.sequence.to_json(),
            "splits": [
                vars(split)
                | {name: plain(getattr(split, name)) for name in ("rho", "low", "high")}
                | {"parts": {name: plain(part) for name, part in split.parts.items()}}
                for split in self.splits
            ],
            "found": None if self.found is None else vars(self.found),
        }

    @classmethod
    def from_json(cls, arms: ArmSet, confidence: Confidence | None, data: dict[str, Any]) -> "Constancy":
        """Invert :meth:`to_json`, given what the test was started with."""
        fresh = cls.start(arms, data["reference"], confidence, data["alpha"])
        sequence = fresh.sequence.resumed(data["sequence"])
        splits = tuple(
            Split(
                rounds=given["rounds"],
                parts={name: numbers_of(part) for name, part in given["parts"].items()},
                scattered=given["scattered"],
                rho=numbers_of(given["rho"]),
                low=numbers_of(given["low"], -np.inf),
                high=numbers_of(given["high"]),
                largest=given["largest"],
            )
            for given in data["splits"]
        )
        found = None if data["found"] is None else Drift.from_json(data["found"])
        return replace(fresh, sequence=sequence, rounds=data["rounds"], splits=splits, found=found)
