"""Check that a question fits a log: columns, their types, options that contradict, missing values."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice, check_delta, check_positive, nearest
from orthobandit.errors import Argument, InputError, ParameterError, RewardError
from orthobandit.logs.question import METRICS, OBSERVED, ROLES, Question, RoleKind
from orthobandit.logs.reading.clock import is_there
from orthobandit.logs.reading.csv_and_parquet import check_header, check_separator
from orthobandit.logs.reading.rows import to_float
from orthobandit.logs.reading.source import Opened, encode_keys, first_row
from orthobandit.showing.text import visible

DECIMAL_COMMA = re.compile(r"\s*[-+]?\d{1,3}(\.?\d{3})*,\d+\s*")
STATE = (
    "name the columns with each arm's probability (probabilities), or a plan column and its plans (plan,"
    " plans), or the same split for all rows (split, e.g. ",
    Argument("split", "equal"),
    ")",
)
NEEDS_TIME = (" needs a time column; name it with ", Argument("time"))


def check_question(opened: Opened, question: Question) -> None:
    """Refuse a question that cannot be asked of this log; the message names the column and the remedy."""
    # What needs no look at the log comes first: a slip should not wait for a large file to be opened.
    check_options(question)
    check_separator(opened.name, list(opened.schema))
    for role, name in question.roles:
        if name not in opened.schema:
            _refuse_unknown(opened, role, name)
        check_header(opened.name, name, opened.headers)
    # A header without rows has columns, so this comes after they were found.
    if not len(opened.sample):
        raise InputError(f"{opened.name} has no rows; one row per draw is needed")
    for role, name in question.roles:
        if ROLES[role].is_number:
            _check_number(opened, role, name)


def _refuse_unknown(opened: Opened, role: str, name: str) -> None:
    """Raise the error for a column that the log does not have."""
    # The engine takes a later line for the header if the first has another number of fields than most.
    if any(name in header for header in opened.headers):
        raise InputError(
            Argument(role, name),
            f": the first line of {opened.name} names this column, but lines differ in their"
            " number of fields, so a later one was taken for the header; mend the lines",
        )
    raise InputError(
        Argument(role, name), f": {opened.name} has no such column; {nearest(name, opened.schema)}"
    )


def check_options(question: Question) -> None:
    """Refuse options that contradict each other, whatever the log is."""
    _check_settings(question)
    _check_ratios(question)
    _check_summary(question)
    _check_stated(question)
    _check_combinations(question)
    _check_context(question)
    _check_repeats(question)


MAX_CONTEXT_COLUMNS = 8  # columns: sums of all products of four are needed


def _check_settings(question: Question) -> None:
    """Refuse options with values out of range, or for columns that are no metrics."""
    for name, role in ROLES.items():
        if role.kind is RoleKind.CHOICE and getattr(question, name) is not None:
            check_choice(name, getattr(question, name), role.choices)
    if question.time_unit is not None and question.time is None:
        raise ParameterError(Argument("time_unit", question.time_unit), *NEEDS_TIME)
    check_delta(question.delta)
    for name, cap in (question.caps or {}).items():
        if name not in question.measured:
            raise ParameterError(
                Argument("caps", ending=""), f": {name!r} is not a metric; {nearest(name, question.measured)}"
            )
        if not math.isfinite(cap):
            raise ParameterError(
                Argument("caps", ending=""), f": the cap {cap!r} of {name!r} must be a finite number"
            )
    for name, margin in question.noninferiority.items():
        if not (math.isfinite(margin) and margin):
            raise ParameterError(
                Argument("noninferiority", ending=""),
                f": the margin {margin!r} of {name!r} must be a finite number other than 0: by"
                " how much the metric may rise, or with a minus sign, fall",
            )
    for name, bounds in question.ranges.items():
        if name not in question.measured:
            raise ParameterError(
                Argument("bounds", ending=""),
                f": {name!r} is not a metric; {nearest(name, question.measured)}",
            )
        if not bounds[0] < bounds[1]:
            raise ParameterError(
                Argument("bounds", bounds), f" of {name!r} must be a smaller and a larger number"
            )


def _check_ratios(question: Question) -> None:
    """Refuse ratios that are 1 whatever happens."""
    for one in question.ratios:
        if one.numerator == one.denominator:
            raise ParameterError(
                Argument("ratios", ending=""), f": {one.name!r} is the same column twice, and always 1"
            )


def _check_summary(question: Question) -> None:
    """Refuse options that aggregated data cannot answer."""
    summary = question.summary
    if summary is None:
        if question.split == OBSERVED:
            raise ParameterError(
                Argument("split", OBSERVED),
                " is for aggregated data; for a log of rows, state the probabilities",
            )
        return
    if (summary.variance is None) == (summary.std is None):
        raise ParameterError(
            "a summary needs n, mean, and one of variance and std: the columns with the count, the mean and"
            " the spread of the values of each arm and period"
        )
    for name, role in ROLES.items():
        if role.is_of_rows and getattr(question, name):
            raise ParameterError(
                Argument(name, getattr(question, name)),
                " needs single rows; a summary has counts, means and variances of one metric alone",
            )
    others = {*(one.metric for one in question.guardrails), *question.noninferiority} - {question.reward}
    if others:
        raise ParameterError(
            f"a summary has one metric, {question.reward!r}, and not {min(others)!r}; analyse the figures of"
            " each metric by itself"
        )
    if question.split == OBSERVED and question.bounds is not None and not question.asymptotic:
        raise ParameterError(
            Argument("bounds", question.bounds),
            ": exact intervals need the probabilities that arms were drawn with; declare them (",
            Argument("split"),
            "), or say ",
            Argument("asymptotic", True),
        )


def _check_stated(question: Question) -> None:
    """Refuse a question that states no probabilities, or states them twice."""
    ways = {
        "probabilities": bool(question.probabilities),
        "plan and plans": question.plan is not None or question.plans is not None,
        "split": question.split is not None,
    }
    given = [name for name, is_given in ways.items() if is_given]
    if not given:
        raise ParameterError("the probabilities that arms were drawn with are not stated; ", *STATE)
    if len(given) > 1:
        raise ParameterError(f"probabilities are stated twice, by {' and by '.join(given)}; keep one")
    if (question.plan is None) != (question.plans is None):
        lacking = "plans (a file or a mapping)" if question.plans is None else "plan (a column)"
        raise ParameterError(f"plan and plans belong together; {lacking} is not given")
    if isinstance(question.split, Mapping) and not question.split:
        raise ParameterError(Argument("split", {}), " names no arms; give a probability for each")
    if isinstance(question.split, str) and question.split not in ("equal", OBSERVED):
        raise ParameterError(Argument("split", question.split), " must be 'equal' or {arm: probability}")


def _check_combinations(question: Question) -> None:
    """Refuse a window without units, and a window or a bucket without time."""
    if question.window is not None:
        window = check_positive("window", question.window)
        if question.unit is None:
            raise ParameterError(
                Argument("window"),
                " is how long the rows of a unit add up; name the unit with ",
                Argument("unit"),
            )
        if question.time is None:
            raise ParameterError(Argument("window", window), *NEEDS_TIME)
    if question.bucket is not None and question.time is None:
        raise ParameterError(Argument("bucket", question.bucket), *NEEDS_TIME)


def _check_context(question: Question) -> None:
    """Refuse rules without context, too much context, and options that do not go with it."""
    if question.rules and not question.context:
        raise ParameterError(
            Argument("rules", ending=""),
            f" ({', '.join(question.rules)}) look at columns of the log; name them with ",
            Argument("context"),
        )
    if len(question.context) > MAX_CONTEXT_COLUMNS:
        raise ParameterError(
            f"context names {len(question.context)} columns; effects may depend on {MAX_CONTEXT_COLUMNS} at"
            " most: keep those that rules look at"
        )
    given = [
        name
        for name in (*(name for name, role in ROLES.items() if role.is_of_all), "summary")
        if question.context and getattr(question, name)
    ]
    if given:
        raise ParameterError(
            Argument("context", question.context),
            f" and {given[0]}: effects that depend on who comes are judged for"
            f" the reward, by rules; leave out {given[0]}, or ask for it in an analysis without context",
        )


def _check_repeats(question: Question) -> None:
    """Refuse a column with two roles; a metric may be named twice, and is counted once."""
    seen: dict[str, str] = {}
    for role, name in question.roles:
        before = seen.setdefault(name, role)
        both = {before, role}
        # A metric may be reward, guardrail and part of a ratio at once. A covariate that is also the reward
        # would explain it away.
        if before != role and not all(name == "reward" or ROLES[name].group == METRICS for name in both):
            raise ParameterError(f"the column {name!r} is named twice, as {before} and as {role}")
    for role in ("probabilities", "covariates", "context"):
        names = getattr(question, role)
        for name in names:
            if names.count(name) > 1:
                raise ParameterError(Argument(role, ending=""), f" names the column {name!r} twice")


def _check_number(opened: Opened, role: str, name: str) -> None:
    """Refuse a column that does not hold numbers, and say what it holds."""
    kind = opened.schema[name]
    if kind.is_numeric() or kind.is_boolean():
        return
    if not kind.is_string():
        raise InputError(Argument(role, name), f" holds {kind} values, not numbers; convert the column")
    values = [value for value in opened.sample[name].to_pylist() if value is not None]
    texts = [
        (row, value) for row, value in enumerate(opened.sample[name].to_pylist(), 1) if not _is_number(value)
    ]
    # Only if all that are no numbers look so: in a column of text one such value proves nothing.
    if texts and all(DECIMAL_COMMA.fullmatch(value) for _, value in texts):
        raise InputError(
            Argument(role, name),
            f" holds numbers with a comma, such as {texts[0][1]!r}; write them with a point",
        )
    answers = sorted(set(values))
    if len(texts) == len(values) and len(answers) == 2:
        raise InputError(
            Argument(role, name),
            f" holds the words {answers[0]!r} and {answers[1]!r}; write 1 for the one that"
            " counts and 0 for the other",
        )
    if not values:
        raise InputError(Argument(role, name), f" has no value in the first {len(opened.sample):,} rows")
    if not texts:
        raise InputError(Argument(role, name), " holds text; convert the column to numbers")
    row, value = texts[0]
    where = f", first in row {row}" if opened.is_ordered else ""
    raise InputError(
        Argument(role, name),
        f" holds text that is not a number, such as {value!r}{where}; mend these values, or"
        " leave them empty where there is none",
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def refuse_missing(opened: Opened, question: Question) -> None:
    """Raise if metrics are missing (unless zero or drop was chosen) or covariates are (unless drop was)."""
    if question.missing == "drop":
        return
    refused = question.columns if question.missing == "refuse" else question.columns[len(question.measured) :]
    if not refused:
        return
    table = opened.table
    absent = {name: ~is_there(to_float(table[name], opened.schema[name])) for name in refused}
    counted = {f"m{place}": one.cast("int32").sum() for place, one in enumerate(absent.values())}
    groups = opened.fetch(
        table.group_by(arm=table[question.arm].cast("string")).aggregate(n=table.count(), **counted)
    )
    # Shares by arm are in the message: what is missing from one arm alone must not be dropped.
    for place, (name, condition) in enumerate(absent.items()):
        missing = groups[f"m{place}"].to_numpy().astype(np.int64)
        if missing.sum():
            _refuse_column(opened, question, name, first_row(opened, condition), _shares(groups, missing))
    if question.missing == "refuse":
        raise RewardError(
            f"columns {', '.join(refused)}: sums are too large to add up; divide the columns by a constant"
        )


def _shares(groups: Any, missing: Any) -> str:
    """Return the share of missing values by arm, in words."""
    keys = encode_keys(groups["arm"])
    rows = groups["n"].to_numpy()
    shown = [
        f"{visible(keys.texts[keys.codes[place]])} {missing[place] / rows[place]:.2%}"
        for place in np.argsort(keys.codes)[:8]
    ]
    more = f", … ({len(rows)} arms)" if len(rows) > 8 else ""
    return f"{int(missing.sum()):,} of {int(rows.sum()):,} rows ({', '.join(shown)}{more})"


def _refuse_column(opened: Opened, question: Question, name: str, where: str, shares: str) -> None:
    """Raise the error for a column with missing values, with the remedy for its role."""
    is_covariate = name not in question.measured
    what = "metric"
    if is_covariate:
        what = "column of the context" if name in question.context else "covariate"
    remedy = (
        (Argument("missing", "drop"), f" leaves these rows out, or fill the {what} with a constant")
        if is_covariate
        else (
            "choose ",
            Argument("missing", "zero"),
            " (no value means nothing came of it) or ",
            Argument("missing", "drop"),
            " (rows are left out, which biases effects if what is missing depends on the arm)",
        )
    )
    error = InputError if is_covariate else RewardError
    raise error(
        f"the {what} {name!r} is missing or not finite in {shares} of {opened.name}{where}; ", *remedy
    )
