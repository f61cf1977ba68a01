"""Anytime elimination without a square, for many arms: evidence on pairs with arms that have led.

================  =============================================================================
``against``       evidence of the survivors against one arm, or against the leaders of the moment
``seen``          a batch of rounds as survivors against any arm see it
``run``           one replication: what a finished batch changes
``plans``         where to play next
``state``         the memory of all replications
``storage``       how it is written down and read back
================  =============================================================================
"""
