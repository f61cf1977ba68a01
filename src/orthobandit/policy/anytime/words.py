"""Anytime elimination from plain settings: words and numbers in place of objects."""

from collections.abc import Callable, Mapping

from orthobandit._checks import check_choice
from orthobandit.errors import ParameterError
from orthobandit.estimate import (
    Asymptotic,
    AutoRegression,
    Baseline,
    Bounded,
    Confidence,
    ExponentialMean,
    NoBaseline,
    RunningMean,
    SeasonalRegression,
    SubGaussian,
)
from orthobandit.policy.anytime.policy import AnytimeElimination

CONFIDENCES = ("asymptotic", "bounded", "sub-gaussian")
BASELINES: Mapping[str, Callable[..., Baseline]] = {
    "none": NoBaseline,
    "mean": RunningMean,
    "exponential": ExponentialMean,
    "autoregressive": AutoRegression,
    "seasonal": SeasonalRegression,
}


def anytime_elimination(
    delta: float = 0.05,
    epsilon: float = 0.0,
    goal: str = "identify",
    confidence: str | None = None,
    low: float | None = None,
    high: float | None = None,
    sigma: float | None = None,
    baseline: str = "autoregressive",
    rate: float | None = None,
    lags: int | None = None,
    period: float | None = None,
    growth: float = 0.1,
    mixing: float = 0.05,
    pilot: int | None = None,
) -> AnytimeElimination:
    """Return the policy that these words and numbers describe.

    Parameters
    ----------
    delta, epsilon, goal, growth, mixing, pilot
        As in :class:`AnytimeElimination`.
    confidence : {"asymptotic", "bounded", "sub-gaussian"}, optional
        The exact ones need `low` and `high`; `sigma` (1 by default) belongs to "sub-gaussian". By default
        "bounded" where `low` and `high` are given, "sub-gaussian" where `sigma` is too.
    baseline : {"none", "mean", "exponential", "autoregressive", "seasonal"}
        `rate` belongs to "exponential", `lags` to "autoregressive" and "seasonal", `period` to "seasonal".

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
        baseline=_baseline(baseline, rate=rate, lags=lags, period=period),
        growth=growth,
        mixing=mixing,
        pilot=pilot,
    )


def _confidence(name: str | None, **settings: float | None) -> Confidence:
    if name is None:
        said = [setting for setting, value in settings.items() if value is not None]
        name = "sub-gaussian" if "sigma" in said else "bounded" if said else "asymptotic"
    check_choice("confidence", name, CONFIDENCES)
    takes = {"asymptotic": (), "bounded": ("low", "high"), "sub-gaussian": ("low", "high", "sigma")}[name]
    given = _taken(f"confidence={name!r}", takes, settings)
    for needed in ("low", "high"):
        if needed in takes and needed not in given:
            raise ParameterError(f"confidence={name!r} needs {needed}; give low and high, e.g. low=0,high=1")
    if name == "asymptotic":
        return Asymptotic()
    return Bounded(**given) if name == "bounded" else SubGaussian(**given)


def _baseline(name: str, **settings: float | None) -> Baseline:
    check_choice("baseline", name, BASELINES)
    takes = {"exponential": ("rate",), "autoregressive": ("lags",), "seasonal": ("lags", "period")}.get(
        name, ()
    )
    given: dict[str, object] = dict(_taken(f"baseline={name!r}", takes, settings))
    if name == "seasonal":
        if "period" not in given:
            raise ParameterError(f"baseline={name!r} needs period, in rounds")
        given["periods"] = (given.pop("period"),)
    return BASELINES[name](**given)


def _taken(what: str, takes: tuple[str, ...], settings: Mapping[str, float | None]) -> dict[str, float]:
    """Return the settings that were given; refuse those that would go unused."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in takes:
            raise ParameterError(f"{what} takes no {name}; leave out {name}={given[name]!r}")
    return given
