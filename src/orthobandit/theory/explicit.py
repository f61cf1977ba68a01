"""Error bounds with explicit constants: the paper's Lemma 19 and what follows, and an explicit Theorem 4.

The bounds of :mod:`orthobandit.theory.bounds` hold for some constants that the paper does not compute. Those
here need none, so that a claim can rest on them. Unless arguments say otherwise they assume the paper's
units: ‖x‖, ‖θ‖, |ν| ≤ 1 and 1-sub-Gaussian noise.
"""

import math

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit.errors import Argument, ParameterError

__all__ = [
    "cauchy_schwarz_bound",
    "ellipsoid_radius",
    "explicit_error_bound",
    "uniform_error_bound",
]


def ellipsoid_radius(rounds: int, delta: float, dimension: int) -> float:
    """Radius of the ellipsoid around θ̂ that contains θ (Lemma 19, after Krishnamurthy et al. 2018).

    With probability 1 − δ, ``‖θ̂ − θ‖ ≤ √β + √(27d·log(1 + t/(dδ)) + 54·log(t/δ))`` in the norm of V̂ + βI,
    β = log(t/δ), after t rounds of one design. Departs: none.

    Parameters
    ----------
    rounds : int
        t ≥ 1.
    delta : float
        Failure probability δ.
    dimension : int
        d, or the affine dimension of the arms.

    Examples
    --------
    >>> round(ellipsoid_radius(1000, 0.05, dimension=5), 2)
    43.82
    """
    t = check_whole("rounds", rounds)
    d = check_whole("dimension", dimension)
    log_inverse = -math.log(check_fraction("delta", delta))
    beta = math.log(t) + log_inverse
    # log(1 + t/(dδ)) without forming 1/δ, which can overflow.
    log_ratio = math.log(t) - math.log(d) + log_inverse
    volume = max(log_ratio, 0.0) + math.log1p(math.exp(-abs(log_ratio)))
    return math.sqrt(beta) + math.sqrt(27 * d * volume + 54 * beta)


def cauchy_schwarz_bound(L: float, rounds: int, delta: float, dimension: int, *, C: float = 1.0) -> float:
    """Error of any contrast by Cauchy–Schwarz (Lemma 20 and Appendix G): ``C·√(L/t)`` times the radius.

    |zᵀ(θ̂ − θ)| ≤ ‖z‖_{(V̂+βI)⁻¹}·‖θ̂ − θ‖_{V̂+βI}. It holds for all contrasts at once, and is larger than
    :func:`~orthobandit.theory.error_bound` by a factor that grows as √d: the reason for Theorem 4.
    Departs: the radius is that of Lemma 19, where the paper has ≲ √(d·log(t/δ)).

    Parameters
    ----------
    L : float
        ‖z‖² in the inverse of Σ̂ + (β/t)I, with Σ̂ = V̂/t as observed; +inf if nothing was seen of it.
    rounds, delta, dimension
        As in :func:`ellipsoid_radius`.
    C : float
        1 for L as observed. With L = ‖z‖² in Σ⁻¹ of the design, √c of the paper's comparability
        c⁻¹(V̂ + βI) ≼ V + βI ≼ c(V̂ + βI).

    Examples
    --------
    >>> round(cauchy_schwarz_bound(20.0, 1000, 0.05, dimension=5), 2)
    6.2
    """
    if not L >= 0:
        raise ParameterError(f"L={L!r} must be a number ≥ 0, the square of a norm")
    return check_positive("C", C) * math.sqrt(L / rounds) * ellipsoid_radius(rounds, delta, dimension)


def uniform_error_bound(rounds: int, delta: float, dimension: int, *, C: float = 1.0) -> float:
    """Error of all arms at once, whatever their number (Corollary 16): ``C·d·√(log(t/δ)/t)``.

    :func:`cauchy_schwarz_bound` at the norm 2√d that DEO keeps, up to a constant that the paper hides in ≲.
    `pac_epsilon` without `count` inverts Corollary 17 instead, which has d²·log(d/(εδ))/ε² rounds: .374
    where this is .498, in the example. Departs: none. Parameters are those of :func:`ellipsoid_radius`.

    Examples
    --------
    >>> round(uniform_error_bound(1000, 0.05, dimension=5), 3)
    0.498
    """
    t = check_whole("rounds", rounds)
    d = check_whole("dimension", dimension)
    beta = math.log(t) - math.log(check_fraction("delta", delta))
    return check_positive("C", C) * d * math.sqrt(beta / t)


def explicit_error_bound(
    L: float,
    M: float,
    rounds: int,
    delta: float,
    dimension: int,
    *,
    ridge: float,
    contrasts: int = 1,
    level: float = 2.0,
    noise: float = 1.0,
    norm: float = 1.0,
) -> float:
    """Error of several contrasts after exploring with a fixed design, every constant a number (Theorem 4).

    With probability 1 − δ, |zᵀ(θ̂ − θ)| is at most what is returned for all `contrasts` at once; +inf while
    the rounds are too few for the argument. Departs: the paper has C₁(√(L·log(t/δ)/t) + √L·M·log(d/δ)/t)
    with an unknown C₁; this is the same argument with Bernstein's inequality and its matrix form (Tropp
    2012) written out. See Notes.

    Parameters
    ----------
    L : float
        The largest ‖z‖² in Σ⁻¹ of the contrasts.
    M : float
        max ‖x_i − μ‖² in Σ⁻¹, the square of the design's `centred_norm`.
    rounds : int
        t ≥ 1.
    delta : float
        Failure probability δ.
    dimension : int
        Affine dimension r of the arms that are played, or more.
    ridge : float
        β of the regression.
    contrasts : int
        How many contrasts must be within the bound; they are fixed before the rounds.
    level : float
        Bound on |ν_t + μᵀθ|; 2 in the paper.
    noise : float
        σ.
    norm : float
        Bound on ‖θ‖.

    Notes
    -----
    Write λ = β/t, H = Σ + λI, e_s = H^{−1/2}x̃_s, u = H^{−1/2}z, c_s = ν_s + μᵀθ. Then
    H^{−1/2}(V̂ + βI)H^{−1/2}/t = I + E with E the average of e_se_sᵀ minus its mean, and zᵀ(θ̂ − θ) =
    uᵀ(I + E)⁻¹(s̄ − λH^{−1/2}θ), s̄ the average of e_s(c_s + η_s). With m = log(6r/δ), each of the
    following fails with probability δ/3 at most.

    1. ‖E‖ ≤ γ = √(2Mm/t) + 2Mm/(3t): ‖e_s‖² ≤ M, and the draws of one design are independent.
    2. |uᵀs̄| ≤ √(2Lvl/t) + √(LM)·B·l/(3t), l = log(6·contrasts/δ), v = B² + σ²(1 + γ): c_s is settled before
       the draw, so (uᵀe_s)c_s has mean 0, variance ≤ LB² and size ≤ √(LM)·B; given the draws, the noise has
       the variance factor σ²·uᵀ(average of eeᵀ)u ≤ σ²L(1 + γ).
    3. ‖s̄‖ ≤ √r·(√(2vm/t) + √M·B·m/(3t)): the same for each of r orthonormal directions.

    As ‖(I + E)⁻¹ − I‖ ≤ γ/(1 − γ) and ‖√λH^{−1/2}‖ ≤ 1, the error is at most
    |uᵀs̄| + √L·γ/(1 − γ)·‖s̄‖ + √(Lλ)·‖θ‖/(1 − γ).

    Examples
    --------
    >>> round(explicit_error_bound(4.0, 9.0, 10_000, 0.05, 1, ridge=12.2), 3)
    0.234
    """
    for name, value in (("L", L), ("M", M)):
        if not value >= 0:
            raise ParameterError(Argument(name, value), " must be a number ≥ 0, the square of a norm")
    t = check_whole("rounds", rounds)
    r = check_whole("dimension", dimension)
    B = check_positive("level", level)
    sigma = check_positive("noise", noise)
    log_inverse = -math.log(check_fraction("delta", delta))
    M = max(M, 1.0)  # ‖eeᵀ − E eeᵀ‖ is at most the larger of the two
    per_direction = math.log(6 * r) + log_inverse  # m
    per_contrast = math.log(6 * check_whole("contrasts", contrasts)) + log_inverse  # l
    gamma = math.sqrt(2 * M * per_direction / t) + 2 * M * per_direction / (3 * t)
    # Step 1 of the notes needs ‖E‖ < 1, or (I + E) might have no inverse.
    if not (gamma < 1 and math.isfinite(L)):
        return math.inf
    variance = B**2 + sigma**2 * (1 + gamma)
    contrast = math.sqrt(2 * L * variance * per_contrast / t) + math.sqrt(L * M) * B * per_contrast / (3 * t)
    direction = math.sqrt(2 * variance * per_direction / t) + math.sqrt(M) * B * per_direction / (3 * t)
    spread = math.sqrt(L) * gamma / (1 - gamma) * math.sqrt(r) * direction
    shrinkage = math.sqrt(L * check_positive("ridge", ridge) / t) * check_positive("norm", norm) / (1 - gamma)
    return contrast + spread + shrinkage
