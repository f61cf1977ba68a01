"""What was known when: gaps with their bands, the level and its forecast, and who got how many rows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.logs.results import Analysis, MetricResult, Moment
from orthobandit.logs.showing.words import effect_words
from orthobandit.showing.charts import Plot, Scale, Series, band, line, stack
from orthobandit.showing.numbers import is_known, time_words

MARKS = 400  # points of a picture
FEW = 120  # points of each of many
SHARED = 4  # arms that share a scale
PANELS = 12  # pictures that are seen at once
AREAS = 7  # arms with a colour of their own; the rest are one area
EARLY = 1.0  # lengths of the last intervals to which earlier ones are shown
Runs = Sequence[Sequence[Moment]]


def thinned(history: Sequence[Moment], most: int = MARKS) -> list[Sequence[Moment]]:
    """Return a history in at most `most` runs of neighbours, all about as long.

    Examples
    --------
    >>> [len(run) for run in thinned(range(10), 4)]
    [2, 3, 2, 3]
    """
    edges = np.linspace(0, len(history), min(most, len(history)) + 1).astype(int)
    return [history[begin:end] for begin, end in pairwise(edges)]


def gaps_over_time(analysis: Analysis, metric: MetricResult) -> list[Plot]:
    """Return a picture an arm: its gap with the band, as it was known at the time."""
    arms = [place for place, effect in enumerate(metric.effects) if effect.arm != effect.over]
    if len(metric.history) < 2 or not arms:
        return []
    runs = thinned(metric.history, MARKS if len(arms) <= SHARED else FEW)
    moments = [run[-1] for run in runs]
    places, words = _axis(analysis, runs)
    pictures = []
    for arm in arms:
        effect = metric.effects[arm]
        scale = value_scale(moments, arms if len(arms) <= SHARED else [arm])
        lows = [one.lows[arm] for one in moments]
        highs = [one.highs[arm] for one in moments]
        shapes = band(places, lows, highs, scale)
        shapes += line(places, [one.estimates[arm] for one in moments], scale)
        title = f"gap of {effect.arm} to {effect.over} over time; at the end {effect_words(effect)}"
        pictures.append(Plot(title, scale, shapes, words, caption=effect.arm))
    return pictures


def level_over_time(analysis: Analysis, metric: MetricResult) -> Plot | None:
    """Return the level of a metric and what was forecast of it, where any of it is known."""
    runs = thinned(metric.history)
    level = [_mean([one.level for one in run], run) for run in runs]
    forecast = [_mean([one.forecast for one in run], run) for run in runs]
    if len(runs) < 2 or not any(map(is_known, [*level, *forecast])):
        return None
    scale = Scale.around([*level, *forecast])
    places, words = _axis(analysis, runs)
    return Plot(
        f"level of {metric.name} and its forecast",
        scale,
        line(places, level, scale, "line level") + line(places, forecast, scale, "line forecast"),
        words,
        caption=_averaged(metric, runs),
        is_large=True,
        legend=[("level", "level"), ("forecast", "forecast from earlier buckets")],
    )


def shares_over_time(analysis: Analysis, metric: MetricResult) -> Plot | None:
    """Return the share of rows of each arm, on top of each other."""
    runs = thinned(metric.history)
    if len(runs) < 2:
        return None
    shares = _shares(runs)
    order = np.argsort(-shares.mean(axis=1), kind="stable")
    own = np.sort(order if len(order) <= AREAS + 1 else order[:AREAS])
    rest = np.setdiff1d(order, own)
    areas = [*shares[own], *([shares[rest].sum(axis=0)] if len(rest) else [])]
    names = [analysis.labels[arm] for arm in own] + ([f"{len(rest)} other arms"] if len(rest) else [])
    kinds = [f"area c{place}" for place in range(len(own))] + (["area rest"] if len(rest) else [])
    places, words = _axis(analysis, runs)
    return Plot(
        f"share of rows over time: {', '.join(names)}",
        Scale(0.0, 100.0),
        stack(places, [area.tolist() for area in areas], kinds),
        words,
        caption=_averaged(metric, runs),
        is_large=True,
        legend=list(zip(kinds, names, strict=True)),
    )


def value_scale(moments: Sequence[Moment], arms: Sequence[int]) -> Scale:
    """Return a scale with all ends, those long before the last ones only near them."""
    last = moments[-1]
    whole = [end for one in moments for arm in arms for end in (one.lows[arm], one.highs[arm])]
    final = [end for arm in arms for end in (last.lows[arm], last.highs[arm], last.estimates[arm])]
    known = [end for end in whole if is_known(end)]
    near = [end for end in final if is_known(end)]
    if not near:
        return Scale.around([0.0, *known])
    room = EARLY * (max(near) - min(near))
    low = max(min(known, default=0.0), min(near) - room)
    high = min(max(known, default=0.0), max(near) + room)
    return Scale.around([0.0, low, high])


def _axis(analysis: Analysis, runs: Runs) -> tuple[list[float], list[str]]:
    """Return where runs are, as shares of the width, and words for both ends and the middle."""
    times = np.array([run[-1].time for run in runs])
    room = float(times[-1] - times[0])
    if not room > 0:  # numbers of buckets where times do not differ
        return np.linspace(0.0, 1.0, len(runs)).tolist(), ["first bucket", "last bucket"]
    spots = np.linspace(times[0], times[-1], 3)
    return ((times - times[0]) / room).tolist(), [time_words(t, room, analysis.is_clock) for t in spots]


def _mean(values: Series, run: Sequence[Moment]) -> float | None:
    """Return the mean over a run of what is known, by rows."""
    known = [(value, max(one.rows, 0)) for value, one in zip(values, run, strict=True) if is_known(value)]
    if not known:
        return None
    kept, rows = np.array(known, dtype=np.float64).T
    return float(np.average(kept, weights=rows) if rows.sum() else kept.mean())


def _shares(runs: Runs) -> Array:
    """Return the mean share (K, number of runs) of each arm in each run."""
    arms = range(len(runs[0][0].shares))
    return np.array([[_mean([one.shares[arm] for one in run], run) or 0.0 for run in runs] for arm in arms])


def _averaged(metric: MetricResult, runs: Runs) -> str:
    size = len(metric.history) / len(runs)
    return "" if size <= 1 else f"Means of about {size:.0f} buckets each. "
