"""Policies: rules that turn past tallies into the next plan."""

from orthobandit.policy.base import FOREVER, Decision, Policy

__all__ = ["FOREVER", "Decision", "Policy"]
