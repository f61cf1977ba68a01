"""The exact optimum of the paper's design problem."""

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


def centred_design(
    arms: ArmSet, gap: float = 1e-6, *, start: Design | None = None, progress: Progress | None = None
) -> Design:
    """Minimise max_i ‖x_i − μ‖_{Σ_p⁻¹} over distributions p and centres μ: the minimum is √r.

    This is the G-optimal design of orthogonalised regression (Kim, Kim & Oh 2025, Definition 2), solved
    exactly. With z = (1, x) and M_p = Σ p_i z_i z_iᵀ the Schur complement gives
    ‖z_i‖²_{M⁻¹} = 1 + ‖x_i − μ_p‖²_{Σ⁻¹}, so the D-optimal p of the lifted points reaches
    max_i ‖x_i − μ_p‖² = r (Kiefer & Wolfowitz 1960); and Σ p_i‖x_i − μ‖² ≥ tr(Σ⁻¹Σ) = r for every p, μ.
    Geometrically it is the smallest ellipsoid around the arms. Departs: exact where the paper settles
    for within a factor 2.

    Parameters
    ----------
    arms : ArmSet
    gap : float
        Relative tolerance of the squared norm: max_i ‖x_i − μ‖² ≤ (1 + gap)·r, certified on all arms.
    start : Design, optional
        An earlier design of the same arms to start from.
    progress : callable, optional
        Called with (done, total): factors of ten from a gap of 1 to the tolerance.

    Examples
    --------
    >>> design = centred_design(ArmSet([[0.0], [0.3], [1.0]]))
    >>> design.probabilities.round(6).tolist()
    [0.5, 0.0, 0.5]
    """
    checked_gap(gap)
    earlier = starting_probabilities(arms, start)
    if not arms.dimension:
        return point_mass(arms, "centred")
    points = Points.of(arms.features, arms.frame, has_intercept=True)
    found = d_optimal(points, gap, earlier, progress)
    return make_design(arms, found.chosen, found.values, method="centred", reference=0, gap=found.gap)
