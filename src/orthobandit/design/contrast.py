"""Designs for chosen differences: the worst of a set of contrasts estimated as well as possible."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit.arms import ArmSet
from orthobandit.design._contrasts import Contrasts, distinct, largest
from orthobandit.design._minmax import solve_minmax
from orthobandit.design._points import Points, View
from orthobandit.design._requests import contrast_set, support_mask
from orthobandit.design._solver import d_optimal, is_sparse
from orthobandit.design._sparse import sparsest_support
from orthobandit.design.base import (
    Design,
    Progress,
    checked_gap,
    checked_reference,
    make_design,
    point_mass,
    starting_probabilities,
)
from orthobandit.errors import DesignError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

PASSES = 200
FLOOR = 0.05  # share of the precision that goes to points that span, whatever the contrasts need
IDLE = 0.05  # multipliers below this share of the mean one are of contrasts that do not bind
FAINT = 1e-6  # probabilities below this share of the mean one are left out where nothing depends on them


def contrast_design(
    arms: ArmSet,
    contrasts: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    gap: float = 1e-4,
    *,
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
    contrasts : array-like, optional
        Pairs of arms (m, 2) of int, or difference vectors (m, d) of float. By default all pairs.
    weights : array-like (m,), optional
        Positive weights w of the squared norms; 1 by default.
    gap : float
        Relative tolerance of the squared norm.
    reference : int, optional
        Instead of `contrasts`: all differences to this arm (then m = K in `weights`).
    support : array-like, optional
        Mask (K,) or indices of the arms that may be played; all by default.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (passes so far, gap so far).

    Examples
    --------
    >>> arms = ArmSet([[1.0, 0.0], [0.0, 1.0], [0.99, 0.1]])
    >>> contrast_design(arms, [[0, 2]]).probabilities.round(3).tolist()
    [0.5, 0.0, 0.5]
    """
    checked_gap(gap)
    earlier = starting_probabilities(arms, start)
    allowed = support_mask(arms, support)
    if reference is not None:
        reference = checked_reference(arms, reference)
    request = contrast_set(arms, contrasts, weights, reference, allowed)
    if request is None:
        return point_mass(arms, "contrast", int(np.argmax(allowed)))
    rows, wanted = request
    chosen, r = np.flatnonzero(allowed), rows.shape[1]
    points = Points(rows[chosen], View(np.zeros(r), np.eye(r)), has_intercept=True)
    problem = _Problem(points, wanted, gap, progress)
    first = None if earlier is None else earlier[chosen]
    found, certified = problem.solve(first)
    return make_design(
        arms,
        chosen[found > 0],
        found[found > 0],
        method="contrast",
        reference=reference or 0,
        gap=certified,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """Points that may be played (K', r) and the contrasts to price, in the same coordinates."""

    points: Points
    contrasts: Contrasts
    tolerance: float
    progress: Progress | None

    def solve(self, start: Array | None) -> tuple[Array, float]:
        """Return weights of all points and their certified gap."""
        n = self.points.dimension
        view, sample = self.points.rough_view()
        pillars = self.points.spanning(view, sample)
        chosen, p, view = self._begin(view, pillars, start)
        always = self.contrasts.spanning(view.transform)
        wanted = distinct(np.concatenate([always, self.contrasts.worst(view.transform, 6 * n)[1]]))
        bound, best = 0.0, np.inf
        for passes in range(1, PASSES + 1):
            gap = min(best, 1.0) if np.isfinite(best) else 0.3
            precision = max(0.2 * self.tolerance, 0.05 * gap)
            lifted, rows = self.points.lifted(view, chosen), wanted @ view.transform
            floor = np.where(np.isin(chosen, pillars), FLOOR * precision / n, 0.0)
            saddle = solve_minmax(lifted, np.hstack([np.zeros((len(rows), 1)), rows]), p, precision, floor)
            p = saddle.weights
            view = self.points.refined(view, chosen, p)
            pulled = self._pulls(view, wanted, saddle.multipliers)
            seen = wanted @ view.transform
            phi = float(saddle.multipliers @ np.einsum("ij,ij->i", seen, seen))
            bound = max(bound, phi**2 / float(pulled.max()))
            worst, fresh = self.contrasts.worst(view.transform, 4 * n)
            best = min(best, worst / bound - 1.0)
            if self.progress is not None:
                self.progress(passes, worst / bound - 1.0)
            if worst <= (1.0 + self.tolerance) * bound:
                return self._finished(view, chosen, p, bound)
            fresh = self._contrasts_kept(wanted, saddle.multipliers, seen, fresh, view)
            wanted = distinct(np.concatenate([always, fresh]))
            chosen, p = self._points_kept(chosen, p, pulled / phi, pillars)
        raise DesignError(
            f"the design reached a gap of {best:.2e} in {PASSES} passes; {self.tolerance:.2e} was asked for",
            gap=best,
            tolerance=self.tolerance,
        )

    def _begin(self, view: View, pillars: Indices, start: Array | None) -> tuple[Indices, Array, View]:
        """Start from an earlier design, or from the centred design, which is within a factor 2."""
        centred = d_optimal(self.points, 0.02)
        p = np.zeros(len(self.points))
        p[centred.chosen] = centred.values
        if start is not None and is_sparse(start, self.points.dimension):
            p = 0.1 * p + 0.9 * start / start.sum()
        p[pillars] += 0.01 / len(pillars)
        p /= p.sum()
        chosen = np.flatnonzero(p)
        return chosen, p[chosen], self.points.refined(view, chosen, p[chosen])

    def _pulls(self, view: View, wanted: Array, multipliers: Array) -> Array:
        """Return z_iᵀM⁻¹S_λM⁻¹z_i of every point, (K',)."""
        seen = wanted @ view.transform
        spread = (seen.T * multipliers) @ seen
        values, vectors = np.linalg.eigh(spread)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        # Not the leverages of lifted points less one: small pulls would drown in the one.
        plain = replace(self.points, has_intercept=False)
        return plain.leverages(View(view.centre, view.transform @ root))

    def _contrasts_kept(
        self, wanted: Array, multipliers: Array, seen: Array, fresh: Array, view: View
    ) -> Array:
        values = np.einsum("ij,ij->i", seen, seen)
        active = (multipliers > IDLE / len(multipliers)) | (values > 0.98 * values.max())
        priced = fresh @ view.transform
        over = np.einsum("ij,ij->i", priced, priced) > values.max() * (1.0 + 0.1 * self.tolerance)
        return np.concatenate([wanted[active], fresh[over]])

    def _points_kept(self, chosen: Indices, p: Array, pull: Array, pillars: Indices) -> tuple[Indices, Array]:
        """Keep points that carry weight or pull at least as hard as the support; add those that pull more.

        The pillars always stay: few contrasts may need fewer points than span, but prices need them.
        """
        carried = (p > 1e-4 / len(p)) | (pull[chosen] > 0.98) | np.isin(chosen, pillars)
        outside = pull.copy()
        outside[chosen] = 0.0
        added = largest(np.where(outside > 1.0, outside, 0.0), 4 * self.points.dimension)
        chosen, p = chosen[carried], p[carried]
        share = 0.02 / max(len(added), 1)
        return np.concatenate([chosen, added]), np.concatenate([p, np.full(len(added), share)])

    def _finished(self, view: View, chosen: Indices, p: Array, bound: float) -> tuple[Array, float]:
        """Play as few points as the certificate allows, and certify afresh."""
        thin = sparsest_support(self.points.lifted(view, chosen), p)
        for q, least in ((thin, FAINT / len(p)), (thin, 0.0), (p, 0.0)):
            kept = q > least
            values = q[kept] / q[kept].sum()
            worst = self._certified(view, chosen[kept], values)
            if worst <= (1.0 + self.tolerance) * bound:
                break
        weights = np.zeros(len(self.points))
        weights[chosen[kept]] = values
        return weights, max(worst / bound - 1.0, 0.0)

    def _certified(self, view: View, chosen: Indices, p: Array) -> float:
        """Return the largest contrast of a design from a fresh factorisation; +inf if it does not span."""
        if not self.points.are_spanned(view, chosen, p):
            return np.inf
        return self.contrasts.worst(self.points.refined(view, chosen, p).transform, 1)[0]
