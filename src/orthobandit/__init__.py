"""Adaptive experiments that find the best arm, with guarantees, while the baseline moves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orthobandit._foundation.release import __version__

if TYPE_CHECKING:
    from orthobandit.arms import ArmSet
    from orthobandit.design import (
        Design,
        anchor_design,
        centred_design,
        contrast_design,
        g_optimal_design,
    )
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
    from orthobandit.experiment import Experiment, Guardrail, Metric
    from orthobandit.logs import Analysis, analyse
    from orthobandit.policy import SBE, AnytimeElimination, Decision, FixedBudget, Policy, PureExploration
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

# Where each public name is defined. Modules are imported when a name is first asked for: numpy and numba take
# half a second, and a live experiment need not wait for the simulator, nor `--help` for either.
_NAMES = {
    "arms": "ArmSet",
    "design": "Design anchor_design centred_design contrast_design g_optimal_design",
    "errors": "OrthobanditError",
    "estimate": (
        "Asymptotic Bounded ContrastSequence Estimate Moments OrthogonalRegression Plan SameShape SubGaussian"
        " Tally"
    ),
    "experiment": "Experiment Guardrail Metric",
    "logs": "Analysis analyse",
    "peers": "",
    "policy": "SBE AnytimeElimination Decision FixedBudget Policy PureExploration",
    "policy.contextual": "InformationDirected Interactions Offer Personalised",
    "simulation": "Environment RunResult simulate",
}
_HOMES = {name: f"orthobandit.{module}" for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _NAMES:  # a package, as after `import orthobandit.design`
        value = import_module(f"orthobandit.{name}")
    else:
        raise AttributeError(f"module 'orthobandit' has no attribute {name!r}")
    globals()[name] = value  # asked for once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
