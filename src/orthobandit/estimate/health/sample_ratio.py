"""The test of sample ratio mismatch: whether arms come up as often as the plans say, from counts alone.

After every draw, look at :class:`SampleRatio`; :func:`ratio_p_value` is the ordinary test for one look.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import TallyError
from orthobandit.estimate.plan import checked_probabilities

ALARM = 1e-4  # p-value from which on something is wrong
# Draws that the plan is believed as much as, κ. A single one would have to be guessed: too small, and a few
# first draws would be believed too much ever after; too large, and a large loss would be found late.
BELIEF = np.array([10.0, 1e3, 1e5])
BETS = 10.0 ** np.arange(-5.0, 0.5, 0.5)  # λ of totals_p_value: for deviations of 10⁻⁵ of the rows and more
RARE = 5.0  # rows that are expected of an arm, below which it is counted together with other rare ones
ROUNDING = 1e-9  # part of a variance
MANY = 1000  # arms, above which their covariances are left out: Pearson's statistic, exact for one plan


@dataclass(frozen=True, eq=False)
class SampleRatio:
    """Do arms come up as often as the plans say? A sample-ratio test that may be looked at after every draw.

    In bucket b, of rounds drawn from one distribution p_b, let q_b(a) ∝ p_b(a)·(n_a + κ)/(e_a + κ), where n_a
    and e_a are how often arm a came up, and should have, in *earlier* buckets. The wealth Π_b Π_a
    (q_b(a)/p_b(a))^n_ab is a nonnegative martingale with mean 1 for every sequence of distributions, chosen
    from the past in any way: given the past, each draw multiplies it by q(a)/p(a) with a drawn from p, and
    Σ_a p(a)·q(a)/p(a) = Σ_a q(a) = 1. So is the mean over several κ.

    That bet needs earlier buckets: it says nothing of the first one, however large. The other half of the
    stake is on Bennett's bound for totals (:func:`totals_wealth`), which needs none. By Ville's inequality
    the mean of both ever reaches 1/α with probability at most α, so that 1/(the largest so far) is a p-value
    at any time.

    Attributes
    ----------
    observed : (K,) array of int
        How often each arm came up.
    expected : (K,) array
        How often it should have.
    wealth : (m,) array
        Logarithms of the bets on earlier buckets, one a κ.
    largest : float
        Logarithm of the largest mean of all bets so far.

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

        No bet on one of them uses what the others saw, because which distribution a round has may depend on
        that.

        Parameters
        ----------
        parts : sequence of (probabilities, counts)
            As for :meth:`and_of`, one a distribution.
        """
        now = self
        for probabilities, counts in parts:
            now = now._with_part(self, probabilities, counts)
        return now._with_largest()

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
        n = check_counts("counts", counts, p.shape)
        rounds = n.sum(axis=1)
        now = self.and_sums(n.sum(axis=0), rounds @ p, np.log(self.bets @ p.T) @ rounds)
        # No bet is needed against what the plan rules out.
        return replace(now, largest=np.inf) if np.any((n > 0) & (p == 0)) else now

    @property
    def bets(self) -> Array:
        """What the next bucket's probabilities are multiplied by (m, K), up to a factor, one row a κ."""
        return np.asarray((self.observed + BELIEF[:, np.newaxis]) / (self.expected + BELIEF[:, np.newaxis]))

    def and_sums(self, counts: Whole, expected: Array, logs: Array) -> "SampleRatio":
        """Return the test with a bucket of rounds that were added up elsewhere.

        Parameters
        ----------
        counts, expected : (K,) arrays
            How often each arm came up, and should have.
        logs : (m,) array
            Σ log Σ_a b_a·p_a over the rounds, for each row b of :attr:`bets`.
        """
        now = replace(
            self,
            observed=self.observed + counts,
            expected=self.expected + expected,
            wealth=self.wealth + np.log(self.bets) @ counts - logs,
        )
        return now._with_largest()

    def _with_part(self, before: "SampleRatio", probabilities: ArrayLike, counts: ArrayLike) -> "SampleRatio":
        p = checked_probabilities(probabilities)
        n = check_counts("counts", counts, (len(p),))
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

    def _with_largest(self) -> "SampleRatio":
        # A mean of supermartingales is one; the largest of them would not be.
        earlier = float(np.logaddexp.reduce(self.wealth)) - np.log(len(BELIEF))
        # Arms may join while the test runs. Weights 1/2, 1/6, 1/12, … leave 1/(K + 1) for those to come.
        count = len(self.observed)
        number = np.arange(1.0, count + 1.0)
        shares = -np.log(number * (number + 1.0))
        # Of p(1 − p) only the bound p is known by here.
        arms = shares + totals_wealth(self.observed, self.expected, self.expected)
        totals = float(np.logaddexp.reduce(np.append(arms, -np.log(count + 1.0))))
        mean = float(np.logaddexp(earlier, totals)) - np.log(2.0)
        return replace(self, largest=float(max(self.largest, mean)))

    @property
    def p_value(self) -> float:
        """Probability of ever seeing such counts or worse if arms were drawn as planned."""
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


def totals_p_value(observed: Array, expected: Array, scatter: Array) -> float:
    """Return a p-value at all times for how far arms are from their plans, from totals alone.

    For rows that each have their own probabilities, of which only the sums are known. The mean of
    :func:`totals_wealth` over arms is a supermartingale: by Ville's inequality it ever reaches 1/α with
    probability at most α.

    Parameters
    ----------
    observed, expected, scatter : (S, K) arrays
        How often each arm came up, Σ p_a and Σ p_a(1 − p_a), up to each of S moments.

    Examples
    --------
    >>> expected = np.array([[5000.0, 5000.0]])
    >>> totals_p_value(np.array([[5040.0, 4960.0]]), expected, expected / 2) > 0.05
    True
    >>> totals_p_value(np.array([[5400.0, 4600.0]]), expected, expected / 2) < ALARM
    True
    """
    each = totals_wealth(observed, expected, scatter)
    wealth = np.logaddexp.reduce(each, axis=1) - np.log(each.shape[1])
    return float(np.exp(-max(float(wealth.max(initial=0.0)), 0.0)))


def totals_wealth(observed: ArrayLike, expected: Array, scatter: Array) -> Array:
    """Return the logarithm of what bets against each arm's total have won (…, K); see :func:`totals_p_value`.

    With X = 1{a is drawn} − p_a, exp(±λX − p_a(1 − p_a)(e^λ − 1 − λ)) has mean 1 at most (Bennett 1962), so
    that the mean of its products over signs and a few λ is a supermartingale. `scatter` may be larger than
    Σ p_a(1 − p_a).
    """
    off = (np.asarray(observed) - expected)[..., np.newaxis]
    cost = scatter[..., np.newaxis] * (np.expm1(BETS) - BETS)
    logs = np.concatenate([off * BETS - cost, -off * BETS - cost], axis=-1)
    return np.asarray(np.logaddexp.reduce(logs, axis=-1) - np.log(logs.shape[-1]))


def check_counts(name: str, counts: ArrayLike, shape: tuple[int, ...]) -> Whole:
    """Return counts as whole numbers; raise :class:`TallyError` if their shape or a value is wrong."""
    given = np.asarray(counts)
    if given.shape != shape or given.dtype.kind not in "iu" or np.any(given < 0):
        wanted = " × ".join(map(str, shape))
        raise TallyError(f"{name}={counts!r} must be {wanted} whole numbers of at least 0, one per arm")
    return given.astype(np.int64)


def ratio_p_value(plans: Array, counts: Whole) -> float:
    """Return the p-value of counts (n, K) of arms that were drawn from plans (n, K).

    Deviations from Σ n·p have the covariance Σ n·(diag p − ppᵀ), whatever the plans.

    Examples
    --------
    >>> round(ratio_p_value(np.array([[0.5, 0.5]]), np.array([[550, 450]])), 6)
    0.001565
    """
    rows = counts.sum(axis=1).astype(np.float64)
    if np.any((counts > 0) & (plans == 0)):
        return 0.0  # what cannot happen has happened
    expected = rows @ plans
    spread = plans * np.sqrt(rows)[:, np.newaxis]
    return chi_squared_p_value(counts.sum(axis=0) - expected, expected, spread, expected)


def chi_squared_p_value(off: Array, variances: Array, spread: Array, expected: Array) -> float:
    """Return the chance of deviations (K,) as large; their covariance is diag(variances) − spreadᵀspread."""
    # χ² is a limit law: of arms with a handful of rows it is far from their law.
    common = expected >= RARE
    kept = int(common.sum())
    off = _grouped(off, common)
    variances = _grouped(variances, common)
    if kept > MANY:
        some = variances > 0
        return float(chdtrc(max(int(some.sum()) - 1, 1), float(np.sum(off[some] ** 2 / variances[some]))))
    spread = np.column_stack([spread[:, common], spread[:, ~common].sum(axis=1)])
    covariance = np.diag(variances) - spread.T @ spread
    # An arm that is always drawn has no variance; what rounding leaves of it may be below 0.
    free = np.diagonal(covariance) > ROUNDING * variances
    factor = RangeFactor.of(covariance * np.outer(free, free))
    # Deviations outside the range, as their sum, are 0 but for rounding.
    along = (factor.vectors.T @ (off / factor.scale))[factor.inside]
    distance = float(np.sum(along**2 / factor.values[factor.inside]))
    return float(chdtrc(int(factor.rank), distance)) if factor.rank else 1.0


def _grouped(values: Array, common: Mask) -> Array:
    return np.append(values[common], values[~common].sum())
