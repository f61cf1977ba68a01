"""Health checks of a running experiment: sample ratio, missing rewards by arm, and gaps that drift."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from orthobandit._foundation.types import Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Confidence, Plan, Tally
from orthobandit.estimate.follow.rounds import MOST_ARMS
from orthobandit.estimate.health.constancy import Constancy, Drift
from orthobandit.estimate.health.missing import Missing
from orthobandit.estimate.health.sample_ratio import SampleRatio

DRIFT_ALPHA = 1e-3  # chance that drifting gaps are ever reported although no gap drifts
# settled proposals of a bucket: at least so many, and this share of all so far
MIN_BUCKET = 50
BUCKET_SHARE = 0.1


class Watch:
    """Tests of the assumptions behind the claims, all valid at all times at once.

    Attributes
    ----------
    ratio : SampleRatio
        Whether arms are drawn as often as the plans say.
    missing : Missing
        Whether rewards are missing more often for some arms than for others.
    constancy : Constancy or None
        Whether gaps to the reference arm drift; None with one arm, or with very many.
    drift : Drift or None
        The first drift that was found.
    """

    def __init__(
        self, arms: ArmSet, reference: int, confidence: Confidence, *, is_constant: bool = True
    ) -> None:
        self._is_constant = is_constant  # whether gaps are claimed to be the same for everybody
        self._reference = reference
        self._confidence = confidence
        self.ratio = SampleRatio.start(len(arms))
        self.missing = Missing.start(len(arms))
        self._bucket: dict[int, tuple[Whole, Whole]] = {}
        self._count = self._total = self._restarts = 0
        self.constancy: Constancy | None = None
        self.drift: Drift | None = None
        self._begin(arms)

    def _begin(self, arms: ArmSet) -> None:
        self._arms = arms
        if self._is_constant and 1 < len(arms) <= MOST_ARMS:
            alpha = DRIFT_ALPHA / 2.0 ** (self._restarts + 1)
            self.constancy = Constancy.start(arms, self._reference, self._confidence, alpha)

    @property
    def distributions(self) -> set[int]:
        """Numbers of the distributions of the bucket."""
        return set(self._bucket)

    def add(self, number: int, arms: Whole, silent: Mask) -> None:
        """Add settled proposals (n,) of one distribution."""
        if number not in self._bucket:
            zeros = np.zeros(len(self._arms), dtype=np.int64)
            self._bucket[number] = (zeros, zeros.copy())
        drawn, quiet = self._bucket[number]
        self._count += len(arms)
        if len(arms) == 1:
            drawn[arms.item()] += 1
            quiet[arms.item()] += silent.item()
            return
        np.add.at(drawn, arms, 1)
        np.add.at(quiet, arms[silent], 1)

    @property
    def is_full(self) -> bool:
        """Whether the bucket is to be closed."""
        return self._count >= max(MIN_BUCKET, BUCKET_SHARE * self._total)

    def close(self, plans: Mapping[int, Plan], taken: Sequence[tuple[Plan, Tally]]) -> None:
        """Feed the counts of the bucket to the tests, and start an empty bucket.

        Parameters
        ----------
        plans : dict
            Distributions by number.
        taken : sequence of (Plan, Tally)
            Residuals of the objective, for the test of constancy.
        """
        parts = [(plans[number].probabilities, *self._bucket[number]) for number in sorted(self._bucket)]
        self.ratio = self.ratio.and_all([(p, drawn) for p, drawn, _ in parts])
        self.missing = self.missing.and_all([(drawn, quiet) for _, drawn, quiet in parts])
        for plan, tally in taken:
            if self.constancy is not None:
                self.constancy = self.constancy.and_of(plan, tally)
                self.drift = self.drift or self.constancy.found
        self._total = self._total + self._count
        self._count = 0
        self._bucket = {}

    def extend(self, arms: ArmSet) -> None:
        """Add arms, with an empty bucket; the test of constancy restarts but keeps what it found."""
        self._restarts += 1
        self._begin(arms)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {
            "ratio": self.ratio.to_json(),
            "missing": self.missing.to_json(),
            "constancy": None if self.constancy is None else self.constancy.to_json(),
            "bucket": {str(n): [one.tolist() for one in pair] for n, pair in self._bucket.items()},
            "drift": None if self.drift is None else vars(self.drift),
            "counts": [self._count, self._total, self._restarts],
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` returned; the watch must have the arms it had."""
        self.ratio = SampleRatio.from_json(data["ratio"])
        self.missing = Missing.from_json(data["missing"])
        if data["constancy"] is not None:
            self.constancy = Constancy.from_json(self._arms, self._confidence, data["constancy"])
        if data["drift"] is not None:
            self.drift = Drift.from_json(data["drift"])
        pairs = data["bucket"].items()
        self._bucket = {
            int(n): (np.array(drawn, dtype=np.int64), np.array(quiet, dtype=np.int64))
            for n, (drawn, quiet) in pairs
        }
        self._count, self._total, self._restarts = data["counts"]
