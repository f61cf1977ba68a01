"""Noise: how a round's reward scatters around its mean x_aᵀθ + ν_t, and how it is drawn."""

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from orthobandit._foundation.compile import compiled, typed
from orthobandit._foundation.random import Words, next_position
from orthobandit._foundation.registry import WithOwn, make_named
from orthobandit._foundation.types import Array
from orthobandit.errors import Argument, ParameterError

# (mean, settings, state) -> the reward, and whether it was bent so that its mean is another. NOISE_STEP holds
# examples of what a step returns and takes: from these the compiler learns the types.
NoiseStep = Callable[[float, Array, Words], tuple[float, bool]]
NOISE_STEP: Any = ((0.0, False), (0.0, np.zeros(0), np.zeros(4, dtype=np.uint64)))


class Noise(ABC):
    """How a reward scatters around its mean.

    Derive from this class and declare a compiled `step`: a function ``(mean, settings, state) -> (reward,
    is_bent)``, compiled by ``numba.njit``, written in the class as ``step = staticmethod(function)``. Its
    random numbers come from :func:`next_position`, :func:`next_normal` and :func:`next_gamma` of `state`
    alone; `settings` is what :meth:`settings` returned. Rewards have the given mean, unless `is_bent` says
    that they had to be clipped. :func:`orthobandit.testing.check_noise` checks all of it.
    """

    step: ClassVar[NoiseStep]

    def settings(self) -> Array:
        """Return the numbers (S,) that the compiled step reads."""
        return np.zeros(0)

    @property
    def rewards(self) -> tuple[float, float]:
        """Where every reward lies, whatever its mean; infinite if it may lie anywhere."""
        return (-np.inf, np.inf)

    @property
    def normal_scale(self) -> float | None:
        """σ where the reward is the mean plus N(0, σ²): a plan's rewards are then drawn by their sums."""
        return None


@compiled
def next_normal(state: Words) -> float:
    """Return a standard Gaussian number (Marsaglia's polar method)."""
    while True:
        x = 2 * next_position(state) - 1
        y = 2 * next_position(state) - 1
        length = x * x + y * y  # squared, of a point in the square: kept if it lies in the disc
        # The pair gives a second number; keeping it would be memory between calls, so it is dropped.
        if 0 < length < 1:
            return float(x * np.sqrt(-2 * np.log(length) / length))


@compiled
def next_gamma(state: Words, shape: float) -> float:
    """Return a gamma number with scale 1 and any shape > 0 (Marsaglia & Tsang 2000)."""
    # Their letters: d·v is proposed, with v = (1 + c·x)³ and x normal; d = shape − ⅓ and c = 1/√(9d).
    boost = 1.0
    if shape < 1:
        # Γ(a) has the law of Γ(a + 1)·U^{1/a}; 1 − U avoids 0, here and in the logarithm below.
        boost = (1 - next_position(state)) ** (1 / shape)
        shape += 1
    d = shape - 1 / 3
    c = 1 / np.sqrt(9 * d)
    while True:
        x = next_normal(state)
        v = (1 + c * x) ** 3
        if v > 0 and np.log(1 - next_position(state)) < 0.5 * x * x + d - d * v + d * np.log(v):
            return float(boost * d * v)


@compiled
def _gaussian(mean: float, settings: Array, state: Words) -> tuple[float, bool]:
    return float(mean + settings[0] * next_normal(state)), False


@dataclass(frozen=True)
class Gaussian(Noise):
    """Additive N(0, σ²) noise; σ-sub-Gaussian."""

    sigma: float = 1.0
    step: ClassVar[NoiseStep] = staticmethod(_gaussian)

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)

    def settings(self) -> Array:  # noqa: D102
        return np.array([float(self.sigma)])

    @property
    def normal_scale(self) -> float:  # noqa: D102
        return float(self.sigma)


@compiled
def _uniform(mean: float, settings: Array, state: Words) -> tuple[float, bool]:
    return float(mean + settings[0] * (2 * next_position(state) - 1)), False


@dataclass(frozen=True)
class Uniform(Noise):
    """Additive noise, uniform on ±half_width; half_width-sub-Gaussian, variance half_width²/3."""

    half_width: float = 1.0
    step: ClassVar[NoiseStep] = staticmethod(_uniform)

    def __post_init__(self) -> None:
        _check_scale("half_width", self.half_width)

    def settings(self) -> Array:  # noqa: D102
        return np.array([float(self.half_width)])


@compiled
def _student(mean: float, settings: Array, state: Words) -> tuple[float, bool]:
    # A normal number over the root of χ²_df/df, and χ²_df is twice Γ(df/2).
    scale = settings[0]
    df = settings[1]
    normal = next_normal(state)
    return float(mean + scale * normal / np.sqrt(next_gamma(state, df / 2) * 2 / df)), False


@dataclass(frozen=True)
class StudentT(Noise):
    """Additive scale·t noise with `df` degrees of freedom: heavy-tailed, so outside the paper's model.

    `df` > 1, or the noise has no mean; its variance is infinite for df ≤ 2.
    """

    df: float = 3.0
    scale: float = 1.0
    step: ClassVar[NoiseStep] = staticmethod(_student)

    def __post_init__(self) -> None:
        _check_scale("scale", self.scale)
        if not 1 < self.df < np.inf:
            raise ParameterError(
                Argument("df", self.df), " must be a finite number > 1; otherwise the noise has no mean"
            )

    def settings(self) -> Array:  # noqa: D102
        return np.array([float(self.scale), float(self.df)])


@compiled
def _bernoulli(mean: float, _settings: Array, state: Words) -> tuple[float, bool]:
    return (1.0 if next_position(state) < mean else 0.0), mean < 0 or mean > 1


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Rewards in {0, 1} with mean clip(x_aᵀθ + ν_t, 0, 1).

    The semiparametric model holds exactly only where nothing is clipped; a run counts the rounds in which
    x_aᵀθ + ν_t lay outside [0, 1].
    """

    step: ClassVar[NoiseStep] = staticmethod(_bernoulli)

    @property
    def rewards(self) -> tuple[float, float]:  # noqa: D102
        return (0.0, 1.0)


@compiled
def _clipped(mean: float, settings: Array, state: Words) -> tuple[float, bool]:
    low = settings[1]
    high = settings[2]
    raw = mean + settings[0] * next_normal(state)
    return float(min(max(raw, low), high)), raw < low or raw > high


@dataclass(frozen=True)
class Clipped(Noise):
    """Rewards clip(x_aᵀθ + ν_t + N(0, σ²), low, high), as from a bounded scale.

    The semiparametric model holds exactly only where nothing is clipped; a run counts the rounds in which
    the reward was cut.
    """

    low: float = 0.0
    high: float = 1.0
    sigma: float = 0.25
    step: ClassVar[NoiseStep] = staticmethod(_clipped)

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)
        if not -np.inf < self.low < self.high < np.inf:
            raise ParameterError(
                Argument("low", self.low), f" and high={self.high} must be finite with low < high"
            )

    def settings(self) -> Array:  # noqa: D102
        return np.array([float(self.sigma), float(self.low), float(self.high)])

    @property
    def rewards(self) -> tuple[float, float]:  # noqa: D102
        return (float(self.low), float(self.high))


# Noise that is named here is known to the command line and to studies.
NOISES: Mapping[str, Callable[..., Noise]] = {
    "gaussian": Gaussian,
    "uniform": Uniform,
    "student-t": StudentT,
    "bernoulli": Bernoulli,
    "clipped": Clipped,
}
NOISES = WithOwn("noise", NOISES, "orthobandit.noises")


def named_noise(name: str, **settings: Any) -> Noise:
    """Return the noise of this name, a key of ``NOISES``, with the given settings.

    Examples
    --------
    >>> named_noise("gaussian", sigma=0.5)
    Gaussian(sigma=0.5)
    """
    return make_named("noise", NOISES, name, settings)


def noise_step(noise: Noise) -> tuple[NoiseStep, Array]:
    """Return the compiled step of noise and its settings (S,); an error says what is wrong with them."""
    settings = np.array(noise.settings(), dtype=np.float64)
    if settings.ndim != 1 or not np.all(np.isfinite(settings)):
        raise ParameterError(f"settings of {noise!r} must be a row of finite numbers: its step reads them")
    step = typed(getattr(type(noise), "step", None), *NOISE_STEP)
    if step is None:
        raise ParameterError(
            f"the step of {noise!r} is not a compiled function (mean, settings, state) -> (reward, is_bent);"
            " compile it by numba.njit"
        )
    return step, settings


@compiled
def add_gaussian(state: Words, mean: float, sigma: float, sums: Array) -> None:
    """Turn (n, Σν, Σν²) of one arm's rounds into (n, Σr, Σr²) with r = mean + ν + N(0, σ²), in place.

    Exact in law with three random numbers: the mean reward is Gaussian; of the scatter around it, the part
    along the centred ν is a Gaussian number w more than that of ν alone, and the rest is σ² times a
    chi-square number with n − 2 degrees of freedom, independent of both.
    """
    n = sums[0]
    total = sums[1]
    squares = sums[2]
    if n == 0:
        return
    level = mean + total / n + sigma * next_normal(state) / np.sqrt(n)
    scatter = 0.0
    if n > 1:
        along = np.sqrt(max(squares - total * total / n, 0.0)) + sigma * next_normal(state)
        scatter = along * along
    if n > 2:
        scatter += 2 * sigma * sigma * next_gamma(state, (n - 2) / 2)
    sums[1] = n * level
    sums[2] = n * level * level + scatter


def _check_scale(name: str, value: float) -> None:
    if not 0 <= value < np.inf:
        raise ParameterError(Argument(name, value), " must be a finite number ≥ 0")
