"""What every request passes: tokens, limits, problems, repeated writes and what is observed of it."""
