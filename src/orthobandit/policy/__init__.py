"""Policies: rules that turn past tallies into the next plan."""

from orthobandit.policy.base import FOREVER, Decision, Policy
from orthobandit.policy.bose import BOSE
from orthobandit.policy.catalogue import POLICIES, named_policy, policy_settings
from orthobandit.policy.explore import PureExploration
from orthobandit.policy.farthest import FarthestPair
from orthobandit.policy.sbe import SBE

__all__ = [
    "BOSE",
    "FOREVER",
    "POLICIES",
    "SBE",
    "Decision",
    "FarthestPair",
    "Policy",
    "PureExploration",
    "named_policy",
    "policy_settings",
]
