"""Short names for the types of arrays, and the type of progress callbacks."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Called with (done, total): units of work that are finished, and how many there are. The unit is the
# worker's own (replications, seconds of work, halvings of a gap). The first call says what was done before
# the work began; the total may change as it becomes known better.
Progress = Callable[[float, float], None]
