"""Confidence at every time at once: modes, boundaries, bets, evidence and intervals of contrasts."""
