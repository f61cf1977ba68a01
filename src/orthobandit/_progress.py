"""How long work tells how far it is: one signature for all that take a `progress` argument."""

from collections.abc import Callable

# Called with (done, total): units of work that are finished, and how many there are. The unit is the
# worker's own (replications, estimated cost, halvings of a gap); the total is the same in every call.
Progress = Callable[[float, float], None]
