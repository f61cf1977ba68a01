"""Rows and units of a log under fixed names: time, arm, segment, plan, probabilities and numbers.

If a unit has several rows, the first says what was drawn, and the rewards of all add up.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orthobandit._foundation.types import Whole
from orthobandit.errors import Argument, InputError
from orthobandit.logs.question import Question
from orthobandit.logs.reading.clock import Clock, is_there, seconds_of, when_of
from orthobandit.logs.reading.source import Opened, encode_keys, ibis

MAX_SEGMENTS = 200
NO_SEGMENT = "(missing)"
FEWEST_UNITS = 20  # distinct values, below which a column is a segment
MOST_EXACT = 1_000_000  # rows, above which an engine may count distinct values approximately
# Distinct values per row from which on a column does not repeat: a few double rows are no units. Approximate
# counts are off by some per cent (DuckDB: up to 7 % in 24 trials).
UNREPEATED = 0.98
UNREPEATED_APPROXIMATELY = 0.8


@dataclass(frozen=True)
class Rows:
    """A table with the columns when, arm, segment, unit, plan (those that the log has), p0 …, x0 ….

    Attributes
    ----------
    table : ibis.Table
    clock : Clock
    attributes : tuple of str
        Columns that are fixed when the arm is drawn and by which rows are grouped: arm, segment, plan, p0, ….
    measured, columns : int
        How many of x0 … are metrics, and how many there are.
    is_masked : bool
        Whether x are 0 where they were missing, which m0 … then say with 1.
    extra : tuple of str
        Further columns of units that are added up.
    """

    table: Any
    clock: Clock
    attributes: tuple[str, ...]
    measured: int
    columns: int
    is_masked: bool = False
    extra: tuple[str, ...] = field(default=())


def rows_of(opened: Opened, question: Question, clock: Clock, *, is_masked: bool = False) -> Rows:
    """Return the rows of a log; nothing is read yet."""
    table = opened.table
    parts = attribute_columns(opened, question)
    attributes = tuple(parts)
    if question.unit is not None:
        parts["unit"] = table[question.unit]
    if clock.column is not None:
        parts["when"] = when_of(opened, clock.column, question.time_unit)[0]
    for place, name in enumerate(question.columns):
        value = to_float(table[name], opened.schema[name])
        if is_masked:
            parts[f"m{place}"] = (~is_there(value)).cast("int32")
            # 0 keeps sums finite in every engine; the mask says what it stands for.
            value = ibis().ifelse(is_there(value), value, 0.0)
        parts[f"x{place}"] = value
    return Rows(
        table.select(**parts), clock, attributes, len(question.measured), len(question.columns), is_masked
    )


def attribute_columns(opened: Opened, question: Question) -> dict[str, Any]:
    """Return the columns that say how a row was drawn, by role: arm, segment, plan, and p0, p1, … ."""
    table = opened.table
    parts: dict[str, Any] = {}
    for key in ("arm", "segment", "plan"):
        name = getattr(question, key)
        if name is not None:
            parts[key] = key_of(table[name], opened.schema[name])
    for place, name in enumerate(question.probabilities):
        parts[f"p{place}"] = table[name].cast("float64")
    return parts


def key_of(column: Any, kind: Any) -> Any:
    """Return a column as a key to group by; NaN and infinities become NULL."""
    if kind.is_floating():
        # NaN is a group of its own in some engines and of NULL in others.
        return ibis().ifelse(is_there(column), column, None)
    if kind.is_boolean():
        # Not a cast: engines write booleans in different ways, and DuckDB's reader of CSV returns the text of
        # the file instead, in some queries and not in others.
        return ibis().cases((column, "true"), (~column, "false"))
    return column if kind.is_string() or kind.is_numeric() else column.cast("string")


def segments_of(question: Question, groups: Any) -> tuple[tuple[str, ...], Whole]:
    """Return the segments, and the number of each group's segment (G,)."""
    if question.segment is None:
        return ("",), np.zeros(len(groups), dtype=np.int64)
    keys = encode_keys(groups["segment"])
    if len(keys.texts) > MAX_SEGMENTS:
        raise InputError(
            Argument("segment", question.segment),
            f" has {len(keys.texts):,} values; at most {MAX_SEGMENTS} can be told apart: group them first",
        )
    if np.all(keys.codes >= 0):
        return keys.texts, keys.codes
    return (*keys.texts, NO_SEGMENT), np.where(keys.codes < 0, len(keys.texts), keys.codes)


def to_float(column: Any, kind: Any) -> Any:
    """Return a column of numbers or of booleans as floats."""
    if kind.is_boolean():
        column = column.cast("int32")
    return column if kind.is_float64() else column.cast("float64")


@dataclass(frozen=True)
class UnitCounts:
    """How many units a log has, over how many rows, and how many of them were seen in several arms."""

    units: int
    rows: int
    in_several_arms: int


def units_of(rows: Rows, window: float | None) -> Rows:
    """Return a table with one row per unit, under the same column names.

    Its first row, in order of time and then of the arm, gives time, arm, plan, probabilities, segment and
    covariates. Metrics are sums over its rows within the window; one that is missing in any of these rows is
    missing (NULL).
    """
    table = rows.table
    package = ibis()
    order = [*(["when"] if rows.clock.column else []), *rows.attributes]
    order += [f"x{place}" for place in range(rows.measured, rows.columns)]
    own = package.window(group_by="unit")
    first = package.row_number().over(package.window(group_by="unit", order_by=order))
    # The number of the row within its unit; ties in time are broken by the attributes, the same in every
    # engine.
    table = table.mutate(place=first)
    counted: Any = None
    if window is not None:
        table = table.mutate(begin=table.when.min().over(own))
        length = package.interval(seconds=int(window)) if table.when.type().is_timestamp() else window
        counted = table.when <= table.begin + length
    # max over the single first row is its value: no engine needs a special function for that.
    is_first = table.place == 0
    kept = {name: table[name].max(where=is_first) for name in _fixed(rows)}
    found = table.group_by("unit").aggregate(
        **kept,
        **_totals(table, rows, counted),
        rows=table.count(),
        several=(table.arm.max() != table.arm.min()).cast("int32"),
        # The last time of any row tells whose window is over.
        **({} if window is None else {"last": seconds_of(table.when.max(), is_clock=rows.clock.is_clock)}),
    )
    found = found.mutate(nameless=found.unit.isnull().cast("int32"))
    return replace(rows, table=found, extra=("rows", "several", "nameless"))


def _fixed(rows: Rows) -> list[str]:
    """Return the columns that are taken from the first row."""
    names = [*rows.attributes, *(["when"] if rows.clock.column else [])]
    for place in range(rows.measured, rows.columns):
        names += [f"x{place}", *([f"m{place}"] if rows.is_masked else [])]
    return names


def _totals(table: Any, rows: Rows, counted: Any) -> dict[str, Any]:
    """Return the sums of metrics over rows that count (all of them if None)."""
    package = ibis()
    totals = {}
    for place in range(rows.measured):
        value = table[f"x{place}"]
        total = value.sum(where=counted)
        if rows.is_masked:
            totals[f"m{place}"] = table[f"m{place}"].max(where=counted)
        else:
            total = package.ifelse(value.count(where=counted) == table.count(where=counted), total, None)
        totals[f"x{place}"] = total
    return totals


def repeating_unit(opened: Opened, question: Question, groups: Any, rows: Whole) -> str | None:
    """Return a note if no unit is named, but a column looks like the unit that was randomised.

    Values of such a column repeat, and rows with the same value stay with one arm more than independent draws
    would. A segment, a price, or a user whose arm is drawn at every visit does not behave so.

    Parameters
    ----------
    opened : Opened
    question : Question
    groups : pyarrow.Table
        Of the one GROUP BY, with a column `arm`.
    rows : (G,) array of int
        Of each group.
    """
    names = [] if question.unit is not None else _candidates(opened, question)
    total = int(rows.sum())
    if not names or total < FEWEST_UNITS:
        return None
    arms = groups["arm"].combine_chunks().dictionary_encode()
    by_arm = np.bincount(arms.indices.to_numpy(), rows)
    commonest = int(np.argmax(by_arm))
    share = float(by_arm[commonest]) / total
    counts = _distinct(opened, question, names, arms.dictionary[commonest].as_py(), total <= MOST_EXACT)
    found = {name: one for name, one in counts.items() if _is_unit(one, share, total <= MOST_EXACT)}
    if not found:
        return None
    # Of a user and his sessions, the user is what was randomised: he has the fewest values.
    name = min(found, key=lambda one: found[one].values)
    about = "" if total <= MOST_EXACT else "about "
    return (
        f"{name!r} repeats ({about}{found[name].values:,} values in {found[name].rows:,} rows), and rows with"
        f" the same value keep to one arm: if it names the unit that was randomised, say unit={name!r}"
        f" (--unit {name}), or intervals are too narrow"
    )


def repeated_rows(opened: Opened, total: int) -> str | None:
    """Return a note if some rows are exact copies of others, although rows are otherwise distinct.

    Rows of a table with a day, an arm and an outcome are often alike. A copy is suspicious only where a
    column, such as a time or a number of the row, hardly repeats among rows that are not copies.

    Parameters
    ----------
    opened : Opened
    total : int
        Rows of the log.
    """
    names = opened.sample.column_names
    # Only of files and frames: databases have keys for that, and counting distinct rows would cost them much.
    if not opened.is_ordered or not FEWEST_UNITS <= total <= MOST_EXACT or len(names) < len(opened.schema):
        return None
    table = opened.table.select(names).distinct()
    wanted = {f"d{place}": table[name].nunique() for place, name in enumerate(names)}
    row = opened.fetch(table.aggregate(n=table.count(), **wanted)).to_pylist()[0]
    different = int(row.pop("n"))
    if different >= total or max(row.values()) < UNREPEATED * different:
        return None
    return (
        f"{total - different:,} of {total:,} rows are copies of other rows in every column: was a part of the"
        " log loaded twice? They count as they are"
    )


@dataclass(frozen=True)
class _Distinct:
    """Rows with a value, distinct values, and those among rows of the commonest arm and of all others."""

    rows: int
    values: int
    with_commonest: int
    with_others: int


def _candidates(opened: Opened, question: Question) -> list[str]:
    """Return columns that may name units: text and whole numbers that the analysis does not use."""
    used = {question.arm, question.segment, question.time, question.plan}
    used |= {*question.columns, *question.probabilities}
    return [name for name in opened.schema if name not in used and _may_name(opened, name)]


def _may_name(opened: Opened, name: str) -> bool:
    """Tell whether a column may hold names of units: text, whole numbers or UUIDs."""
    kind = opened.schema[name]
    if not kind.is_floating():
        return bool(kind.is_string() or kind.is_integer() or kind.is_uuid())
    # A frame that lacks some of the numbers of its users holds all of them as floats.
    values = opened.sample[name].drop_null().to_numpy()
    with np.errstate(invalid="ignore"):
        return bool(len(values) and np.all(values == np.floor(values)))


def _distinct(
    opened: Opened, question: Question, names: list[str], commonest: Any, is_exact: bool
) -> dict[str, _Distinct]:
    """Count distinct values of some columns, in one question to the engine."""
    table = opened.table
    is_commonest = key_of(table[question.arm], opened.schema[question.arm]) == commonest
    wanted = {}
    for place, name in enumerate(names):
        column = table[name]
        count = column.nunique if is_exact else column.approx_nunique
        wanted[f"n{place}"] = column.count()
        wanted[f"d{place}"] = count()
        wanted[f"c{place}"] = count(where=is_commonest)
        wanted[f"o{place}"] = count(where=~is_commonest)
    row = opened.fetch(table.aggregate(**wanted)).to_pylist()[0]
    return {
        name: _Distinct(*(int(row[f"{key}{place}"]) for key in "ndco")) for place, name in enumerate(names)
    }


def _is_unit(found: _Distinct, share: float, is_exact: bool) -> bool:
    """Tell whether values repeat and the rows of each stay with one arm."""
    fewest_repeats = UNREPEATED if is_exact else UNREPEATED_APPROXIMATELY
    if not FEWEST_UNITS <= found.values <= fewest_repeats * found.rows:
        return False
    each = found.rows / found.values
    # Of n rows that are drawn anew, both kinds of arm are seen with probability 1 − q^n − (1 − q)^n.
    in_both = found.values * (1.0 - share**each - (1.0 - share) ** each)
    seen_in_both = found.with_commonest + found.with_others - found.values
    # Half of that is far from chance; and where chance is small, counts cannot tell and a note is due.
    room = 0.0 if is_exact else (1.0 - UNREPEATED_APPROXIMATELY) * found.values
    return bool(seen_in_both <= max(in_both / 2.0, room))
