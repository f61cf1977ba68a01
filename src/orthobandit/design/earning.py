"""Designs that learn cheaply: the worst contrast known as well as possible for what the rounds cost."""

import numpy as np
from numpy.typing import ArrayLike

from orthobandit.arms import ArmSet
from orthobandit.design._contrast_solver import ContrastProblem
from orthobandit.design._contrasts import Listed, Request, contrast_set, support_mask
from orthobandit.design._points import Points, View
from orthobandit.design.base import Design, checked_gap, make_design, point_mass
from orthobandit.errors import ParameterError


def earning_design(
    arms: ArmSet,
    pairs: ArrayLike,
    weights: ArrayLike,
    costs: ArrayLike,
    gap: float = 1e-2,
    *,
    support: ArrayLike | None = None,
) -> Design:
    """Minimise (Σ_i p_i·cost_i) × max_y w_y·yᵀΣ_p⁻¹y over distributions p.

    After t rounds the worst contrast has variance proportional to the second factor over t, so the product
    is the cost of knowing it to a given precision. yᵀΣ_p⁻¹y is of degree −1 in p; with q_i ∝ p_i·cost_i and
    points z_i/√cost_i in place of z_i = (1, x_i) the problem is that of a contrast design, solved with the
    same certificate.

    Parameters
    ----------
    arms : ArmSet
    pairs : array-like (m, 2) of int
        Arms (i, j), for y = x_i − x_j.
    weights : array-like (m,)
        Weights w of the squared norms, not negative.
    costs : array-like (K,)
        What a round of each arm costs, positive.
    gap : float
        Relative tolerance of the product.
    support : array-like, optional
        Mask (K,) or indices of the arms that may be played; all by default.

    Examples
    --------
    >>> arms = ArmSet([[0.0], [1.0]])
    >>> earning_design(arms, [[0, 1]], [1.0], costs=[0.01, 1.0]).probabilities.round(2).tolist()
    [0.91, 0.09]
    """
    checked_gap(gap)
    price = np.asarray(costs, dtype=np.float64)
    if price.shape != (len(arms),) or not np.all((price > 0) & np.isfinite(price)):
        raise ParameterError(f"costs must be {len(arms)} finite numbers above 0, one an arm")
    allowed = support_mask(arms, support)
    asked = contrast_set(arms, Request(pairs, weights=weights), allowed)
    rows, wanted = asked if asked is not None else (None, None)
    if rows is None or not isinstance(wanted, Listed):
        return point_mass(arms, "earning", int(np.argmin(np.where(allowed, price, np.inf))))
    chosen = np.flatnonzero(allowed)
    lifted = np.hstack([np.ones((len(chosen), 1)), rows[chosen]]) / np.sqrt(price[chosen])[:, np.newaxis]
    n = lifted.shape[1]
    points = Points(lifted, View(np.zeros(n), np.eye(n)), has_intercept=False)
    targets = Listed(np.hstack([np.zeros((len(wanted.rows), 1)), wanted.rows]))
    found, certified = ContrastProblem(points, targets, gap, None).solve(None)
    p = found / price[chosen]
    kept = p > 0
    return make_design(arms, chosen[kept], p[kept] / p.sum(), method="earning", reference=0, gap=certified)
