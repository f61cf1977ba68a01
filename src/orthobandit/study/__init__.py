"""Studies: many runs, their figures and their report."""
