"""Several runs side by side: the few numbers that tell policies apart."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from orthobandit._text import text_table
from orthobandit.simulation.result import RunResult

COLUMNS = ("policy", "regret ± s.e.", "median", "95 %", "declared", "wrong", "stop, median", "plans")


def compare(results: Mapping[str, RunResult]) -> list[dict[str, Any]]:
    """Return one row a run, as plain JSON values; None where a number does not exist.

    Regret is at the horizon; `declared` and `wrong` are shares of replications, `wrong` None when nothing was
    declared that could be wrong; `stop_median` is None when half of the replications or more declare nothing;
    `plans` is the most that one replication made.
    """
    return [_row(name, result) for name, result in results.items()]


def _row(name: str, result: RunResult) -> dict[str, Any]:
    summary = result.summary((0.5, 0.95))
    error, stop = summary.regret_error[-1], summary.stop_quantiles[0]
    return {
        "policy": name,
        "settings": result.settings["policy"],
        "regret_mean": float(summary.regret_mean[-1]),
        "regret_error": float(error) if np.isfinite(error) else None,
        "regret_median": float(summary.regret_quantiles[0, -1]),
        "regret_95": float(summary.regret_quantiles[1, -1]),
        "declared": summary.declared,
        "wrong": summary.wrong if summary.declared else None,
        "stop_median": int(stop) if np.isfinite(stop) else None,
        "plans": summary.most_plans,
        "clipped_rounds": int(result.clipped.sum()),
    }


def comparison_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of :func:`compare` as a table to read."""
    return text_table(COLUMNS, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    error = "" if row["regret_error"] is None else f" ± {row['regret_error']:,.1f}"
    stop = "never" if row["stop_median"] is None else f"{row['stop_median']:,}"
    return (
        row["policy"],
        f"{row['regret_mean']:,.1f}{error}",
        f"{row['regret_median']:,.1f}",
        f"{row['regret_95']:,.1f}",
        f"{100 * row['declared']:.1f} %",
        "–" if row["wrong"] is None else f"{100 * row['wrong']:.1f} %",
        stop,
        f"{row['plans']}",
    )
