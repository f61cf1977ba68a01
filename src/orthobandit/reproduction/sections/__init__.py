"""Sections of the report, each declared as data: what is run, claimed, tabled and drawn."""
