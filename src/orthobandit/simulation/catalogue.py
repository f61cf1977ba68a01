"""Shifts and noise by name, with settings that make a first experiment."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from orthobandit.errors import ParameterError
from orthobandit.simulation.adversaries import Adaptive, CancelBest, PushLeader, ReactToLast
from orthobandit.simulation.noise import Bernoulli, Clipped, Gaussian, Noise, StudentT, Uniform
from orthobandit.simulation.paths import RandomWalk
from orthobandit.simulation.shifts import Constant, Jumps, LogAlternating, Oblivious, Seasonal, Sine, Trend

T = TypeVar("T")

SHIFTS: Mapping[str, Callable[[], Oblivious | Adaptive]] = {
    "none": Constant,
    "constant": lambda: Constant(1.0),
    "sine": Sine,
    "log-alternating": LogAlternating,
    "log-alternating-min": lambda: LogAlternating("min"),
    "trend": Trend,
    "daily": Seasonal,
    "weekly": lambda: Seasonal(amplitude=0.5, weekend=-0.5),
    "random-walk": RandomWalk,
    "jumps": Jumps,
    "cancel-best": CancelBest,
    "push-leader": PushLeader,
    "react-to-last": ReactToLast,
}

NOISES: Mapping[str, Callable[[], Noise]] = {
    "gaussian": Gaussian,
    "uniform": Uniform,
    "student-t": StudentT,
    "bernoulli": Bernoulli,
    "clipped": Clipped,
}


def named_shift(name: str) -> Oblivious | Adaptive:
    """Return the shift of this name, a key of ``SHIFTS``.

    Examples
    --------
    >>> named_shift("sine")
    Sine(offset=1.0, amplitude=1.0, frequency=2.0)
    """
    return _named("shift", name, SHIFTS)


def named_noise(name: str) -> Noise:
    """Return the noise of this name, a key of ``NOISES``.

    Examples
    --------
    >>> named_noise("gaussian")
    Gaussian(sigma=1.0)
    """
    return _named("noise", name, NOISES)


def _named(what: str, name: str, makers: Mapping[str, Callable[[], T]]) -> T:
    if name not in makers:
        raise ParameterError(f"{what}={name!r} is not known; the names are {', '.join(makers)}")
    return makers[name]()
