"""An analysis as a matplotlib figure: effects and their history."""

from typing import Any

from orthobandit._foundation.extras import optional_package
from orthobandit.logs.results import Analysis, MetricResult
from orthobandit.logs.showing.page import PANEL_POINTS, effect_bar, thinned, value_scale
from orthobandit.showing.charts import COLOURS, draw_intervals, intervals_height
from orthobandit.showing.numbers import DAY, is_known
from orthobandit.showing.text import printable

MAX_LINES = 6  # arms that are drawn over time


def figure_of(analysis: Analysis) -> Any:
    """Return effects of the reward on all arms, and over time where there is any, as a matplotlib figure.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    matplotlib.figure.Figure
    """
    pyplot = optional_package("matplotlib.pyplot", "plots", "figures")
    metric = analysis.metrics[0]
    rivals = [effect for effect in metric.effects if effect.arm != effect.over]
    has_time = len(metric.history) > 1 and bool(rivals)
    height = intervals_height(len(rivals))
    figure, axes = pyplot.subplots(
        2 if has_time else 1,
        figsize=(7, height + (3.0 if has_time else 0.0)),
        height_ratios=[height, 3.0] if has_time else None,
        layout="constrained",
        squeeze=False,
    )
    draw_effects(analysis, axes[0, 0])
    if has_time:
        _over_time(axes[1, 0], analysis, metric)
    return figure


def draw_effects(analysis: Analysis, axes: Any = None) -> Any:
    """Draw the gaps of the reward to the reference arm with their intervals; return the axes."""
    metric = analysis.metrics[0]
    drawn = draw_intervals([effect_bar(one) for one in metric.effects if one.arm != one.over], axes)
    drawn.set_title(f"{printable(metric.name)}, gap to {printable(analysis.reference)}", parse_math=False)
    return drawn


def _over_time(axes: Any, analysis: Analysis, metric: MetricResult) -> None:
    """Draw the estimates of the first arms with their bands."""
    moments = [run[-1] for run in thinned(metric.history, PANEL_POINTS)]
    arms = [place for place, effect in enumerate(metric.effects) if effect.arm != effect.over][:MAX_LINES]
    start = moments[0].time
    times = [(one.time - start) / (DAY if analysis.is_clock else 1.0) for one in moments]
    scale = value_scale(moments, arms)
    for place, arm in enumerate(arms):
        estimates = [_or_nan(one.estimates[arm]) for one in moments]
        (drawn,) = axes.plot(times, estimates, color=COLOURS[place])
        drawn.set_label(printable(metric.effects[arm].arm))
        lows = [_or_nan(one.lows[arm]) for one in moments]
        highs = [_or_nan(one.highs[arm]) for one in moments]
        axes.fill_between(times, lows, highs, color=drawn.get_color(), alpha=0.15, linewidth=0)
    axes.set_ylim(scale.low, scale.high)
    axes.axhline(0.0, color="0.3", linewidth=1)
    axes.set_xlabel("days since the first row" if analysis.is_clock else "time since the first row")
    axes.set_ylabel("gap as known at the time")
    for text in axes.legend(frameon=False).get_texts():
        text.set_parse_math(False)


def _or_nan(value: float | None) -> float:
    return value if is_known(value) else float("nan")
