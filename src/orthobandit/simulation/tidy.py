"""A run as tidy columns, and as a curve."""

from typing import TYPE_CHECKING, Any

import numpy as np

from orthobandit._plots import COLOURS, axes_for, bare

if TYPE_CHECKING:
    from orthobandit.simulation.result import RunResult

BAND = (0.05, 0.95)  # levels of the band around a mean


def tidy_tables(result: "RunResult") -> dict[str, dict[str, Any]]:
    """Return the columns of `runs`, a row a replication, and of `curves`, a row a replication and round."""
    marks, numbers = result.checkpoints.size, result.replications
    runs = {
        "replication": numbers.tolist(),
        "regret": result.regret[:, -1].tolist(),
        "stop_time": result.stop_times.tolist(),
        "declared": result.declared.tolist(),
        "is_correct": result.correct.tolist(),
        "plans": result.plans.tolist(),
    }
    curves = {
        "replication": np.repeat(numbers, marks).tolist(),
        "round": np.tile(result.checkpoints, numbers.size).tolist(),
        "regret": result.regret.reshape(-1).tolist(),
    }
    return {"curves": curves, "runs": runs}


def draw_regret(result: "RunResult", axes: Any = None, label: str | None = None) -> Any:
    """Draw the mean regret with its band; further runs on the same axes get further colours."""
    drawn = axes_for(axes)
    summary = result.summary(BAND)
    rounds = np.append(0, summary.checkpoints)
    mean, low, high = (np.append(0.0, values) for values in (summary.regret_mean, *summary.regret_quantiles))
    name = str(result.settings.get("policy", "")) if label is None else label
    colour = COLOURS[len(drawn.lines) % len(COLOURS)]
    drawn.plot(rounds, mean, linewidth=1.8, label=name, color=colour)
    drawn.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)
    drawn.set_xlabel("rounds")
    drawn.set_ylabel("regret (units of reward)")
    drawn.set_xlim(left=0)
    drawn.set_ylim(bottom=0)
    drawn.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    drawn.set_title("line: mean over replications; band: 5 % to 95 % of them", loc="left", fontsize="medium")
    drawn.legend(frameon=False, fontsize="small")
    return bare(drawn)
