"""Sections of a report: what is run, what it shows, and what that says of the claims."""

from orthobandit.reproduction.sections.base import (
    KINDS,
    Chart,
    Grid,
    Judgement,
    Measured,
    Scope,
    Section,
    tally,
)

__all__ = ["KINDS", "Chart", "Grid", "Judgement", "Measured", "Scope", "Section", "tally"]
