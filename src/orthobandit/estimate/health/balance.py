"""Is the experiment run as planned? Tests that hold at all times at once, from counts alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import TallyError
from orthobandit.estimate.plan import checked_probabilities

ALARM = 1e-4  # p-value from which on something is wrong
# Draws that the plan is believed as much as, κ. A single one would have to be guessed: too small, and a few
# first draws would be believed too much ever after; too large, and a large loss would be found late.
BELIEF = np.array([10.0, 1e3, 1e5])


@dataclass(frozen=True, eq=False)
class SampleRatio:
    """Do arms come up as often as the plans say? A sample-ratio test that may be looked at after every draw.

    In bucket b, of rounds drawn from one distribution p_b, let q_b(a) ∝ p_b(a)·(n_a + κ)/(e_a + κ), where n_a
    and e_a are how often arm a came up, and should have, in *earlier* buckets. The wealth Π_b Π_a
    (q_b(a)/p_b(a))^n_ab is a nonnegative martingale with mean 1 for every sequence of distributions, chosen
    from the past in any way: given the past, each draw multiplies it by q(a)/p(a) with a drawn from p, and
    Σ_a p(a)·q(a)/p(a) = Σ_a q(a) = 1. So is the mean over several κ. By Ville's inequality it ever reaches
    1/α with probability at most α, so that 1/(the largest so far) is a p-value at any time.

    Attributes
    ----------
    observed : (K,) array of int
        How often each arm came up.
    expected : (K,) array
        How often it should have.
    wealth : (m,) array
        Logarithms, one a κ.
    largest : float
        Logarithm of the largest mean so far.

    Examples
    --------
    >>> ratio = SampleRatio.start(2)
    >>> for _ in range(20):
    ...     ratio = ratio.and_of([0.5, 0.5], [540, 460])
    >>> ratio.alarm, ratio.observed.tolist(), ratio.expected.tolist()
    (True, [10800, 9200], [10000.0, 10000.0])
    """

    observed: Whole
    expected: Array
    wealth: Array = field(default_factory=lambda: np.zeros(len(BELIEF)))
    largest: float = 0.0

    @classmethod
    def start(cls, count: int) -> "SampleRatio":
        """Return the test of `count` arms before the first draw."""
        return cls(np.zeros(count, dtype=np.int64), np.zeros(count))

    def and_of(self, probabilities: ArrayLike, counts: ArrayLike) -> "SampleRatio":
        """Return the test with a bucket of rounds; arms beyond those so far are new.

        Parameters
        ----------
        probabilities : array-like (K,)
            What they were drawn from.
        counts : array-like (K,) of int
            How often each arm came up.
        """
        return self.and_all([(probabilities, counts)])

    def and_all(self, parts: Sequence[tuple[ArrayLike, ArrayLike]]) -> "SampleRatio":
        """Return the test with a bucket of rounds from several distributions, drawn in any order.

        None of them bets on what the others saw: which distribution a round has may depend on them.

        Parameters
        ----------
        parts : sequence of (probabilities, counts)
            As for :meth:`and_of`, one a distribution.
        """
        now = self
        for probabilities, counts in parts:
            now = now._with_part(self, probabilities, counts)
        mean = float(np.logaddexp.reduce(now.wealth)) - np.log(len(BELIEF))
        return replace(now, largest=float(max(now.largest, mean)))

    def and_table(self, probabilities: ArrayLike, counts: ArrayLike) -> "SampleRatio":
        """Return the test with a bucket of rounds from many distributions: :meth:`and_all`, at once.

        Parameters
        ----------
        probabilities : array-like (n, K)
            What they were drawn from, for the K arms so far.
        counts : array-like (n, K) of int
            How often each arm came up from each distribution.
        """
        p = checked_probabilities(probabilities)
        if p.ndim != 2 or p.shape[1] != len(self.observed):
            raise TallyError(f"probabilities have shape {p.shape}; (n, {len(self.observed)}) is needed")
        n = _checked_counts("counts", counts, p.shape)
        rounds = n.sum(axis=1)
        ratio = (self.observed + BELIEF[:, np.newaxis]) / (self.expected + BELIEF[:, np.newaxis])
        wealth = self.wealth + np.log(ratio) @ n.sum(axis=0) - np.log(ratio @ p.T) @ rounds
        mean = float(np.logaddexp.reduce(wealth)) - np.log(len(BELIEF))
        impossible = np.any((n > 0) & (p == 0))
        return replace(
            self,
            observed=self.observed + n.sum(axis=0),
            expected=self.expected + rounds @ p,
            wealth=wealth,
            largest=np.inf if impossible else float(max(self.largest, mean)),
        )

    def _with_part(self, before: "SampleRatio", probabilities: ArrayLike, counts: ArrayLike) -> "SampleRatio":
        p = checked_probabilities(probabilities)
        n = _checked_counts("counts", counts, (len(p),))
        if p.ndim != 1 or len(p) < len(self.observed):
            raise TallyError(f"probabilities have shape {p.shape}; ({len(self.observed)},) or more is needed")
        observed, expected = (
            np.pad(part, (0, len(p) - len(part))) for part in (before.observed, before.expected)
        )
        ratio = (observed + BELIEF[:, np.newaxis]) / (expected + BELIEF[:, np.newaxis])
        new = len(p) - len(self.observed)
        return replace(
            self,
            observed=np.pad(self.observed, (0, new)) + n,
            expected=np.pad(self.expected, (0, new)) + n.sum() * p,
            wealth=self.wealth + np.log(ratio) @ n - n.sum() * np.log(ratio @ p),
            # What cannot happen has happened.
            largest=np.inf if np.any((n > 0) & (p == 0)) else self.largest,
        )

    @property
    def p_value(self) -> float:
        """Chance, were all as planned, of ever seeing what was seen or worse."""
        return float(np.exp(-self.largest))

    @property
    def alarm(self) -> bool:
        """Whether draws do not follow the plans."""
        return self.p_value <= ALARM

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly; null for infinity."""
        return {
            "observed": self.observed.tolist(),
            "expected": self.expected.tolist(),
            "wealth": self.wealth.tolist(),
            "largest": self.largest if np.isfinite(self.largest) else None,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "SampleRatio":
        """Invert :meth:`to_json`."""
        return cls(
            np.array(data["observed"], dtype=np.int64),
            np.array(data["expected"], dtype=np.float64),
            np.array(data["wealth"], dtype=np.float64),
            np.inf if data["largest"] is None else float(data["largest"]),
        )


@dataclass(frozen=True, eq=False)
class Missing:
    """Do rewards stay silent for some arms more than for others? The same test, given what was drawn.

    If silence has nothing to do with the arm, then, given how many rounds of a bucket were silent, these are
    a sample without replacement of its rounds. With p(a) = (draws of a)/(draws), the wealth of
    :class:`SampleRatio` would be a martingale if they were drawn with replacement; without, its mean is no
    larger, since exp is convex (Hoeffding 1963, Theorem 4). So it is a supermartingale, and its p-value
    holds. How much is silent may change from bucket to bucket in any way.

    Attributes
    ----------
    drawn : (K,) array of int
        Rounds of each arm whose waiting time is over.
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
            rounds = _checked_counts("drawn", drawn, (np.size(drawn),))
            quiet = _checked_counts("silent", silent, rounds.shape)
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
        rounds = _checked_counts("drawn", drawn, (np.shape(drawn)[0], len(self.drawn)))
        quiet = _checked_counts("silent", silent, rounds.shape)
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
        """Chance, did silence not depend on the arm, of ever seeing what was seen or worse."""
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


def _checked_counts(name: str, counts: ArrayLike, shape: tuple[int, ...]) -> Whole:
    given = np.asarray(counts)
    if given.shape != shape or given.dtype.kind not in "iu" or np.any(given < 0):
        wanted = " × ".join(map(str, shape))
        raise TallyError(f"{name}={counts!r} must be {wanted} whole numbers of at least 0, one an arm")
    return given.astype(np.int64)
