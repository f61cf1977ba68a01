"""Live experiments: ask for an arm, tell its reward, and a log from which everything can be rebuilt."""
