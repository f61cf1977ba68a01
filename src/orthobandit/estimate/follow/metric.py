"""Follow one metric of a log: by its cells or, where rows have distributions of their own, by its rows."""

from collections.abc import Sequence

from orthobandit.estimate.follow.averages import Aim
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.by_row import RowFollower
from orthobandit.estimate.follow.cells import Cells, Measure


def follow_metric(cells: Cells, measure: Measure, aims: Sequence[Aim] = ()) -> Follower:
    """Follow a metric through the buckets, or look at the log as a whole if it is all in one, once."""
    if cells.own is not None:
        if aims:
            raise AssertionError("averages that were asked for are followed by cells")
        return RowFollower(cells, measure).run()
    follower = Follower(cells, measure, aims)
    is_whole = len(cells.times) == 1 and not measure.is_sequential
    return follower.run_once() if is_whole else follower.run()
