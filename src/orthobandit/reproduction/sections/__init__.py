"""Sections of a report: what is run, what it shows, and what that says of the claims."""

from orthobandit.reproduction.sections.base import KINDS, Chart, Grid, Scope, Section, Verdict, tally
from orthobandit.reproduction.sections.measured import Measured

__all__ = ["KINDS", "Chart", "Grid", "Measured", "Scope", "Section", "Verdict", "tally"]
