"""Times of a log, for people."""

from datetime import UTC, datetime

from orthobandit.logs.cells import Cells


def when(cells: Cells, time: float) -> str:
    """Return a time of the log in words: date and minute (UTC), or the number if the log has no clock."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}" if cells.is_clock else f"{time:g}"
