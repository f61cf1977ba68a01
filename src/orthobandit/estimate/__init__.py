"""From plans and tallies to estimates of the gaps between arms."""

from orthobandit.estimate.orthogonal import Estimate, Moments, OrthogonalRegression
from orthobandit.estimate.plan import Plan
from orthobandit.estimate.tally import Tally

__all__ = ["Estimate", "Moments", "OrthogonalRegression", "Plan", "Tally"]
