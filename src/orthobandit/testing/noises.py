"""The contract of noise, clause by clause; see :mod:`orthobandit.simulation.noise`."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from orthobandit._foundation.random import compiled_stream
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import ParameterError
from orthobandit.simulation.noise import Noise, noise_step
from orthobandit.testing._play import require, require_object, setting_of

FALSE_ALARM = 1e-9  # of a test of the law: draws are seeded, so that a noise that passes always does


@dataclass(frozen=True)
class NoiseSetting:
    """The rewards on which a check tries noise.

    Parameters
    ----------
    means : tuple of float
        Of the rewards that are drawn.
    draws : int
        Rewards of each mean.
    seed : int
    """

    means: tuple[float, ...] = (-2.0, 0.0, 0.25, 0.5, 0.75, 3.0)
    draws: int = 20_000
    seed: int = 0


def check_noise(noise: Noise, **settings: Any) -> None:
    """Check every clause of the contract on noise.

    Parameters
    ----------
    noise : Noise
    **settings
        Fields of :class:`NoiseSetting`.

    Examples
    --------
    >>> from orthobandit.simulation import Bernoulli, Gaussian
    >>> check_noise(Gaussian(0.5))
    >>> check_noise(Bernoulli())
    """
    require_object(noise)
    require(isinstance(noise, Noise), "noise derives from Noise")
    setting = setting_of(NoiseSetting, settings)
    for check in NOISE_CHECKS:
        check(noise, setting)


def check_noise_step(noise: Noise, setting: NoiseSetting) -> None:
    """Check that the step is compiled, and that its rewards depend on mean, settings and stream alone."""
    try:
        _, numbers = noise_step(noise)
    except ParameterError as error:
        raise AssertionError(str(error)) from None
    for mean in setting.means:
        first, _ = _rewards(noise, mean, setting)
        again, _ = _rewards(noise, mean, setting)
        require(np.array_equal(first, again, equal_nan=True), "from the same stream another reward is drawn")
    require(np.array_equal(noise_step(noise)[1], numbers), "the settings change while rewards are drawn")


def check_reward_range(noise: Noise, setting: NoiseSetting) -> None:
    """Check that rewards are finite, and lie where the noise says that they lie."""
    low, high = noise.rewards
    for mean in setting.means:
        rewards, _ = _rewards(noise, mean, setting)
        require(bool(np.all(np.isfinite(rewards))), "a reward is not finite")
        require(bool(np.all((low <= rewards) & (rewards <= high))), f"a reward lies outside {noise.rewards}")


def check_reward_mean(noise: Noise, setting: NoiseSetting) -> None:
    """Check that rewards have the given mean wherever the noise says that none was bent.

    By their t statistic, which stays moderate for heavy tails too; infinite variances hide small deviations.
    """
    most = float(scipy.stats.norm.isf(FALSE_ALARM / 2))
    for mean in setting.means:
        rewards, is_bent = _rewards(noise, mean, setting)
        if is_bent.any():
            continue
        error = rewards.std() / np.sqrt(len(rewards))
        # Sums of equal rewards are rounded.
        distance = abs(float(rewards.mean()) - mean) - 1e-9 * max(1.0, abs(mean))
        require(distance <= most * error, f"rewards of mean {mean:g} have the mean {rewards.mean():g}")


def check_normal_scale(noise: Noise, setting: NoiseSetting) -> None:
    """Check that noise with a `normal_scale` σ is N(0, σ²): its rewards are drawn by their sums."""
    sigma = noise.normal_scale
    if sigma is None:
        return
    for mean in setting.means:
        rewards, _ = _rewards(noise, mean, setting)
        if sigma == 0.0:
            require(bool(np.all(rewards == mean)), "normal_scale is 0, but rewards scatter")
        else:
            law = scipy.stats.kstest((rewards - mean) / sigma, "norm")
            require(law.pvalue > FALSE_ALARM, f"rewards are not normal with normal_scale={sigma:g}")


def check_noise_names(noise: Noise, setting: NoiseSetting) -> None:
    """Check that ``repr`` is the same in every process, and that pickling preserves the noise."""
    text = repr(noise)
    require(" at 0x" not in text and "\n" not in text, f"repr {text!r} must be one line, without addresses")
    loaded = pickle.loads(pickle.dumps(noise))  # noqa: S301
    require(repr(loaded) == text, "pickled noise has another repr")
    mean = setting.means[0]
    same = np.array_equal(_rewards(loaded, mean, setting)[0], _rewards(noise, mean, setting)[0])
    require(same, "pickled noise draws other rewards")


NOISE_CHECKS: tuple[Callable[[Any, NoiseSetting], None], ...] = (
    check_noise_step,
    check_reward_range,
    check_reward_mean,
    check_normal_scale,
    check_noise_names,
)


def _rewards(noise: Noise, mean: float, setting: NoiseSetting) -> tuple[Array, Mask]:
    """Return rewards (n,) of a mean, and which of them were bent (n,)."""
    draw, numbers = noise_step(noise)
    state = compiled_stream(setting.seed, "contract rewards")
    pairs = [draw(mean, numbers, state) for _ in range(setting.draws)]
    rewards, is_bent = zip(*pairs, strict=True)
    return np.array(rewards, dtype=np.float64), np.array(is_bent, dtype=np.bool_)
