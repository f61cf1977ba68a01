"""The question of ``bench_logs`` put to spotify-confidence, by an interpreter that has it.

``python benchmarks/spotify_task.py LOG.csv LITTLE.csv`` prints seconds of the clock and of the processor,
peak megabytes and rows as JSON, after the same on a few rows. It knows no time and looks once: pandas reads
the file and adds up per arm, and a regression takes the covariate off (ZTestLinreg). Nothing of ours is
imported.
"""

import json
import os
import resource
import sys
import time
import warnings
from importlib import import_module

CONTROL = "control"


def rows_of(path: str) -> int:
    """Compare every arm with the control; return the rows that were counted."""
    import pandas as pd

    confidence = import_module("spotify_confidence")
    rows = pd.read_csv(path, parse_dates=["time"])
    rows = rows.assign(
        squares=rows.reward**2, before=rows.covariate**2, cross=rows.reward * rows.covariate, count=1
    )
    columns = ["reward", "squares", "count", "covariate", "before", "cross"]
    sums = rows.groupby("arm")[columns].sum().reset_index()
    test = confidence.ZTestLinreg(
        sums,
        numerator_column="reward",
        numerator_sum_squares_column="squares",
        denominator_column="count",
        feature_column="covariate",
        feature_sum_squares_column="before",
        feature_cross_sum_column="cross",
        categorical_group_columns="arm",
    )
    found = test.multiple_difference(CONTROL, level_as_reference=True)
    assert len(found) == len(sums) - 1, "an arm has no interval"
    return int(sums["count"].sum())


def main(path: str, little: str) -> None:
    """Measure it."""
    warnings.simplefilter("ignore")  # its own, of packages that it uses
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    rows_of(little)
    clock, processor = time.perf_counter(), time.process_time()
    rows = rows_of(path)
    spent = (time.perf_counter() - clock, time.process_time() - processor)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    print(json.dumps([*spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
