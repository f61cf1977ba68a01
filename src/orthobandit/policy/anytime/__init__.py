"""Anytime elimination.

================  =============================================================================
``policy``        the settings, and what a user calls: plan, observe, decide, retire, extend
``fields``        the memory of all replications: every field described once
``stages``        warm-up → pilot → evidence: how a finished batch is counted, and what is decided then
``recorded``      the same by the contract of recorded plans: observe, plan, adopt
``all_pairs``     evidence on all pairs of arms
``leaders``       evidence of survivors against arms that have led, for very many arms
``plans``         where to play next
``delta``         how δ is shared out and split over tests, and where boundaries are tightest
``changes``       arms that come and go
================  =============================================================================
"""

from orthobandit.policy.anytime.all_pairs import AllPairs
from orthobandit.policy.anytime.policy import AnytimeElimination
from orthobandit.policy.anytime.stages import AnytimeState

__all__ = ["AllPairs", "AnytimeElimination", "AnytimeState"]
