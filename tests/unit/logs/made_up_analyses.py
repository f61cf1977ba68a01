"""Analyses made by hand, also awkward ones."""

from dataclasses import replace

import numpy as np

from orthobandit.logs import Analysis
from orthobandit.logs.results import (
    ArmSummary,
    Diagnostic,
    Effect,
    Heterogeneity,
    MetricResult,
    Moment,
    Rival,
    SegmentResult,
    Value,
)

MODE = "asymptotic intervals that hold at all times at once"
NOTHING = (None, None)
START = 1_700_000_000.0
HOUR = 3600.0


def effect(arm, over, gap, half, verdict=None):
    if arm == over:
        return Effect(arm, over, 0.0, (0.0, 0.0), (0.0, 0.0), NOTHING, "reference", None)
    said = verdict or ("better" if gap > half else "worse" if gap < -half else "undecided")
    more = (41_000.0, 12_000.0, float("inf")) if said == "undecided" else None
    low, high = gap - half, gap + half
    return Effect(
        arm, over, gap, (low, high), (gap - half / 2, gap + half / 2), (10 * low, 10 * high), said, more
    )


def history(gaps, moments):
    generator = np.random.default_rng(3)
    out = []
    for place in range(moments):
        level = 0.1 + 0.05 * np.sin(place / 8)
        half = 1.0 / np.sqrt(place + 1)
        noise = generator.normal(scale=half / 4, size=len(gaps))
        middle = [0.0 if arm == 0 else gap + noise[arm] for arm, gap in enumerate(gaps)]
        is_dark = place == 0  # the first bucket cannot tell
        shares = generator.dirichlet(np.full(len(gaps), 50.0))
        out.append(
            Moment(
                time=START + HOUR * place,
                rows=100,
                level=None if place % 7 == 3 else float(level),
                forecast=None if is_dark else float(level + 0.01),
                estimates=tuple(None if is_dark else float(value) for value in middle),
                lows=tuple(None if is_dark else float(value - half) for value in middle),
                highs=tuple(None if is_dark else float(value + half) for value in middle),
                shares=tuple(map(float, shares)),
            )
        )
    return tuple(out)


def metric(labels, name="clicked", kind="reward", moments=50, half=0.02):
    gaps = [0.0] + [0.03 - 0.025 * place for place in range(len(labels) - 1)]
    best = labels[int(np.argmax(gaps))]
    return MetricResult(
        name=name,
        kind=kind,
        mode=MODE,
        delta=0.05,
        margin=0.01 if kind == "guardrail" else None,
        effects=tuple(effect(label, labels[0], gap, half) for label, gap in zip(labels, gaps, strict=True)),
        against_best=tuple(
            effect(label, best, gap - max(gaps), half) for label, gap in zip(labels, gaps, strict=True)
        ),
        droppable=tuple(label for label, gap in zip(labels, gaps, strict=True) if gap < max(gaps) - half),
        summaries=tuple(
            ArmSummary(label, 12_345, 1 / len(labels), 1 / len(labels), 0.1034, 0.0, 0.0) for label in labels
        ),
        saved={"mean": 0.0, "seasonal": 0.41, "covariates": 0.12},
        baseline="seasonal",
        level=(0.09, 0.11),
        history=history(gaps, moments),
    )


def found(labels=("control", "blue"), moments=50, **changed):
    first = metric(labels, moments=moments)
    analysis = Analysis(
        sentence=f"Choose {labels[1]!r}: it is better than {labels[0]!r}.",
        rows=12_345 * len(labels),
        buckets=moments,
        bucket="an hour",
        reference=labels[0],
        labels=tuple(labels),
        metrics=(first,),
        diagnostics=(Diagnostic("sample ratio", "fine", "Rows are as planned.", 0.4),),
    )
    return replace(analysis, **changed)


def everything(labels=("control", "blue", "green"), moments=50):
    """Return an analysis with all parts."""
    return found(
        labels,
        moments,
        metrics=(
            metric(labels, moments=moments),
            metric(labels, "revenue", "metric", moments),
            metric(labels, "revenue/click", "ratio", moments),
            metric(labels, "latency", "guardrail", moments),
        ),
        diagnostics=(
            Diagnostic("sample ratio", "alarm", "Arms were drawn otherwise than planned.", 1e-9, "mobile"),
            Diagnostic("missing", "note", "3 % of the rows of 'blue' have no value."),
            Diagnostic("blind buckets", "fine", "All buckets can tell arms apart."),
        ),
        segments=tuple(
            SegmentResult(name, 9000, tuple(effect(label, labels[0], 0.02, 0.05) for label in labels))
            for name in ("desktop", "mobile")
        ),
        heterogeneity=(
            Heterogeneity(labels[1], labels[0], 0.004, (("desktop", "mobile"),)),
            *(Heterogeneity(label, labels[0], 0.6, ()) for label in labels[2:]),
        ),
        rivals=tuple(
            Rival(method, label, labels[0], 0.02 + place / 100, (-0.1, 0.2 + place / 10), f"{method} assumes")
            for place, method in enumerate(("naive means", "inverse weights", "MAD"))
            for label in labels[1:]
        ),
        value=Value(0.0123, (0.001, 0.024), "exact intervals"),
        notes=("2 units were seen in several arms; their first counts.",),
    )
