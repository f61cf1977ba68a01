"""How each draw pulls on the estimates of contrasts: the weights g(a) of the arms under a distribution."""

from dataclasses import dataclass

import numpy as np

from orthobandit._linalg import RangeFactor
from orthobandit._types import Array, Mask, Whole

LEAST = 1e-300  # so that nothing is divided by zero where a distribution tells nothing


@dataclass(frozen=True, eq=False)
class Pulls:
    """Weights of m contrasts under G distributions p over K arms.

    For a contrast y of the arms, g(a) = yᵀΣ⁺(x_a − μ) with the mean μ and the covariance Σ of the features
    under p: E g = 0, E[g·x_a] = y and E g² = v, so that g(a)·residual is unbiased for yᵀθ whatever the shift.

    Attributes
    ----------
    pull : (G, m, K) array
        g(a); 0 for arms that cannot be drawn, and where p cannot estimate the contrast.
    variance : (G, m) array
        v; 1 where p cannot estimate the contrast.
    reach : (G, m) array
        max |g(a)|, above 0.
    known : (G, m) array of bool
        Whether p can estimate the contrast.
    """

    pull: Array
    variance: Array
    reach: Array
    known: Mask

    @classmethod
    def of(cls, positions: Array, coefficients: Array, probabilities: Array) -> "Pulls":
        """Compute from positions (K, r), contrasts of the arms (m, K) and distributions (G, K)."""
        # Around an arm that is drawn first: what all drawn arms share is then 0, and not rounding.
        around = positions - positions[np.argmax(probabilities, axis=1)][:, np.newaxis]
        centred = around - probabilities[:, np.newaxis] @ around
        weighted = centred * probabilities[..., np.newaxis]
        # One axis more, over which contrasts and arms of a distribution share its factor.
        factor = RangeFactor.of((np.swapaxes(weighted, -1, -2) @ centred)[:, np.newaxis])
        seen = factor.whiten(coefficients @ positions)
        known = np.isfinite(seen).all(axis=-1) & np.any(seen != 0, axis=-1)
        seen = np.where(known[..., np.newaxis], seen, 0.0)
        drawn = (probabilities > 0)[..., np.newaxis]
        white = np.where(drawn, factor.whiten_inside(centred), 0.0)
        pull = seen @ np.swapaxes(white, -1, -2)
        variance = np.where(known, np.einsum("...j,...j->...", seen, seen), 1.0)
        return cls(pull, variance, np.maximum(np.abs(pull).max(axis=-1, initial=0.0), LEAST), known)

    def of_plans(self, chosen: Whole) -> "Pulls":
        """Return those of some distributions, given by their places (n,)."""
        return Pulls(self.pull[chosen], self.variance[chosen], self.reach[chosen], self.known[chosen])
