"""The paper's design: half of the rounds on a reference arm, half on a G-optimal design around it."""

import numpy as np

from orthobandit._types import Progress
from orthobandit.arms import ArmSet
from orthobandit.design._points import Points, View
from orthobandit.design._solver import d_optimal
from orthobandit.design.base import (
    Design,
    checked_gap,
    checked_reference,
    make_design,
    point_mass,
    starting_probabilities,
)


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
    checked_gap(gap)
    reference = checked_reference(arms, reference)
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
