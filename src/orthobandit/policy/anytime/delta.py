"""Tuning from a pilot: how to split the failure probability, and where boundaries should be tightest."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array
from orthobandit.estimate.augmented import with_diagonal
from orthobandit.estimate.confidence.boundaries import EXPECTED, WIDE, Grid, LogBets, tightest_rho
from orthobandit.estimate.confidence.evidence import Tuning
from orthobandit.estimate.confidence.tightness import EARLY, LEAST_BATCHES, MOST_BATCHES

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination

# Of δ, kept for arms that come and go. Widths depend on it by a logarithm: to keep so little costs next to
# nothing while arms stay, and halving it at every change never uses it up.
RESERVE = 0.01
# Of δ, left for intervals that are shown beside the claims, so that all of it holds together with probability
# 1 − δ. Their widths depend on it by a logarithm, as does the time to a decision on the share of the tests.
SHOWN = 0.02
# Shares of what is left for the bounds on all pairs, the rest being for the tests of the arms. Where an ε can
# end the experiment, bounds decide when; where it cannot, they are for the reader.
BOUNDS_THAT_STOP = 0.5
BOUNDS_TO_READ = 0.01
TINY = 1e-100  # stands in for a gap or a variance of zero
# Of δ, split evenly whatever the pilot says: a pair that it took for clearly apart can still be decided.
SHARED = 0.2
# Standard errors that gaps of the pilot are shrunk by: a gap that looks too large would get too little of δ.
CAUTION = 0.5
# Standard errors by which a gap of the pilot must exceed the gap that somebody expects, to be believed
# instead: arms that are clearly far apart need no fine bets.
SURE = 3.0


def own_delta(policy: "AnytimeElimination") -> float:
    """Return what each arm's row may spend of δ in all: everything but the share of shown intervals."""
    return (1.0 - SHOWN) * policy.delta


def shares(policy: "AnytimeElimination") -> tuple[float, float]:
    """Return what each arm's row spends of δ on its test and on its bounds.

    With ε = 0 that is .960 δ and .010 δ, otherwise .485 δ each. Of the rest, .01 δ is kept for arms that come
    and go, and .02 δ is left for the intervals that an experiment shows.
    """
    spent = (1.0 - RESERVE - SHOWN) * policy.delta
    part = BOUNDS_THAT_STOP if policy.epsilon > 0 else BOUNDS_TO_READ
    return (1.0 - part) * spent, part * spent


def cautious_gaps(
    values: Array, variance: Array, noise: ArrayLike, rounds: ArrayLike, expect: float | None = None
) -> Array:
    """Return lower estimates (..., K, K) of the gaps between arms, never zero.

    Parameters
    ----------
    values : (..., K) array
        Estimated rewards.
    variance : (..., K, K) array
        Variance factor v of each pair under the plan of the pilot.
    noise : (...) array
        Variance of a residual.
    rounds : (...) array of int
        Length of the pilot.
    expect : float, optional
        The gap that somebody expects, which only larger gaps that are beyond doubt replace.
    """
    scatter = np.asarray(np.asarray(noise) / rounds)[..., np.newaxis, np.newaxis]
    gap = np.abs(values[..., np.newaxis] - values[..., np.newaxis, :])
    return cautious(gap, variance, scatter, expect)


def cautious(gap: Array, variance: Array, scatter: ArrayLike, expect: float | None = None) -> Array:
    """Return lower estimates of gaps, as :func:`cautious_gaps` does, given noise/rounds as `scatter`."""
    error = np.sqrt(np.where(np.isfinite(variance), variance, 0.0) * scatter)
    if expect is not None:
        return np.asarray(np.maximum(gap - SURE * error, expect))
    return np.asarray(np.maximum(gap - CAUTION * error, np.maximum(0.1 * error, TINY)))


def split_delta(delta: float, gaps: Array, variance: Array, noise: ArrayLike) -> Array:
    """Split δ over the events that would drop each arm wrongly; all arrays (..., K, K), `noise` (...).

    Arm i is dropped wrongly if some j seems better: entry (i, j) bounds that event, and each row sums to
    at most δ, so whichever arm is best is ever dropped with probability at most δ. With α_ij = exp(−n·rate)
    all decisions fall at about the same n: arms that are clearly apart need next to none of δ, and neither do
    equal arms, whose difference is never estimated.
    """
    count = gaps.shape[-1]
    known = np.isfinite(variance) & ~np.eye(count, dtype=np.bool_)
    scatter = np.asarray(noise, dtype=np.float64)[..., np.newaxis, np.newaxis]
    rate = np.where(known, gaps**2 / (2.0 * np.where(known, variance, 1.0) * scatter), np.inf)
    # log n, found by bisection: e^{−60} to e^{80} rounds hold any gap and variance, and 60 halvings suffice.
    low, high = np.full(gaps.shape[:-1], -60.0), np.full(gaps.shape[:-1], 80.0)
    for _ in range(60):
        middle = (low + high) / 2.0
        with np.errstate(over="ignore"):
            used = np.exp(-np.exp(middle)[..., np.newaxis] * rate).sum(axis=-1)
        low, high = np.where(used > delta, middle, low), np.where(used > delta, high, middle)
    with np.errstate(over="ignore"):
        fitted = np.exp(-np.exp(high)[..., np.newaxis] * rate)
    alpha = with_diagonal((1.0 - SHARED) * fitted + SHARED * delta / max(count - 1, 1), 0.0)
    # The search ends below δ unless its start was too narrow: this holds whatever the pilot saw.
    used = alpha.sum(axis=-1, keepdims=True)
    alpha *= np.minimum(1.0, delta * (1.0 - 1e-12) / np.maximum(used, delta / 2.0))
    return with_diagonal(alpha, 0.5)


def tuned(
    alpha: Array,
    gaps: Array,
    variance: Array,
    reach: Array,
    policy: "AnytimeElimination",
    pilot: tuple[ArrayLike, ArrayLike],
) -> Tuning:
    """Return the tuning of all pairs for the plans to come, given the first of them.

    Weights are w = 1/v, so a decision on a gap Δ falls when V is about 2·log(1/α)·noise²/Δ², and the bet that
    gains fastest against it is S/V = Δ/noise, whatever the plan.

    Parameters
    ----------
    alpha, gaps : (..., K, K) arrays
    variance, reach : (..., K, K) arrays
        Of the first counted plan.
    policy : AnytimeElimination
        If it expects a gap, bets are mixed around Δ/noise.
    pilot : pair of (...) arrays
        Variance of a residual, and rounds so far.
    """
    confidence = policy.confidence
    is_expected = policy.expect is not None
    noise, rounds = (np.asarray(one)[..., np.newaxis, np.newaxis] for one in pilot)
    variance = np.where(np.isfinite(variance), variance, 1.0)
    if is_expected:
        # Rewards without noise would have no such bet; any will do.
        rho = (
            np.maximum(np.broadcast_to(noise / gaps, np.broadcast_shapes(gaps.shape, noise.shape)), TINY) ** 2
        )
    else:
        batch = rounds * noise / variance
        decision = -2.0 * np.log(alpha) * (noise / gaps) ** 2
        least = LEAST_BATCHES[policy.goal] * batch
        rho = tightest_rho(np.clip(EARLY * decision, least, MOST_BATCHES * batch), alpha)
    scale = np.ones_like(rho)
    if confidence.is_exact:
        # The largest step of a sum: what bets may stake depends on it.
        scale = confidence.limit * np.maximum(reach, 1e-12) / variance
    return Tuning(alpha, rho, scale, grid=grid_of(is_expected))


def grid_of(is_expected: bool) -> Grid | LogBets:
    """Return what boundaries are mixed over: wide around a guess, or near the bet that suits a gap."""
    return EXPECTED if is_expected else WIDE
