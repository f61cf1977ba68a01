"""`orthobandit analyse`: effects with intervals from the log of a finished experiment."""

import argparse
import json
import re
import shlex
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from orthobandit._foundation.files import check_folder, write_text
from orthobandit.cli._output import guide, store_files
from orthobandit.cli._progress import bar
from orthobandit.errors import ParameterError
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.experiment.settings import seconds
from orthobandit.logs.question import (
    ARMS,
    DRAWN,
    FORMATS,
    KNOWN_BEFORE,
    LOG,
    METHOD,
    METRICS,
    ROLES,
    SUMMARY,
    SUMMARY_COLUMNS,
    Quantile,
    Ratio,
    Role,
    RoleKind,
)
from orthobandit.logs.reading.warehouse import DIALECTS, TYPES

Value = TypeVar("Value")
DESCRIPTION = (
    "Estimate the effect of every arm, with intervals that hold however often you look, from a log of who"
    " saw what and the outcome: a file, a folder of files, or a database table. The log is checked first;"
    " the exit code is 1 if a check raises an alarm."
)
# Arguments of the library, and the flags that give them where those have another name.
MEANT = {name: role.flag for name, role in ROLES.items() if role.flag} | {"types": "type"}
ALWAYS = {*ROLES, "types", "table", "format", "value", "compare", "cells"}
FIGURES = {"n": "n", "mean": "mean", "variance": "variance"}  # columns of a summary, unless they are named


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        DESCRIPTION,
        {
            "a test with equal shares": (
                "analyse log.csv --arm variant --reward clicked --time at --split equal"
            ),
            "shares that changed: one column per arm": (
                "analyse log.csv --arm page --reward ordered --time at --probabilities p:old p:new"
            ),
            "a table of a database, by customer, a week each": (
                "analyse postgresql://host/shop --table exposures --arm variant \\\n"
                '    --reward revenue --time at --split "old=.8 new=.2" --unit customer --window 7d \\\n'
                "    --covariate spent_before --guardrail complaints:0.01 --html report.html"
            ),
            "what a rule for telephones would have earned": (
                "analyse log.csv --arm page --reward ordered --time at --probabilities p:A p:B \\\n"
                '    --context mobile --rule "B on telephones=B if mobile >= 0.5 else A"'
            ),
            "daily counts, means and variances instead of rows": (
                "analyse daily.csv --summary --arm variant --time day --split equal \\\n"
                "    --n visitors --mean revenue_mean --variance revenue_variance"
            ),
            "a warehouse that cannot be reached from here: print the SQL, then read its result": (
                "analyse shop.exposures --sql bigquery --arm variant --reward revenue --time at \\\n"
                "    --split equal > cells.sql\n"
                "  orthobandit analyse --cells cells.csv --arm variant --reward revenue --time at \\\n"
                "    --split equal"
            ),
        },
        ["`orthobandit init` writes a log to try, and prints the command for it."],
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        nargs="?",
        help="a CSV or Parquet file, a folder of them, or the URL of a database; with --sql, the name of a"
        " table",
    )
    group = parser.add_argument_group(LOG)
    _add_roles(group)
    group.add_argument("--table", metavar="NAME", help="the table of a database")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="not a plain table: our export, GrowthBook's exposures, Vowpal Wabbit's lines, Open Bandit's"
        " arrays",
    )
    group = parser.add_argument_group(SUMMARY)
    group.add_argument(
        "--summary",
        action="store_true",
        help="the source has count, mean and variance per arm and period (columns n, mean and variance"
        " unless named below)",
    )
    _add_roles(group)
    _add_warehouse(parser)
    for heading in (DRAWN, ARMS):
        _add_roles(parser.add_argument_group(heading))
    group = parser.add_argument_group(METRICS)
    _add_roles(group)
    group.add_argument(
        "--range",
        action="append",
        type=value_range,
        metavar="METRIC=LOW:HIGH",
        help="the range that its values cannot leave, for exact intervals",
    )
    _add_roles(parser.add_argument_group(KNOWN_BEFORE))
    group = parser.add_argument_group(METHOD)
    _add_roles(group)
    group.add_argument(
        "--compare",
        action="store_true",
        default=None,
        help="also show what other methods say about the same log",
    )
    group.add_argument(
        "--value",
        type=probabilities,
        metavar="ARM=P …",
        help='estimate the reward under other probabilities: "a=.2 b=.8"',
    )
    _add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Analyse, write, and print; return 1 if a diagnostic raises an alarm."""
    asked = _asked(options)
    _check_output(options)
    _check_warehouse(options)
    # Engines cost time to import, and help needs none.
    logs = import_module("orthobandit.logs")
    if options.sql is not None:
        print(logs.warehouse_sql(options.source, options.sql, **asked))
        return 0
    source = options.source
    if options.cells is not None:
        source = options.cells
        asked["cells"] = True
    with bar("reading the log") as show:
        analysis = logs.analyse(source, progress=show, **asked)
    files, failure = store_files(lambda: _written(options, analysis))
    if options.json:
        found = analysis.to_json() | {"files": files}
        print(json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print(analysis)
        if files:
            print("\nwrote " + "\n      ".join(files))
    if failure is not None:
        raise failure
    return 1 if analysis.alarms else 0


def _add_roles(group: Any) -> None:
    """Add the flags of all roles whose heading is that of a group."""
    for name, role in ROLES.items():
        if role.group != group.title:
            continue
        if name == "cumulative":
            _add_cumulative(group, role)
            continue
        form = FORMS[role.kind]
        settings = dict(form.settings) | ({"choices": role.choices} if role.choices else {})
        # A flag in the singular is repeated; one of several columns takes all of them at once.
        if role.kind is RoleKind.COLUMNS:
            settings |= {"action": "append"} if role.flag else {"action": "extend", "nargs": "+"}
        group.add_argument(f"--{(role.flag or name).replace('_', '-')}", help=role.line, **settings)


def _add_cumulative(group: Any, role: Role) -> None:
    """Add the two flags of a switch that may also stay unknown."""
    kind = group.add_mutually_exclusive_group()
    kind.add_argument("--cumulative", action="store_true", default=None, help=role.line)
    kind.add_argument(
        "--per-period",
        dest="cumulative",
        action="store_false",
        default=None,
        help="each row counts its own period alone",
    )


def _add_warehouse(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a warehouse that cannot be reached from here")
    group.add_argument(
        "--sql",
        choices=DIALECTS,
        metavar="DIALECT",
        help=f"print the one GROUP BY to run there, and nothing else: {', '.join(DIALECTS)}",
    )
    group.add_argument(
        "--cells",
        metavar="FILE",
        help="what it returned, as CSV or Parquet; all other options as for --sql",
    )
    group.add_argument(
        "--type",
        action="append",
        type=column_type,
        metavar="COLUMN=KIND",
        help="the kind of a column, if not the usual one (time: timestamp; arm, segment, plan, unit: text;"
        f" others: number): {', '.join(TYPES)} (may be repeated)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print everything as JSON")
    group.add_argument("--html", metavar="FILE", help="write one page with pictures that needs no network")
    group.add_argument("--parquet", metavar="FILE", help="write the effects as a tidy table")
    group.add_argument("--save", metavar="FILE", help="write a certificate, for `orthobandit verify`")


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given as arguments of `analyse`, which has the defaults."""
    is_summary = options.summary or any(getattr(options, name) is not None for name in SUMMARY_COLUMNS)
    for name in ("arm",) if is_summary else ("arm", "reward"):
        if getattr(options, name) is None and options.format is None:
            raise ParameterError(f"--{name} is missing; name the column of the log that holds the {name}")
    given: dict[str, Any] = {}
    # What was not given is left out, so that defaults have one home: the library.
    for name, role in ROLES.items():
        value = getattr(options, MEANT.get(name, name))
        if value is not None:
            given[name] = FORMS[role.kind].gather(value)
    if is_summary:
        unnamed = {name: usual for name, usual in FIGURES.items() if name not in given}
        if "std" in given:
            unnamed.pop("variance", None)
        given |= unnamed
    others = {name: getattr(options, name) for name in ("table", "format", "value", "compare")}
    given |= {name: value for name, value in others.items() if value is not None}
    if options.type is not None:
        given["types"] = dict(options.type)
    if options.range is not None:
        pairs = list(options.range)
        if options.bounds is not None:
            if options.reward is None:
                raise ParameterError(
                    "--bounds and --range: name the reward with --reward, or use --range alone"
                )
            pairs.append((options.reward, tuple(options.bounds)))
        given["bounds"] = ranges_of(pairs)
    return given


def _check_warehouse(options: argparse.Namespace) -> None:
    """Check that exactly one thing is to be analysed."""
    if options.sql is not None and options.cells is not None:
        raise ParameterError(
            "--sql prints a question and --cells reads its answer; give one of them at a time"
        )
    if options.source is None and options.cells is None:
        what = (
            "the name of the table"
            if options.sql is not None
            else "a file, a folder or the URL of a database"
        )
        raise ParameterError(f"SOURCE is missing; give {what}")
    if options.type is not None and options.sql is None and options.cells is None:
        raise ParameterError("--type is for --sql and --cells; other sources know the types of their columns")
    for name in ("format", "table"):
        if getattr(options, name) is not None and (options.sql is not None or options.cells is not None):
            raise ParameterError(f"--{name} is for sources that are read here, not for --sql or --cells")


def _check_output(options: argparse.Namespace) -> None:
    """Check before a long run that its results can be written."""
    for flag, example in (
        ("html", "report.html"),
        ("parquet", "effects.parquet"),
        ("save", "certificate.json"),
    ):
        path = getattr(options, flag)
        if path is not None and (path in ("", "-") or Path(path).is_dir()):
            raise ParameterError(f"--{flag} {path!r} is not a file; name one, as in --{flag} {example}")
        if path is not None:
            check_folder(f"--{flag}", Path(path).parent)
    if options.html is not None and options.html == options.save:
        raise ParameterError(f"--html and --save are both {options.html!r}; name two files")


def _written(options: argparse.Namespace, analysis: Any) -> Iterator[Path]:
    """Write the page, the table and the certificate; yield the paths as they are written."""
    if options.html is not None:
        # A URL may hold a password: its last part alone says which log it is.
        write_text(options.html, analysis.html(Path(str(options.source or options.cells)).name))
        yield Path(options.html)
    if options.parquet is not None:
        analysis.to_parquet(options.parquet)
        yield Path(options.parquet)
    if options.save is not None:
        analysis.save(options.save)
        yield Path(options.save)


# Values of the flags: lengths of time, probabilities by arm, margins, caps, ranges. Each function turns the
# text of one flag into what the library takes, and says how to write it where that fails.

BUCKETS = ("minute", "hour", "day", "week")


def duration(text: str) -> float:
    """Return a length of time: seconds of ``7d``, or a plain number in the units of the time column.

    Examples
    --------
    >>> duration("30m"), duration("2w"), duration("250")
    (1800.0, 1209600.0, 250.0)
    """
    try:
        return seconds(_number_or_text(text))
    except ParameterError:
        raise ArgumentTypeError(
            f"{text!r} is not a length of time; write 30m, 12h, 7d or 2w, or a number above 0 in the units of"
            " the time column"
        ) from None


def bucket(text: str) -> str | float:
    """Return the name of a bucket, or its length as :func:`duration`."""
    if text in BUCKETS:
        return text
    try:
        return duration(text)
    except ArgumentTypeError:
        raise ArgumentTypeError(
            f"{text!r} is not a bucket of time; write {', '.join(BUCKETS)}, a length such as 15m or 6h, or a"
            " number above 0 in the units of the time column"
        ) from None


def probabilities(text: str) -> dict[str, float]:
    """Return probabilities by arm, of ``a=.5 b=.5``, ``a=1/3, b=2/3`` or ``'"blue button"=.5 b=.5'``.

    Examples
    --------
    >>> probabilities('"blue button"=3/4 b=.25')
    {'blue button': 0.75, 'b': 0.25}
    """
    # As a shell splits words, but with commas between them too, and without comments: # may begin a label.
    words = shlex.shlex(text, posix=True)
    words.whitespace = " ,\t\n"
    words.whitespace_split = True
    words.commenters = ""
    try:
        items = list(words)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} has a quotation mark that is not closed") from None
    found: dict[str, float] = {}
    for item in items:
        arm, _, share = item.rpartition("=")
        if arm in found:
            raise ArgumentTypeError(f"{text!r} names the arm {arm!r} twice; once is enough")
        found[arm] = _share(text, item, arm, share)
    if not found:
        raise ArgumentTypeError(f"{text!r} names no arm; write arm=probability, as in 'a=.5 b=.5'")
    return found


def split(text: str) -> dict[str, float] | str:
    """Return probabilities by arm, or the word ``equal``."""
    return text if text == "equal" else probabilities(text)


def guardrail(text: str) -> Guardrail:
    """Return the guardrail of ``latency:0.5``, or of ``visits:0.1:lower``."""
    # From the right, since the name of a metric may hold colons.
    given, _, worse = text.rpartition(":") if text.endswith((":higher", ":lower")) else (text, "", "higher")
    metric, _, margin = given.rpartition(":")
    value = _finite(margin)
    if not metric or value is None or value < 0:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC:MARGIN with the harm that is accepted, 0 or more, as in latency:0.5;"
            " where less is worse, visits:0.1:lower"
        )
    return Guardrail(metric, value, worse)


def quantile(text: str) -> Quantile:
    """Return the quantile of ``latency:0.95``, or of ``latency:0.95:100,200,400`` with its thresholds."""
    parts = text.split(":")
    thresholds: tuple[float, ...] = ()
    # The name of a metric may hold colons: what comes after it are a level and perhaps thresholds.
    if len(parts) > 2 and _finite(parts[-2]) is not None:
        ends = [_finite(one) for one in parts.pop().split(",")]
        thresholds = tuple(one for one in ends if one is not None)
        if len(thresholds) < len(ends):
            parts = []
    level = _finite(parts[-1]) if len(parts) > 1 else None
    metric = ":".join(parts[:-1])
    if not metric or level is None or not 0 < level < 1:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC:LEVEL with a level between 0 and 1, as in latency:0.95; thresholds at"
            " which to look may follow, as in latency:0.95:100,200,400"
        )
    return Quantile(level, thresholds, metric)


def noninferiority(text: str) -> tuple[str, float]:
    """Return the metric and the margin of ``crashed:0.002``, or of ``returned:-0.01``."""
    metric, _, margin = text.rpartition(":")
    value = _finite(margin)
    if not metric or not value:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC:MARGIN with the rise that is accepted, as in crashed:0.002, or the"
            " fall, with a minus sign, as in returned:-0.01"
        )
    return metric, value


def ratio(text: str) -> Ratio:
    """Return the ratio of ``revenue/clicks``."""
    numerator, slash, denominator = text.partition("/")
    if not (numerator and slash and denominator) or "/" in denominator:
        raise ArgumentTypeError(f"{text!r} must be two columns with a / between them, as in revenue/clicks")
    return Ratio(numerator, denominator)


def column_type(text: str) -> tuple[str, str]:
    """Return the column and its kind of ``clicked=boolean``."""
    column, _, kind = text.rpartition("=")
    if not column or kind not in TYPES:
        raise ArgumentTypeError(
            f"{text!r} must be COLUMN=KIND with one of {', '.join(TYPES)}, as in clicked=boolean"
        )
    return column, kind


def rule(text: str) -> tuple[str, str]:
    """Return the name and the rule of ``B on telephones=B if mobile >= 0.5 else A``; a rule may be its name.

    Examples
    --------
    >>> rule("phones=B if mobile >= 0.5 else A"), rule("B if mobile == 1 else A")
    (('phones', 'B if mobile >= 0.5 else A'), ('B if mobile == 1 else A', 'B if mobile == 1 else A'))
    """
    # The first = that is no part of a comparison ends the name.
    found = re.match(r"([^=]*[^=<>!\s])\s*=(?!=)\s*(.+)", text)
    name, words = (found[1].strip(), found[2]) if found else (text.strip(), text.strip())
    if not name or not words:
        raise ArgumentTypeError(
            f"{text!r} must be NAME=RULE, as in 'B on telephones=B if mobile >= 0.5 else A'"
        )
    return name, words


def rules_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return rules by name; a name has one."""
    return _by_name(pairs, "--rule", "give every rule a name of its own")


def cap(text: str) -> tuple[str, float]:
    """Return the metric and the largest value that counts of ``revenue=500``."""
    metric, _, largest = text.rpartition("=")
    value = _finite(largest)
    if not metric or value is None:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC=VALUE with the largest value that counts, as in revenue=500"
        )
    return metric, value


def value_range(text: str) -> tuple[str, tuple[float, float]]:
    """Return the metric and where its values must lie of ``clicked=0:1``.

    Examples
    --------
    >>> value_range("clicked=0:1")
    ('clicked', (0.0, 1.0))
    """
    metric, _, ends = text.rpartition("=")
    low, high = (_finite(end) for end in (ends.partition(":")[0], ends.partition(":")[2]))
    if not metric or low is None or high is None or low >= high:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC=LOW:HIGH with the ends of what its values can be, as in clicked=0:1"
        )
    return metric, (low, high)


def ranges_of(pairs: Sequence[tuple[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Return declared ranges by metric; a metric has one."""
    ranges: dict[str, tuple[float, float]] = {}
    for metric, ends in pairs:
        if ranges.setdefault(metric, ends) != ends:
            raise ParameterError(
                f"two ranges are given for {metric!r}; a metric has one: keep --range or --bounds"
            )
    return ranges


def caps_of(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return caps by metric; a metric has one."""
    return _by_name(pairs, "--cap", "a metric has one largest value")


def _by_name(pairs: Sequence[tuple[str, Value]], flag: str, remedy: str) -> dict[str, Value]:
    """Return the values of a flag by name, or raise :class:`ParameterError` if a name is given twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"{flag} is given twice for {twice!r}; {remedy}")
    return values


def _share(text: str, item: str, arm: str, share: str) -> float:
    try:
        value = float(Fraction(share))
    except (ValueError, ZeroDivisionError, OverflowError):
        value = -1.0
    if not arm or not 0 <= value <= 1:
        raise ArgumentTypeError(
            f"{text!r}: {item!r} must be arm=probability with a number from 0 to 1, as in 'a=.5 b=.5' or"
            " 'a=1/3 b=2/3'; labels with spaces stand in quotation marks"
        )
    return value


def _finite(text: str) -> float | None:
    value = _number_or_text(text)
    return value if isinstance(value, float) and isfinite(value) else None


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


class FlagForm(NamedTuple):
    """How a role of one kind is written as a flag.

    Attributes
    ----------
    settings : mapping
        Of the flag, for argparse.
    gather : callable
        What the library takes, of what argparse returns.
    """

    settings: Mapping[str, Any] = {}
    gather: Callable[[Any], Any] = lambda value: value


def _once(metavar: str | None, parse: Callable[[str], Any] = str) -> FlagForm:
    return FlagForm({"metavar": metavar, "type": parse})


def _repeated(metavar: str, parse: Callable[[str], Any], gather: Callable[[Any], Any] = tuple) -> FlagForm:
    return FlagForm({"metavar": metavar, "type": parse, "action": "append"}, gather)


FORMS = {
    RoleKind.COLUMN: _once("COLUMN"),
    RoleKind.COLUMNS: FlagForm({"metavar": "COLUMN"}, tuple),
    RoleKind.ARM: _once("ARM"),
    RoleKind.FILE: _once("FILE"),
    RoleKind.CHOICE: FlagForm(),
    RoleKind.SWITCH: FlagForm({"action": "store_true", "default": None}),
    RoleKind.NUMBER: _once(None, float),
    RoleKind.DURATION: _once("TIME", duration),
    RoleKind.BUCKET: _once("TIME", bucket),
    RoleKind.SPLIT: _once("ARM=P …", split),
    RoleKind.RANGE: FlagForm({"metavar": ("LOW", "HIGH"), "type": float, "nargs": 2}, tuple),
    RoleKind.CAPS: _repeated("METRIC=VALUE", cap, caps_of),
    RoleKind.MARGINS: _repeated("METRIC:MARGIN", noninferiority, dict),
    RoleKind.QUANTILES: _repeated("METRIC:LEVEL", quantile),
    RoleKind.RATIOS: _repeated("N/D", ratio),
    RoleKind.GUARDRAILS: _repeated("METRIC:MARGIN", guardrail),
    RoleKind.RULES: _repeated("NAME=RULE", rule, rules_of),
}
