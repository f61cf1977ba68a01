"""Values of the arms, which are taken from rewards: estimated gaps, as far as each is known, step by step."""

from itertools import pairwise

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate import ContrastSequence, Evidence, Tuning
from orthobandit.estimate.augmented import Pulls
from orthobandit.estimate.confidence.evidence import weights_of
from orthobandit.logs.blocks import Block


class ArmValues:
    """What each arm is worth over the reference arm, from all steps before.

    Residuals of a step are taken from these values, and the values of the next step rest on its residuals:
    this must go step by step, so it keeps what it needs of the evidence on the gaps to the reference arm, and
    no more.

    Parameters
    ----------
    sequence : ContrastSequence
        Its first K − 1 contrasts are the gaps to the reference arm.
    reference : int

    Attributes
    ----------
    now : (K,) array
        The values.
    """

    def __init__(self, sequence: ContrastSequence, reference: int) -> None:
        self._arms = sequence.arms
        self._mode = sequence.confidence
        self._reference = reference
        count = len(self._arms)
        self._others = np.delete(np.arange(count), reference)
        self._totals, self._variances, self._pooled = (np.zeros(count - 1) for _ in range(3))
        self._relative = np.zeros(count)
        self._drawn = np.zeros(count)
        self._weights = np.zeros(count - 1)
        self._span = float(np.subtract(*self._mode.range[::-1]))
        self._linear: Array | None = None
        if self._arms.dimension < count - 1:  # not any values are linear in the features
            positions = self._arms.positions - self._arms.positions[reference]
            self._linear = positions @ np.linalg.pinv(positions)
        self.now = np.zeros(count)

    def begin(self, block: Block, probabilities: Array, pulls: Pulls, tuning: Tuning) -> None:
        """Take up a block: all that is known of it beforehand, for distributions (T, K) of its plans.

        How a residual of arm a pulls at a gap is w·g(a); its square counts w²g(a)² in the variance, and
        w²·max(v, Σ p·g²·loudness) times all squares of the plan in what is pooled.
        """
        m = len(self._others)
        edges = np.append(block.first, len(block.plans))
        factor = np.where(pulls.known, pulls.variance, np.inf)[:, :m]
        tuned = Tuning(tuning.alpha[:m], tuning.rho[:m], tuning.scale[:m])
        weights = weights_of(factor, pulls.reach[:, :m], tuned, self._mode)
        pull = weights[..., np.newaxis] * pulls.pull[:, :m]
        self._pull = np.ascontiguousarray(np.swapaxes(pull, 1, 2))
        self._squared = self._pull**2
        self._shares = pull**2 * probabilities[:, np.newaxis]
        self._least = weights**2 * pulls.variance[:, :m]
        moved = weights * block.counts.sum(axis=1, keepdims=True)
        self._moved = np.add.reduceat(moved, block.first, axis=0)
        self._weight = self._weights + np.cumsum(self._moved, axis=0)
        drawn = self._drawn + np.cumsum(block.arms, axis=0)
        self._weights = self._weight[-1]
        self._drawn = drawn[-1]
        self._undrawn = (drawn == 0).astype(np.float64)
        self._per_draw = (1.0 - self._undrawn) / np.maximum(drawn, 1.0)
        self._per_row = np.divide(1.0, block.counts, out=np.zeros_like(block.counts), where=block.counts > 0)
        self._block = block
        self._slices = [slice(*ends) for ends in pairwise(edges.tolist())]

    def learn(self, step: int, forecast: float) -> None:
        """Take in the residuals of a step of the block from a forecast and the values as they are."""
        some = self._slices[step]
        line = self._block.lines[0]
        now = self.now
        n = self._block.counts[some]
        s = line.sums[some]
        shift = forecast + now
        sums = s - n * shift
        # As in a tally, but for rounding: Σ(y − shift)² is at least what the mean alone gives.
        squares = np.maximum(line.squares[some] - shift * (s + sums), sums * sums * self._per_row[some])
        size = len(self._others)
        self._totals += self._moved[step] * (now[self._others] - now[self._reference])
        self._totals += sums.ravel() @ self._pull[some].reshape(-1, size)
        self._variances += squares.ravel() @ self._squared[some].reshape(-1, size)
        by_arm = squares.sum(axis=0)
        total = float(by_arm.sum())
        arms = self._block.arms[step]
        self._relative += by_arm * (float(arms.sum()) / total) if total > 0 else arms
        loudness = self._relative * self._per_draw[step] + self._undrawn[step]
        self._pooled += squares.sum(axis=1) @ np.maximum(self._least[some], self._shares[some] @ loudness)
        self._estimate(self._totals, self._weight[step], self._larger(self._variances, self._pooled))

    def learn_from(self, evidence: Evidence) -> None:
        """Take the values from evidence alone."""
        m = len(self._others)
        variance = self._larger(evidence.variances, evidence.pooled)[:m]
        self._estimate(evidence.totals[:m], evidence.weights[:m], variance)

    def _larger(self, variances: Array, pooled: Array) -> Array:
        """Return variances, or what was pooled where that is larger; exact modes need no second opinion."""
        return variances if self._mode.is_exact else np.maximum(variances, pooled)

    def _estimate(self, totals: Array, weights: Array, variance: Array) -> None:
        """Shrink each gap by how much of its square is noise, and make the values linear in the features."""
        some = np.where(weights > 0, weights, 1.0)
        gaps = np.where(weights > 0, totals / some, 0.0)
        squares = gaps**2
        total = squares + variance / some**2
        now = np.zeros(len(self.now))
        now[self._others] = gaps * squares / np.where(total > 0, total, 1.0)
        if self._linear is not None:
            now = self._linear @ now
        self.now = now if self._span == np.inf or np.ptp(now) <= self._span else np.zeros(len(now))
