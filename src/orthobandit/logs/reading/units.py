"""Units with several rows: the first decides what was drawn, and what follows adds up."""

from dataclasses import dataclass, replace
from typing import Any

from orthobandit.logs.question import Question
from orthobandit.logs.reading.engine import SAMPLE, Opened, ibis
from orthobandit.logs.reading.rows import Rows

THINGS = ("unit", "user", "visitor", "customer", "client", "account", "device", "member", "participant")
FEWEST = 20  # values, below which a column names no units
OBVIOUS = {f"{one}{end}" for one in THINGS for end in ("", "_id", "id")}


@dataclass(frozen=True)
class UnitCounts:
    """How many units a log has, over how many rows, and how many of them were seen in several arms."""

    units: int
    rows: int
    in_several_arms: int


def units_of(rows: Rows, window: float | None) -> Rows:
    """Return one row a unit, whose columns are called like those of rows.

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
    table = table.mutate(place=first)
    counted: Any = None
    if window is not None:
        table = table.mutate(begin=table.when.min().over(own))
        length = package.interval(seconds=int(window)) if rows.clock.is_clock else window
        counted = table.when <= table.begin + length
    is_first = table.place == 0
    kept = {name: table[name].max(where=is_first) for name in _fixed(rows)}
    found = table.group_by("unit").aggregate(
        **kept,
        **_totals(table, rows, counted),
        rows=table.count(),
        several=(table.arm.max() != table.arm.min()).cast("int32"),
    )
    found = found.mutate(nameless=found.unit.isnull().cast("int32"))
    return replace(rows, table=found, extra=("rows", "several", "nameless"))


def _fixed(rows: Rows) -> list[str]:
    """Return the columns that the first row decides."""
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


def repeating_unit(opened: Opened, question: Question) -> str | None:
    """Return a note if no unit is named, but the log has a column of units that repeat."""
    if question.unit is not None:
        return None
    used = {question.arm, question.segment, question.time, question.plan, *question.columns}
    for name in opened.schema:
        if name.strip().lower() in OBVIOUS and name not in used and name in opened.sample.column_names:
            values = opened.sample[name].drop_null()
            distinct = len(values.unique())
            if FEWEST <= distinct < len(values):
                return (
                    f"{name!r} repeats ({distinct:,} values in the first {min(len(values), SAMPLE):,} rows):"
                    f" if it names the unit that was randomised, say unit={name!r}, or intervals are"
                    " too narrow"
                )
    return None
