"""The restricted contrast problem: few points, few contrasts, solved by an interior-point method."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from orthobandit._linalg import solve_nearly_singular

Array = NDArray[np.float64]

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
    yᵀM_p⁻¹y ≤ 1 and p ≥ 0, scaled afterwards. Primal–dual Newton steps on its optimality conditions

        1 − Σ_y λ_y (z_iᵀM⁻¹y)² = s_i,   λ_y(1 − yᵀM⁻¹y) = τ,   s_i p_i = τ,   τ → 0.

    Parameters
    ----------
    points : (m, n) array
        z_i, in coordinates in which M_start is near the identity.
    contrasts : (q, n) array
        y, each scaled by the root of its weight.
    start : (m,) array
        A positive distribution.
    tolerance : float
        Relative complementarity gap at which to stop.
    """
    iterate = _Iterate.at(points, contrasts, start / start.sum())
    scale = 1.05 * float(iterate.values.max())
    p = start / start.sum() * scale
    iterate = _Iterate.at(points, contrasts, p)
    target = 0.1 * p.sum() / (len(points) + len(contrasts))
    multipliers, slack = target / (1.0 - iterate.values), target / p
    for _ in range(ITERATIONS):
        step = iterate.newton(p, multipliers, slack, target)
        p, multipliers, slack, iterate = _moved(points, contrasts, (p, multipliers, slack), step)
        gap = multipliers @ (1.0 - iterate.values) + slack @ p
        if gap <= tolerance * p.sum() and _dual_error(iterate, multipliers, slack) <= tolerance:
            break
        target = SHRINK * gap / (len(points) + len(contrasts))
    return Saddle(p / p.sum(), multipliers / multipliers.sum())


@dataclass(frozen=True, eq=False)
class _Iterate:
    """The functions of the problem at one p."""

    values: Array  # yᵀM⁻¹y, (q,)
    cross: Array  # z_iᵀM⁻¹y, (q, m)
    white: Array  # M^{-1/2} z_i, (n, m)

    @classmethod
    def at(cls, points: Array, contrasts: Array, p: Array) -> "_Iterate":
        lower = np.linalg.cholesky((points.T * p) @ points)
        both = scipy.linalg.solve_triangular(
            lower, np.concatenate([points, contrasts]).T, lower=True, check_finite=False
        )
        white, y = both[:, : len(points)], both[:, len(points) :]
        return cls(np.einsum("ij,ij->j", y, y), y.T @ white, white)

    def newton(self, p: Array, multipliers: Array, slack: Array, target: float) -> tuple[Array, Array, Array]:
        squares = self.cross**2
        room = 1.0 - self.values
        matrix = (self.white.T @ self.white) * ((self.cross.T * (2.0 * multipliers)) @ self.cross)
        matrix += (squares.T * (multipliers / room)) @ squares
        matrix[np.diag_indices(len(p))] += slack / p
        right = target / p - 1.0 + squares.T @ (target / room)
        dp = solve_nearly_singular(matrix, right)
        d_multipliers = (target - multipliers * (squares @ dp)) / room - multipliers
        d_slack = (target - slack * dp) / p - slack
        return dp, d_multipliers, d_slack


def _dual_error(iterate: _Iterate, multipliers: Array, slack: Array) -> float:
    return float(np.max(np.abs(1.0 - (iterate.cross**2).T @ multipliers - slack)))


def _longest(value: Array, change: Array) -> float:
    falling = change < 0
    return min(1.0, MARGIN * float(np.min(value[falling] / -change[falling], initial=np.inf)))


def _moved(
    points: Array,
    contrasts: Array,
    now: tuple[Array, Array, Array],
    step: tuple[Array, Array, Array],
) -> tuple[Array, Array, Array, _Iterate]:
    """Step as far as every quantity stays positive; halve until the contrasts stay below 1."""
    p, multipliers, slack = now
    dp, d_multipliers, d_slack = step
    primal = _longest(p, dp)
    dual = min(_longest(multipliers, d_multipliers), _longest(slack, d_slack))
    while True:
        iterate = _Iterate.at(points, contrasts, p + primal * dp)
        if iterate.values.max() < 1.0:
            break
        primal /= 2.0
    return (
        p + primal * dp,
        multipliers + dual * d_multipliers,
        slack + dual * d_slack,
        iterate,
    )
