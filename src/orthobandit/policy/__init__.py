"""Policies: rules that turn past tallies into the next plan."""

from orthobandit.policy.base import FOREVER, Decision, Policy
from orthobandit.policy.explore import PureExploration
from orthobandit.policy.sbe import SBE

__all__ = ["FOREVER", "SBE", "Decision", "Policy", "PureExploration"]
