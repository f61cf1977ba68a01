"""Noise: how a round's reward scatters around its mean x_aᵀθ + ν_t."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from orthobandit.errors import ParameterError

# Which branch of the compiled reward a kind of noise takes.
GAUSSIAN, UNIFORM, STUDENT, BERNOULLI, CLIPPED = range(5)


class Noise(ABC):
    """One of the kinds below; the compiled loop knows it by `kind` and three `parameters`."""

    kind: ClassVar[int]

    @property
    @abstractmethod
    def parameters(self) -> tuple[float, float, float]:
        """What the compiled reward needs to know, padded with zeros."""

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
            raise ParameterError(f"df={self.df} must be a finite number > 1; otherwise the noise has no mean")

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
            raise ParameterError(f"low={self.low} and high={self.high} must be finite with low < high")

    @property
    def parameters(self) -> tuple[float, float, float]:  # noqa: D102
        return (float(self.sigma), float(self.low), float(self.high))

    @property
    def rewards(self) -> tuple[float, float]:  # noqa: D102
        return (float(self.low), float(self.high))


def _check_scale(name: str, value: float) -> None:
    if not 0 <= value < np.inf:
        raise ParameterError(f"{name}={value} must be a finite number ≥ 0")
