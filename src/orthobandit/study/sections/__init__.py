"""Sections of a report: what is run, what it shows, and whether the claim holds."""

from orthobandit.study.sections.base import Chart, Grid, Scope, Section, Verdict

__all__ = ["Chart", "Grid", "Scope", "Section", "Verdict"]
