"""From plans and tallies to estimates of the gaps between arms."""

from orthobandit.estimate.orthogonal import Estimate, Moments, OrthogonalRegression
from orthobandit.estimate.plan import Centre, Plan
from orthobandit.estimate.tally import Tally

__all__ = ["Centre", "Estimate", "Moments", "OrthogonalRegression", "Plan", "Tally"]
