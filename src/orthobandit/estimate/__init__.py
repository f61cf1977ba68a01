"""From plans and tallies to estimates of the gaps between arms."""

from orthobandit.estimate.augmented import PairGeometry
from orthobandit.estimate.confidence.evidence import Evidence, Tuning
from orthobandit.estimate.confidence.modes import Asymptotic, Bounded, Confidence, SameShape, SubGaussian
from orthobandit.estimate.confidence.sequence import ContrastSequence
from orthobandit.estimate.forecast.baselines import (
    ARMA,
    AutoRegression,
    Baseline,
    CovariateRegression,
    ExponentialMean,
    NoBaseline,
    OnlineRegression,
    RunningMean,
    SeasonalRegression,
)
from orthobandit.estimate.forecast.contract import Forecast, Forecaster
from orthobandit.estimate.forecast.kernel import KernelRegression
from orthobandit.estimate.orthogonal import Estimate, Moments, OrthogonalRegression
from orthobandit.estimate.plan import Centre, Plan
from orthobandit.estimate.tally import Tally

__all__ = [
    "ARMA",
    "Asymptotic",
    "AutoRegression",
    "Baseline",
    "Bounded",
    "Centre",
    "Confidence",
    "ContrastSequence",
    "CovariateRegression",
    "Estimate",
    "Evidence",
    "ExponentialMean",
    "Forecast",
    "Forecaster",
    "KernelRegression",
    "Moments",
    "NoBaseline",
    "OnlineRegression",
    "OrthogonalRegression",
    "PairGeometry",
    "Plan",
    "RunningMean",
    "SameShape",
    "SeasonalRegression",
    "SubGaussian",
    "Tally",
    "Tuning",
]
