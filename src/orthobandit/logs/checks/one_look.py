"""Ordinary chi-squared tests of balance, for logs of one bucket: there is no earlier one to learn from."""

import numpy as np
from scipy.stats import chi2

from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask, Whole

RARE = 5.0  # rows that are expected of an arm, below which it is counted together with other rare ones
ROUNDING = 1e-9  # part of a variance
MANY = 1000  # arms, above which their covariances are left out: Pearson's statistic, exact for one plan


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
    return _p_value(counts.sum(axis=0) - expected, expected, spread, expected)


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
    scale = lost * (total - lost) / np.maximum(total - 1.0, 1.0)
    spread = shares * np.sqrt(scale)[:, np.newaxis]
    return _p_value(quiet.sum(axis=0) - expected, scale @ shares, spread, expected)


def _p_value(off: Array, variances: Array, spread: Array, expected: Array) -> float:
    """Return the chance of deviations (K,) as large; their covariance is diag(variances) − spreadᵀspread."""
    common = expected >= RARE
    kept = int(common.sum())
    off = _grouped(off, common)
    variances = _grouped(variances, common)
    if kept > MANY:
        some = variances > 0
        return float(chi2.sf(float(np.sum(off[some] ** 2 / variances[some])), max(int(some.sum()) - 1, 1)))
    spread = np.column_stack([spread[:, common], spread[:, ~common].sum(axis=1)])
    covariance = np.diag(variances) - spread.T @ spread
    # An arm that is always drawn has no variance; what rounding leaves of it may be below 0.
    free = np.diagonal(covariance) > ROUNDING * variances
    factor = RangeFactor.of(covariance * np.outer(free, free))
    # Deviations outside the range, as their sum, are 0 but for rounding.
    along = (factor.vectors.T @ (off / factor.scale))[factor.inside]
    distance = float(np.sum(along**2 / factor.values[factor.inside]))
    return float(chi2.sf(distance, int(factor.rank))) if factor.rank else 1.0


def _grouped(values: Array, common: Mask) -> Array:
    return np.append(values[common], values[~common].sum())
