"""Adaptive experiments that find the best arm, with guarantees, while the baseline moves."""

from orthobandit.arms import ArmSet
from orthobandit.errors import OrthobanditError
from orthobandit.estimate import Estimate, Moments, OrthogonalRegression, Plan, Tally

__all__ = ["ArmSet", "Estimate", "Moments", "OrthobanditError", "OrthogonalRegression", "Plan", "Tally"]
