"""Other methods on the same log: their estimates, their intervals, and what each assumes.

:func:`compare` has all of them. Each estimates one gap from sums over strata: the rows of a bucket that were
drawn from the same probabilities.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.follow.cells import Cells, totals_at
from orthobandit.logs.question import Question
from orthobandit.logs.results import Rival

Part = tuple[Array, Array, Array]  # counts, sums and squares (N,) of an arm
Found = tuple[float, float]  # an estimate and the half-width of its interval

NAIVE = "difference in means (Welch)"
STRATIFIED = "stratified by bucket and plan"
WEIGHTED = "inverse probability weighting (Hájek)"
APART = "adaptively weighted AIPW, arm by arm"
TOGETHER = "adaptively weighted AIPW, of the gap"
MIXTURE = "mixture adaptive design (MAD)"

ASSUMES = {
    NAIVE: (
        "one look, rows alike at all times. Once probabilities and the baseline both move, arms are compared"
        " at different times, and the interval closes around a wrong number."
    ),
    STRATIFIED: (
        "one look, a baseline that stands still within a bucket, and many rows of both arms in it. A moving"
        " baseline is left out; strata without both arms are lost, and the interval is too narrow for a"
        " second look or for arms that are rarely drawn."
    ),
    WEIGHTED: (
        "one look, probabilities that stay away from 0. Arms are compared over the same times, but the"
        " baseline adds to the noise, more so the smaller a probability was; where probabilities follow the"
        " rewards, the normal law of its interval fails."
    ),
    APART: (
        "one look, means that do not move. Probabilities may follow the rewards (Hadad et al. 2021, √p as"
        " weights), but each arm is weighted by its own probabilities: under a moving baseline arms are"
        " averaged over different times."
    ),
    TOGETHER: (
        "one look, gaps that do not move, many rows. Scores of the gap have one weight, 1/√(1/p + 1/p of the"
        " reference) (Hadad et al. 2021): a moving baseline leaves no bias but adds to the noise, for"
        " forecasts are each arm's past mean."
    ),
    MIXTURE: (
        "any number of looks, many rows, probabilities that fall slowly if at all (Liang & Bojinov 2023; the"
        " probabilities of the log stand for its mixture). Rewards count from 0 and not from a forecast:"
        " their level, moving or not, is all noise, and the interval is wide."
    ),
}


def compare(cells: Cells, question: Question, metric: int = 0) -> tuple[Rival, ...]:
    """Return estimates and intervals of six other methods for the gap of every arm over the reference arm.

    All intervals have the same joint level as ours: δ is divided by the number of gaps.

    - Difference in means, with Welch's interval.
    - Differences within bucket and plan, weighted by n·n′/(n + n′), with the variance of each arm around
      the means of its strata.
    - Hájek's inverse probability weighting: each arm's mean with weights 1/p, linearised variance.
    - Adaptively weighted AIPW (Hadad, Hirshberg, Zhan, Wager & Athey 2021) with the arm's mean over earlier
      buckets as plug-in: the difference of two arms with weights √p each (constant allocation), and scores of
      the gap with weights that stabilise their variance; both studentised. The first bucket has no plug-in
      and is left out, unless it is the only one.
    - Mixture adaptive design (Liang & Bojinov 2023): inverse-probability scores of the gap with their
      asymptotic confidence sequence, made tightest at the end of the log.

    Parameters
    ----------
    cells : Cells
    question : Question
        Its `reference` and `delta` are used.
    metric : int
        Which column of the cells.

    Returns
    -------
    tuple of Rival
        All methods of an arm, then of the next; an estimate is None where the method has none.
    """
    strata = Strata.of(cells, metric)
    labels = cells.arms.labels
    reference = 0 if question.reference is None else cells.arms.index(question.reference)
    others = [arm for arm in range(len(labels)) if arm != reference]
    # The same joint level as ours: otherwise widths could not be compared.
    alpha = question.delta / max(len(others), 1)
    found = []
    for arm in others:
        pair = Pair.of(strata, arm, reference)
        results = {
            NAIVE: naive(pair, alpha),
            STRATIFIED: stratified(pair, alpha),
            WEIGHTED: weighted(pair, alpha),
            APART: apart(pair, alpha),
            TOGETHER: together(pair, alpha),
            MIXTURE: mixture(pair, alpha, strata.offset),
        }
        found += [_rival(name, labels[arm], labels[reference], result) for name, result in results.items()]
    return tuple(found)


def _rival(method: str, arm: str, over: str, found: Found | None) -> Rival:
    if found is None:
        return Rival(method, arm, over, None, (None, None), ASSUMES[method])
    estimate, half = found
    return Rival(method, arm, over, estimate, (estimate - half, estimate + half), ASSUMES[method])


@dataclass(frozen=True, eq=False)
class Strata:
    """Counts, sums and squares of one metric, one cell per arm, segment and stratum.

    A stratum is a bucket and a plan. Given the past, its arms were drawn independently from one
    distribution, and a forecast for its bucket is one number, so that sums over its cells are all that
    estimates need. Cells without a row that counts are left out.

    Attributes
    ----------
    plans : (P, K) array
    bucket, plan : (N,) arrays of int
        Of each stratum; buckets ascend.
    stratum, arm : (G,) arrays of int
        Of each cell.
    counts, sums, squares : (G,) arrays
        Of the metric minus `offset`.
    offset : float
    buckets : int
        How many there are, B.
    """

    plans: Array
    bucket: Whole
    plan: Whole
    stratum: Whole
    arm: Whole
    counts: Array
    sums: Array
    squares: Array
    offset: float
    buckets: int

    @classmethod
    def of(cls, cells: Cells, column: int = 0) -> "Strata":
        """Return the strata of one column of the log."""
        kept = cells.only(cells.counts > 0)
        key = kept.bucket * len(kept.plans) + kept.plan
        # Cells are sorted by bucket, so that strata ascend in time.
        _, first, stratum = np.unique(key, return_index=True, return_inverse=True)
        return cls(
            plans=kept.plans,
            bucket=kept.bucket[first],
            plan=kept.plan[first],
            stratum=stratum.astype(np.int64),
            arm=kept.arm,
            counts=kept.counts.astype(np.float64),
            sums=kept.sums[:, column],
            squares=kept.products[:, column, column],
            offset=float(kept.offset[column]),
            buckets=len(kept.times),
        )

    def __len__(self) -> int:
        return len(self.bucket)

    def by_bucket(self, values: Array) -> Array:
        """Return the sum (B,) of the cells' values (G,) in each bucket."""
        return totals_at(self.bucket[self.stratum], values, self.buckets)

    def by_stratum(self, values: Array) -> Array:
        """Return the sum (N,) of the cells' values (G,) in each stratum."""
        return totals_at(self.stratum, values, len(self))

    def of_arm(self, arm: int) -> tuple[Array, Array, Array]:
        """Return counts, sums and squares (N,) of one arm in every stratum."""
        mine = self.arm == arm
        n, s, q = (
            totals_at(self.stratum[mine], part[mine], len(self))
            for part in (self.counts, self.sums, self.squares)
        )
        return n, s, q

    def probability(self, arm: int) -> Array:
        """Return the probability (N,) of an arm in every stratum."""
        return np.asarray(self.plans[self.plan, arm])


def earlier(counts: Array, sums: Array) -> Array:
    """Return the mean (B,) over all earlier buckets, NaN where there are no rows in them.

    Examples
    --------
    >>> earlier(np.array([2.0, 0.0, 2.0]), np.array([2.0, 0.0, 6.0])).tolist()
    [nan, 1.0, 1.0]
    """
    before_n = np.concatenate(([0.0], np.cumsum(counts)[:-1]))
    before_s = np.concatenate(([0.0], np.cumsum(sums)[:-1]))
    means = np.divide(before_s, before_n, out=np.full(len(counts), np.nan), where=before_n > 0)
    return np.asarray(means)


def levels_before(strata: Strata, arm: int | None = None) -> Array:
    """Return for each bucket (B,) the mean of all earlier rows, or of an arm's; NaN for the first bucket.

    Where an arm was not played before, the mean of all rows stands in.
    """
    ones = np.ones(len(strata.arm))
    mine = ones if arm is None else (strata.arm == arm).astype(np.float64)
    means = earlier(strata.by_bucket(mine * strata.counts), strata.by_bucket(mine * strata.sums))
    return means if arm is None else np.where(np.isnan(means), levels_before(strata), means)


@dataclass(frozen=True, eq=False)
class Pair:
    """One arm and the reference arm in every stratum (N,).

    Attributes
    ----------
    arm, over : tuple of (N,) arrays
        Counts, sums and squares of the arm, and of the reference arm.
    p_arm, p_over : (N,) arrays
        Their probabilities.
    rows : (N,) array
        Rows of all arms.
    plugs : tuple of (N,) arrays
        Forecasts of their rewards, from earlier buckets; NaN in the first.
    """

    arm: Part
    over: Part
    p_arm: Array
    p_over: Array
    rows: Array
    plugs: tuple[Array, Array]

    @classmethod
    def of(cls, strata: Strata, arm: int, reference: int) -> "Pair":
        """Gather the sums of two arms in every stratum."""
        return cls(
            strata.of_arm(arm),
            strata.of_arm(reference),
            strata.probability(arm),
            strata.probability(reference),
            strata.by_stratum(strata.counts),
            (_plug(strata, arm), _plug(strata, reference)),
        )

    def both(self) -> "Pair":
        """Keep the strata in which either arm could be drawn."""
        return self._only((self.p_arm > 0) & (self.p_over > 0))

    def later(self) -> "Pair":
        """Keep the strata whose forecasts are known."""
        return self._only(np.isfinite(self.plugs[0]))

    def _only(self, kept: Mask) -> "Pair":
        """Return the pair with some of its strata."""
        return Pair(
            (self.arm[0][kept], self.arm[1][kept], self.arm[2][kept]),
            (self.over[0][kept], self.over[1][kept], self.over[2][kept]),
            self.p_arm[kept],
            self.p_over[kept],
            self.rows[kept],
            (self.plugs[0][kept], self.plugs[1][kept]),
        )


def _plug(strata: Strata, arm: int) -> Array:
    """Return the forecast (N,) of an arm's reward: its mean so far; in a log of one bucket its mean."""
    if len(np.unique(strata.bucket)) > 1:
        return levels_before(strata, arm)[strata.bucket]
    n, s, _ = strata.of_arm(arm)
    mean = s.sum() / n.sum() if n.any() else strata.sums.sum() / max(strata.counts.sum(), 1.0)
    return np.full(len(strata), mean)


def _around(part: Part, centre: Array | float) -> tuple[Array, Array]:
    """Return sums and squares of an arm's values around a centre."""
    n, s, q = part
    return s - n * centre, np.maximum(q - 2.0 * centre * s + n * np.asarray(centre) ** 2, 0.0)


def naive(pair: Pair, alpha: float) -> Found | None:
    """Difference in means with Welch's interval; None with fewer than two rows of an arm."""
    means = []
    errors = []
    freedoms = []
    for n, s, q in (pair.arm, pair.over):
        count = float(n.sum())
        if count < 2:
            return None
        mean = float(s.sum()) / count
        scatter = float(_around((n, s, q), mean)[1].sum())
        means.append(mean)
        errors.append(scatter / (count - 1.0) / count)
        freedoms.append(count - 1.0)
    error = sum(errors)
    if not error:
        return means[0] - means[1], 0.0
    # Welch and Satterthwaite: the degrees of freedom of a sum of two scaled χ².
    freedom = error**2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
    return means[0] - means[1], -float(stdtrit(freedom, alpha / 2.0)) * sqrt(error)


def stratified(pair: Pair, alpha: float) -> Found | None:
    """Differences within strata, weighted by n·n′/(n + n′); each arm has one variance in all strata."""
    n, s, _ = pair.arm
    k, u, _ = pair.over
    some = (n > 0) & (k > 0)
    variances = [_within(part, some) for part in (pair.arm, pair.over)]
    if variances[0] is None or variances[1] is None:
        return None
    n = n[some]
    s = s[some]
    k = k[some]
    u = u[some]
    weight = n * k / (n + k)
    error = np.sum(weight**2 * (variances[0] / n + variances[1] / k)) / weight.sum() ** 2
    estimate = np.sum(weight * (s / n - u / k)) / weight.sum()
    return float(estimate), -float(ndtri(alpha / 2.0) * np.sqrt(error))


def _within(part: Part, some: Mask) -> float | None:
    """Return an arm's variance around the means of its strata; None without a second row in any."""
    n, s, q = (values[some] for values in part)
    freedom = float(np.sum(n - 1.0))
    return float(np.maximum(q - s**2 / n, 0.0).sum()) / freedom if freedom > 0 else None


def weighted(pair: Pair, alpha: float) -> Found | None:
    """Difference of Hájek's means, with weights 1/p; the linearised variance."""
    means = []
    error = 0.0
    for (n, s, q), p in ((pair.arm, pair.p_arm), (pair.over, pair.p_over)):
        inverse = np.where(n > 0, 1.0 / np.where(p > 0, p, 1.0), 0.0)
        total = float(inverse @ n)
        if total == 0:
            return None
        means.append(float(inverse @ s) / total)
        error += float(inverse**2 @ _around((n, s, q), means[-1])[1]) / total**2
    return means[0] - means[1], -float(ndtri(alpha / 2.0)) * sqrt(error)


def apart(pair: Pair, alpha: float) -> Found | None:
    """Difference of two AIPW means, each with weights √p (Hadad et al. 2021, constant allocation).

    With S of an arm as h·(Γ − mean)/Σh, the squared error is Σ (S − S′)² over rows.
    """
    later = pair.later()
    sides = []
    parts = ((later.arm, later.p_arm, later.plugs[0]), (later.over, later.p_over, later.plugs[1]))
    for part, p, plug in parts:
        safe = np.where(p > 0, p, 1.0)
        total = float(np.sqrt(p) @ later.rows)
        if total == 0:
            return None
        sums, squares = _around(part, plug)
        pushed = sums / safe
        spread = squares / safe**2
        weight = np.sqrt(p) / total
        mean = float(weight @ (later.rows * plug + pushed))
        sides.append((mean, weight, plug - mean, pushed, spread))
    (mean, weight, off, pushed, spread), (other, heft, beside, pulled, extent) = sides
    own = weight**2 @ (later.rows * off**2 + 2.0 * off * pushed + spread)
    over = heft**2 @ (later.rows * beside**2 + 2.0 * beside * pulled + extent)
    both = (weight * heft) @ (later.rows * off * beside + beside * pushed + off * pulled)
    error = max(float(own + over - 2.0 * both), 0.0)
    return mean - other, -float(ndtri(alpha / 2.0)) * sqrt(error)


def together(pair: Pair, alpha: float) -> Found | None:
    """AIPW scores of the gap with weights 1/√(1/p + 1/p′), which stabilise their variance (ibid.)."""
    both = pair.both().later()
    # 1/p + 1/p′ is the variance of a score up to a constant, so that h² times it is the same in all rows.
    h = 1.0 / np.sqrt(1.0 / both.p_arm + 1.0 / both.p_over)
    total = float(h @ both.rows)
    if total == 0:
        return None
    (sums, squares), (over, over_squares) = (
        _around(part, plug) for part, plug in zip((both.arm, both.over), both.plugs, strict=True)
    )
    guess = both.plugs[0] - both.plugs[1]
    pushed = sums / both.p_arm - over / both.p_over
    estimate = float(h @ (both.rows * guess + pushed)) / total
    off = guess - estimate
    spread = squares / both.p_arm**2 + over_squares / both.p_over**2
    error = float(h**2 @ (both.rows * off**2 + 2.0 * off * pushed + spread)) / total**2
    return estimate, -float(ndtri(alpha / 2.0)) * sqrt(max(error, 0.0))


def mixture(pair: Pair, alpha: float, offset: float) -> Found | None:
    """Inverse-probability scores with the sequence of Liang & Bojinov (2023), tightest at the last row."""
    both = pair.both()
    rounds = float(both.rows.sum())
    if not both.arm[0].any() or not both.over[0].any():
        return None
    (sums, squares), (over, over_squares) = (_around(part, -offset) for part in (both.arm, both.over))
    estimate = float(np.sum(sums / both.p_arm - over / both.p_over)) / rounds
    spread = float(np.sum(squares / both.p_arm**2 + over_squares / both.p_over**2))
    square = (-2.0 * log(alpha) + log(1.0 - 2.0 * log(alpha))) / rounds  # η² of the paper
    grown = spread * square + 1.0
    return estimate, sqrt(2.0 * grown / square * log(sqrt(grown) / alpha)) / rounds
