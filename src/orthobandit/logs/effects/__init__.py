"""Results of a log: effects, ratios, lifts, quantiles, segments and the value of other probabilities."""
