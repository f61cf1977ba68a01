"""A log in a warehouse that cannot be reached from here: print the one GROUP BY, and read its result.

The SQL is compiled from the column names alone, without a driver or a connection. Somebody runs it where the
log lives and saves the result as CSV or Parquet. These are the cells from which everything else follows.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice
from orthobandit.errors import Argument, FileFormatError, InputError, ParameterError
from orthobandit.logs.question import Question
from orthobandit.logs.reading.arguments import check_options
from orthobandit.logs.reading.clock import Clock, clock_of
from orthobandit.logs.reading.group_by import Gathered, gather_groups, group_rows, product_pairs
from orthobandit.logs.reading.source import Opened, engine, ibis

# How people call their engine, and what Ibis calls its dialect.
DIALECTS = {
    "athena": "athena",
    "bigquery": "bigquery",
    "clickhouse": "clickhouse",
    "databricks": "databricks",
    "duckdb": "duckdb",
    "mssql": "mssql",
    "mysql": "mysql",
    "postgres": "postgres",
    "snowflake": "snowflake",
    "spark": "databricks",
    "trino": "trino",
}
# Kinds of columns that can be said of a table that is not seen.
TYPES = {
    "boolean": "boolean",
    "date": "date",
    "integer": "int64",
    "number": "float64",
    "text": "string",
    "time": "timestamp",
}
MARK_COLUMN = "question"  # the column that says which question the cells answer
# Standard deviations from 0 at which squares of doubles have lost half of their digits.
TOO_FAR = 1e6


@dataclass(frozen=True)
class Blueprint:
    """The one GROUP BY of a table that is known by its column names alone.

    Attributes
    ----------
    opened : Opened
        An unbound table: it can be compiled, not asked.
    clock : Clock
    groups : ibis.Table
    is_masked : bool
        Whether missing values are counted.
    mark : str
        Identifies the question.
    """

    opened: Opened
    clock: Clock
    groups: Any
    is_masked: bool
    mark: str


def sql_of(table: str, question: Question, dialect: str, types: Mapping[str, str] | None = None) -> str:
    """Return the one GROUP BY of an analysis in the SQL of an engine.

    Parameters
    ----------
    table : str
        As the engine calls it: ``"exposures"``, ``"shop.exposures"`` or ``"project.shop.exposures"``.
    question : Question
    dialect : str
        One of DIALECTS.
    types : mapping of str to str, optional
        Kinds of columns (TYPES) that are not as usual: arm, segment, plan and unit are text, the time is a
        timestamp, all else are numbers.

    Examples
    --------
    >>> asked = Question("arm", "paid", split="equal")
    >>> "AVG" in sql_of("log", asked, "duckdb"), "GROUP BY" in sql_of("log", asked, "bigquery")
    (False, True)
    """
    compiled = DIALECTS[check_choice("dialect", dialect, DIALECTS)]
    plan = _blueprint(table, question, types or {})
    with engine(f"the SQL of {dialect}"):
        return str(ibis().to_sql(plan.groups, dialect=compiled))


def cells_of_groups(returned: Opened, question: Question, types: Mapping[str, str] | None = None) -> Gathered:
    """Return the cells that a warehouse returned for the SQL of :func:`sql_of`.

    Parameters
    ----------
    returned : Opened
        The result, from a file or a frame.
    question, types
        As they were when the SQL was printed.
    """
    plan = _blueprint("log", question, types or {})
    groups = _read_groups(returned, plan)
    if question.time is not None and groups["bucket"].null_count:
        raise InputError(
            Argument("time", question.time), " is missing in some rows of the log; leave these out"
        )
    offset = np.zeros(len(question.columns))
    found = gather_groups(plan.opened, question, plan.clock, groups, offset=offset, is_masked=plan.is_masked)
    _check_digits(question, found)
    schema = plan.opened.schema
    is_boolean = [question.unit is None and schema[name].is_boolean() for name in question.columns]
    return replace(found, is_boolean=np.array(is_boolean))


def _blueprint(table: str, question: Question, types: Mapping[str, str]) -> Blueprint:
    """Return the GROUP BY; nothing is run."""
    check_options(question)
    if question.summary is not None:
        raise ParameterError("aggregated data need no GROUP BY; analyse them as they are")
    if question.context:
        raise ParameterError(
            Argument("context"),
            " and the GROUP BY of a warehouse: rules are judged from the rows of a log; analyse a"
            " copy of the table, or leave out ",
            Argument("context"),
        )
    for one in question.quantiles:
        if not one.thresholds:
            raise ParameterError(
                f"the quantile of {one.metric!r} needs thresholds: nobody has seen the first rows that would"
                f" choose them; say Quantile({one.level:g}, thresholds=[…])"
                f" (--quantile {one.metric}:{one.level:g}:LOWEST,…,HIGHEST)"
            )
    # At run time it may be anything.
    *places, name = table.split(".") if isinstance(table, str) else [""]
    if not name or len(places) > 2 or not all(places):
        raise ParameterError(Argument("table", table), " must be a name such as exposures or shop.exposures")
    database = tuple(places) if len(places) > 1 else (places[0] if places else None)
    opened = Opened(ibis().table(_schema(question, types), name=name, database=database), table)
    is_given = question.bucket is not None or question.time_unit is not None
    if question.time is not None and not is_given and opened.schema[question.time].is_numeric():
        raise ParameterError(
            Argument("time", question.time),
            " holds numbers: say how long a bucket is (",
            Argument("bucket"),
            "), for nobody has seen the first of them, or of what they are a number since 1970 (",
            Argument("time_unit"),
            ")",
        )
    clock = clock_of(opened, question)
    is_masked = question.missing != "refuse"
    guesses = (np.zeros(len(question.columns)), None)
    groups, _ = group_rows(opened, question, clock, guesses, is_masked=is_masked)
    mark = _fingerprint(question, types)
    groups = groups.mutate(**{MARK_COLUMN: ibis().literal(mark)})
    return Blueprint(opened, clock, groups, is_masked, mark)


def _schema(question: Question, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types of all columns, as Ibis calls them."""
    schema = dict.fromkeys((*question.columns, *question.probabilities), "float64")
    keys = (question.arm, question.segment, question.plan, question.unit)
    schema |= {name: "string" for name in keys if name is not None}
    if question.time is not None:
        schema[question.time] = "timestamp" if question.time_unit is None else "int64"
    for name, kind in types.items():
        if name not in schema:
            raise ParameterError(
                Argument("types", ending=""), f": the column {name!r} has no part in the question"
            )
        schema[name] = TYPES[check_choice(f"types[{name!r}]", kind, TYPES)]
    return schema


def _fingerprint(question: Question, types: Mapping[str, str]) -> str:
    """Return a short hash of the GROUP BY, so that the result of another question is refused."""
    asked: dict[str, Any] = {
        "keys": [question.arm, question.segment, question.plan, list(question.probabilities)],
        "time": [question.time, question.bucket],
        "unit": [question.unit, question.window],
        "values": [question.columns, product_pairs(question), dict(question.caps or {})],
        "missing": question.missing,
        "quantiles": [[one.metric, one.thresholds] for one in question.quantiles],
        "types": dict(types),
    }
    # Only where it is given: cells that were made before there was such an option stay readable.
    if question.time_unit is not None:
        asked["time_unit"] = question.time_unit
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]


def _read_groups(returned: Opened, plan: Blueprint) -> Any:
    """Return the groups as a pyarrow table of the right names and types."""
    rows = returned.fetch(returned.table)
    wanted = dict(plan.groups.schema().items())
    # Warehouses differ in the case of names.
    found = {name.lower(): name for name in rows.column_names}
    lacking = [name for name in wanted if name.lower() not in found]
    if lacking:
        raise FileFormatError(
            f"{returned.name} has no column {lacking[0]!r}: it must be the whole result of the SQL that --sql"
            " prints for the same options"
        )
    rows = rows.select([found[name.lower()] for name in wanted]).rename_columns(list(wanted))
    if not len(rows):
        raise InputError(f"{returned.name} has no rows; was the log empty?")
    marks = {str(mark).lower() for mark in rows[MARK_COLUMN].unique().to_pylist()}
    if marks != {plan.mark}:
        raise InputError(
            f"{returned.name} answers another question: its column {MARK_COLUMN!r} holds {min(marks)!r}, and"
            f" these options make {plan.mark!r}; use the options that the SQL was printed with"
        )
    with engine(returned.name, "; is it the result as the warehouse returned it?"):
        return _typed(rows.drop([MARK_COLUMN]), wanted)


def _typed(rows: Any, wanted: Mapping[str, Any]) -> Any:
    """Return the table with counts and sums as the numbers they are."""
    for place, name in enumerate(rows.column_names):
        kind = wanted[name]
        if kind.is_integer() or kind.is_floating():
            numbers = rows[name].cast("float64")
            rows = rows.set_column(place, name, numbers.cast("int64") if kind.is_integer() else numbers)
    return rows


def _check_digits(question: Question, found: Gathered) -> None:
    """Refuse columns so far from 0 that their sums of squares, counted from 0, have lost their digits."""
    cells = found.cells
    rows = max(cells.rows, 1)
    for place, name in enumerate(question.columns):
        mean = float(cells.sums[:, place].sum()) / rows
        square = float(cells.products[:, place, place].sum()) / rows
        if mean**2 > TOO_FAR * max(square - mean**2, 0.0) and not found.is_binary[place]:
            raise InputError(
                f"{name!r} is around {mean:g}, far from 0 beside its scatter, so that sums of squares have"
                " lost their digits; subtract a constant from the column in the warehouse"
            )
