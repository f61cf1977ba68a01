"""Phase lengths of SP-BAI (Kim, AISTATS 2026) and those its authors give SBE in their experiments."""

import math

from orthobandit._checks import check_fraction, check_positive, check_whole
from orthobandit.policy.base import FOREVER

R1 = R2 = 1 / 3  # the authors' factors of the two terms


def spbai_rounds(epsilon: float, share: float, dimension: int, variance: float) -> int:
    """Return ⌈R₁·V/ε²·log(V/(εδ_ℓ)) + R₂·32d√V/ε·log(d/δ_ℓ)⌉, at least 1 and at most `FOREVER`.

    Parameters
    ----------
    epsilon : float
        ε_ℓ.
    share : float
        δ_ℓ.
    dimension : int
        d, or the affine dimension of the arms.
    variance : float
        V, the largest ‖x_i − x_j‖²_{Σ⁻¹} of two survivors.
    """
    d, V = check_whole("dimension", dimension), check_positive("variance", variance)
    leading = R1 * V / epsilon**2 * (math.log(V) - math.log(epsilon) - math.log(share))
    lower = R2 * 32 * d * math.sqrt(V) / epsilon * (math.log(d) - math.log(share))
    return _rounded(leading + lower)


def successor_phase_rounds(phase: int, delta: float, dimension: int, count: int) -> int:
    """Return the length of a phase of SBE in the experiments of SP-BAI's authors.

    ``⌈4R₁·4d/ε²·log(4d/(εδ_ℓ)) + 2R₂·32d^{1.5}/ε·log(d/δ_ℓ)⌉`` with ε = 2^{−ℓ} and δ_ℓ = δ/(Kℓ(ℓ+1)); at most
    `FOREVER`. Departs: none.

    Examples
    --------
    >>> successor_phase_rounds(1, 0.1, dimension=10, count=11)
    12470
    """
    ell, d = check_whole("phase", phase), check_whole("dimension", dimension)
    epsilon = math.ldexp(1.0, -min(ell, 500))
    share = check_fraction("delta", delta) / (check_whole("count", count) * ell * (ell + 1))
    leading = 4 * R1 * 4 * d / epsilon**2 * (math.log(4 * d) - math.log(epsilon) - math.log(share))
    lower = 2 * R2 * 32 * d**1.5 / epsilon * (math.log(d) - math.log(share))
    return _rounded(leading + lower)


def _rounded(rounds: float) -> int:
    return FOREVER if rounds >= FOREVER else max(math.ceil(rounds), 1)
