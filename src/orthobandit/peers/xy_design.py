"""Least squares on features as they are, and the XY design that serves it: blind to shifts."""

import numpy as np

from orthobandit._foundation.linalg import RangeFactor, diameter, solve_ridge
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.design import contrast_design
from orthobandit.estimate import Tally
from orthobandit.policy.phases import pairs_of

RIDGE = 1.0  # keeps the regression solvable when the draws have left out an arm of the design


def linear_scores(arms: ArmSet, tally: Tally) -> Array:
    """Return x_aᵀθ̂ (K,) of the uncentred ridge regression on one tally (K,)."""
    gram = (arms.features * tally.counts[:, np.newaxis]).T @ arms.features
    return np.asarray(arms.features @ solve_ridge(gram, arms.features.T @ tally.sums, RIDGE))


def xy_design(arms: ArmSet, survivors: Mask) -> tuple[Array, float]:
    """Minimise ρ = max ‖x_i − x_j‖²_{A_p⁻¹} over pairs of survivors, A_p = Σ p_a x_a x_aᵀ without centring.

    Solved as a contrast design on the arms and their mirror images: a distribution that treats x and −x
    alike has mean zero and covariance A_p, and by convexity the best one can be taken to be of that kind;
    folding any other onto the arms only lowers the variances.

    Returns
    -------
    (K,) array, float
        The design and its ρ.
    """
    left = np.flatnonzero(survivors)
    mirrored = ArmSet(np.vstack([arms.features, -arms.features]))
    folded = contrast_design(mirrored, pairs_of(survivors)).probabilities.reshape(2, -1).sum(axis=0)
    factor = RangeFactor.of((arms.features * folded[:, np.newaxis]).T @ arms.features)
    return folded, diameter(factor.whiten(arms.features[left] - arms.features[left[0]])) ** 2
