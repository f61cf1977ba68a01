"""Policies: rules that turn past tallies into the next plan."""

from orthobandit.policy.base import FOREVER, Decision, Policy
from orthobandit.policy.catalogue import POLICIES, named_policy, policy_settings
from orthobandit.policy.explore import PureExploration
from orthobandit.policy.sbe import SBE

__all__ = [
    "FOREVER",
    "POLICIES",
    "SBE",
    "Decision",
    "Policy",
    "PureExploration",
    "named_policy",
    "policy_settings",
]
