"""The contrast solver: contrasts to estimate, working sets of arms and contrasts, and the certificate.

Contrasts are a listed few, or all pairs without listing them. The solver finds weights for working sets of
arms and contrasts, then passes over all of both to certify the result or to extend the sets.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.affine import AffineFrame, affine_frame
from orthobandit._foundation.checks import check_pairs
from orthobandit._foundation.types import Array, Mask, Progress, Whole
from orthobandit.arms import ArmSet
from orthobandit.design._d_optimal import d_optimal, is_sparse, sparsest_support
from orthobandit.design._interior_point import solve_minmax
from orthobandit.design._points import Points, View
from orthobandit.design.base import Approach
from orthobandit.errors import DesignError, ParameterError

MAX_PASSES = 200  # over all points and contrasts; a few are enough unless the optimum is degenerate
# Probabilities below this share of the mean one are left out where nothing depends on them.
FAINT_SHARE = 1e-6
IDLE_SHARE = 0.05  # multipliers below this share of the mean one are of contrasts that do not bind
START_GAP = 0.02  # of the centred design that the solver starts from
BLOCK_ROWS = 512


class Contrasts(Protocol):
    """Weighted differences whose largest squared norm a design should make small."""

    def worst(self, transform: Array, most: int) -> tuple[float, Array]:
        """Price every contrast y ↦ ‖y @ transform‖², weights included.

        Returns the largest value and up to `most` contrasts (q, r) of the largest values, each scaled
        by the root of its weight, in the coordinates before the transform.
        """
        ...

    def spanning(self, transform: Array) -> Array:
        """Return a few contrasts, as in :meth:`worst`, that span all of them."""
        ...


@dataclass(frozen=True, eq=False)
class Listed:
    """Contrasts given one by one, already scaled by the roots of their weights: (m, r)."""

    rows: Array

    def worst(self, transform: Array, most: int) -> tuple[float, Array]:
        """See :class:`Contrasts`."""
        seen = self.rows @ transform
        values = np.einsum("ij,ij->i", seen, seen)
        return float(values.max()), distinct(self.rows[largest(values, most)])

    def spanning(self, transform: Array) -> Array:
        """See :class:`Contrasts`."""
        return self.rows[_independent(self.rows @ transform)]


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every difference between two of the rows (K, r), with weight 1."""

    rows: Array

    def worst(self, transform: Array, most: int) -> tuple[float, Array]:
        """See :class:`Contrasts`; one pass over the pairs, the farthest partner of each row."""
        seen = self.rows @ transform
        values, partners = farthest_partners(seen)
        # Of the rows with the same partner only the farthest counts: in clusters the others say the same.
        order = np.argsort(-values, kind="stable")
        first = order[np.unique(partners[order], return_index=True)[1]]
        chosen = first[largest(values[first], most)]
        return float(values.max()), distinct(self.rows[chosen] - self.rows[partners[chosen]])

    def spanning(self, transform: Array) -> Array:
        """See :class:`Contrasts`."""
        differences = self.rows - self.rows[0]
        return np.asarray(differences[_independent(differences @ transform)])


def _independent(vectors: Array) -> Whole:
    """Return the positions of linearly independent rows of vectors (m, r) that span them all."""
    triangle, order = scipy.linalg.qr(vectors.T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    return np.asarray(order[: np.count_nonzero(sizes > 1e-9 * sizes[0])], dtype=np.int64)


def distinct(rows: Array) -> Array:
    """Return rows (q', r) without repetitions; y and −y count as the same contrast."""
    leading = np.argmax(rows != 0, axis=1)
    signs = np.sign(rows[np.arange(len(rows)), leading])
    return np.unique(rows * signs[:, np.newaxis], axis=0)


def largest(values: Array, most: int) -> Whole:
    """Return the positions of the `most` largest positive values, in a fixed order."""
    positive = np.flatnonzero(values > 0)
    if len(positive) > most:
        positive = positive[np.argpartition(-values[positive], most - 1)[:most]]
    return np.sort(positive)


def farthest_partners(points: Array) -> tuple[Array, Whole]:
    """Return for each of K points the squared distance (K,) to its farthest partner, and which (K,).

    Ties go to the next point in cyclic order, so that symmetric sets give every point its own partner
    rather than all points the same one.
    """
    count = len(points)
    squares = np.einsum("ij,ij->i", points, points)
    values = np.full(count, -np.inf)
    partners = np.zeros(count, dtype=np.int64)
    # A partner j of point i is (j − i) mod K steps ahead: a handicap far below any tolerance decides ties.
    step = 1e-10 * squares.max() / count
    handicap = step * np.tile(np.arange(count), 2)
    turned = 2.0 * handicap - step * count  # what is missing when i is looked at as the partner of j
    for i in range(0, count, BLOCK_ROWS):
        rows = slice(i, min(i + BLOCK_ROWS, count))
        for j in range(i, count, BLOCK_ROWS):
            columns = slice(j, min(j + BLOCK_ROWS, count))
            table = points[rows] @ (-2.0 * points[columns].T)
            table += squares[rows, np.newaxis]
            table += squares[columns]
            table -= _shifted(handicap, count + j - i, table.shape)
            _keep(values[rows], partners[rows], table.argmax(axis=1), table, j, axis=1)
            if j > i:
                table += _shifted(turned, count + j - i, table.shape)
                _keep(values[columns], partners[columns], table.argmax(axis=0), table, i, axis=0)
    difference = points - points[partners]
    return np.einsum("ij,ij->i", difference, difference), partners


def _shifted(line: Array, first: int, shape: tuple[int, ...]) -> Array:
    """Return a view T with T[a, b] = line[first + b − a]."""
    step = line.strides[0]
    return np.lib.stride_tricks.as_strided(line[first:], shape, (-step, step), writeable=False)


def _keep(
    values: Array,
    partners: Whole,
    best: Whole,
    table: Array,
    offset: int,
    *,
    axis: int,
) -> None:
    found = np.take_along_axis(table, np.expand_dims(best, axis), axis).squeeze(axis)
    better = found > values
    values[better] = found[better]
    partners[better] = best[better] + offset


def support_mask(arms: ArmSet, support: ArrayLike | None) -> Mask:
    """Return a mask (K,) of the arms that may be played."""
    count = len(arms)
    if support is None:
        return np.ones(count, dtype=np.bool_)
    given = np.asarray(support)
    if given.dtype == np.bool_ and given.shape == (count,):
        mask = given.copy()
    elif given.dtype.kind in "iu" and given.ndim == 1 and np.all((given >= 0) & (given < count)):
        mask = np.zeros(count, dtype=np.bool_)
        mask[given] = True
    else:
        raise ParameterError(f"support must be a mask of {count} booleans or arm numbers 0 to {count - 1}")
    if not mask.any():
        raise ParameterError("support is empty; at least one arm must be played")
    return mask


@dataclass(frozen=True, eq=False)
class Request:
    """The contrasts to estimate: pairs of arms (m, 2), vectors (m, d), differences to one arm, or all pairs.

    `weights` (m,) are of the squared norms; with a reference m = K.
    """

    pairs: ArrayLike | None = None
    vectors: ArrayLike | None = None
    reference: int | None = None
    weights: ArrayLike | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing in particular was asked for: all pairs."""
        return self.pairs is None and self.vectors is None and self.reference is None


def contrast_set(arms: ArmSet, request: Request, allowed: Mask) -> tuple[Array, Contrasts] | None:
    """Return all arms (K, r) and the contrasts in the same coordinates, or None if all contrasts are zero."""
    features = arms.features
    asked = (request.pairs, request.vectors, request.reference)
    if sum(one is not None for one in asked) > 1:
        raise ParameterError("give only one of pairs, vectors and reference")
    everywhere = bool(allowed.all())
    frame = arms.frame if everywhere else affine_frame(features[allowed])
    if request.pairs is None and request.vectors is None and not everywhere:
        _require_range(frame, features[allowed], features - features[allowed][0], "arm")
    rows = frame.coordinates(features)
    if request.is_open:
        if request.weights is not None:
            raise ParameterError("weights need pairs, vectors or a reference to belong to")
        return (rows, AllPairs(rows)) if frame.dimension else None
    if request.reference is not None:
        listed = rows - rows[request.reference]
    elif request.pairs is not None:
        listed = _of_pairs(frame, features, rows, check_pairs(request.pairs, len(arms)), allowed)
    else:
        listed = _of_vectors(frame, features, np.asarray(request.vectors), allowed)
    scaled = listed * np.sqrt(_checked_weights(request.weights, len(listed)))[:, np.newaxis]
    scaled = scaled[np.any(scaled != 0, axis=1)]
    return (rows, Listed(scaled)) if len(scaled) else None


def _of_pairs(frame: AffineFrame, features: Array, rows: Array, pairs: Whole, allowed: Mask) -> Array:
    first, second = pairs[:, 0], pairs[:, 1]
    if not allowed.all():
        _require_range(frame, features[allowed], features[first] - features[second], "contrast")
    return np.asarray(rows[first] - rows[second])


def _of_vectors(frame: AffineFrame, features: Array, given: NDArray[np.generic], allowed: Mask) -> Array:
    width = features.shape[1]
    if given.dtype.kind not in "iuf" or given.ndim != 2 or not len(given) or given.shape[1] != width:
        raise ParameterError(
            f"vectors have shape {given.shape} and type {given.dtype}; differences of features (m, {width}),"
            " one or more, are needed"
        )
    vectors = given.astype(np.float64)
    if not np.all(np.isfinite(vectors)):
        raise ParameterError("vectors have a non-finite entry")
    _require_range(frame, features[allowed], vectors, "contrast")
    return replace(frame, origin=np.zeros(width)).coordinates(vectors)


def _require_range(frame: AffineFrame, played: Array, differences: Array, what: str) -> None:
    """Refuse differences that the played arms cannot estimate."""
    spread = played - played[0]
    together = affine_frame(np.concatenate([spread, differences]), through_zero=True)
    if together.dimension == frame.dimension:
        return
    for row, difference in enumerate(differences):
        if affine_frame(np.vstack([spread, difference]), through_zero=True).dimension > frame.dimension:
            raise ParameterError(
                f"{what} {row} lies outside what the playable arms span, so no design estimates it;"
                " allow more arms or leave it out"
            )


def _checked_weights(weights: ArrayLike | None, count: int) -> Array:
    if weights is None:
        return np.ones(count)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(
            f"weights have shape {array.shape}; one for each of the {count} contrasts is needed"
        )
    if not np.all(np.isfinite(array) & (array >= 0)):
        raise ParameterError("weights must be finite and not negative")
    return array


@dataclass(frozen=True, eq=False)
class _Working:
    """Weights p (m,) of the chosen points (m,), the view they whiten, and the contrasts at work (q, r)."""

    chosen: Whole
    p: Array
    view: View
    wanted: Array


@dataclass(frozen=True, eq=False)
class _Prices:
    """The result of one pass: multipliers (q,), φ, the pull of every point (K',), the worst contrasts."""

    multipliers: Array
    phi: float
    pulls: Array
    worst: float
    fresh: Array

    @property
    def bound(self) -> float:
        """No design has a smaller maximum than φ²/max_i z_iᵀM⁻¹S_λM⁻¹z_i."""
        return self.phi**2 / float(self.pulls.max())


@dataclass(frozen=True, eq=False)
class ContrastProblem:
    """Points that may be played (K', r) and the contrasts to price, in the same coordinates.

    With an intercept contrasts are differences of points and M is their covariance; without, contrasts
    are vectors among the points and M is their second moment.
    """

    points: Points
    contrasts: Contrasts
    tolerance: float
    progress: Progress | None

    def solve(self, start: Array | None) -> tuple[Array, float]:
        """Return weights of all points (K',) and their certified gap."""
        approach = Approach(self.progress, self.tolerance)
        now, always, guards = self._begin(start)
        bound = 0.0
        best = np.inf
        effort = 0.05
        for _ in range(MAX_PASSES):
            precision = max(effort * max(4.0 * self.tolerance, min(best, 0.3)), 0.02 * self.tolerance)
            now, prices = self._improved(now, guards, precision)
            bound = max(bound, prices.bound)
            gap = prices.worst / bound - 1.0
            approach.reached(gap)
            if gap <= self.tolerance:
                return self._finish(now, bound)
            # Working sets that no longer help only grow, or they could go round in circles.
            helps = gap < 0.5 * best
            effort = effort if helps else max(0.3 * effort, 1e-4)
            best = min(best, gap)
            now = self._extended(now, prices, always, may_drop=helps)
        raise DesignError(
            f"the design reached a gap of {best:.2e} in {MAX_PASSES} passes;"
            f" {self.tolerance:.2e} was asked for",
            gap=best,
            tolerance=self.tolerance,
        )

    def _begin(self, start: Array | None) -> tuple[_Working, Array, Array]:
        """Return the first iterate, contrasts that are always at work, and guards.

        Where the contrasts do not span, the optimal M is singular. Guards are differences that do span,
        with a weight so small that they cost less than a quarter of the tolerance: mixing in a share η of
        the centred design costs a factor 1/(1−η), keeps the guards below v/η with v their value there, and
        no design brings the worst contrast below 1/n of its value there, since z zᵀ ⪯ n·M.
        """
        n = self.points.dimension
        rough, sample = self.points.rough_view()
        centred = d_optimal(self.points, START_GAP)
        view = self.points.refined(rough, centred.chosen, centred.values)
        worst, first = self.contrasts.worst(view.transform, 6 * n)
        corners = self.points.rows[self.points.spanning(rough, sample)]
        guards = corners[1:] - corners[0] if self.points.has_intercept else corners
        largest_guard = float(np.max(np.sum((guards @ view.transform) ** 2, axis=1)))
        guards = guards * np.sqrt(0.2 * self.tolerance * worst / (n * largest_guard))
        p = np.zeros(len(self.points))
        p[centred.chosen] = centred.values
        if start is not None and is_sparse(start, n):
            p = 0.1 * p + 0.9 * start / start.sum()
        chosen = np.flatnonzero(p)
        always = self.contrasts.spanning(view.transform)
        view = self.points.refined(view, chosen, p[chosen])
        return _Working(chosen, p[chosen], view, distinct(np.concatenate([always, first]))), always, guards

    def _improved(self, now: _Working, guards: Array, precision: float) -> tuple[_Working, _Prices]:
        """Solve on the working sets, then price all points and all contrasts."""
        lifted = np.concatenate([now.wanted, guards]) @ now.view.transform
        if self.points.has_intercept:
            lifted = np.hstack([np.zeros((len(lifted), 1)), lifted])
        points = self.points.lifted(now.view, now.chosen)
        p, multipliers, _ = solve_minmax(points, lifted, len(lifted), now.p / now.p.sum(), precision)
        view = self.points.refined(now.view, now.chosen, p)
        multipliers = multipliers[: len(now.wanted)]
        multipliers = multipliers / multipliers.sum()
        seen = now.wanted @ view.transform
        phi = float(multipliers @ np.einsum("ij,ij->i", seen, seen))
        worst, fresh = self.contrasts.worst(view.transform, 4 * self.points.dimension)
        prices = _Prices(multipliers, phi, self._pulls(view, seen, multipliers), worst, fresh)
        return _Working(now.chosen, p, view, now.wanted), prices

    def _pulls(self, view: View, seen: Array, multipliers: Array) -> Array:
        """Return z_iᵀM⁻¹S_λM⁻¹z_i of every point, (K',)."""
        values, vectors = np.linalg.eigh((seen.T * multipliers) @ seen)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        # Not the leverages of lifted points less one: small pulls would drown in the one.
        plain = replace(self.points, has_intercept=False)
        return plain.leverages(View(view.centre, view.transform @ root))

    def _extended(self, now: _Working, prices: _Prices, always: Array, *, may_drop: bool) -> _Working:
        """Drop what is idle from the working sets, if allowed, and add what the pass found missing."""
        chosen, p = self._points_kept(now, prices.pulls / prices.phi, may_drop=may_drop)
        seen = now.wanted @ now.view.transform
        fresh = prices.fresh @ now.view.transform
        values = np.einsum("ij,ij->i", seen, seen)
        found = np.einsum("ij,ij->i", fresh, fresh)
        active = (
            (prices.multipliers > IDLE_SHARE / len(values)) | (values > 0.98 * values.max()) | (not may_drop)
        )
        missing = found > values.max() * (1.0 + 0.1 * self.tolerance)
        wanted = np.concatenate([always, now.wanted[active], prices.fresh[missing]])
        return _Working(chosen, p, now.view, distinct(wanted))

    def _points_kept(self, now: _Working, pull: Array, *, may_drop: bool) -> tuple[Whole, Array]:
        """Keep points that carry weight or pull as hard as the support; add those that pull more."""
        carried = (now.p > 1e-4 / len(now.p)) | (pull[now.chosen] > 0.98)
        if not may_drop or not self.points.are_spanned(now.view, now.chosen[carried], now.p[carried]):
            carried[:] = True
        outside = pull.copy()
        outside[now.chosen] = 0.0
        added = largest(np.where(outside > 1.0, outside, 0.0), 4 * self.points.dimension)
        weights = np.concatenate([now.p[carried], np.full(len(added), 0.02 / max(len(added), 1))])
        return np.concatenate([now.chosen[carried], added]), weights

    def _finish(self, now: _Working, bound: float) -> tuple[Array, float]:
        """Return the design on as few points as the certificate allows, and its gap, certified afresh."""
        thin = sparsest_support(self.points.lifted(now.view, now.chosen), now.p)
        # From the fewest points to all: the first design that is still within the tolerance is taken.
        for q, least in ((thin, FAINT_SHARE / len(now.p)), (thin, 0.0), (now.p, 0.0)):
            kept = q > least
            chosen = now.chosen[kept]
            p = q[kept] / q[kept].sum()
            worst = self._certified(now.view, chosen, p)
            if worst <= (1.0 + self.tolerance) * bound:
                break
        weights = np.zeros(len(self.points))
        weights[chosen] = p
        return weights, max(worst / bound - 1.0, 0.0)

    def _certified(self, view: View, chosen: Whole, p: Array) -> float:
        """Return the largest contrast of a design from a fresh factorisation; +inf if it does not span."""
        if not self.points.are_spanned(view, chosen, p):
            return np.inf
        return self.contrasts.worst(self.points.refined(view, chosen, p).transform, 1)[0]
