"""Text, numbers and figures for people: renders plain data and knows no domain type."""
