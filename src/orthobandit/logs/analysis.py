"""Analyse a log: effects with honest intervals, whatever the baseline did, from one GROUP BY."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from orthobandit._checks import check_choice, check_fraction
from orthobandit.errors import ParameterError
from orthobandit.logs.cells import Cells
from orthobandit.logs.checks.diagnostics import diagnose
from orthobandit.logs.follow import Follower, Measure
from orthobandit.logs.metrics import Asked, asked_of, confidence_of, followed, metric_result
from orthobandit.logs.peers.compare import compare as compared_with
from orthobandit.logs.question import BASELINES, MISSING, Question
from orthobandit.logs.reading.buckets import Gathered, cells_of
from orthobandit.logs.reading.formats import read_as
from orthobandit.logs.reading.source import open_source
from orthobandit.logs.results import Analysis, Heterogeneity, MetricResult, SegmentResult, Value
from orthobandit.logs.segments import by_segment
from orthobandit.logs.showing.sentence import sentence_of
from orthobandit.logs.value import aim_of, value_of

Progress = Callable[..., None]
UNITS = {604_800.0: "week", 86_400.0: "day", 3_600.0: "hour", 60.0: "minute", 1.0: "second"}


def analyse(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    table: str | None = None,
    compare: bool = False,
    value: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    **asked: Any,
) -> Analysis:
    """Return what a log of a randomised experiment says of its arms.

    Parameters
    ----------
    source : path, frame, Experiment, Ibis table or URL
        CSV or Parquet (one file, a folder or a pattern), a pandas, polars or pyarrow frame, a live
        experiment, a table reached through Ibis, or the URL of a database with `table`.
    format : {"export", "growthbook", "vw", "obp"}, optional
        A log that is no plain table and knows its columns: :func:`~orthobandit.logs.reading.formats.read_as`.
    table : str, optional
        The table of a database.
    compare : bool
        Whether to set other methods beside ours.
    value : mapping of str to float, optional
        Probabilities of the arms whose reward to compare with the logged ones'.
    progress : callable, optional
        Called with (done, total, what is being done).
    **asked
        Fields of :class:`~orthobandit.logs.question.Question`: the columns `arm` and `reward` at least, for
        sources that do not know theirs; time, split or probabilities or plan with plans, unit, window,
        missing, covariates, segment, metrics, guardrails, ratios, caps, bucket, reference, delta, bounds,
        asymptotic, baseline, fixed.

    Examples
    --------
    >>> import pyarrow
    >>> rng = np.random.default_rng(0)
    >>> hour, arms = np.repeat(np.arange(200), 50), rng.integers(0, 2, 10_000)
    >>> rewards = 5.0 * np.sin(hour / 30.0) + 0.3 * arms + rng.normal(size=10_000)
    >>> log = pyarrow.table({"hour": hour, "page": np.array(["old", "new"])[arms], "reward": rewards})
    >>> found = analyse(log, arm="page", reward="reward", time="hour", split={"old": 0.5, "new": 0.5})
    >>> found.sentence
    "'new' is the best arm by 'reward', with probability 0.95. Its gap over 'old' is +0.2...."
    """
    show = progress or (lambda *_: None)
    show(0, 2, "reading the log")
    read, known = read_as(source, format, asked)
    with open_source(read, table) as opened:
        question = _question(known | opened.fields | asked)
        _check(question)
        gathered = cells_of(opened, question)
    show(1, 2, "computing")
    found = analysis_of(gathered, question, compare=compare, value=value)
    show(2, 2, "done")
    return found


def analysis_of(
    gathered: Gathered, question: Question, *, compare: bool = False, value: Mapping[str, float] | None = None
) -> Analysis:
    """Return what cells say; see :func:`analyse`."""
    cells = gathered.cells
    reference = _reference(question, cells)
    once = question.fixed or len(cells.times) == 1
    asked = asked_of(question, cells)
    measures = [_measure(one, question, gathered, reference, len(asked)) for one in asked]
    aims = [] if value is None else [aim_of(cells, value)]
    followers = [followed(cells, one, () if place else aims) for place, one in enumerate(measures)]
    results = tuple(_result(*parts, once=once) for parts in zip(asked, followers, strict=True))
    diagnostics = diagnose(cells, question, followers[0], gathered.units)
    alarms = tuple(one for one in diagnostics if one.status == "alarm")
    segments: tuple[SegmentResult, ...] = ()
    differ: tuple[Heterogeneity, ...] = ()
    if question.segment is not None:
        segments, differ = by_segment(cells, asked[0], measures[0], once=once)
    return Analysis(
        sentence=sentence_of(results[0], results[1:], alarms),
        rows=cells.rows,
        buckets=len(np.unique(cells.bucket)),
        bucket=bucket_in_words(cells),
        reference=cells.arms.labels[reference],
        labels=cells.arms.labels,
        metrics=results,
        diagnostics=diagnostics,
        segments=segments,
        heterogeneity=differ,
        rivals=compared_with(cells, replace(question, delta=measures[0].delta)) if compare else (),
        value=_value(followers[0], results[0], once=once) if aims else None,
        notes=(*gathered.notes, *_notes(question, cells, measures)),
        is_clock=cells.is_clock,
    )


def bucket_in_words(cells: Cells) -> str:
    """Say how long a bucket is."""
    if not cells.width:
        return "the whole log"
    if not cells.is_clock:
        return f"{cells.width:g}"
    for seconds, name in UNITS.items():
        if cells.width % seconds == 0:
            times = round(cells.width / seconds)
            return name if times == 1 else f"{times} {name}s"
    return f"{cells.width:g} seconds"


def _question(asked: Mapping[str, Any]) -> Question:
    """Return the question, with lists and single names as tuples."""
    known = Question.__dataclass_fields__
    for name in asked:
        check_choice("argument", name, known)
    for name in ("arm", "reward"):
        if asked.get(name) is None:
            raise ParameterError(f"{name}= must name the column of the log that holds the {name}")
    several = ("probabilities", "covariates", "metrics", "guardrails", "ratios")
    fields: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    fields |= {name: _tuple(fields[name]) for name in several if name in fields}
    return Question(**fields)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _check(question: Question) -> None:
    check_fraction("delta", question.delta)
    check_choice("missing", question.missing, MISSING)
    check_choice("baseline", question.baseline, BASELINES)
    if question.bounds is not None:
        low, high = question.bounds
        if not -np.inf < low < high < np.inf:
            raise ParameterError(f"bounds={question.bounds!r} must be two finite numbers, the smaller first")
        if question.covariates:
            raise ParameterError(
                f"bounds={question.bounds!r} and covariates: residuals from covariates need not keep to the"
                " range, so the exact mode is not for them; leave out one of the two"
            )


def _reference(question: Question, cells: Cells) -> int:
    return 0 if question.reference is None else cells.arms.index(question.reference)


def _measure(asked: Asked, question: Question, gathered: Gathered, reference: int, count: int) -> Measure:
    cells = gathered.cells
    covariates = tuple(cells.columns.index(name) for name in question.covariates)
    return Measure(
        column=asked.column,
        denominator=asked.denominator,
        covariates=() if asked.denominator is not None else covariates,
        confidence=confidence_of(asked, question, cells, gathered.is_binary),
        delta=question.delta / count,
        baseline=question.baseline,
        reference=reference,
    )


def _result(asked: Asked, follower: Follower, *, once: bool) -> MetricResult:
    plain, measure = follower, follower.measure
    if measure.covariates:  # the level that a lift is relative to is that of the metric itself
        plain = followed(follower.cells, replace(measure, covariates=()))
    return metric_result(asked, follower, plain, once=once)


def _value(follower: Follower, reward: MetricResult, *, once: bool) -> Value:
    score = follower.scores[1] if follower.scores else None
    return value_of(score, reward.delta, reward.mode, once=once)


def _notes(question: Question, cells: Cells, measures: Sequence[Measure]) -> list[str]:
    """Say what a reader may not expect."""
    out: list[str] = []
    if len(cells.times) == 1 and not question.fixed:
        why = "there is a single bucket" if question.time is not None else "no time column was named"
        out.append(
            f"{why}: the log is looked at as a whole, once, and a baseline that moved is noise; name the time"
            " of each draw to take it out, and for intervals that hold at all times"
        )
    if question.covariates and question.ratios:
        out.append("covariates are not taken from ratios")
    if question.bounds is None and any(one.confidence.is_exact for one in measures):
        out.append("columns that hold only 0 and 1 are taken as bounded; asymptotic=True to do without")
    return out
