"""Anytime elimination without a square, for many arms: evidence on pairs with arms that have led.

================  =============================================================================
``against``       evidence of the survivors against one arm, or against the leaders of the moment
``run``           one replication: what a finished batch changes
``plans``         where to play next
``state``         the memory of all replications, and how it is written down and read back
``policy``        what the policy does with such a state
================  =============================================================================
"""
