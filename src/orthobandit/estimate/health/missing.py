"""The test of missing rewards: whether they are missing more often for some arms, from counts alone.

After every bucket, look at :class:`Missing`; :func:`missing_p_value` is the ordinary test for one look.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import TallyError
from orthobandit.estimate.health.sample_ratio import SampleRatio, check_counts, chi_squared_p_value


@dataclass(frozen=True, eq=False)
class Missing:
    """Tests whether rewards are missing more often for some arms than for others, given the draws.

    If silence does not depend on the arm, then, given how many rounds of a bucket were silent, these are a
    sample without replacement of its rounds. With p(a) = (draws of a)/(draws), the wealth of
    :class:`SampleRatio` would be a martingale if they were drawn with replacement; without, its mean is no
    larger, since exp is convex (Hoeffding 1963, Theorem 4). So it is a supermartingale, and its p-value
    holds. How much is silent may change from bucket to bucket in any way.

    Attributes
    ----------
    drawn : (K,) array of int
        Rounds of each arm whose window has passed.
    ratio : SampleRatio
        Its `observed` are the silent rounds, its `expected` those that fit the draws.

    Examples
    --------
    >>> missing = Missing.start(2)
    >>> for _ in range(20):
    ...     missing = missing.and_of([500, 500], [100, 150])
    >>> missing.alarm, missing.shares.tolist()
    (True, [0.2, 0.3])
    """

    drawn: Whole
    ratio: SampleRatio

    @classmethod
    def start(cls, count: int) -> "Missing":
        """Return the test of `count` arms before the first draw."""
        return cls(np.zeros(count, dtype=np.int64), SampleRatio.start(count))

    def and_of(self, drawn: ArrayLike, silent: ArrayLike) -> "Missing":
        """Return the test with a bucket of rounds; arms beyond those so far are new.

        Parameters
        ----------
        drawn, silent : array-like (K,) of int
            Rounds of each arm, and how many of them never got a reward.
        """
        return self.and_all([(drawn, silent)])

    def and_all(self, parts: Sequence[tuple[ArrayLike, ArrayLike]]) -> "Missing":
        """Return the test with a bucket of rounds from several distributions: (drawn, silent) of each."""
        total = self.drawn
        bets = []
        for drawn, silent in parts:
            rounds = check_counts("drawn", drawn, (np.size(drawn),))
            quiet = check_counts("silent", silent, rounds.shape)
            if np.any(quiet > rounds):
                arm = int(np.argmax(quiet > rounds))
                raise TallyError(f"silent[{arm}]={quiet[arm]} is more than the {rounds[arm]} that were drawn")
            if rounds.sum():
                total = np.pad(total, (0, len(rounds) - len(total))) + rounds
                bets.append((rounds / rounds.sum(), quiet))
        return Missing(total, self.ratio.and_all(bets)) if bets else self

    def and_table(self, drawn: ArrayLike, silent: ArrayLike) -> "Missing":
        """Return the test with a bucket of rounds from many distributions: :meth:`and_all`, at once.

        Parameters
        ----------
        drawn, silent : array-like (n, K) of int
            Rounds of each of the K arms so far, one row a distribution, and how many were silent.
        """
        rounds = check_counts("drawn", drawn, (np.shape(drawn)[0], len(self.drawn)))
        quiet = check_counts("silent", silent, rounds.shape)
        if np.any(quiet > rounds):
            row, arm = (int(i) for i in np.argwhere(quiet > rounds)[0])
            raise TallyError(
                f"silent[{row}, {arm}]={quiet[row, arm]} is more than the {rounds[row, arm]} that were drawn"
            )
        some = rounds.any(axis=1)
        if not some.any():
            return self
        shares = rounds[some] / rounds[some].sum(axis=1, keepdims=True)
        return Missing(self.drawn + rounds.sum(axis=0), self.ratio.and_table(shares, quiet[some]))

    @property
    def shares(self) -> Array:
        """Share (K,) of each arm's rounds that were silent; 0 without any."""
        return np.asarray(self.ratio.observed / np.maximum(self.drawn, 1))

    @property
    def p_value(self) -> float:
        """Probability of ever seeing such counts or worse if silence did not depend on the arm."""
        return self.ratio.p_value

    @property
    def alarm(self) -> bool:
        """Whether silence depends on the arm."""
        return self.ratio.alarm

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {"drawn": self.drawn.tolist(), "ratio": self.ratio.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Missing":
        """Invert :meth:`to_json`."""
        return cls(np.array(data["drawn"], dtype=np.int64), SampleRatio.from_json(data["ratio"]))


def missing_p_value(drawn: Whole, silent: Whole) -> float:
    """Return the p-value of silent rounds (n, K) among those drawn (n, K), one row a distribution.

    Given how many rounds of a distribution are silent, these are a sample without replacement of its
    rounds; deviations and covariances are added up over distributions (Mantel & Haenszel).
    """
    some = drawn.sum(axis=1) > 0
    rounds = drawn[some].astype(np.float64)
    quiet = silent[some].astype(np.float64)
    total = rounds.sum(axis=1)
    lost = quiet.sum(axis=1)
    shares = rounds / total[:, np.newaxis]
    expected = lost @ shares
    # Variance of a hypergeometric count: (N − n)/(N − 1) of the binomial one.
    scale = lost * (total - lost) / np.maximum(total - 1.0, 1.0)
    spread = shares * np.sqrt(scale)[:, np.newaxis]
    return chi_squared_p_value(quiet.sum(axis=0) - expected, scale @ shares, spread, expected)
