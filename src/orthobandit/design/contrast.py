"""Designs for chosen differences: the worst of a set of contrasts estimated as well as possible."""

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._checks import check_in_time
from orthobandit._types import Progress
from orthobandit.arms import ArmSet
from orthobandit.design._contrast_solver import ContrastProblem
from orthobandit.design._contrasts import Request, contrast_set, support_mask
from orthobandit.design._points import Points, View
from orthobandit.design.base import (
    Design,
    checked_gap,
    checked_reference,
    make_design,
    point_mass,
    starting_probabilities,
)

# Of a pass over all pairs, by K², and how many of them a solution takes as a rule.
SECONDS, PASSES = 4e-9, 8


def contrast_design(
    arms: ArmSet,
    pairs: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    gap: float = 1e-4,
    *,
    vectors: ArrayLike | None = None,
    reference: int | None = None,
    support: ArrayLike | None = None,
    start: Design | None = None,
    progress: Progress | None = None,
) -> Design:
    """Minimise max_y w_y·yᵀΣ_p⁻¹y over distributions p on the arms, for y in a set of contrasts.

    p ↦ yᵀΣ_p⁻¹y is convex, so the minimum has a certificate: for multipliers λ over the contrasts,
    M = Σ p_i z_i z_iᵀ with z = (1, x), S_λ = Σ λ_y w_y (0,y)(0,y)ᵀ and φ = tr(M⁻¹S_λ), no design does
    better than φ²/max_i z_iᵀM⁻¹S_λM⁻¹z_i. Method: an interior-point solve on a working set of arms and
    contrasts; a pass over all contrasts and all arms adds the violators; repeat until certified.

    Parameters
    ----------
    arms : ArmSet
    pairs : array-like (m, 2) of int, optional
        Arms (i, j), for y = x_i − x_j. By default all pairs.
    weights : array-like (m,), optional
        Positive weights w of the squared norms; 1 by default.
    gap : float
        Relative tolerance of the squared norm.
    vectors : array-like (m, d), optional
        Instead of `pairs`: any differences y in the space of the features.
    reference : int, optional
        Instead of `pairs`: all differences to this arm (then m = K in `weights`).
    support : array-like, optional
        Mask (K,) or indices of the arms that may be played; all by default.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (done, total): factors of ten from a gap of 1 to the tolerance.

    Examples
    --------
    >>> arms = ArmSet([[1.0, 0.0], [0.0, 1.0], [0.99, 0.1]])
    >>> contrast_design(arms, [[0, 2]]).probabilities.round(3).tolist()
    [0.5, 0.0, 0.5]
    """
    checked_gap(gap)
    if pairs is None and vectors is None and reference is None:
        _check_pairs_in_time(len(arms))
    earlier = starting_probabilities(arms, start)
    allowed = support_mask(arms, support)
    if reference is not None:
        reference = checked_reference(arms, reference)
    found = contrast_set(arms, Request(pairs, vectors, reference, weights), allowed)
    if found is None:
        return point_mass(arms, "contrast", int(np.argmax(allowed)))
    rows, wanted = found
    chosen, r = np.flatnonzero(allowed), rows.shape[1]
    points = Points(rows[chosen], View(np.zeros(r), np.eye(r)), has_intercept=True)
    problem = ContrastProblem(points, wanted, gap, progress)
    first = None if earlier is None else earlier[chosen]
    p, certified = problem.solve(first)
    return make_design(
        arms,
        chosen[p > 0],
        p[p > 0],
        method="contrast",
        reference=reference or 0,
        gap=certified,
    )


def _check_pairs_in_time(count: int) -> None:
    # Under any p the pairs' squared norms are 2r on average, and a centred design has none above 4r.
    pairs = count * (count - 1) // 2
    check_in_time(
        f"a design for all pairs of {count:,} arms compares {pairs:,} pairs in every pass and",
        PASSES * SECONDS * float(count) ** 2,
        "centred_design(arms) takes seconds and has widths at most √2 times as large, and AnytimeElimination"
        " plans for pairs with its leader alone",
    )
