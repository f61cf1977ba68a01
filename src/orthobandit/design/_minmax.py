"""The restricted contrast problem: few points, few contrasts, solved by an interior-point method."""

from dataclasses import dataclass, fields

import numpy as np
import scipy

from orthobandit._linalg import solve_nearly_singular
from orthobandit._types import Array

ITERATIONS = 60
SHRINK = 0.15  # target complementarity of the next iterate, relative to this one's
MARGIN = 0.95  # how far towards the boundary a step may go


@dataclass(frozen=True, eq=False)
class Saddle:
    """Distribution over the points (m,) and multipliers over the contrasts (q,), both summing to one."""

    weights: Array
    multipliers: Array


def solve_minmax(points: Array, contrasts: Array, start: Array, tolerance: float) -> Saddle:
    """Minimise max_y yᵀM_p⁻¹y over distributions p, with M_p = Σ p_i z_i z_iᵀ.

    yᵀM_p⁻¹y is convex and of degree −1 in p, so the problem is the same as to minimise Σ p_i subject to
    yᵀM_p⁻¹y + c_y = 1, c ≥ 0 and p ≥ 0, scaled afterwards. Primal–dual Newton steps on its optimality
    conditions, which need not hold the constraints on the way:

        1 − Σ_y λ_y (z_iᵀM⁻¹y)² = s_i,   λ_y c_y = τ,   s_i p_i = τ,   τ → 0.

    Parameters
    ----------
    points : (m, n) array
        z_i, in coordinates in which M_start is near the identity.
    contrasts : (q, n) array
        y, each scaled by the root of its weight.
    start : (m,) array
        A positive distribution.
    tolerance : float
        Relative complementarity gap and residual at which to stop.
    """
    p = start / start.sum()
    p = p * 1.1 * float(_Functions.at(points, contrasts, p).values.max())
    now = _Functions.at(points, contrasts, p)
    target = 0.1 * p.sum() / (len(points) + len(contrasts))
    room = 1.0 - now.values
    iterate = _Iterate(p, room, target / room, target / p)
    for _ in range(ITERATIONS):
        iterate, now = _stepped(points, contrasts, iterate, now, target)
        gap = iterate.complementarity
        if max(gap / iterate.p.sum(), now.residual(iterate)) <= tolerance:
            break
        target = SHRINK * gap / (len(points) + len(contrasts))
    return Saddle(iterate.p / iterate.p.sum(), iterate.multipliers / iterate.multipliers.sum())


@dataclass(frozen=True, eq=False)
class _Iterate:
    """Weights p and their slacks s, room c below each constraint and its multiplier λ; all positive."""

    p: Array
    room: Array
    multipliers: Array
    slack: Array

    @property
    def complementarity(self) -> float:
        return float(self.multipliers @ self.room + self.slack @ self.p)

    def longest(self, step: "_Iterate") -> float:
        """Return how far along the step, at most once, every quantity stays positive."""
        pairs = [(getattr(self, f.name), getattr(step, f.name)) for f in fields(self)]
        return min(
            1.0,
            *(
                MARGIN * float(np.min(value[change < 0] / -change[change < 0], initial=np.inf))
                for value, change in pairs
            ),
        )

    def moved(self, step: "_Iterate", length: float) -> "_Iterate":
        """Return the iterate a length along the step."""
        return _Iterate(*(getattr(self, f.name) + length * getattr(step, f.name) for f in fields(self)))


def _stepped(
    points: Array, contrasts: Array, iterate: _Iterate, now: "_Functions", target: float
) -> tuple[_Iterate, "_Functions"]:
    """Take a Newton step, shortened until it neither leaves the domain nor misses the constraints by far."""
    step = now.newton(iterate, target)
    length = iterate.longest(step)
    allowed = max(2.0, 10.0 * float(now.values.max()))
    while True:
        moved = iterate.moved(step, length)
        after = _Functions.within(points, contrasts, moved.p, allowed)
        if after is not None:
            return moved, after
        length /= 2.0


@dataclass(frozen=True, eq=False)
class _Functions:
    """The functions of the problem at one p."""

    values: Array  # yᵀM⁻¹y, (q,)
    squares: Array  # (z_iᵀM⁻¹y)², minus the derivative of the values, (q, m)
    cross: Array  # z_iᵀM⁻¹y, (q, m)
    white: Array  # M^{-1/2} z_i, (n, m)

    @classmethod
    def at(cls, points: Array, contrasts: Array, p: Array) -> "_Functions":
        lower = np.linalg.cholesky((points.T * p) @ points)
        both = scipy.linalg.solve_triangular(
            lower, np.concatenate([points, contrasts]).T, lower=True, check_finite=False
        )
        white, y = both[:, : len(points)], both[:, len(points) :]
        cross = y.T @ white
        return cls(np.einsum("ij,ij->j", y, y), cross**2, cross, white)

    @classmethod
    def within(cls, points: Array, contrasts: Array, p: Array, allowed: float) -> "_Functions | None":
        """Return the functions at p, or None where M is singular or a value exceeds `allowed`."""
        try:
            functions = cls.at(points, contrasts, p)
        except np.linalg.LinAlgError:
            return None
        return functions if functions.values.max() <= allowed else None

    def newton(self, at: _Iterate, target: float) -> _Iterate:
        missed = self.values + at.room - 1.0
        ratio = at.multipliers / at.room
        # Products of a matrix with its own transpose take half the time of others.
        bent = self.cross * np.sqrt(2.0 * at.multipliers)[:, np.newaxis]
        steep = self.squares * np.sqrt(ratio)[:, np.newaxis]
        matrix = (self.white.T @ self.white) * (bent.T @ bent) + steep.T @ steep
        matrix[np.diag_indices(len(at.p))] += at.slack / at.p
        right = target / at.p - 1.0 + self.squares.T @ (target / at.room + ratio * missed)
        dp = solve_nearly_singular(matrix, right)
        d_room = self.squares @ dp - missed
        d_multipliers = (target - at.multipliers * d_room) / at.room - at.multipliers
        d_slack = (target - at.slack * dp) / at.p - at.slack
        return _Iterate(dp, d_room, d_multipliers, d_slack)

    def residual(self, at: _Iterate) -> float:
        dual = 1.0 - self.squares.T @ at.multipliers - at.slack
        return max(float(np.abs(dual).max()), float(np.abs(self.values + at.room - 1.0).max()))
