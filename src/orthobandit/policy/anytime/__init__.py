"""Anytime elimination, one file a part.

================  =============================================================================
``policy``        the settings, and what a user calls: plan, observe, decide, retire, extend
``state``         the memory of all replications, and how it is written down and read back
``settings``      what a run reads of its policy, and the length of the warm-up
``run``           one replication: what a finished batch changes
``delta``         how δ is shared out and split over tests, and where boundaries are tightest
``plans``         where to play next
``changes``       arms that come and go
``words``         the policy from words and numbers, as a command line gives them
================  =============================================================================
"""

from orthobandit.policy.anytime.policy import AnytimeElimination
from orthobandit.policy.anytime.state import AnytimeState

__all__ = ["AnytimeElimination", "AnytimeState"]
