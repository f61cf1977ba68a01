"""Studies: specs of many runs, the paper's figures, and a report that shows them."""
