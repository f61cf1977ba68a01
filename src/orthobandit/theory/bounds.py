"""The paper's bounds and sample sizes as functions (Kim, Kim & Oh 2025).

Results are cited by number and title. The numbers are counted in the paper's source, where definitions,
theorems, corollaries and lemmas share one counter: its first theorem is Theorem 3, its first corollary is
Corollary 5, as the source's own labels call it.

All of them are stated in the paper up to universal constants that it does not compute. The constants are
keyword arguments here and 1 by default, a convention and not a proof. `dimension` is the paper's d; since
only differences between arms are identified, the affine dimension r of the arms (at least 1) may stand for
it throughout, and the policies use that. Sizes are whole numbers of any size, computed without overflow.
"""

import math
from fractions import Fraction

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit.errors import Argument, ParameterError

LEAST_EPSILON = 1e-150  # ε whose square is still a number

__all__ = [
    "adaptive_phase_rounds",
    "adaptive_regret_bound",
    "bai_rounds",
    "error_bound",
    "error_rounds",
    "expected_regret_bound",
    "experiments_phase_rounds",
    "gap_regret_bound",
    "pac_epsilon",
    "pac_rounds",
    "phase_ridge",
    "phases_needed",
    "regret_bound",
    "theory_phase_rounds",
]


def error_bound(L: float, M: float, rounds: int, delta: float, dimension: int, *, C: float = 1.0) -> float:
    """Error of one contrast after exploring with a fixed design (Theorem 4, Estimation error upper bound).

    With probability 1 − δ, ``|zᵀ(θ̂ − θ)| ≤ C₁(√(L·log(t/δ)/t) + √L·M·log(d/δ)/t)``. Departs: none.

    Parameters
    ----------
    L : float
        ‖z‖² in Σ⁻¹, the square of the contrast's norm; +inf if the design does not identify it.
    M : float
        max ‖x_i − μ‖² in Σ⁻¹, the square of the design's `centred_norm`.
    rounds : int
        t ≥ 1.
    delta : float
        Failure probability δ.
    dimension : int
        d, or the affine dimension of the arms.
    C : float
        C₁.

    Examples
    --------
    >>> round(error_bound(4.0, 9.0, rounds=10_000, delta=0.05, dimension=1), 4)
    0.0753
    """
    for name, value in (("L", L), ("M", M)):
        if not value >= 0:
            raise ParameterError(Argument(name, value), " must be a number ≥ 0, the square of a norm")
    t = check_whole("rounds", rounds)
    d = check_whole("dimension", dimension)
    log_inverse = -math.log(check_fraction("delta", delta))
    # Logarithms are summed, since t/δ and d/δ overflow for tiny δ.
    leading = math.sqrt(L * (math.log(t) + log_inverse) / t)
    lower_order = math.sqrt(L) * (M * (math.log(d) + log_inverse) / t) if L else 0.0
    return check_positive("C", C) * (leading + lower_order)


def error_rounds(
    epsilon: float, L: float, M: float, delta: float, dimension: int, *, C: float = 1.0
) -> int | None:
    """Return the rounds after which :func:`error_bound` is at most ε; None if it never is.

    Found by bisection. Departs: none. The other parameters are those of :func:`error_bound`.

    Examples
    --------
    >>> error_rounds(0.0753, 4.0, 9.0, delta=0.05, dimension=1)
    9992
    """
    if check_positive("epsilon", epsilon) < LEAST_EPSILON:
        raise ParameterError(
            Argument("epsilon", epsilon), f" must be at least {LEAST_EPSILON:g}: its square is in the bound"
        )
    if not (math.isfinite(L) and math.isfinite(M)):
        return None
    # The bound falls with t: double until it is below ε, then halve the bracket.
    high = 1
    while error_bound(L, M, high, delta, dimension, C=C) > epsilon:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if error_bound(L, M, middle, delta, dimension, C=C) > epsilon:
            low = middle
        else:
            high = middle
    return high


def pac_rounds(
    epsilon: float, delta: float, dimension: int, count: int | None = None, *, C: float = 1.0
) -> int:
    """Return the rounds of pure exploration after which the leader is within ε of the best arm.

    ``τ(ε,δ) = C₂(d·log(dK/(εδ))/ε² + d^{3/2}·log(dK/δ)/ε)`` (Corollary 5, PAC bound); without `count`,
    ``τ(ε,δ) = C₃·d²·log(d/(εδ))/ε²`` (Corollary 17, K-independent PAC bound). Rounded up. Departs: where ε
    is so large that a logarithm is negative it counts as 0, and the size is at least 1.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        Failure probability δ.
    dimension : int
        d, or the affine dimension of the arms.
    count : int, optional
        Number of arms K; None for the bound that does not depend on it.
    C : float
        C₂, or C₃ without `count`.

    Examples
    --------
    >>> pac_rounds(0.5, 0.05, dimension=5, count=10), pac_rounds(0.5, 0.05, dimension=5)
    (307, 530)
    """
    log_inverse = -math.log(check_fraction("delta", delta))
    # Fractions, since d²/ε² of a tiny ε overflows a double.
    size = _size(Fraction(check_positive("epsilon", epsilon)), log_inverse, dimension, count)
    return max(1, math.ceil(Fraction(check_positive("C", C)) * size))


def pac_epsilon(
    rounds: int, delta: float, dimension: int, count: int | None = None, *, C: float = 1.0
) -> float:
    """Smallest ε whose :func:`pac_rounds` does not exceed `rounds`, up to one unit in the last place.

    Found by bisection. Departs: none. The parameters are those of :func:`pac_rounds`.

    Examples
    --------
    >>> round(pac_epsilon(307, 0.05, dimension=5, count=10), 2)
    0.5
    """
    t = check_whole("rounds", rounds)
    low = high = 1.0
    while pac_rounds(high, delta, dimension, count, C=C) > t:
        low, high = high, 2 * high
    while pac_rounds(low, delta, dimension, count, C=C) <= t:
        low, high = low / 2, low
    while True:
        middle = low + (high - low) / 2
        # No number lies between the two ends any more.
        if not low < middle < high:
            return high
        if pac_rounds(middle, delta, dimension, count, C=C) <= t:
            high = middle
        else:
            low = middle


def theory_phase_rounds(phase: int, delta: float, dimension: int, count: int, *, C2: float = 1.0) -> int:
    """Length of a phase of SBE (Equation 4). Departs: none.

    ``n_ℓ = 4C₂⌈d/ε²·log(dKℓ(ℓ+1)/(δε)) + d^{3/2}/ε·log(dKℓ(ℓ+1)/δ)⌉`` with ε = 2^{−ℓ}; rounded up when
    C₂ is not whole.

    Parameters
    ----------
    phase : int
        ℓ ≥ 1.
    delta : float
        Failure probability δ of the whole run.
    dimension : int
        d, or the affine dimension of all arms.
    count : int
        Number K of all arms, eliminated or not.
    C2 : float
        C₂.

    Examples
    --------
    >>> theory_phase_rounds(1, 0.05, dimension=5, count=10)
    1344
    """
    log_inverse = _log_inverse_share(phase, delta)
    size = math.ceil(_size(Fraction(1, 2**phase), log_inverse, dimension, check_whole("count", count)))
    return math.ceil(4 * Fraction(check_positive("C2", C2)) * size)


def adaptive_phase_rounds(
    phase: int, delta: float, dimension: int, count: int, *, C2: float = 1.0, C3: float = 1.0
) -> int:
    """Length of a phase of the adaptive SBE (Appendix E, K-Independent Results). Departs: none.

    ``n_ℓ = 4·min(C₂⌈…⌉, C₃⌈d²/ε²·log(dℓ(ℓ+1)/(δε))⌉)`` with C₂⌈…⌉ as in :func:`theory_phase_rounds`, whose
    parameters it shares; rounded up when the constants are not whole.

    Examples
    --------
    >>> adaptive_phase_rounds(1, 0.05, dimension=2, count=10)
    328
    """
    with_arms = theory_phase_rounds(phase, delta, dimension, count, C2=C2)
    size = math.ceil(_size(Fraction(1, 2**phase), _log_inverse_share(phase, delta), dimension, None))
    return min(with_arms, math.ceil(4 * Fraction(check_positive("C3", C3)) * size))


def experiments_phase_rounds(
    phase: int, delta: float, dimension: int, count: int, *, scale: float = 1.0
) -> int:
    """Length of a phase of SBE in the paper's experiments (Appendix I, Experiments). Departs: none.

    ``n_ℓ = c·min(⌈d·log(dKℓ/(δε))/ε² + d^{3/2}·log(dKℓ/δ)/ε⌉, ⌈d²/ε²·log(dℓ/(εδ))⌉)`` with c = `scale`,
    tuned over {1, 2, 4, 8} in the paper; rounded up when c is not whole. The other parameters are those
    of :func:`theory_phase_rounds`. No guarantee is proven for it: the shares δ/ℓ do not add up to δ.

    Examples
    --------
    >>> experiments_phase_rounds(1, 0.05, dimension=5, count=10)
    307
    """
    log_inverse = math.log(check_whole("phase", phase)) - math.log(check_fraction("delta", delta))
    epsilon = Fraction(1, 2**phase)
    with_arms = math.ceil(_size(epsilon, log_inverse, dimension, check_whole("count", count)))
    without = math.ceil(_size(epsilon, log_inverse, dimension, None))
    return math.ceil(Fraction(check_positive("scale", scale)) * min(with_arms, without))


def phase_ridge(phase: int, rounds: int, delta: float) -> float:
    """Ridge ``β_ℓ = log(n_ℓ·ℓ(ℓ+1)/δ)`` of the regression after a phase of SBE (Algorithm 2). Departs: none.

    Examples
    --------
    >>> round(phase_ridge(1, 307, 0.05), 3)
    9.416
    """
    return math.log(check_whole("rounds", rounds)) + _log_inverse_share(phase, delta)


def phases_needed(gap: float) -> int:
    """Phases ``L⋆ = ⌈log₂(1/Δ⋆)⌉ + 1`` after which SBE has one arm left on its good event.

    After phase ℓ every survivor is within 2ε_ℓ of the best arm (Lemma 13), and 2ε_{L⋆} ≤ Δ⋆. Departs:
    at least 1.

    Examples
    --------
    >>> phases_needed(0.5), phases_needed(0.3)
    (2, 3)
    """
    # gap = m·2^e with ½ ≤ m < 1, so ⌈log₂(1/gap)⌉ = 1 − e without rounding.
    _, exponent = math.frexp(check_positive("gap", gap))
    return max(1, 2 - exponent)


def bai_rounds(
    gap: float, delta: float, dimension: int, count: int, *, C2: float = 1.0, C3: float | None = None
) -> int:
    """Return the rounds after which SBE has declared the best arm (Theorem 8, PAC and BAI properties).

    With probability 1 − δ. The theorem says Õ(d·log K/Δ⋆²); its proof says ``Σ_{ℓ ≤ L⋆} n_ℓ``, which is
    returned. Departs: none.

    Parameters
    ----------
    gap : float
        Δ⋆, the distance of the second-best arm to the best.
    delta, dimension, count, C2
        As in :func:`theory_phase_rounds`.
    C3 : float, optional
        Given: the lengths of :func:`adaptive_phase_rounds` are summed instead.

    Examples
    --------
    >>> bai_rounds(0.5, 0.05, dimension=5, count=10)
    6128
    """
    phases = range(1, phases_needed(gap) + 1)
    if C3 is None:
        return sum(theory_phase_rounds(phase, delta, dimension, count, C2=C2) for phase in phases)
    return sum(adaptive_phase_rounds(phase, delta, dimension, count, C2=C2, C3=C3) for phase in phases)


def regret_bound(horizon: int, delta: float, dimension: int, count: int, *, C: float = 1.0) -> float:
    """Regret of SBE for any gaps, with probability 1 − δ (Theorem 6, Regret bound of SBE).

    ``C(√(dT·log(K/δ)) + √(dT)·log T + d^{3/2}·log(dKT/δ)·log(T/d))``. Departs: the last factor stands for
    the number of phases, so T/d counts as at least 2.

    Parameters
    ----------
    horizon : int
        T ≥ 1.
    delta : float
        Failure probability δ.
    dimension, count : int
        d (or the affine dimension of the arms) and K.
    C : float
        The constant that the paper hides in ≲.

    Examples
    --------
    >>> round(regret_bound(20_000, 0.05, dimension=20, count=30))
    19785
    """
    T = check_whole("horizon", horizon)
    d = check_whole("dimension", dimension)
    K = check_whole("count", count)
    log_inverse = -math.log(check_fraction("delta", delta))
    leading = math.sqrt(d * T) * (math.sqrt(math.log(K) + log_inverse) + math.log(T))
    lower_order = float(d**1.5) * (math.log(d * K * T) + log_inverse) * _phase_log(T / d)
    return check_positive("C", C) * (leading + lower_order)


def gap_regret_bound(gap: float, delta: float, dimension: int, count: int, *, C: float = 1.0) -> float:
    """Regret of SBE over any horizon, if the best arm leads by a gap (Theorem 7, Gap-dependent regret bound).

    ``C(d/Δ⋆ + d^{3/2})·log(dK/(δΔ⋆))·log(1/Δ⋆)`` with probability 1 − δ. Departs: the last factor stands
    for the number of phases, so 1/Δ⋆ counts as at least 2 in both logarithms.

    Parameters
    ----------
    gap : float
        Δ⋆ > 0.
    delta, dimension, count, C
        As in :func:`regret_bound`.

    Examples
    --------
    >>> round(gap_regret_bound(0.5, 0.05, dimension=20, count=30))
    905
    """
    d = check_whole("dimension", dimension)
    K = check_whole("count", count)
    log_inverse = -math.log(check_fraction("delta", delta))
    # ℓ runs to about log₂ 1/Δ; as a factor of 0 at Δ = 1 it would claim that learning is free.
    phases = _phase_log(1 / check_positive("gap", gap))
    factor = d / gap + float(d**1.5)
    return check_positive("C", C) * factor * (math.log(d * K) + log_inverse + phases) * phases


def expected_regret_bound(gap: float, horizon: int, dimension: int, count: int, *, C: float = 1.0) -> float:
    """Mean regret of SBE with δ = 1/T (the discussion after Theorem 7): ``C·d/Δ⋆·log(TdK/Δ⋆)``.

    :func:`gap_regret_bound` fails with probability 1/T, and no run can lose more than 2T, so failures add at
    most 2 to the mean: at a fixed gap it grows as log T. Departs: none; the discussion leaves out the term
    d^{3/2} and the factor log(1/Δ⋆) of the theorem, which do not grow with T.

    Parameters
    ----------
    gap : float
        Δ⋆ > 0.
    horizon : int
        T ≥ 1.
    dimension, count, C
        As in :func:`regret_bound`.

    Examples
    --------
    >>> round(expected_regret_bound(0.5, 10_000, dimension=20, count=30))
    652
    """
    T = check_whole("horizon", horizon)
    d = check_whole("dimension", dimension)
    logarithm = math.log(T) + math.log(d * check_whole("count", count)) - math.log(check_positive("gap", gap))
    return check_positive("C", C) * d / gap * max(logarithm, 0.0)


def adaptive_regret_bound(horizon: int, delta: float, dimension: int, count: int, *, C: float = 1.0) -> float:
    """Regret of the adaptive SBE (Theorem 18, Adaptive regret bound).

    The smaller of :func:`regret_bound` and ``C·d√T·log(T/d)·log(dT/δ)``, the form at the end of the proof.
    Departs: T/d counts as at least 2; δ is an argument where the theorem sets it to T⁻². The parameters
    are those of :func:`regret_bound`.

    Examples
    --------
    >>> round(regret_bound(1000, 0.05, 5, 10**300)), round(adaptive_regret_bound(1000, 0.05, 5, 10**300))
    (43952, 9645)
    """
    with_arms = regret_bound(horizon, delta, dimension, count, C=C)
    logs = _phase_log(horizon / dimension) * (math.log(dimension * horizon) - math.log(delta))
    return min(with_arms, C * dimension * math.sqrt(horizon) * logs)


def _size(epsilon: Fraction, log_inverse: float, dimension: int, count: int | None) -> Fraction:
    """d·log(dK/(εδ))/ε² + d^{3/2}·log(dK/δ)/ε, or d²·log(d/(εδ))/ε² without K; log_inverse = log(1/δ)."""
    d = check_whole("dimension", dimension)
    log_epsilon = math.log(epsilon.numerator) - math.log(epsilon.denominator)
    if count is None:
        return Fraction(d**2 * max(math.log(d) + log_inverse - log_epsilon, 0.0)) / epsilon**2
    log_arms = math.log(d * check_whole("count", count)) + log_inverse
    leading = Fraction(d * max(log_arms - log_epsilon, 0.0)) / epsilon**2
    return leading + Fraction(d**1.5 * log_arms) / epsilon


def _log_inverse_share(phase: int, delta: float) -> float:
    """log(ℓ(ℓ+1)/δ): phase ℓ may fail with probability δ/(ℓ(ℓ+1)), which adds up to δ."""
    share = check_whole("phase", phase) * (phase + 1)
    return math.log(share) - math.log(check_fraction("delta", delta))


def _phase_log(ratio: float) -> float:
    return math.log(max(ratio, 2.0))
