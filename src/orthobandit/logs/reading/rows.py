"""Select the columns of a log under fixed names: time, arm, segment, plan, probabilities and numbers."""

from dataclasses import dataclass, field
from typing import Any

from orthobandit.logs.question import Question
from orthobandit.logs.reading.clock import Clock, is_there, when_of
from orthobandit.logs.reading.engine import Opened, ibis


@dataclass(frozen=True)
class Rows:
    """A table with the columns when, arm, segment, unit and plan (where there are such), p0 …, x0 ….

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
        Columns to add up that units bring along.
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
    parts: dict[str, Any] = {}
    for key in ("arm", "segment", "plan"):
        name = getattr(question, key)
        if name is not None:
            parts[key] = key_of(table[name], opened.schema[name])
    for place, name in enumerate(question.probabilities):
        parts[f"p{place}"] = table[name].cast("float64")
    attributes = tuple(parts)
    if question.unit is not None:
        parts["unit"] = table[question.unit]
    if clock.column is not None:
        parts["when"] = when_of(opened, clock.column)[0]
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


def key_of(column: Any, kind: Any) -> Any:
    """Return a column as a key to group by; NaN and infinities become NULL."""
    if kind.is_floating():
        # NaN is a group of its own in some engines and of NULL in others.
        return ibis().ifelse(is_there(column), column, None)
    is_plain = kind.is_string() or kind.is_numeric()
    return column if is_plain and not kind.is_boolean() else column.cast("string")


def to_float(column: Any, kind: Any) -> Any:
    """Return a column of numbers or of booleans as floats."""
    if kind.is_boolean():
        column = column.cast("int32")
    return column if kind.is_float64() else column.cast("float64")
