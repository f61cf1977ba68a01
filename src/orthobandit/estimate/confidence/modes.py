"""Confidence that holds at every time at once, whatever the shift: three modes, each says what it needs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate.confidence.bets import BOLDEST, Spent, bets_boundary, reaches_bets
from orthobandit.estimate.confidence.boundaries import (
    Grid,
    LogBets,
    normal_boundary,
    normal_level,
    reaches_normal,
)
from orthobandit.estimate.confidence.evidence import Evidence, Tuning
from orthobandit.estimate.plan import Centre
from orthobandit.estimate.tally import Tally

EVENTS_PER_LEVEL = 3.0  # the same in units of log(1/α), where that is more
NO_LIMIT = 1e-300  # scale of bets that nothing cuts
EVENTS = 10.0  # sum of squares over the largest square, below which the asymptotic mode says nothing


@dataclass(frozen=True)
class Confidence(ABC):
    """A mode of confidence: what it assumes of rewards, and the boundary that follows."""

    name: ClassVar[str]
    is_exact: ClassVar[bool]
    # Whether estimated values of the arms are taken from rewards before residuals are clipped, and sums
    # estimate gaps; otherwise they have no more than the sign of a gap.
    takes_values: ClassVar[bool] = True

    @property
    def range(self) -> tuple[float, float]:
        """Where the means x_aᵀθ + ν_t lie; ±inf if nothing is assumed."""
        return (-np.inf, np.inf)

    @property
    def reward_range(self) -> tuple[float, float]:
        """Where every reward must lie; ±inf if nothing is assumed."""
        return (-np.inf, np.inf)

    @property
    def limit(self) -> float:
        """Residuals are clipped to ± this before they are tallied."""
        return np.inf

    @property
    def bias(self) -> float:
        """Most that clipping or rounding can move the mean of a residual."""
        return 0.0

    def centre(self, values: Array, played: Mask) -> Centre:
        """Return the centre that keeps residuals to the declared range, for values (..., K) of the arms."""
        low, high = self.range
        least = np.min(np.where(played, values, np.inf), axis=-1)
        most = np.max(np.where(played, values, -np.inf), axis=-1)
        return Centre(
            values=values if self.takes_values else np.zeros_like(values),
            low=np.asarray(low - least),
            high=np.asarray(np.maximum(high - most, low - least)),
            limit=self.limit,
            rewards=self.reward_range,
        )

    def check_residuals(self, tally: Tally) -> None:
        """Refuse tallies that no residuals within the limit can give: rewards must be centred and clipped."""
        most = self.limit**2 * tally.counts if np.isfinite(self.limit) else np.inf
        wrong = tally.squares > most * (1.0 + 1e-9)
        if np.any(wrong):
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise RewardError(
                f"residuals of arm {place[-1]} exceed the limit {self.limit:g} of the declared range;"
                " tally what `plan.residuals` returns, not rewards"
            )

    @abstractmethod
    def width(self, evidence: Evidence, tuning: Tuning) -> Array:
        """Return the half-width of the one-sided interval of each contrast; +inf without evidence."""

    def exceeds(self, evidence: Evidence, tuning: Tuning) -> Mask:
        """Tell which contrasts are proven positive: lower bound above zero."""
        return np.asarray(evidence.estimates > self.width(evidence, tuning))

    @abstractmethod
    def may_exceed(self, totals: Array, variances: Array, alpha: ArrayLike, scale: Array) -> Mask:
        """Tell which contrasts of positive totals are worth a closer look: no others can be proven positive.

        It takes next to no time, so that evidence need not be gathered for the rest.
        """


def _per_weight(evidence: Evidence, boundary: Array) -> Array:
    out = np.full(np.broadcast(boundary, evidence.weights).shape, np.inf)
    np.divide(boundary + evidence.slack, evidence.weights, out=out, where=evidence.weights > 0)
    return out


@dataclass(frozen=True)
class Asymptotic(Confidence):
    """Normal mixture on estimated variances: nothing to declare; valid once the variances are known.

    exp(λS − λ²(V + 2⟨S⟩)/6) is a supermartingale for every martingale S with squared increments V and
    conditional variances ⟨S⟩ (Delyon 2009), whatever the size or the skewness of its increments. ⟨S⟩ is
    estimated by the larger of V and `pooled`, which is exact if residuals are alike for all arms, and the
    boundary is widened by peak·l for rare events, of which the arms may have different numbers. Nothing is
    claimed while squared residuals add up to less than EVENTS times the largest of them.
    """

    name: ClassVar[str] = "asymptotic"
    is_exact: ClassVar[bool] = False

    def width(self, evidence: Evidence, tuning: Tuning) -> Array:  # noqa: D102
        variance = self._variance(evidence)
        if isinstance(tuning.grid, LogBets):
            boundary = bets_boundary(*_unlimited(variance, evidence, tuning))
            return _per_weight(evidence, np.where(may_speak(evidence, tuning.alpha), boundary, np.inf))
        boundary = normal_boundary(variance, tuning.alpha, tuning.rho, tuning.grid)
        boundary = boundary + self._for_events(evidence, variance, tuning, np.ones((), dtype=np.bool_))
        return _per_weight(evidence, np.where(may_speak(evidence, tuning.alpha), boundary, np.inf))

    def exceeds(self, evidence: Evidence, tuning: Tuning) -> Mask:  # noqa: D102
        variance = self._variance(evidence)
        total = evidence.totals - evidence.slack
        if isinstance(tuning.grid, LogBets):
            found = reaches_bets(total, *_unlimited(variance, evidence, tuning))
            return np.asarray(found & may_speak(evidence, tuning.alpha))
        found = reaches_normal(total, variance, tuning.alpha, tuning.rho, tuning.grid)
        widened = self._for_events(evidence, variance, tuning, found)
        if np.any(widened > 0):
            found = reaches_normal(total - widened, variance, tuning.alpha, tuning.rho, tuning.grid)
        return np.asarray(found & may_speak(evidence, tuning.alpha))

    def may_exceed(self, totals: Array, variances: Array, alpha: ArrayLike, scale: Array) -> Mask:  # noqa: ARG002, D102
        # A normal mixture is above √(2V·log(1/2α)).
        least = 2.0 * np.maximum(np.log(0.5 / np.asarray(alpha)), 0.0) * variances
        return np.asarray(totals**2 > least)

    @staticmethod
    def _variance(evidence: Evidence) -> Array:
        return np.asarray((evidence.variances + 2.0 * np.maximum(evidence.variances, evidence.pooled)) / 3.0)

    @staticmethod
    def _for_events(evidence: Evidence, variance: Array, tuning: Tuning, asked: Mask) -> Array:
        """Return what boundaries are widened by for rare events, where asked: arms may differ in them."""
        peaks, v, alpha, rho, asked = np.broadcast_arrays(
            evidence.peaks, variance, tuning.alpha, tuning.rho, asked & (evidence.peaks > 0)
        )
        out = np.zeros(peaks.shape)
        if asked.any() and isinstance(tuning.grid, Grid):
            out[asked] = peaks[asked] * normal_level(v[asked], alpha[asked], rho[asked], tuning.grid)
        return out


@dataclass(frozen=True)
class SameShape(Asymptotic):
    """Arms differ by location only, and rewards have heavy tails: asymptotic, with clipped residuals.

    If the noise of all arms has one law, E clip(ε + a) never falls as a rises. So clipped residuals of the
    better of two arms are no smaller on average, and the best arm is dropped with probability at most δ.
    **This is false where arms differ in rare large rewards**: an arm that pays 1000 once in a hundred rounds
    is better than one that always pays 5, and clipping hides it. Sums have the sign of a gap, not its size,
    so nothing is said about ε or bounds. For arms without shared features, such as pages of an A/B test.

    Parameters
    ----------
    clip : float
        Residuals are clipped at ± this, in units of the reward: about two standard deviations of rewards
        around the level. A smaller one suits heavier tails; what forecasts of the level miss by more than
        this tells nothing.
    """

    clip: float
    name: ClassVar[str] = "asymptotic, same-shape noise"
    takes_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("clip", self.clip)

    @property
    def limit(self) -> float:  # noqa: D102
        return float(self.clip)


def _unlimited(variance: Array, evidence: Evidence, tuning: Tuning) -> tuple[Spent, Tuning]:
    """Return what bets cost without a declared limit: rare events of the size h seen so far are priced in.

    No round exceeds h, so that Σ|x|³ ≤ h·V. Where h is 0 a bet λ costs λ²V/2, as normal increments would.
    """
    spent = Spent(variance, evidence.peaks * variance, evidence.peaks)
    return spent, replace(tuning, scale=np.full_like(tuning.scale, NO_LIMIT))


def may_speak(evidence: Evidence, alpha: ArrayLike) -> Mask:
    """Tell on which contrasts the asymptotic mode has seen enough to claim something at a level α."""
    needed = events_needed(alpha)
    enough = (evidence.events >= needed) & (evidence.waited >= np.log(1.0 / np.asarray(alpha)))
    # A contrast of which one round could carry much of the variance waits, whatever other arms have shown.
    return np.asarray(enough & (evidence.variances >= needed * evidence.peaks**2))


def events_needed(alpha: ArrayLike) -> Array:
    """Return the events, see :attr:`Sizes.events`, below which nothing is claimed at a level α."""
    return np.maximum(EVENTS, EVENTS_PER_LEVEL * np.log(1.0 / np.asarray(alpha)))


@dataclass(frozen=True)
class _Exact(Confidence):
    """Bets against the claim, none so high that a residual within ± `limit` could ruin it."""

    is_exact: ClassVar[bool] = True

    def width(self, evidence: Evidence, tuning: Tuning) -> Array:
        return _per_weight(evidence, bets_boundary(_spent(evidence), tuning))

    def exceeds(self, evidence: Evidence, tuning: Tuning) -> Mask:
        # Asking whether the mixture has reached 1/α needs no root.
        return reaches_bets(evidence.totals - evidence.slack, _spent(evidence), tuning)

    def may_exceed(self, totals: Array, variances: Array, alpha: ArrayLike, scale: Array) -> Mask:
        # A mixture of bets is at most the best of them, which gains λS − λ²V/2 at most.
        cap = BOLDEST / scale
        bet = np.minimum(cap, totals / np.where(variances > 0, variances, 1e-300))
        return np.asarray(bet * (totals - 0.5 * bet * variances) >= -np.log(alpha) - 1e-9)


def _spent(evidence: Evidence) -> Spent:
    return Spent(evidence.variances, evidence.pooled, evidence.peaks)


@dataclass(frozen=True)
class Bounded(_Exact):
    """Rewards lie in [low, high]: exact at every sample size. A reward outside is refused.

    Parameters
    ----------
    low, high : float
        Every reward must lie between them.
    """

    low: float
    high: float
    name: ClassVar[str] = "bounded rewards"

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)

    @property
    def range(self) -> tuple[float, float]:  # noqa: D102
        return (float(self.low), float(self.high))

    @property
    def reward_range(self) -> tuple[float, float]:  # noqa: D102
        return self.range

    @property
    def limit(self) -> float:  # noqa: D102
        return float(self.high) - float(self.low)


@dataclass(frozen=True)
class RoundedMeans(Bounded):
    """Rewards lie in [low, high], and only means of some rounds are known, rounded: exact all the same.

    Let n rounds have one plan p, and let the sum of the rewards of arm a be off by at most error·n·p_a. Then
    their sum of g(a)·reward is off by at most error·n·Σ p_a·|g(a)| ≤ error·n·√v, which is added to every
    interval, as what clipping moves is elsewhere.

    Parameters
    ----------
    error : float
        See above.
    """

    error: float

    @property
    def bias(self) -> float:  # noqa: D102
        return float(self.error)


@dataclass(frozen=True)
class SubGaussian(_Exact):
    """Means x_aᵀθ + ν_t lie in [low, high] and noise is σ-sub-Gaussian: exact at every sample size.

    Residuals are clipped at (high − low) + σ√(2·log(1/tail)), where noise is rarer than 2·tail; what that
    may move the mean, ∫ 2·exp(−z²/2σ²) beyond the clip, is added to every interval.

    Parameters
    ----------
    low, high : float
        Every mean must lie between them.
    sigma : float
        Scale of the noise.
    tail : float
        Smaller clips less and bounds residuals more loosely.
    """

    low: float
    high: float
    sigma: float = 1.0
    tail: float = 1e-5
    name: ClassVar[str] = "sub-Gaussian noise"

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        check_positive("sigma", self.sigma)
        check_fraction("tail", self.tail)

    @property
    def range(self) -> tuple[float, float]:  # noqa: D102
        return (float(self.low), float(self.high))

    @property
    def limit(self) -> float:  # noqa: D102
        return float(self.high - self.low + self.sigma * np.sqrt(-2.0 * np.log(self.tail)))

    @property
    def bias(self) -> float:  # noqa: D102
        z = np.sqrt(-np.log(self.tail))
        return float(2.0 * self.sigma * np.sqrt(np.pi / 2.0) * scipy.special.erfc(z))


def _check_range(low: float, high: float) -> None:
    if not -np.inf < low < high < np.inf:
        raise ParameterError(f"low={low} and high={high} must be finite with low < high")


def check_tells_sizes(confidence: Confidence) -> None:
    """Refuse intervals of gaps in a mode whose sums have the signs of gaps alone."""
    if not confidence.takes_values:
        raise ParameterError(
            f"{confidence} tells the signs of gaps and not their sizes, so it has no intervals;"
            " give Asymptotic(), or Bounded or SubGaussian where their assumptions hold"
        )


# Modes by name, for the command line and for studies; their settings are the arguments of their makers.
CONFIDENCES: Mapping[str, Callable[..., Confidence]] = {
    "asymptotic": Asymptotic,
    "bounded": Bounded,
    "sub-gaussian": SubGaussian,
    "same-shape": SameShape,
}
