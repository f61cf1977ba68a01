"""Draws that can be checked: the keyed hash, plans for the edge, exposures and the audit."""
