"""Track-and-stop for linear rewards: lazy track-and-stop, Frank–Wolfe sampling and LinGame; blind to shifts.

With ℓ the best of the estimates θ̂ and Δ̂_j its lead over arm j, the best proportions of arms maximise

    f(w) = min_j f_j(w),    f_j(w) = Δ̂_j²/(2‖x_ℓ − x_j‖²_{A(w)⁻¹}),    A(w) = Σ w_a x_a x_aᵀ.

All three policies approach them and stop by the same test (:mod:`~orthobandit.peers._linear_rounds`). f_j
has the gradient ½(x_aᵀ(θ̂ − λ_j))² in w_a, λ_j the nearest parameter under which j is as good as ℓ:
θ̂ − λ_j = A⁻¹y·Δ̂_j/‖y‖²_{A⁻¹}, y = x_ℓ − x_j.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.peers._linear_rounds import (
    NO_RIDGE,
    StoppingPolicy,
    Width,
    inner,
    invert_into,
    plus_identity,
    span_features,
)
from orthobandit.peers.lingape import heuristic_width

THRESHOLDS = ("paper", "gk16", "heuristic")


class Proportions(NamedTuple):
    """How proportions see the arms: A(w)⁻¹x_a (K, d), ‖x_ℓ − x_j‖² (K,) and f_j (K,), inf for no rival."""

    images: Array
    norms: Array
    values: Array


@compiled
def respond(
    features: Array, twins: Whole, weights: Array, scores: Array, rivals: Mask, leader: int
) -> Proportions:
    """Return how well proportions w (K,) tell the leader from its rivals."""
    count, size = features.shape
    matrix = np.zeros((size, size))
    for a in range(count):
        if weights[a] > 0.0:
            for j in range(size):
                for k in range(size):
                    matrix[j, k] += weights[a] * features[a, j] * features[a, k]
    trace = 0.0
    for j in range(size):
        trace += matrix[j, j]
    images = np.empty((count, size))
    leverages = np.empty(count)
    # Directions that w has all but left get a huge norm instead of a failing factorisation.
    invert_into(plus_identity(matrix, NO_RIDGE * trace / size), features, images, leverages)
    norms = np.zeros(count)
    values = np.full(count, np.inf)
    for j in range(count):
        if rivals[j] and twins[j] != twins[leader]:
            cross = inner(features[leader], images[j])
            norms[j] = max(leverages[leader] + leverages[j] - 2.0 * cross, 1e-300)
            values[j] = (scores[leader] - scores[j]) ** 2 / (2.0 * norms[j])
    return Proportions(images, norms, values)


@compiled
def gradient_into(
    features: Array, seen: Proportions, scores: Array, leader: int, rival: int, out: Array
) -> None:
    """Write ½(x_aᵀ(θ̂ − λ_j))² of every arm."""
    direction = seen.images[leader] - seen.images[rival]
    scale = (scores[leader] - scores[rival]) / seen.norms[rival]
    for a in range(len(features)):
        out[a] = 0.5 * (scale * inner(features[a], direction)) ** 2


@compiled
def most_behind(counts: Whole, tracked: Array) -> int:
    """Return the arm that was played least compared with its tracked proportions, of those that have any."""
    found = -1
    for a in range(counts.size):
        if tracked[a] > 0.0 and (found < 0 or counts[a] - tracked[a] < counts[found] - tracked[found]):
            found = a
    return found


def glr_width(threshold: str, noise: float, delta: float) -> Width:
    """Return C_t of the thresholds that public code compares sampling rules with; no proof covers them."""
    if threshold == "heuristic":
        return heuristic_width(noise, delta)
    return Width(float(noise), -2 * math.log(delta), log_log=2.0)


@dataclass(frozen=True)
class GlrPolicy(StoppingPolicy):
    """What LinGame and Frank–Wolfe sampling share: thresholds, and a ridge of 1."""

    threshold: str = "paper"
    norm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_positive("norm", self.norm)

    def width(self, arms: ArmSet) -> Width:
        """Return the coefficients of C_t."""
        if self.threshold != "paper":
            return glr_width(self.threshold, self.noise, self.delta)
        features = span_features(arms)
        d = max(features.shape[1], 1)
        rate = float(np.max(np.sum(features**2, axis=1), initial=0.0)) / d
        constant = -2 * math.log(self.delta)
        return Width(float(self.noise), constant, log_rounds=float(d), rate=rate, offset=float(self.norm))
