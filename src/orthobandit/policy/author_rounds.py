"""Sample sizes of SP-BAI's author: how long he explores, and the phases of SBE in his experiments."""

import math

from orthobandit._foundation.checks import check_fraction, check_whole
from orthobandit.policy.base import FOREVER

R1 = R2 = 1 / 3  # the author's factors of the two terms, chosen by experiment; no proof covers them


def successor_phase_rounds(phase: int, delta: float, dimension: int, count: int) -> int:
    """Return the length of a phase of SBE in the experiments of SP-BAI's author.

    :func:`one_shot_rounds` with ε = 2^{−ℓ} for the gap and δ_ℓ = δ/(Kℓ(ℓ+1)) for δ. Departs: none.

    Examples
    --------
    >>> successor_phase_rounds(1, 0.1, dimension=10, count=11)
    12470
    """
    ell = check_whole("phase", phase)
    share = check_fraction("delta", delta) / (check_whole("count", count) * ell * (ell + 1))
    # No phase that could ever be played has a smaller ε, and its square stays above 0.
    return one_shot_rounds(math.ldexp(1.0, -min(ell, 500)), share, dimension)


def one_shot_rounds(gap: float, delta: float, dimension: int) -> int:
    """Return how long SP-BAI's author explores with one design when the gap Δ is known ("G-Opt").

    ``⌈4R₁·4d/Δ²·log(4d/(Δδ)) + 2R₂·32d^{1.5}/Δ·log(d/δ)⌉``, at least 1 and at most `FOREVER`: Theorem 4 of
    Kim, Kim & Oh (2025) at the norm 2√d that DEO guarantees, without a union over the arms. Departs: none.

    Examples
    --------
    The published sample size of the small-gap instance with d = 10:

    >>> one_shot_rounds(2 - 2 * math.cos(0.2), 0.1, dimension=10)
    387106
    """
    d = check_whole("dimension", dimension)
    log_inverse = -math.log(delta)
    leading = 4 * R1 * 4 * d / gap**2 * (math.log(4 * d) - math.log(gap) + log_inverse)
    lower = 2 * R2 * 32 * d**1.5 / gap * (math.log(d) + log_inverse)
    return rounded(leading + lower)


def successor_ridge(rounds: int, delta: float) -> float:
    """Return the ridge max(1, log(n/δ)) of a phase of n rounds in SP-BAI and its author's experiments."""
    return max(1.0, math.log(rounds / delta))


def rounded(rounds: float) -> int:
    """Return a sample size as a whole number, at least 1 and at most `FOREVER`."""
    return FOREVER if rounds >= FOREVER else max(math.ceil(rounds), 1)
