"""The paper's figures and its successor's tables, run again: sections, claims and the report."""
