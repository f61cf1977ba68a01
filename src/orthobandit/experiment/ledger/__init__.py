"""The state of an experiment, computed from its log in assignment order."""
