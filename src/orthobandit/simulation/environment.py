"""The environment: what the arms are really worth, how the baseline moves, how rewards scatter."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet, check_arms
from orthobandit.errors import Argument, ParameterError
from orthobandit.simulation.noise import Bernoulli, Gaussian, Noise
from orthobandit.simulation.shifts import Constant, Shift


@dataclass(frozen=True, eq=False)
class Environment:
    """Rewards r_t = x_{a_t}ᵀθ + ν_t + η_t. The truth is for the runner; a policy gets the arms alone.

    Parameters
    ----------
    arms : ArmSet
    theta : array-like (d,)
        Coefficients θ, finite.
    shift : Oblivious or Adaptive
        The path of the baseline ν_t; none by default.
    noise : Noise
        The distribution of η_t; standard Gaussian by default.

    Attributes
    ----------
    means : (K,) array
        x_iᵀθ.
    gaps : (K,) array
        Mean of the best arm minus that of each arm; 0 where rounding explains the difference.

    Examples
    --------
    >>> environment = Environment(ArmSet.one_hot(3), [0.25, 1.0, 0.5])
    >>> environment.best, environment.gaps.tolist()
    (1, [0.75, 0.0, 0.5])
    >>> environment.regret([4, 10, 2]).tolist()
    4.0
    """

    arms: ArmSet
    theta: Array
    shift: Shift
    noise: Noise
    means: Array
    gaps: Array

    def __init__(
        self,
        arms: ArmSet,
        theta: ArrayLike,
        shift: Shift | None = None,
        noise: Noise | None = None,
    ) -> None:
        check_arms(arms)
        coefficients = _checked_theta(theta, arms.features.shape[1])
        shift = Constant() if shift is None else shift
        noise = Gaussian() if noise is None else noise
        if not isinstance(shift, Shift):
            raise ParameterError(Argument("shift", shift), " is neither an Oblivious nor an Adaptive shift")
        if not isinstance(noise, Noise):
            raise ParameterError(Argument("noise", noise), " is not a Noise, e.g. Gaussian(sigma=1.0)")
        with np.errstate(over="ignore", invalid="ignore"):
            means = arms.features @ coefficients
        if not np.all(np.isfinite(means)):
            raise ParameterError("theta is so large that a mean x_iᵀθ is not finite; rescale the features")
        if isinstance(noise, Bernoulli) and isinstance(shift, Constant):
            _check_chances(means + shift.level)
        gaps = means.max() - means
        # Arms that are equal but for rounding are all best: declaring either is right.
        gaps[gaps <= _rounding(arms.features, coefficients)] = 0.0
        fields = {"arms": arms, "theta": coefficients, "shift": shift, "noise": noise}
        for name, value in (fields | {"means": means, "gaps": gaps}).items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Environment({self.arms!r}, shift={self.shift!r}, noise={self.noise!r})"

    @property
    def best(self) -> int:
        """The best arm; the first one on ties."""
        return int(np.argmin(self.gaps))

    def regret(self, counts: ArrayLike) -> Array:
        """Return the regret (...) of having played each arm `counts` (..., K) times."""
        return np.asarray(np.asarray(counts) @ self.gaps)

    def moved(self, shift: Shift, noise: Noise | None = None) -> "Environment":
        """Return the same arms and θ under another shift, and other noise if given."""
        return Environment(self.arms, self.theta, shift, self.noise if noise is None else noise)

    def describe(self) -> dict[str, Any]:
        """Return a description of the environment as plain JSON values."""
        return {
            "arms": len(self.arms),
            "features": int(self.arms.features.shape[1]),
            "dimension": self.arms.dimension,
            "theta": self.theta.tolist(),
            "shift": repr(self.shift),
            "noise": repr(self.noise),
        }


def _rounding(features: Array, theta: Array) -> float:
    """Return how far apart rounding can put two means that are equal."""
    # A sum of d products is off by at most d·ε·Σ|x_k θ_k|; a difference of two such sums by twice that.
    size = np.max(np.abs(features) @ np.abs(theta))
    return float(2 * theta.size * np.finfo(np.float64).eps * size)


def _checked_theta(theta: ArrayLike, width: int) -> Array:
    try:
        array = np.array(theta, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            "theta is not a list of numbers; one finite number a feature is needed"
        ) from None
    if array.shape != (width,):
        raise ParameterError(f"theta has shape {array.shape}; the arms have {width} features, so ({width},)")
    if not np.all(np.isfinite(array)):
        place = int(np.argmin(np.isfinite(array)))
        raise ParameterError(f"theta[{place}] is {array[place]}; every coefficient must be finite")
    return array


def _check_chances(chances: Array) -> None:
    """Raise if a mean of rewards in {0, 1} is not a probability: all rewards would be the same."""
    outside = np.flatnonzero((chances < 0) | (chances > 1))
    if outside.size:
        arm = int(outside[0])
        raise ParameterError(
            f"Bernoulli() rewards have a mean in [0, 1]; that of arm {arm} is {chances[arm]:g}:"
            " change theta or the level of the shift, or take other noise"
        )
