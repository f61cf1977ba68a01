"""Ready-made environments by name: random arms with an exact gap, near-degenerate angles, one-hot, sphere."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.random import stream
from orthobandit._foundation.registry import WithOwn, make_named
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.noise import Noise
from orthobandit.simulation.shifts import Shift


def exact_gap(
    dimension: int = 5,
    count: int = 10,
    gap: float = 0.5,
    *,
    seed: int,
    shift: Shift | None = None,
    noise: Noise | None = None,
) -> Environment:
    """Random unit arms and a random unit θ such that the best arm leads by exactly `gap`.

    An arm family of ours for the sizes of the paper's experiments, (d, K) = (5, 10) and (20, 30) with gap ½:
    the paper does not give its arms, and the regret it reports lies outside what these show. All arms but
    the best are uniform on the sphere given x_iᵀθ ≤ 1 − gap; the best lies at the height of the second plus
    `gap`, in a random direction around θ and at a random position.

    Examples
    --------
    >>> environment = exact_gap(20, 30, 0.5, seed=1)
    >>> bool(abs(np.sort(environment.gaps)[1] - 0.5) < 1e-12)
    True
    """
    _check_size(dimension=(dimension, 2), count=(count, 2))
    if not 0 < gap < 2:
        raise ParameterError(
            Argument("gap", gap), " must lie in (0, 2): unit arms and a unit θ allow no more"
        )
    generator = stream(seed, "instance")
    directions = _sphere(generator, count, dimension)
    theta = _sphere(generator, 1, dimension)[0]
    # (1 + xᵀθ)/2 of a uniform point of the sphere has the Beta((d−1)/2, (d−1)/2) law.
    shape = (dimension - 1) / 2
    # `share` is the probability of xᵀθ ≤ 1 − gap: quantiles below it have the law given that event.
    share = special.betainc(shape, shape, 1 - gap / 2)
    heights = 2 * special.betaincinv(shape, shape, share * generator.random(count)) - 1
    heights[0] = np.max(heights[1:]) + gap
    across = directions - np.outer(directions @ theta, theta)
    across *= (np.sqrt(1 - heights**2) / np.linalg.norm(across, axis=1))[:, np.newaxis]
    features = np.outer(heights, theta) + across
    # The best arm was made first; arm 0, the reference of anchor designs, should be best by chance only.
    return Environment(ArmSet(generator.permutation(features)), theta, shift, noise)


def near_degenerate(
    dimension: int = 10, angle: float = 0.2, *, shift: Shift | None = None, noise: Noise | None = None
) -> Environment:
    """Return e_1, …, e_d and (cos ω, sin ω, 0, …) with θ = 2e_1 (Soare, Lazaric & Munos 2014).

    The gap is 2(1 − cos ω); the last arm is the only one hard to tell from the first. ‖θ‖ = 2 exceeds the
    paper's bound.
    """
    _check_size(dimension=(dimension, 2))
    if not 0 < angle < np.pi / 2:
        raise ParameterError(Argument("angle", angle), " must lie strictly between 0 and π/2")
    close = np.zeros(dimension)
    close[:2] = np.cos(angle), np.sin(angle)
    theta = np.zeros(dimension)
    theta[0] = 2.0
    return Environment(ArmSet(np.vstack([np.eye(dimension), close])), theta, shift, noise)


def one_hot(means: ArrayLike, *, shift: Shift | None = None, noise: Noise | None = None) -> Environment:
    """Return the plain multi-armed bandit with the given means (K,)."""
    try:
        values = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(Argument("means", means), " must be a list of numbers, one per arm") from None
    if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
        raise ParameterError(Argument("means", means), " must be a list of finite numbers, one per arm")
    return Environment(ArmSet.one_hot(len(values)), values, shift, noise)


def uniform_sphere(
    dimension: int = 10,
    count: int = 100,
    *,
    seed: int,
    norm: float = 2.0,
    shift: Shift | None = None,
    noise: Noise | None = None,
) -> Environment:
    """Arms uniform on the unit sphere, θ = norm·e_1; the gap is what chance makes it."""
    _check_size(dimension=(dimension, 1), count=(count, 1))
    theta = np.zeros(dimension)
    theta[0] = norm
    return Environment(ArmSet(_sphere(stream(seed, "instance"), count, dimension)), theta, shift, noise)


def successor_sphere(
    dimension: int = 10,
    count: int = 100,
    *,
    seed: int,
    shift: Shift | None = None,
    noise: Noise | None = None,
) -> Environment:
    """Return random instance number `seed` of SP-BAI's author: :func:`uniform_sphere` from his generator.

    The arms are normal vectors from ``default_rng(1_000_003 + 13·d + 7919·K + i)``, i = `seed`, divided by
    their length; θ = 2e_1. His table for (d, K) = (10, 100) is over i = 0, …, 99. Numpy does not promise
    the same normals in every version; a test pins those of i = 0.

    Examples
    --------
    >>> float(successor_sphere(10, 100, seed=0).arms.features[0, 0].round(4))
    -0.3181
    """
    _check_size(dimension=(dimension, 1), count=(count, 1))
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(Argument("seed", seed), " must be the number of an instance, from 0")
    # Not one of our streams: only his generator makes his arms.
    generator = np.random.default_rng(1_000_003 + 13 * dimension + 7919 * count + int(seed))
    theta = np.zeros(dimension)
    theta[0] = 2.0
    return Environment(ArmSet(_sphere(generator, count, dimension)), theta, shift, noise)


# An instance that is named here is known to the command line and to studies.
INSTANCES: Mapping[str, Callable[..., Environment]] = {
    "exact-gap": exact_gap,
    "near-degenerate": near_degenerate,
    "one-hot": one_hot,
    "uniform-sphere": uniform_sphere,
    "successor-sphere": successor_sphere,
}
INSTANCES = WithOwn("instance", INSTANCES, "orthobandit.instances")


def named_instance(name: str, **settings: Any) -> Environment:
    """Return the environment of this name, a key of ``INSTANCES``, with the given settings.

    Examples
    --------
    >>> len(named_instance("exact-gap", dimension=3, count=7, seed=1).arms)
    7
    """
    return make_named("instance", INSTANCES, name, settings)


def _sphere(generator: np.random.Generator, count: int, dimension: int) -> Array:
    points = generator.standard_normal((count, dimension))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _check_size(**sizes: tuple[int, int]) -> None:
    for name, (value, least) in sizes.items():
        remedy = "; a gap takes two arms" if name == "count" and least == 2 else ""
        check_whole(name, value, least, remedy=remedy)
