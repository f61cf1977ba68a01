"""Adaptive experiments that find the best arm, with guarantees, while the baseline moves."""

from orthobandit.arms import ArmSet
from orthobandit.design import Design, anchor_design, centred_design, contrast_design, g_optimal_design
from orthobandit.errors import OrthobanditError
from orthobandit.estimate import Estimate, Moments, OrthogonalRegression, Plan, Tally
from orthobandit.policy import SBE, Decision, Policy, PureExploration

__all__ = [
    "SBE",
    "ArmSet",
    "Decision",
    "Design",
    "Estimate",
    "Moments",
    "OrthobanditError",
    "OrthogonalRegression",
    "Plan",
    "Policy",
    "PureExploration",
    "Tally",
    "anchor_design",
    "centred_design",
    "contrast_design",
    "g_optimal_design",
]
