"""Policies for rounds with their own features: each visitor is offered arms as they are for that visitor.

The reward of a round is x_{t,a}ᵀθ + ν_t + noise. The level ν_t is arbitrary and may depend on who comes; only
the effect θ of the arms is modelled. Published methods are in :mod:`orthobandit.peers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orthobandit.policy.contextual.additive import AdditiveNoise
from orthobandit.policy.contextual.base import ContextualPolicy, ContextualState
from orthobandit.policy.contextual.ellipsoid import Ellipsoid
from orthobandit.policy.contextual.information_directed import InformationDirected
from orthobandit.policy.contextual.offers import Interactions, Offer
from orthobandit.policy.contextual.personalised import Effect, Personalised
from orthobandit.policy.contextual.rules import RuleComparison, RuleGain, spread_plan
from orthobandit.policy.contextual.segments import (
    Discovery,
    Round,
    Segment,
    SegmentComparison,
    discover_segments,
)

if TYPE_CHECKING:
    from orthobandit.peers import (
        CentredThompson,
        ContextualActionCentredTS,
        ContextualBOSE,
        ContextualLinTS,
        ContextualLinUCB,
        ContextualSemiparametricTS,
        DebiasedThompson,
        SemiGraphTS,
    )

__all__ = [
    "AdditiveNoise",
    "CentredThompson",
    "ContextualActionCentredTS",
    "ContextualBOSE",
    "ContextualLinTS",
    "ContextualLinUCB",
    "ContextualPolicy",
    "ContextualSemiparametricTS",
    "ContextualState",
    "DebiasedThompson",
    "Discovery",
    "Effect",
    "Ellipsoid",
    "InformationDirected",
    "Interactions",
    "Offer",
    "Personalised",
    "Round",
    "RuleComparison",
    "RuleGain",
    "Segment",
    "SegmentComparison",
    "SemiGraphTS",
    "discover_segments",
    "spread_plan",
]


def __getattr__(name: str) -> Any:
    """Return a published method or the catalogue, which had their home here before 0.5."""
    if name in __all__:
        return getattr(import_module("orthobandit.peers"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
