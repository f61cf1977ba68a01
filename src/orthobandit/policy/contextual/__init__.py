"""Policies for rounds with their own features: each visitor is offered arms as they are for that visitor.

The reward of a round is x_{t,a}ᵀθ + ν_t + noise. The level ν_t is arbitrary and may depend on who comes; only
the effect θ of the arms is modelled.
"""

from orthobandit.policy.contextual.additive import AdditiveNoise
from orthobandit.policy.contextual.base import ContextualPolicy, ContextualState
from orthobandit.policy.contextual.bose import ContextualBOSE
from orthobandit.policy.contextual.ellipsoid import Ellipsoid
from orthobandit.policy.contextual.information_directed import InformationDirected
from orthobandit.policy.contextual.linear import ContextualLinTS, ContextualLinUCB
from orthobandit.policy.contextual.linked import SemiGraphTS
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
from orthobandit.policy.contextual.thompson import (
    CentredThompson,
    ContextualActionCentredTS,
    ContextualSemiparametricTS,
    DebiasedThompson,
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
