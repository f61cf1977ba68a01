"""Analyse a log: effects with honest intervals, whatever the baseline did, from one GROUP BY."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.types import Mask
from orthobandit.errors import Argument, InputError, ParameterError
from orthobandit.estimate.confidence.modes import EVENTS, events_needed
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.cells import Cells, Measure
from orthobandit.estimate.follow.rules import RuleCells
from orthobandit.logs.checks import constant_lift, constant_ratios, diagnose, units_found
from orthobandit.logs.effects.effects import NOTHING, follow_metric
from orthobandit.logs.effects.metrics import (
    Asked,
    asked_of,
    confidence_of,
    judge_noninferiority,
    metric_result,
)
from orthobandit.logs.effects.personal import (
    check_draws,
    check_missing,
    follow_personal,
    personal_of,
    reward_of,
)
from orthobandit.logs.effects.quantiles import quantile_result
from orthobandit.logs.effects.ratios import RatioScores, ratio_result
from orthobandit.logs.effects.segments import by_segment
from orthobandit.logs.effects.value import aim_of, value_of
from orthobandit.logs.peers import compare as compared_with
from orthobandit.logs.question import (
    ELEMENTS,
    NUMBERS_BY_NAME,
    OBSERVED,
    ROLES,
    SUMMARY,
    Quantile,
    Question,
    RoleKind,
    Summary,
    spell_out,
)
from orthobandit.logs.reading.clock import day_or_month, time_notes
from orthobandit.logs.reading.formats import read_as
from orthobandit.logs.reading.group_by import Gathered, cells_of
from orthobandit.logs.reading.rule_groups import GatheredRules, rule_cells_of
from orthobandit.logs.reading.source import Opened, open_source, text_of
from orthobandit.logs.reading.summary import cells_of_summary
from orthobandit.logs.reading.warehouse import cells_of_groups, sql_of
from orthobandit.logs.results import (
    Analysis,
    Diagnostic,
    Effect,
    Heterogeneity,
    Interval,
    MetricResult,
    Personal,
    Record,
    SegmentResult,
    Value,
)
from orthobandit.logs.showing.words import effect_words, gap_words, rules_sentence, sentence_of
from orthobandit.showing.numbers import is_known, risk_percent
from orthobandit.showing.text import names_words

ROUNDING = 1e-12  # of a sum of squares
BINARY_ROUNDING = 1e-9  # of a reward that is 0 or 1
WIDE_LIFT = 3.0  # times the gap's interval, relative to the level: lifts as wide are explained
NAMED_PAIRS = 3  # of those whose plain means point the other way
# Missing intervals are taken to wait for events if there are fewer than this multiple of those needed.
LIKELY_WAIT_RATIO = 1.5
Progress = Callable[..., None]
UNITS = {604_800.0: "week", 86_400.0: "day", 3_600.0: "hour", 60.0: "minute", 1.0: "second"}


@spell_out
def analyse(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    table: str | None = None,
    compare: bool = False,
    value: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    cells: bool = False,
    types: Mapping[str, str] | None = None,
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
        Whether to compare with other methods.
    value : mapping of str to float, optional
        Other probabilities of the arms, whose reward is compared with that of the logged ones.
    progress : callable, optional
        Called with (done, total, what is being done).
    cells : bool
        Whether the source is the result of the SQL of :func:`warehouse_sql`.
    types : mapping of str to str, optional
        As for :func:`warehouse_sql`, with `cells`.
    **asked
        Fields of :class:`~orthobandit.logs.question.Question`, which describes them: the columns `arm` and
        `reward` at least, for sources that do not know theirs, and how arms were drawn. Metrics may be names,
        or ``{"latency": Quantile(0.95)}``. With `context`, effects may depend on the visitor, and `rules` say
        who gets which arm. Of aggregated data, instead of `reward`, the columns `n`, `mean`, and `variance`
        or `std` of each arm and period (`smallest` and `largest` where there are such), and whether they are
        `cumulative`: :class:`~orthobandit.logs.question.Summary`.

    Examples
    --------
    >>> import pyarrow
    >>> rng = np.random.default_rng(0)
    >>> hour, arms = np.repeat(np.arange(200), 50), rng.integers(0, 2, 10_000)
    >>> rewards = 5.0 * np.sin(hour / 30.0) + 0.3 * arms + rng.normal(size=10_000)
    >>> log = pyarrow.table({"hour": hour, "page": np.array(["old", "new"])[arms], "reward": rewards})
    >>> found = analyse(log, arm="page", reward="reward", time="hour", split={"old": 0.5, "new": 0.5})
    >>> found.sentence
    "'new' is the best arm by 'reward' (wrong in at most 5 % of logs, once samples are large). Its..."
    """
    show = progress or (lambda *_: None)
    show(0, 2, "reading the log")
    known: dict[str, Any] = {}
    if format is not None:
        source, known = read_as(source, format, asked)
    with open_source(source, table) as opened:
        question = _question(known | opened.fields | asked)
        if asked.get("bounds") is None and question.bounds is not None:
            question = _with_known_ranges(question)
        _check(question)
        if question.context:
            _check_personal(compare=compare, value=value, cells=cells)
            gathered_rules = rule_cells_of(opened, question)
            gathered_rules = replace(
                gathered_rules, notes=gathered_rules.notes + day_or_month(opened, question)
            )
        else:
            # What is compared with other methods or other probabilities is computed from groups of rows.
            by_row = not compare and value is None
            gathered = _gather(opened, question, types or {}, is_returned=cells, by_row=by_row)
            gathered = replace(gathered, notes=gathered.notes + day_or_month(opened, question))
    show(1, 2, "computing")
    if question.context:
        found = personal_analysis_of(gathered_rules, question)
    else:
        found = analysis_of(gathered, question, compare=compare, value=value)
    show(2, 2, "done")
    return found


@spell_out
def warehouse_sql(table: str, dialect: str, *, types: Mapping[str, str] | None = None, **asked: Any) -> str:
    """Return the one GROUP BY of an analysis as SQL, to run where the log lives without a driver for it here.

    Save the result as CSV or Parquet, and call :func:`analyse` on that file with ``cells=True`` and otherwise
    the same arguments.

    Parameters
    ----------
    table : str
        As the warehouse calls it, such as ``"shop.exposures"``.
    dialect : str
        "athena", "bigquery", "clickhouse", "databricks", "duckdb", "mssql", "mysql", "postgres", "snowflake",
        "spark" or "trino".
    types : mapping of str to str, optional
        Kinds of columns, where they are not as usual: "boolean", "date", "integer", "number", "text" or
        "time". Usually the time is a timestamp; arm, segment, plan and unit are text; all else are numbers.
    **asked
        As for :func:`analyse`.

    Examples
    --------
    >>> sql = warehouse_sql("log", "bigquery", arm="page", reward="paid", time="at", split="equal")
    >>> sql.count("GROUP BY")
    1
    """
    question = _question(asked)
    _check(question)
    return sql_of(table, question, dialect, types)


def _gather(
    opened: Opened, question: Question, types: Mapping[str, str], *, is_returned: bool, by_row: bool
) -> Gathered:
    """Return the cells: of a log of rows, of aggregated data, or as a warehouse returned them."""
    if is_returned:
        return cells_of_groups(opened, question, types)
    if types:
        raise ParameterError(
            Argument("types", dict(types)),
            " are for ",
            Argument("cells", True),
            "; this log has types of its own",
        )
    if question.summary is not None:
        return cells_of_summary(opened, question)
    return cells_of(opened, question, by_row=by_row)


def analysis_of(
    gathered: Gathered, question: Question, *, compare: bool = False, value: Mapping[str, float] | None = None
) -> Analysis:
    """Return the analysis of cells; see :func:`analyse`."""
    is_over, unfinished = find_finished(gathered, question)
    cells = gathered.cells if is_over.all() else gathered.cells.only(is_over)
    reference = _reference(question, cells)
    # Who names the time may come back when the log has grown. A look inside the first bucket that spent δ
    # on an ordinary interval would be followed by a sequence that spends δ again.
    once = question.fixed or question.time is None
    # δ is shared equally by all that was asked for; see `_measure`.
    asked = asked_of(question, cells)
    count = len(asked) + len(gathered.quantiles)
    measures = [_measure(one, question, gathered, reference, count) for one in asked]
    _check_numbers("value", value)
    aims = [] if value is None else [aim_of(cells, {text_of(label): p for label, p in value.items()})]
    reward = follow_metric(cells, replace(measures[0], is_recorded=not once), aims)
    ratios = {
        one.name: RatioScores.of(cells, measure)
        for one, measure in zip(asked, measures, strict=True)
        if one.denominator is not None
    }
    followers = [
        None
        if one.denominator is not None
        else reward
        if one.kind == "reward"
        else follow_metric(cells, measure)
        for one, measure in zip(asked, measures, strict=True)
    ]
    results = tuple(
        metric_result(one, follower, once=once)
        if follower is not None
        else ratio_result(cells, one, measure, once=once, scores=ratios[one.name])
        for one, measure, follower in zip(asked, measures, followers, strict=True)
    )
    results += tuple(_quantile_results(gathered, cells, measures[0], once=once))
    diagnostics = (*_contradictions(results), *diagnose(cells, question, reward, gathered.units))
    diagnostics += _relative_drifts(reward, ratios, diagnostics)
    alarms = tuple(one for one in diagnostics if one.status == "alarm")
    segments: tuple[SegmentResult, ...] = ()
    differ: tuple[Heterogeneity, ...] = ()
    if question.segment is not None:
        segments, differ = by_segment(cells, asked[0], measures[0], once=once)
    found = Analysis(
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
        value=_value(reward, results[0], once=once) if aims else None,
        noninferiority=judge_noninferiority(
            results,
            question.noninferiority,
            [one.name for one in asked if one.denominator is None and gathered.is_binary[one.column]],
        ),
        notes=(
            *gathered.notes,
            *unfinished,
            *time_notes(question, cells),
            *_notes(
                question, gathered, asked, measures, is_open=len(results[0].droppable) < len(cells.arms) - 1
            ),
            *_explain_waiting(question, asked, results, followers, once=once),
            *_misleading_means(question, asked, results),
            *_wide_lifts(results[0]),
        ),
        is_clock=cells.is_clock,
        bucket_rule=gathered.bucket_rule,
    )
    # What a certificate rests on is no field: neither equal analyses nor their JSON need the same record.
    object.__setattr__(found, "_record", _record_of(reward))
    return found


def _record_of(reward: Follower) -> Record:
    """Return the data that a certificate of the reward's gaps needs."""
    return Record(
        plans=reward.cells.plans,
        offset=float(reward.cells.offset[reward.measure.column]),
        measure=reward.measure,
        sequence=reward.sequence,
        feeds=reward.feeds,
    )


def personal_analysis_of(gathered: GatheredRules, question: Question) -> Analysis:
    """Return what a log says of rules and of effects by context; see :func:`analyse`."""
    is_over, unfinished = find_finished(gathered, question)
    cells = gathered.cells.only(is_over)
    gathered = replace(gathered, cells=cells)
    once = question.fixed or question.time is None
    scores = follow_personal(gathered, question, once=once)
    personal = personal_of(gathered, scores, once=once)
    reward = reward_of(gathered, question, scores, personal, once=once)
    checks = [check_draws(gathered), check_missing(gathered)]
    if gathered.units is not None:
        units = gathered.units
        checks.append(units_found(units.units, units.rows, units.in_several_arms))
    diagnostics = tuple(one for one in checks if one is not None)
    alarms = tuple(one for one in diagnostics if one.status == "alarm")
    return Analysis(
        sentence=rules_sentence(personal, question.delta, alarms),
        rows=cells.rows,
        buckets=len(np.unique(cells.bucket)),
        bucket=bucket_in_words(cells),
        reference=cells.labels[gathered.reference],
        labels=cells.labels,
        metrics=(reward,),
        diagnostics=diagnostics,
        personal=personal,
        notes=(
            *gathered.notes,
            *unfinished,
            *time_notes(question, cells),
            *_personal_notes(question, gathered, personal),
        ),
        is_clock=cells.is_clock,
        bucket_rule=gathered.bucket_rule,
    )


def _check_personal(*, compare: bool, value: Mapping[str, float] | None, cells: bool) -> None:
    """Refuse options that have no meaning for effects that differ between visitors."""
    given = {"compare": compare, "value": value is not None, "cells": cells}
    for name, is_given in given.items():
        if is_given:
            raise ParameterError(
                Argument("context"),
                " and ",
                Argument(name),
                " together: rules are judged from the rows of a log, by this method alone; leave out ",
                Argument(name),
            )


def _personal_notes(question: Question, gathered: GatheredRules, personal: Personal) -> list[str]:
    """Return notes about rules that a reader may not expect."""
    cells = gathered.cells
    out: list[str] = []
    if personal.one_arm_rows:
        out.append(
            f"{personal.one_arm_rows:,} of {cells.rows:,} rows had one arm only: they tell nothing, and all"
            " rules earn the same there"
        )
    elsewhere = personal.replaced_rows - personal.one_arm_rows
    if elsewhere > 0:
        out.append(
            f"in {elsewhere:,} rows with several arms a rule's arm had the probability 0; the rule then shows"
            f" {cells.labels[gathered.reference]!r}, or the first arm that could be drawn: gains are of rules"
            " that keep to what the log could show"
        )
    if question.time is None and not question.fixed:
        out.append(
            "no time column was named: the log is looked at as a whole, once; name the time of each draw for"
            " intervals that hold at all times"
        )
    elif len(cells.times) == 1 and not question.fixed:
        out.append(_one_bucket_words(cells))
    is_declared = gathered.is_boolean or question.reward in question.ranges
    if not (question.asymptotic or question.fixed or question.time is None or is_declared):
        out += [_undeclared_words([question.reward], is_reward=True)] if _is_reward_binary(cells) else []
    return out


def _is_reward_binary(cells: RuleCells) -> bool:
    """Tell whether all rewards are 0 or 1: values between these that equal their squares."""
    offset = float(cells.offset[0])
    total = cells.products.sum(axis=0)
    rows = float(total[0, 0])
    rewards = float(total[0, 1]) + offset * rows
    squares = float(total[1, 1]) + 2.0 * offset * float(total[0, 1]) + offset**2 * rows
    ends = float(cells.low[:, 1].min()) + offset, float(cells.high[:, 1].max()) + offset
    near = BINARY_ROUNDING
    return abs(ends[0]) <= near and abs(ends[1] - 1.0) <= near and abs(squares - rewards) <= near * rows


def find_finished(gathered: Gathered | GatheredRules, question: Question) -> tuple[Mask, tuple[str, ...]]:
    """Return the cells (G,) of units whose window was over by the end of the log, and a note on the others.

    A late unit would count with only a part of its rewards, so the metric would shrink towards the end of the
    log, and gaps with it.
    """
    cells = gathered.cells
    every = np.ones(len(cells.bucket), dtype=np.bool_)
    if question.unit is None:
        return every, ()
    if question.window is None:
        return every, ("units add up to the end of the log, late ones for a shorter time: give a window",)
    end = np.inf if gathered.end is None else gathered.end
    # By the bucket and not by the unit: all units of a bucket are in or out, whatever they returned.
    is_over = cells.times[cells.bucket] + max(cells.width, gathered.longest) + question.window <= end
    left = int(cells.counts[~is_over].sum())
    if not is_over.any():
        raise InputError(
            Argument("window", question.window),
            " is longer than the log: no unit can be followed for so long",
        )
    note = f"{left:,} units whose window was not over by the end of the log are left out"
    return is_over, (note,) if left else ()


def bucket_in_words(cells: Cells | RuleCells) -> str:
    """Say how long a bucket is."""
    if not cells.width:
        return "the whole log"
    if not cells.is_clock:
        return f"{cells.width:g}"
    # Longest first, so that 86,400 seconds are a day.
    for seconds, name in UNITS.items():
        if cells.width % seconds == 0:
            times = round(cells.width / seconds)
            return name if times == 1 else f"{times} {name}s"
    return f"{cells.width:g} seconds"


def _one_bucket_words(cells: Cells | RuleCells) -> str:
    """Say what to do about a log with a single bucket, from which nothing is claimed."""
    return (
        f"all rows are in one bucket ({bucket_in_words(cells)}), and the first only tells level and"
        " scatter: wait for the next, choose shorter buckets (bucket=, --bucket), or say fixed=True"
        " (--fixed) if this is the one look at a log that is complete"
    )


def _question(asked: Mapping[str, Any]) -> Question:
    """Return the question, with lists and single names as tuples."""
    for name in asked:
        check_choice("argument", name, ROLES)
    fields: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    given = {
        name: fields.pop(name) for name, role in ROLES.items() if role.group == SUMMARY and name in fields
    }
    if given:
        fields |= _summary_fields(given, fields)
    _check_kinds(fields)
    for name in ("arm", "reward"):
        if name not in fields:
            raise ParameterError(Argument(name), f" must name the column of the log that holds the {name}")
    if "reference" in fields:  # an arm may be a number, as in the column
        fields["reference"] = text_of(fields["reference"])
    if isinstance(fields.get("metrics"), Mapping):
        fields |= _metrics_and_quantiles(fields["metrics"])
    for name, role in ROLES.items():
        if name in fields and role.kind in ELEMENTS:
            fields[name] = _tuple(fields[name])
            element = ELEMENTS[role.kind]
            # A column without a name of text is refused where columns are looked up.
            if element is not str and not all(isinstance(entry, element) for entry in fields[name]):
                raise ParameterError(Argument(name, asked[name]), f" must be a list of {element.__name__}")
    return Question(**fields)


def _check_kinds(fields: Mapping[str, Any]) -> None:
    """Raise unless columns are named by text, switches are True or False, and rules are a mapping."""
    for name, role in ROLES.items():
        value = fields.get(name)
        if value is None:
            continue
        if role.kind is RoleKind.COLUMN and not isinstance(value, str):
            raise ParameterError(Argument(name, value), " must be the name of one column")
        if role.kind is RoleKind.SWITCH and not isinstance(value, bool | np.bool_):
            raise ParameterError(Argument(name, value), " must be True or False")
        if role.kind is RoleKind.RULES and not isinstance(value, Mapping):
            raise ParameterError(
                Argument(name, value), " must name rules: {'on telephones': 'B if mobile >= 0.5 else A'}"
            )


def _metrics_and_quantiles(given: Mapping[str, Any]) -> dict[str, Any]:
    """Split a mapping by column into metrics with a mean and quantiles."""
    metrics: list[str] = []
    quantiles: list[Quantile] = []
    for name, kinds in given.items():
        for kind in _tuple(kinds):
            if isinstance(kind, Quantile):
                quantiles.append(replace(kind, metric=name))
            elif kind in (None, "mean"):
                metrics.append(name)
            else:
                raise ParameterError(
                    Argument("metrics", ending=""), f": {kind!r} of {name!r} must be 'mean' or a Quantile"
                )
    return {"metrics": metrics, "quantiles": quantiles}


def _summary_fields(given: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a question about aggregated data."""
    for name in ("n", "mean"):
        if name not in given:
            raise ParameterError(
                Argument(name),
                " is missing: aggregated data have the columns n, mean, and variance or std"
                f"; given: {', '.join(f'{one}={value!r}' for one, value in given.items())}",
            )
    if "reward" in fields:
        raise ParameterError(
            Argument("reward", fields["reward"]),
            " is for a log of single rows; for aggregated data, name n, mean, and variance or std",
        )
    is_stated = any(name in fields for name in ("split", "probabilities", "plan", "plans"))
    stated = {} if is_stated else {"split": OBSERVED}
    return {"summary": Summary(**given), "reward": given["mean"], **stated}


def _with_known_ranges(question: Question) -> Question:
    """Return the question with the ranges its source declares, for metrics that are asked for.

    Residuals from covariates need not keep to a range.
    """
    ranges = {name: ends for name, ends in question.ranges.items() if name in question.measured}
    return replace(question, bounds=None if question.covariates or not ranges else ranges)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _check(question: Question) -> None:
    """Check arguments that reading the log does not check."""
    for name, role in ROLES.items():
        if role.kind in NUMBERS_BY_NAME:
            _check_numbers(name, getattr(question, name))
    for name, bounds in question.ranges.items():
        ends = tuple(bounds) if isinstance(bounds, Sequence) else ()
        are_numbers = len(ends) == 2 and all(isinstance(end, int | float) for end in ends)
        if not (are_numbers and -np.inf < ends[0] < ends[1] < np.inf):
            raise ParameterError(
                Argument("bounds", bounds), f" of {name!r} must be two finite numbers, the smaller first"
            )
    if question.bounds is not None and question.covariates:
        raise ParameterError(
            Argument("bounds"),
            " and ",
            Argument("covariates"),
            " together: residuals from covariates need not keep to"
            " the range, so the exact mode is not for them; leave out one of the two",
        )


def _check_numbers(name: str, given: Any) -> None:
    """Raise unless `given` maps names to numbers."""
    if given is None or isinstance(given, str):
        return
    if not isinstance(given, Mapping):
        raise ParameterError(Argument(name, given), " must name arms or metrics: {'a': 0.5, 'b': 0.5}")
    for label, number in given.items():
        if isinstance(number, bool) or not isinstance(number, int | float | np.number):
            raise ParameterError(Argument(name, ending=""), f": {number!r} of {label!r} must be a number")


def _reference(question: Question, cells: Cells) -> int:
    return 0 if question.reference is None else cells.arms.index(question.reference)


def _measure(asked: Asked, question: Question, gathered: Gathered, reference: int, count: int) -> Measure:
    """Return how one metric is followed: its columns, mode, share of δ and baseline."""
    cells = gathered.cells
    covariates = tuple(cells.columns.index(name) for name in question.covariates)
    return Measure(
        column=asked.column,
        denominator=asked.denominator,
        # A ratio has its own adjustment: the numerator less the ratio times the denominator.
        covariates=() if asked.denominator is not None else covariates,
        confidence=confidence_of(asked, question, cells, gathered.is_boolean, gathered.rounding),
        # Bonferroni over metrics: all their intervals hold together at δ.
        delta=question.delta / count,
        baseline=question.baseline,
        reference=reference,
        is_two_valued=asked.denominator is None
        and not question.covariates
        and bool(gathered.is_binary[asked.column]),
        is_sequential=question.time is not None and not question.fixed,
    )


def _quantile_results(
    gathered: Gathered, cells: Cells, measure: Measure, *, once: bool
) -> Iterator[MetricResult]:
    """Yield the result of every quantile, with the reward's δ, baseline and reference arm."""
    first = 0
    for one in gathered.quantiles:
        yield quantile_result(cells, one, first, measure, gathered.quantiles_from, once=once)
        first += len(one.thresholds)


def _relative_drifts(
    reward: Follower, ratios: Mapping[str, RatioScores], found: Sequence[Diagnostic]
) -> tuple[Diagnostic, ...]:
    """Return the checks of ratios for drift and, for an arm whose gap drifts, that of its lift."""
    if len(reward.cells.times) < 2:
        return ()
    out = [constant_ratios(name, scores) for name, scores in ratios.items()]
    for one in found:
        if one.name == "constant gaps" and one.status == "alarm":
            lift = constant_lift(reward, one.details["arm"])
            out += [] if lift is None else [lift]
    return tuple(out)


def _contradictions(results: Sequence[MetricResult]) -> tuple[Diagnostic, ...]:
    """Return an alarm for every metric whose intervals cannot all be right."""
    return tuple(
        Diagnostic(
            "coherence",
            "alarm",
            f"no gaps of {one.name!r} fit the intervals of all pairs of arms, which happens in at most"
            f" {risk_percent(one.delta)} of sound logs: gaps drift, or rows are not as declared; none is"
            " shown",
        )
        for one in results
        if one.is_contradicted
    )


def _value(follower: Follower, reward: MetricResult, *, once: bool) -> Value:
    score = follower.scores[1] if follower.scores else None
    return value_of(score, reward.delta, reward.mode, once=once)


def _notes(
    question: Question,
    gathered: Gathered,
    asked: Sequence[Asked],
    measures: Sequence[Measure],
    *,
    is_open: bool,
) -> list[str]:
    """Return notes that a reader may not expect; `is_open` says whether the reward leaves several arms."""
    cells = gathered.cells
    out: list[str] = []
    if len(cells.times) == 1 and question.time is None and not question.fixed:
        out.append(
            "no time column was named: the log is looked at as a whole, once, and a baseline that moved is"
            " noise; name the time of each draw to take it out, and for intervals that hold at all times"
        )
    elif len(cells.times) == 1 and not question.fixed:
        out.append(_one_bucket_words(cells))
    useless = [name for name in question.covariates if not _varies(cells, cells.columns.index(name))]
    if useless:
        out.append(
            f"the covariate{'s' if len(useless) > 1 else ''} {', '.join(map(repr, useless))} never"
            f" var{'y' if len(useless) > 1 else 'ies'} within a bucket and arm, and so changed nothing"
        )
    if question.covariates and question.ratios:
        out.append("covariates are not taken from ratios")
    if question.fixed and question.time is not None and is_open:
        out.append(
            "these intervals are for one look at a size fixed beforehand, and it did not decide: to add rows"
            " and look again, use intervals that hold at all times (leave out fixed=True, --fixed)"
        )
    if not (question.asymptotic or question.covariates or question.fixed or len(cells.times) == 1):
        out += _undeclared(gathered, asked, measures)
    # Who named the arms in some order has said which is the first; the data have not.
    is_named = isinstance(question.split, Mapping) or len(question.probabilities) > 1
    if question.reference is None and not (
        is_named or question.plans is not None or question.arms is not None
    ):
        out.append(
            f"gaps are to {cells.arms.labels[0]!r}, the first arm in alphabetical order; to compare with"
            " another, say reference= (--reference)"
        )
    return out


def _misleading_means(
    question: Question, asked: Sequence[Asked], results: Sequence[MetricResult]
) -> Iterator[str]:
    """Say which plain means, shown beside the gaps, point the other way."""
    if question.covariates or question.arms is not None:
        return  # gaps are then adjusted for more than time
    for one, result in zip(asked, results, strict=False):  # quantiles, which come last, have no means
        means = {summary.arm: summary.mean for summary in result.summaries}
        misled = [] if one.denominator is not None else list(_misled(result, means))
        # A pair may be both an arm and the reference, and an arm and the best.
        misled = list({frozenset((effect.arm, effect.over)): effect for effect in reversed(misled)}.values())
        if not misled:
            continue
        shown = [
            f"{means[effect.arm]:,.4g} for {effect.arm!r} and {means[effect.over]:,.4g} for {effect.over!r},"
            f" where the gap of {effect.arm!r} over {effect.over!r} is {_known_gap(effect)}"
            for effect in misled[::-1][:NAMED_PAIRS]
        ]
        more = f"; and {len(misled) - NAMED_PAIRS} more pairs" if len(misled) > NAMED_PAIRS else ""
        yield (
            f"plain means of {one.name!r} point the other way: {'; '.join(shown)}{more}. They mix times in"
            " which the baseline and the shares of arms were different"
        )


def _wide_lifts(reward: MetricResult) -> Iterator[str]:
    """Say why lifts are much less certain than gaps, where they are."""
    means = {one.arm: one.mean for one in reward.summaries}
    wide = [
        one
        for one in reward.effects
        if _width(one.lift) * abs(means.get(one.over) or 0.0) > _width(one.interval) * WIDE_LIFT > 0.0
    ]
    if wide:
        yield (
            f"the lift over {wide[0].over!r} of {names_words(one.arm for one in wide)} is much less certain"
            " than the gap: lifts weigh all rows alike, also those in which an arm was rarely drawn, and gaps"
            " weigh rows by how much they tell"
        )


def _width(interval: Interval) -> float:
    """Return the width of an interval; 0 if an end is not known."""
    low, high = interval
    return high - low if is_known(low) and is_known(high) else 0.0


def _known_gap(effect: Effect) -> str:
    """Return a gap with its interval, or what else is known of it."""
    if effect.interval == NOTHING:
        return f"estimated at {gap_words(effect)}, without an interval yet"
    return effect_words(effect)


def _misled(result: MetricResult, means: Mapping[str, float | None]) -> Iterator[Effect]:
    """Yield the gaps, over the reference arm and over the best, whose intervals contradict the plain means.

    Where there is no interval for all looks, the one for a single look decides. It is not shown, because it
    does not hold for somebody who has looked before.
    """
    for effect in (*result.effects, *result.against_best):
        mean, other = means[effect.arm], means[effect.over]
        low, high = effect.fixed if effect.interval == NOTHING else effect.interval
        if mean is None or other is None or low is None or high is None:
            continue
        if (mean < other and low > 0.0) or (mean > other and high < 0.0):
            yield effect


def _explain_waiting(
    question: Question,
    asked: Sequence[Asked],
    results: Sequence[MetricResult],
    followers: Sequence[Follower | None],
    *,
    once: bool,
) -> Iterator[str]:
    """Explain for each metric without intervals that a few large values are the reason, and what helps.

    Intervals of the asymptotic mode wait until the spread comes from enough values ("events"), so that no
    single one decides.
    """
    # Quantiles, which come last among the results, never wait.
    for one, result, follower in zip(asked, results, followers, strict=False):
        others = [effect for effect in result.effects if effect.verdict != "reference"]
        has_interval = any(effect.interval != NOTHING for effect in others)
        is_known = any(effect.estimate is not None for effect in others)
        if one.denominator is not None or has_interval or not is_known:
            continue
        if follower is None:  # a ratio
            continue
        cells = follower.cells
        arms = len(cells.arms)
        largest, events = _largest_and_events(cells, one.column)
        if not once:
            events = min(events, _pair_events(follower))
        needed = EVENTS if once else float(events_needed(result.delta / (arms * (arms - 1))))
        # The gate looks at residuals, which are a little smaller than values around one mean.
        if events >= LIKELY_WAIT_RATIO * needed:
            continue
        name = one.name
        cap = f"a cap fixed beforehand (caps={{{name!r}: LIMIT}}, --cap {name}=LIMIT)"
        limits = f"a declared range (bounds={{{name!r}: (LOW, HIGH)}}, --range {name}=LOW:HIGH) or {cap}"
        yield (
            f"{name!r} has no intervals yet, because a few large values (up to {largest:,.4g}) carry most of"
            f" the spread of its gaps: it is that of {events:.2g} of the largest, and intervals wait for"
            f" {needed:.0f}. More rows help, and so does {cap if question.covariates else limits}"
        )


def _pair_events(follower: Follower) -> float:
    """Return how many times the largest square of a round the variance of some gap is: the most of any gap.

    A large value weighs more in a round in which its arm had a small probability.
    """
    if follower.sequence is None:
        return float(np.inf)
    evidence = follower.sequence.evidence
    largest = np.broadcast_to(evidence.peaks, evidence.variances.shape) ** 2
    seen = largest > 0
    return float(np.max(evidence.variances[seen] / largest[seen], initial=0.0)) if seen.any() else np.inf


def _largest_and_events(cells: Cells, column: int) -> tuple[float, float]:
    """Return the value farthest from the mean, and how many such values would explain the whole variance."""
    rows = float(cells.counts.sum())
    some = cells.counts > 0
    mean = float(cells.sums[:, column].sum()) / rows
    scatter = float(cells.products[:, column, column].sum()) - rows * mean**2
    high = float(cells.high[some, column].max())
    low = float(cells.low[some, column].min())
    farthest = high if high - mean >= mean - low else low
    apart = (farthest - mean) ** 2
    return farthest + float(cells.offset[column]), scatter / apart if apart else float(np.inf)


def _varies(cells: Cells, column: int) -> bool:
    """Tell whether a column varies within some cell; otherwise its slope is unknown."""
    sums = cells.sums[:, column]
    squares = cells.products[:, column, column]
    scatter = squares - sums**2 / np.maximum(cells.counts, 1)
    return bool(np.any(scatter > ROUNDING * np.abs(squares)))


def _undeclared(gathered: Gathered, asked: Sequence[Asked], measures: Sequence[Measure]) -> list[str]:
    """Name the option that makes intervals exact, for metrics that have held only 0 and 1 so far."""
    names = dict.fromkeys(
        one.name
        for one, measure in zip(asked, measures, strict=True)
        if one.denominator is None and gathered.is_binary[one.column] and not measure.confidence.is_exact
    )
    if not names:
        return []
    first = next(iter(names))
    return [_undeclared_words(list(names), is_reward=first == asked[0].name)]


def _undeclared_words(names: Sequence[str], *, is_reward: bool) -> str:
    """Return the note on metrics that have held only 0 and 1 so far."""
    first = names[0]
    option = "bounds=(0, 1)" if is_reward else f"bounds={{{first!r}: (0, 1)}}"
    flag = "--bounds 0 1" if is_reward else f"--range {first}=0:1"
    have = "has" if len(names) == 1 else "have"
    return (
        f"{', '.join(map(repr, names))} {have} held only 0 and 1 so far, but nobody said that no other value"
        f" can come, so intervals are asymptotic; if none can, say {option} ({flag}) for exact ones, or store"
        " booleans"
    )
