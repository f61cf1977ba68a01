"""Anytime elimination from plain settings: words and numbers in place of objects."""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from orthobandit._foundation.checks import check_choice
from orthobandit.errors import ParameterError
from orthobandit.estimate.confidence.modes import CONFIDENCES, Confidence
from orthobandit.estimate.forecast.baselines import BASELINES
from orthobandit.policy.anytime.policy import AnytimeElimination

T = TypeVar("T")


def anytime_elimination(
    delta: float = 0.05,
    epsilon: float = 0.0,
    goal: str = "identify",
    confidence: str | None = None,
    low: float | None = None,
    high: float | None = None,
    sigma: float | None = None,
    baseline: str = "arma",
    rate: float | None = None,
    lags: int | None = None,
    period: float | None = None,
    growth: float = 0.01,
    mixing: float = 0.02,
    pilot: int | None = None,
    pairs: str = "auto",
) -> AnytimeElimination:
    """Return the policy that these words and numbers describe.

    Parameters
    ----------
    delta, epsilon, goal, growth, mixing, pilot, pairs
        As in :class:`AnytimeElimination`.
    confidence : {"asymptotic", "bounded", "sub-gaussian"}, optional
        The exact ones need `low` and `high`; `sigma` (1 by default) belongs to "sub-gaussian". By default
        "bounded" where `low` and `high` are given, "sub-gaussian" where `sigma` is too.
    baseline : {"none", "mean", "exponential", "arma", "autoregressive", "seasonal"}
        `rate` belongs to "exponential", `lags` to the last three, `period` to "seasonal".

    Examples
    --------
    >>> anytime_elimination(low=0.0, high=1.0).confidence
    Bounded(low=0.0, high=1.0)
    """
    return AnytimeElimination(
        delta=delta,
        epsilon=epsilon,
        goal=goal,
        confidence=_confidence(confidence, low=low, high=high, sigma=sigma),
        baseline=_made("baseline", BASELINES, baseline, {"rate": rate, "lags": lags, "period": period}),
        growth=growth,
        mixing=mixing,
        pilot=pilot,
        pairs=pairs,
    )


def _confidence(name: str | None, **settings: float | None) -> Confidence:
    if name is None:
        said = [setting for setting, value in settings.items() if value is not None]
        name = "sub-gaussian" if "sigma" in said else "bounded" if said else "asymptotic"
    return _made("confidence", CONFIDENCES, name, settings)


def _made(
    what: str, makers: Mapping[str, Callable[..., T]], name: str, settings: Mapping[str, float | None]
) -> T:
    """Make the thing of this name; refuse settings that would go unused, and say which are missing."""
    check_choice(what, name, makers)
    given = {setting: value for setting, value in settings.items() if value is not None}
    takes = inspect.signature(makers[name]).parameters
    for setting, value in given.items():
        if setting not in takes:
            raise ParameterError(f"{what}={name!r} takes no {setting}; leave out {setting}={value!r}")
    for setting, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and setting not in given:
            raise ParameterError(f"{what}={name!r} needs {setting}, a number; give {setting}=…")
    return makers[name](**given)
