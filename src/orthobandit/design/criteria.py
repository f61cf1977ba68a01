"""Designs by criterion: what each minimises, and the solver that certifies it."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.types import Progress
from orthobandit.arms import ArmSet, check_arms
from orthobandit.design._contrast_optimal import ContrastProblem, Listed, Request, contrast_set, support_mask
from orthobandit.design._d_optimal import d_optimal
from orthobandit.design._points import Points, View
from orthobandit.design.base import (
    Design,
    check_gap,
    check_reference,
    make_design,
    point_mass,
    starting_probabilities,
)
from orthobandit.errors import ParameterError


def g_optimal_design(
    arms: ArmSet, gap: float = 1e-6, *, start: Design | None = None, progress: Progress | None = None
) -> Design:
    """Minimise max_i x_iᵀ(Σ_j p_j x_j x_jᵀ)⁻¹x_i over distributions p.

    By the equivalence theorem of Kiefer & Wolfowitz (1960) the minimum is the linear rank n of the
    features, reached by the D-optimal p. The support has at most n(n+1)/2 arms (Carathéodory).
    This is the design for linear bandits without a shift; its centred norms may be infinite.

    Parameters
    ----------
    arms : ArmSet
    gap : float
        Relative tolerance of the minimum, certified on all arms.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (done, total): factors of ten from a gap of 1 to the tolerance.

    Examples
    --------
    >>> g_optimal_design(ArmSet.one_hot(4)).probabilities.round(6).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    check_arms(arms)
    check_gap(gap)
    earlier = starting_probabilities(arms, start)
    frame = affine_frame(arms.features, through_zero=True)
    if not frame.dimension:
        return point_mass(arms, "g-optimal")
    points = Points.of(arms.features, frame, has_intercept=False)
    found = d_optimal(points, gap, earlier, progress)
    return make_design(arms, found.chosen, found.values, method="g-optimal", reference=0, gap=found.gap)


def centred_design(
    arms: ArmSet, gap: float = 1e-6, *, start: Design | None = None, progress: Progress | None = None
) -> Design:
    """Minimise max_i ‖x_i − μ‖_{Σ_p⁻¹} over distributions p and centres μ: the minimum is √r.

    This is the G-optimal design of orthogonalised regression (Kim, Kim & Oh 2025, Definition 2), solved
    exactly. With z = (1, x) and M_p = Σ p_i z_i z_iᵀ the Schur complement gives
    ‖z_i‖²_{M⁻¹} = 1 + ‖x_i − μ_p‖²_{Σ⁻¹}, so the D-optimal p of the lifted points reaches
    max_i ‖x_i − μ_p‖² = r (Kiefer & Wolfowitz 1960); and Σ p_i‖x_i − μ‖² ≥ tr(Σ⁻¹Σ) = r for every p, μ.
    Geometrically it is the smallest ellipsoid around the arms. Departs: exact where the paper settles
    for within a factor 2.

    Parameters
    ----------
    arms : ArmSet
    gap : float
        Relative tolerance of the squared norm: max_i ‖x_i − μ‖² ≤ (1 + gap)·r, certified on all arms.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (done, total): factors of ten from a gap of 1 to the tolerance.

    Examples
    --------
    >>> design = centred_design(ArmSet([[0.0], [0.3], [1.0]]))
    >>> design.probabilities.round(6).tolist()
    [0.5, 0.0, 0.5]
    """
    check_arms(arms)
    check_gap(gap)
    earlier = starting_probabilities(arms, start)
    if not arms.dimension:
        return point_mass(arms, "centred")
    points = Points.of(arms.features, arms.frame, has_intercept=True)
    found = d_optimal(points, gap, earlier, progress)
    return make_design(arms, found.chosen, found.values, method="centred", reference=0, gap=found.gap)


def anchor_design(
    arms: ArmSet,
    reference: int = 0,
    gap: float = 1e-6,
    *,
    start: Design | None = None,
    progress: Progress | None = None,
) -> Design:
    """Play the reference half of the time, and differences to it by a G-optimal design otherwise.

    DEO (Kim, Kim & Oh 2025, Algorithm 1): q is the G-optimal design of b_i = x_i − x_reference, then
    p_reference = 1/2 and p_i = q_i/2. Guarantees, with r the affine dimension: differences to the
    reference have norm ≤ 2√r, ‖x_i − μ‖ ≤ 2√r + 1, pairs ≤ 4√r (each times √(1 + gap)). Departs: none.

    Parameters
    ----------
    arms : ArmSet
    reference : int
        The arm that plays the role of the paper's x_1.
    gap : float
        Relative tolerance of the G-optimal design of the differences, certified on all arms.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (done, total): factors of ten from a gap of 1 to the tolerance.

    Examples
    --------
    >>> anchor_design(ArmSet([[0.0], [1.0], [-1.0]])).probabilities[0].item()
    0.5
    """
    check_arms(arms)
    check_gap(gap)
    reference = check_reference(arms, reference)
    earlier = starting_probabilities(arms, start)
    if not arms.dimension:
        return point_mass(arms, "anchor", reference)
    lifted = Points.of(arms.features, arms.frame, has_intercept=True)
    points = Points(lifted.rows, View(lifted.rows[reference], lifted.frame.transform), has_intercept=False)
    if earlier is not None:
        earlier = np.where(np.arange(len(arms)) == reference, 0.0, earlier)
        earlier = earlier / earlier.sum() if earlier.any() else None
    found = d_optimal(points, gap, earlier, progress)
    chosen = np.append(found.chosen, reference)
    weights = np.append(found.values / 2, 0.5)
    return make_design(arms, chosen, weights, method="anchor", reference=reference, gap=found.gap)


MAX_DESIGN_SECONDS = 1800.0  # nobody waits longer for a single design
# Of a pass over all pairs, by K², and how many of them a solution takes as a rule.
SECONDS_PER_PAIR = 4e-9
USUAL_PASSES = 8


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
    check_arms(arms)
    check_gap(gap)
    if pairs is None and vectors is None and reference is None:
        _check_pairs_in_time(len(arms))
    earlier = starting_probabilities(arms, start)
    allowed = support_mask(arms, support)
    if reference is not None:
        reference = check_reference(arms, reference)
    found = contrast_set(arms, Request(pairs, vectors, reference, weights), allowed)
    if found is None:
        return point_mass(arms, "contrast", int(np.argmax(allowed)))
    rows, wanted = found
    chosen = np.flatnonzero(allowed)
    r = rows.shape[1]
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
    seconds = USUAL_PASSES * SECONDS_PER_PAIR * float(count) ** 2
    if seconds > MAX_DESIGN_SECONDS:
        raise ParameterError(
            f"a design for all pairs of {count:,} arms compares {pairs:,} pairs in every pass and would take"
            f" about {seconds / 3600:,.1f} hours; centred_design(arms) takes seconds and has widths at most"
            " √2 times as large, and AnytimeElimination plans for pairs with its leader alone"
        )


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
    check_arms(arms)
    check_gap(gap)
    price = np.asarray(costs, dtype=np.float64)
    if price.shape != (len(arms),) or not np.all((price > 0) & np.isfinite(price)):
        raise ParameterError(f"costs must be {len(arms)} finite numbers above 0, one per arm")
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


# Designs by name, for the command line, for policies and for studies.
DESIGNS: Mapping[str, Callable[..., Design]] = {
    "centred": centred_design,
    "anchor": anchor_design,
    "contrast": contrast_design,
    "g-optimal": g_optimal_design,
}
