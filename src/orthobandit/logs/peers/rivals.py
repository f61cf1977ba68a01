"""Estimates of one gap by other methods, each from sums over strata alone; see ``compare``."""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy.stats import norm, t

from orthobandit._foundation.types import Array, Mask
from orthobandit.logs.peers.strata import Strata, levels_before

Part = tuple[Array, Array, Array]  # counts, sums and squares (N,) of an arm
Found = tuple[float, float]  # an estimate and the half-width of its interval


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
        """Gather what is needed of two arms."""
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
    return means[0] - means[1], float(t.isf(alpha / 2.0, freedom)) * sqrt(error)


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
    return float(estimate), float(norm.isf(alpha / 2.0) * np.sqrt(error))


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
    return means[0] - means[1], float(norm.isf(alpha / 2.0)) * sqrt(error)


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
    return mean - other, float(norm.isf(alpha / 2.0)) * sqrt(error)


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
    return estimate, float(norm.isf(alpha / 2.0)) * sqrt(max(error, 0.0))


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
