"""Noise by name: how a round's reward scatters around its mean x_aᵀθ + ν_t, and how it is drawn."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.random import Words, next_position
from orthobandit._foundation.registry import WithOwn, make_named
from orthobandit._foundation.types import Array
from orthobandit.errors import Argument, ParameterError

# Which branch of the compiled reward a kind of noise takes. Kinds are numbers, and parameters three floats
# whatever the kind, so that one compiled loop serves all of them.
GAUSSIAN, UNIFORM, STUDENT, BERNOULLI, CLIPPED = range(5)


class Noise(ABC):
    """One of the kinds below; the compiled loop knows it by `kind` and three `parameters`."""

    kind: ClassVar[int]

    @property
    @abstractmethod
    def parameters(self) -> tuple[float, float, float]:
        """Parameters of the compiled reward, padded with zeros."""

    @property
    def rewards(self) -> tuple[float, float]:
        """Where every reward lies, whatever its mean; infinite if it may lie anywhere."""
        return (-np.inf, np.inf)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Additive N(0, σ²) noise; σ-sub-Gaussian."""

    sigma: float = 1.0
    kind: ClassVar[int] = GAUSSIAN

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)

    @property
    def parameters(self) -> tuple[float, float, float]:  # noqa: D102
        return (float(self.sigma), 0.0, 0.0)


@dataclass(frozen=True)
class Uniform(Noise):
    """Additive noise, uniform on ±half_width; half_width-sub-Gaussian, variance half_width²/3."""

    half_width: float = 1.0
    kind: ClassVar[int] = UNIFORM

    def __post_init__(self) -> None:
        _check_scale("half_width", self.half_width)

    @property
    def parameters(self) -> tuple[float, float, float]:  # noqa: D102
        return (float(self.half_width), 0.0, 0.0)


@dataclass(frozen=True)
class StudentT(Noise):
    """Additive scale·t noise with `df` degrees of freedom: heavy-tailed, so outside the paper's model.

    `df` > 1, or the noise has no mean; its variance is infinite for df ≤ 2.
    """

    df: float = 3.0
    scale: float = 1.0
    kind: ClassVar[int] = STUDENT

    def __post_init__(self) -> None:
        _check_scale("scale", self.scale)
        if not 1 < self.df < np.inf:
            raise ParameterError(
                Argument("df", self.df), " must be a finite number > 1; otherwise the noise has no mean"
            )

    @property
    def parameters(self) -> tuple[float, float, float]:  # noqa: D102
        return (float(self.scale), float(self.df), 0.0)


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Rewards in {0, 1} with mean clip(x_aᵀθ + ν_t, 0, 1).

    The semiparametric model holds exactly only where nothing is clipped; a run counts the rounds in which
    x_aᵀθ + ν_t lay outside [0, 1].
    """

    kind: ClassVar[int] = BERNOULLI

    @property
    def rewards(self) -> tuple[float, float]:  # noqa: D102
        return (0.0, 1.0)

    @property
    def parameters(self) -> tuple[float, float, float]:  # noqa: D102
        return (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Clipped(Noise):
    """Rewards clip(x_aᵀθ + ν_t + N(0, σ²), low, high), as from a bounded scale.

    The semiparametric model holds exactly only where nothing is clipped; a run counts the rounds in which
    the reward was cut.
    """

    low: float = 0.0
    high: float = 1.0
    sigma: float = 0.25
    kind: ClassVar[int] = CLIPPED

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)
        if not -np.inf < self.low < self.high < np.inf:
            raise ParameterError(
                Argument("low", self.low), f" and high={self.high} must be finite with low < high"
            )

    @property
    def parameters(self) -> tuple[float, float, float]:  # noqa: D102
        return (float(self.sigma), float(self.low), float(self.high))

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


@compiled
def reward_of(
    mean: float, kind: int, parameters: tuple[float, float, float], state: Words
) -> tuple[float, bool]:
    """Return a reward of this mean, and whether clipping bent it; `parameters` are those of the noise."""
    first, second, third = parameters
    if kind == GAUSSIAN:
        return mean + first * next_normal(state), False
    if kind == UNIFORM:
        return mean + first * (2 * next_position(state) - 1), False
    if kind == BERNOULLI:
        return (1.0 if next_position(state) < mean else 0.0), mean < 0 or mean > 1
    if kind == CLIPPED:
        raw = mean + first * next_normal(state)
        return min(max(raw, second), third), raw < second or raw > third
    # Student's t: a normal number over the root of χ²_df/df, and χ²_df is twice Γ(df/2).
    normal = next_normal(state)
    return mean + first * normal / np.sqrt(next_gamma(state, second / 2) * 2 / second), False


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
