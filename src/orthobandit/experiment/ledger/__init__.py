"""What an experiment knows, as a fold over its log, in the order of draws."""
