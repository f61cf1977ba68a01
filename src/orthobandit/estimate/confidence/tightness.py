"""Where boundaries are tightest: the constants that trade early decisions against late ones.

A boundary holds at every time, but it is tightest near one variance V, and wider before and after. Nothing
here changes a guarantee; it changes when a decision falls. The mixtures that make a wrong guess cheap are
``NEAR``, ``WIDE`` and ``EXPECTED`` in :mod:`orthobandit.estimate.confidence.boundaries`.

:mod:`orthobandit.verify`, which imports nothing of the package, has the same numbers: change both.
"""

# Intervals of logs, and those that a live experiment shows beside its decision: the number of rounds at which
# they are tightest.
GUESSED_ROUNDS = 10_000

# Decisions of anytime elimination: tightest at this share of the variance at which the pilot expects the
# decision, …
EARLY = 0.3
# … but at no less, by goal, and at no more than so many times the variance of a batch as long as the pilot:
# a guess that is too small costs little, one that is too large costs much.
LEAST_BATCHES = {"identify": 24.0, "earn": 6.0}
MOST_BATCHES = 600.0
