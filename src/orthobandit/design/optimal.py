"""The classical G-optimal design: every arm's own reward equally well estimated, no centring."""

from orthobandit._affine import affine_frame
from orthobandit._types import Progress
from orthobandit.arms import ArmSet
from orthobandit.design._points import Points
from orthobandit.design._solver import d_optimal
from orthobandit.design.base import (
    Design,
    checked_gap,
    make_design,
    point_mass,
    starting_probabilities,
)


def g_optimal_design(
    arms: ArmSet, gap: float = 1e-6, *, start: Design | None = None, progress: Progress | None = None
) -> Design:
    """Minimise max_i x_iᵀ(Σ_j p_j x_j x_jᵀ)⁻¹x_i over distributions p.

    By the equivalence theorem of Kiefer & Wolfowitz (1960) the minimum is the linear rank n of the
    features, reached by the D-optimal p. The support has at most n(n+1)/2 arms (Carathéodory).
    This is the design for linear bandits without a shift; its centred norms may be infinite.

    Parameters
    ----------
    arms : ArmSet
    gap : float
        Relative tolerance of the minimum, certified on all arms.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (done, total): factors of ten from a gap of 1 to the tolerance.

    Examples
    --------
    >>> g_optimal_design(ArmSet.one_hot(4)).probabilities.round(6).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    checked_gap(gap)
    earlier = starting_probabilities(arms, start)
    frame = affine_frame(arms.features, through_zero=True)
    if not frame.dimension:
        return point_mass(arms, "g-optimal")
    points = Points.of(arms.features, frame, has_intercept=False)
    found = d_optimal(points, gap, earlier, progress)
    return make_design(arms, found.chosen, found.values, method="g-optimal", reference=0, gap=found.gap)
