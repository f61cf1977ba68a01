"""What a log says of its arms: effects, ratios, lifts, segments and the value of other probabilities."""
