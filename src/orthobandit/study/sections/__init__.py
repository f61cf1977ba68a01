"""Sections of a report: what is run, what it shows, and what that says of the claims."""

from orthobandit.study.sections.base import KINDS, Chart, Grid, Scope, Section, Verdict, tally
from orthobandit.study.sections.measured import Measured

__all__ = ["KINDS", "Chart", "Grid", "Measured", "Scope", "Section", "Verdict", "tally"]
