"""Shifts, noise and instances by name, with settings that make a first experiment."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from orthobandit._checks import check_positive
from orthobandit._named import make_named
from orthobandit.errors import ParameterError
from orthobandit.simulation.adversaries import Adaptive, CancelBest, PushLeader, ReactToLast
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.instances import (
    exact_gap,
    near_degenerate,
    one_hot,
    successor_sphere,
    uniform_sphere,
)
from orthobandit.simulation.noise import Bernoulli, Clipped, Gaussian, Noise, StudentT, Uniform
from orthobandit.simulation.paths import Limited, RandomWalk, Scaled
from orthobandit.simulation.shifts import Constant, Jumps, LogAlternating, Oblivious, Seasonal, Sine, Trend

SHIFTS: Mapping[str, Callable[..., Oblivious | Adaptive]] = {
    "none": Constant,
    "constant": partial(Constant, level=1.0),
    "sine": Sine,
    "log-alternating": LogAlternating,
    "log-alternating-min": partial(LogAlternating, form="min"),
    "trend": Trend,
    "daily": Seasonal,
    "weekly": partial(Seasonal, amplitude=0.5, weekend=-0.5),
    "random-walk": RandomWalk,
    "jumps": Jumps,
    "cancel-best": CancelBest,
    "push-leader": PushLeader,
    "react-to-last": ReactToLast,
}

NOISES: Mapping[str, Callable[..., Noise]] = {
    "gaussian": Gaussian,
    "uniform": Uniform,
    "student-t": StudentT,
    "bernoulli": Bernoulli,
    "clipped": Clipped,
}


INSTANCES: Mapping[str, Callable[..., Environment]] = {
    "exact-gap": exact_gap,
    "near-degenerate": near_degenerate,
    "one-hot": one_hot,
    "uniform-sphere": uniform_sphere,
    "successor-sphere": successor_sphere,
}


def named_shift(name: str, **settings: Any) -> Oblivious | Adaptive:
    """Return the shift of this name, a key of ``SHIFTS``, with the given settings.

    Examples
    --------
    >>> named_shift("sine", offset=0.0)
    Sine(offset=0.0, amplitude=1.0, frequency=2.0)
    """
    return make_named("shift", SHIFTS, name, settings)


def named_noise(name: str, **settings: Any) -> Noise:
    """Return the noise of this name, a key of ``NOISES``, with the given settings.

    Examples
    --------
    >>> named_noise("gaussian", sigma=0.5)
    Gaussian(sigma=0.5)
    """
    return make_named("noise", NOISES, name, settings)


def named_instance(name: str, **settings: Any) -> Environment:
    """Return the environment of this name, a key of ``INSTANCES``, with the given settings.

    Examples
    --------
    >>> len(named_instance("exact-gap", dimension=3, count=7, seed=1).arms)
    7
    """
    return make_named("instance", INSTANCES, name, settings)


def within(shift: Oblivious | Adaptive, limit: float = 1.0) -> Oblivious | Adaptive:
    """Return a shift of the same kind with |ν_t| ≤ limit; the paper's guarantees are for limit 1.

    One that keeps to the limit stays as it is; one with a known bound is scaled; a random walk is
    reflected, any other path cut; a built-in adversary gets the smaller limit.

    Examples
    --------
    >>> within(Sine())
    Scaled(shift=Sine(offset=1.0, amplitude=1.0, frequency=2.0), factor=0.5, offset=0.0)
    """
    check_positive("limit", limit)
    if isinstance(shift, CancelBest | PushLeader | ReactToLast):
        return replace(shift, limit=min(shift.limit, limit))
    if isinstance(shift, Adaptive):
        raise ParameterError(f"{shift!r} has no limit that could be set; bound its values yourself")
    if shift.bound <= limit:
        return shift
    if shift.bound < float("inf"):
        return Scaled(shift, limit / shift.bound)
    return replace(shift, limit=limit) if isinstance(shift, RandomWalk) else Limited(shift, limit)
