"""Adaptive experiments that find the best arm, with guarantees, while the baseline moves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orthobandit._foundation.release import __version__
from orthobandit.arms import ArmSet
from orthobandit.design import Design, anchor_design, centred_design, contrast_design, g_optimal_design
from orthobandit.errors import OrthobanditError
from orthobandit.estimate import (
    Asymptotic,
    Bounded,
    ContrastSequence,
    Estimate,
    Moments,
    OrthogonalRegression,
    Plan,
    SameShape,
    SubGaussian,
    Tally,
)
from orthobandit.policy import SBE, AnytimeElimination, Decision, FixedBudget, Policy, PureExploration

if TYPE_CHECKING:
    from orthobandit.experiment import Experiment, Guardrail, Metric
    from orthobandit.logs import Analysis, analyse
    from orthobandit.policy.contextual import InformationDirected, Interactions, Offer, Personalised
    from orthobandit.simulation import Environment, RunResult, simulate

__all__ = [
    "SBE",
    "Analysis",
    "AnytimeElimination",
    "ArmSet",
    "Asymptotic",
    "Bounded",
    "ContrastSequence",
    "Decision",
    "Design",
    "Environment",
    "Estimate",
    "Experiment",
    "FixedBudget",
    "Guardrail",
    "InformationDirected",
    "Interactions",
    "Metric",
    "Moments",
    "Offer",
    "OrthobanditError",
    "OrthogonalRegression",
    "Personalised",
    "Plan",
    "Policy",
    "PureExploration",
    "RunResult",
    "SameShape",
    "SubGaussian",
    "Tally",
    "__version__",
    "analyse",
    "anchor_design",
    "centred_design",
    "contrast_design",
    "g_optimal_design",
    "simulate",
]

# Imported when first asked for: a live experiment should not wait for the simulator, nor a simulation for it.
_LATER = {
    "Analysis": "orthobandit.logs",
    "Environment": "orthobandit.simulation",
    "Experiment": "orthobandit.experiment",
    "Guardrail": "orthobandit.experiment",
    "InformationDirected": "orthobandit.policy.contextual",
    "Interactions": "orthobandit.policy.contextual",
    "Metric": "orthobandit.experiment",
    "Offer": "orthobandit.policy.contextual",
    "Personalised": "orthobandit.policy.contextual",
    "RunResult": "orthobandit.simulation",
    "analyse": "orthobandit.logs",
    "simulate": "orthobandit.simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'orthobandit' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
