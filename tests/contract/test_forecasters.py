"""Every forecaster of the package keeps the contract, and the suite finds those that do not."""

import numpy as np
import pytest

from forecaster_samples import OnlineMean
from orthobandit import estimate
from orthobandit.errors import ParameterError
from orthobandit.estimate import (
    ARMA,
    AutoRegression,
    CovariateRegression,
    ExponentialMean,
    Forecast,
    KernelRegression,
    NoBaseline,
    OnlineRegression,
    RunningMean,
    SeasonalRegression,
)
from orthobandit.testing import FORECASTER_CHECKS, ForecastSetting, check_forecaster

BASELINES = {
    "none": NoBaseline(),
    "mean": RunningMean(),
    "exponential": ExponentialMean(0.2),
    "arma": ARMA(2),
    "autoregressive": AutoRegression(4),
    "seasonal": SeasonalRegression((21.0, 50.0), lags=2),
    "covariates": CovariateRegression(("heat", "hour")),
    "online": OnlineRegression(OnlineMean, lags=2),
    "kernel": KernelRegression(("heat", "hour"), waves=8),
}


def test_every_public_forecaster_plays_the_suite():
    classes = [getattr(estimate, name) for name in estimate.__all__]
    public = {kind for kind in classes if hasattr(kind, "forecaster") and kind is not estimate.Baseline}
    assert public == {type(baseline) for baseline in BASELINES.values()}


@pytest.mark.parametrize("check", FORECASTER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", BASELINES)
def test_forecaster_keeps_the_contract(name, check):
    check(BASELINES[name], ForecastSetting(("heat", "hour") if name in ("covariates", "kernel") else ()))


class Wrapped:
    """The running mean with one clause broken by a subclass; its own baseline."""

    def __init__(self, memory=None):
        self.inner = RunningMean().forecaster(memory)
        self.number = self.seen = 0

    @classmethod
    def forecaster(cls, memory=None):
        return cls(memory)

    def forecast(self, round, covariates=None):  # noqa: A002
        return self.inner.forecast(round, covariates)

    def learn(self, forecast, residual):
        self.inner.learn(forecast, residual)

    def to_json(self):
        return self.inner.to_json()


class Unnumbered(Wrapped):
    def forecast(self, round, covariates=None):  # noqa: A002
        made = self.inner.forecast(round, covariates)
        return Forecast(made.value, round, number=0)

    def learn(self, forecast, residual):
        self.inner.learn(Forecast(0.0, forecast.round, (0.0,), number=forecast.round), residual)


class CountsQuestions(Wrapped):
    def forecast(self, round, covariates=None):  # noqa: A002
        made = self.inner.forecast(round, covariates)
        self.number += 1
        return Forecast(made.value + self.number, round, made.regressors, number=made.number)


class SharesItsMemory(Wrapped):
    common = RunningMean().forecaster()

    def __init__(self, memory=None):
        super().__init__(memory)
        type(self).total = 0.0

    def forecast(self, round, covariates=None):  # noqa: A002
        made = self.inner.forecast(round, covariates)
        return Forecast(type(self).total, round, made.regressors, number=made.number)

    def learn(self, forecast, residual):
        self.inner.learn(forecast, residual)
        type(self).total += residual


class WantsOrder(Wrapped):
    def learn(self, forecast, residual):
        if forecast.number < self.seen:
            raise ParameterError("too late")
        self.seen = forecast.number
        self.inner.learn(forecast, residual)


class LearnsFromAll(Wrapped):
    def learn(self, forecast, residual):
        try:
            self.inner.learn(forecast, residual)
        except ParameterError:
            self.inner.learn(self.inner.forecast(forecast.round), residual)


class RemembersRefusals(Wrapped):
    spoilt = 0.0

    def forecast(self, round, covariates=None):  # noqa: A002
        made = self.inner.forecast(round, covariates)
        return Forecast(made.value + self.spoilt, round, made.regressors, number=made.number)

    def learn(self, forecast, residual):
        try:
            self.inner.learn(forecast, residual)
        except ParameterError:
            self.spoilt += 1.0
            raise


class LosesDigits(Wrapped):
    def to_json(self):
        kept = self.inner.to_json()
        return {**kept, "memory": np.round(kept["memory"], 6).tolist()}


class ForgetsWhatIsOpen(Wrapped):
    def to_json(self):
        return {**self.inner.to_json(), "open": []}


class InDollars(Wrapped):
    def forecast(self, round, covariates=None):  # noqa: A002
        made = self.inner.forecast(round, covariates)
        return Forecast(made.value + 1.0, round, made.regressors, number=made.number)


class TwoMinds(RunningMean):
    """The compiled step of one baseline, the forecaster of another."""

    def forecaster(self, memory=None):
        return ExponentialMean(0.1).forecaster(memory)


BROKEN = [
    (Unnumbered, "numbered 0, 1, 2"),
    (CountsQuestions, "never learnt from"),
    (SharesItsMemory, "changes another"),
    (WantsOrder, "late residual is refused"),
    (LearnsFromAll, "of another forecaster is learnt from"),
    (RemembersRefusals, "refused changes later"),
    (LosesDigits, "goes on differently"),
    (InDollars, "units of rewards"),
    (TwoMinds(), "compiled step"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=lambda one: str(one))
def test_a_broken_clause_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_forecaster(broken)


def test_a_memory_without_its_open_forecasts_is_found():
    with pytest.raises(ParameterError, match="learnt from before"):
        check_forecaster(ForgetsWhatIsOpen)


def test_the_unbroken_wrapper_passes():
    check_forecaster(Wrapped)


def test_a_model_may_have_a_unit_of_its_own_if_it_says_so():
    check_forecaster(InDollars, has_unit=True)
