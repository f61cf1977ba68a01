"""The paper's units: features, θ, shift and noise divided so that each is at most 1.

The paper's claims are about ‖x‖, ‖θ‖, |ν| ≤ 1 and 1-sub-Gaussian noise. With L the largest ‖x‖, features x/L
and rewards divided by the largest of L·S, N and σ satisfy all of it, if ‖θ‖ ≤ S, |ν| ≤ N and the noise is
σ-sub-Gaussian. L is read off the arms; S, N and σ have to be declared, since no data shows them.
"""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_positive
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.theory import explicit_error_bound

# Designs are certified up to a tolerance; norms may exceed their bounds by no more than this.
NORM_TOLERANCE = 1.001
# What `Decision.mode` says where nothing can be claimed.
UNDECLARED = "none (bounds of θ and the shift are not declared)"
OWN_DESIGN = "none (the norms of a design of one's own are not known)"


@dataclass(frozen=True)
class Units:
    """One paper's unit of features and of rewards, and what is declared in these units.

    Attributes
    ----------
    feature, reward : float
        What to divide features and rewards by.
    level : float
        Bound on |ν_t + μᵀθ|, at most 2.
    noise, norm : float
        σ and the bound on ‖θ‖, each at most 1.
    declared : str
        What was declared, in words, for :attr:`Decision.mode`; "" if nothing was.
    """

    feature: float = 1.0
    reward: float = 1.0
    level: float = 2.0
    noise: float = 1.0
    norm: float = 1.0
    declared: str = ""

    def largest_error(self, dimension: int, count: int, rounds: int, delta: float, ridge: float) -> float:
        """Return how far, in the user's units, estimates of x_i − x_1 may be off after exploring by a design.

        Proven with probability 1 − δ, for designs with ‖x_i − x_1‖ ≤ 2√r and ‖x_i − μ‖ ≤ 2√r + 1.

        Parameters
        ----------
        dimension, count : int
            r and K.
        rounds : int
        delta : float
        ridge : float
            In the paper's units.
        """
        root = 2.0 * math.sqrt(dimension)
        return self.reward * explicit_error_bound(
            root**2 * NORM_TOLERANCE,
            (root + 1.0) ** 2 * NORM_TOLERANCE,
            rounds,
            delta,
            dimension,
            ridge=ridge,
            contrasts=max(count - 1, 1),
            level=self.level,
            noise=self.noise,
            norm=self.norm,
        )


def check_bounds(theta_bound: float | None, shift_bound: float | None, noise: float) -> None:
    """Raise ParameterError unless both bounds are declared or neither is, and all are positive numbers."""
    if (theta_bound is None) != (shift_bound is None):
        raise ParameterError(
            Argument("theta_bound", theta_bound),
            f" and shift_bound={shift_bound}: declare both bounds or neither; claims"
            " need ‖θ‖ ≤ theta_bound and |ν| ≤ shift_bound",
        )
    check_positive("noise", noise)
    if theta_bound is None and noise != 1.0:
        raise ParameterError(
            Argument("noise", noise), " has no effect without theta_bound and shift_bound; declare them"
        )
    if theta_bound is not None and shift_bound is not None:
        check_positive("theta_bound", theta_bound)
        # A shift of 0 is a bound too.
        if not 0.0 <= shift_bound < math.inf:
            raise ParameterError(Argument("shift_bound", shift_bound), " must be a finite number ≥ 0")


def units_of(arms: ArmSet, theta_bound: float | None, shift_bound: float | None, noise: float) -> Units:
    """Return the units in which the paper's bounds hold; the paper's own where none are declared."""
    if theta_bound is None or shift_bound is None:
        return Units()
    longest = float(np.linalg.norm(arms.features, axis=1).max())
    feature = longest if longest > 0 else 1.0
    reward = max(feature * theta_bound, shift_bound, noise)
    return Units(
        feature=feature,
        reward=reward,
        level=(shift_bound + feature * theta_bound) / reward,
        noise=noise / reward,
        norm=feature * theta_bound / reward,
        declared=f"‖x‖ ≤ {feature:.4g}, ‖θ‖ ≤ {theta_bound:.4g}, |ν| ≤ {shift_bound:.4g}, noise"
        f" {noise:.4g}-sub-Gaussian",
    )
