"""`orthobandit analyse`: effects with intervals from the log of a finished experiment."""

import argparse
import json
import re
import shlex
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from orthobandit._foundation.files import check_folder, write_text
from orthobandit.cli._output import guide, store_files
from orthobandit.cli._progress import bar
from orthobandit.errors import InputError, ParameterError
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.experiment.settings import seconds
from orthobandit.logs.question import (
    BASELINES,
    FORMATS,
    MISSING,
    SUMMARY_COLUMNS,
    Quantile,
    Ratio,
)
from orthobandit.logs.reading.clock import PER_SECOND
from orthobandit.logs.reading.warehouse import DIALECTS, TYPES

Value = TypeVar("Value")
DESCRIPTION = (
    "Estimate the effect of every arm, with intervals that hold however often you look, from a log of who"
    " saw what and the outcome: a file, a folder of files, or a database table. The log is checked first;"
    " the exit code is 1 if a check raises an alarm."
)
# Arguments of the library and the flags that give them.
MEANT = {
    "metrics": "metric",
    "covariates": "covariate",
    "guardrails": "guardrail",
    "ratios": "ratio",
    "quantiles": "quantile",
    "caps": "cap",
    "rules": "rule",
    "types": "type",
    "time_unit": "time-unit",
}
# Flags that reach the library under their own name, and those that may be repeated under another.
SINGLE = (
    *("arm", "reward", "time", "time_unit", "arms", "plan", "plans", "split", "unit", "window", "missing"),
    *("segment", "bucket", "reference", "delta", "baseline", "table", "format", "value"),
    *SUMMARY_COLUMNS,
    "cumulative",
)
REPEATED = ("probabilities", "covariates", "context", "metrics", "guardrails", "ratios")
# How the library writes the value of an argument: a tuple, a list, text, a word or a number.
ARGUMENT = r"\([^()]*\)|\[[^\[\]]*\]|'[^']*'|True|False|-?[\d.]+(?:e[-+]?\d+)?"
SWITCHES = ("asymptotic", "fixed", "compare")
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
    _add_columns(parser)
    _add_summary(parser)
    _add_warehouse(parser)
    _add_randomisation(parser)
    _add_metrics(parser)
    _add_known_before(parser)
    _add_method(parser)
    _add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Analyse, write, and print; return 1 if a diagnostic raises an alarm."""
    asked = _asked(options)
    _check_output(options)
    _check_warehouse(options)
    # Engines cost time to import, and help needs none.
    logs = import_module("orthobandit.logs")
    if options.sql is not None:
        try:
            print(logs.warehouse_sql(options.source, options.sql, **asked))
        except InputError as error:
            raise type(error)(flag_words(str(error))) from None
        return 0
    source = options.source
    if options.cells is not None:
        source = options.cells
        asked["cells"] = True
    try:
        with bar("reading the log") as show:
            analysis = logs.analyse(source, progress=show, **asked)
    except InputError as error:
        raise type(error)(flag_words(str(error))) from None
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


def flag_words(message: str) -> str:
    """Return a message with flags for arguments of the library: ``--missing zero``, not ``missing='zero'``.

    Examples
    --------
    >>> flag_words("choose missing='zero', or say fixed=True; bounds=(0.0, 1.0) and covariates=('age',)")
    'choose --missing zero, or say --fixed; --bounds 0.0 1.0 and --covariate age'
    >>> flag_words("caps: 'spend' is not a metric")
    "--cap: 'spend' is not a metric"
    """
    names = "|".join([*SINGLE, *REPEATED, *SWITCHES, *MEANT, "noninferiority", "bounds", "cells"])
    message = re.sub(rf"^({names}): ", lambda found: f"--{MEANT.get(found[1], found[1])}: ", message)
    # Where an ellipsis stands for a value, it is Python that the reader is to write.
    said = re.sub(rf"(?<![\w(.-])({names})=(?!…)({ARGUMENT})?", _flag_of, message)
    return re.sub(
        r"(--[\w-]+) \(\1\)", r"\1", said
    )  # some name the flag themselves, for those who use Python


def _flag_of(found: re.Match[str]) -> str:
    """Return an argument of the library as the flag that gives it."""
    name = found[1]
    value = found[2] or ""
    if name == "cumulative" and value == "False":
        return "--per-period"
    flag = f"--{MEANT.get(name, name)}"
    if value in ("", "True"):
        return flag
    words = re.findall(r"'([^']*)'|([^\s,()'\[\]]+)", value)
    return " ".join([flag, *(text or number for text, number in words)])


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the log")
    group.add_argument("--arm", metavar="COLUMN", help="the arm that was played")
    group.add_argument("--reward", metavar="COLUMN", help="the outcome; larger is better")
    group.add_argument(
        "--time",
        metavar="COLUMN",
        help="when the arm was drawn (default: no time, one look at the whole log)",
    )
    group.add_argument(
        "--time-unit",
        choices=PER_SECOND,
        help="unit of times that are numbers since 1970 (default: numbers are not dates)",
    )
    group.add_argument(
        "--unit",
        metavar="COLUMN",
        help="users with several rows: the first row decides the arm, rewards are summed",
    )
    group.add_argument(
        "--window",
        type=duration,
        metavar="TIME",
        help="how long rewards are summed after the first row: 30m, 12h, 7d (default: no limit)",
    )
    group.add_argument(
        "--missing", choices=MISSING, help="what to do with rows without a reward (default: refuse)"
    )
    group.add_argument("--table", metavar="NAME", help="the table of a database")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="not a plain table: our export, GrowthBook's exposures, Vowpal Wabbit's lines, Open Bandit's"
        " arrays",
    )


def _add_summary(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("aggregated data: one row per arm and period, instead of --reward")
    group.add_argument(
        "--summary",
        action="store_true",
        help="the source has count, mean and variance per arm and period (columns n, mean and variance"
        " unless named below)",
    )
    group.add_argument("--n", metavar="COLUMN", help="how many values (visitors, orders) a row stands for")
    group.add_argument("--mean", metavar="COLUMN", help="their mean")
    group.add_argument("--variance", metavar="COLUMN", help="their sample variance")
    group.add_argument("--std", metavar="COLUMN", help="their standard deviation, instead of the variance")
    group.add_argument("--smallest", metavar="COLUMN", help="the smallest value, if the table has it")
    group.add_argument("--largest", metavar="COLUMN", help="the largest value, if the table has it")
    kind = group.add_mutually_exclusive_group()
    kind.add_argument(
        "--cumulative",
        action="store_true",
        default=None,
        help="each row counts everything up to its time: differenced before use",
    )
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


def _add_randomisation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how arms were drawn (one of)")
    group.add_argument(
        "--split", type=split, metavar="ARM=P …", help='the same for all rows: "a=.5 b=.5", or equal'
    )
    group.add_argument(
        "--probabilities",
        nargs="+",
        action="extend",
        metavar="COLUMN",
        help="one column per arm, or the one with the probability of the arm that was drawn",
    )
    group.add_argument("--plan", metavar="COLUMN", help="which plan a row was drawn from; with --plans")
    group.add_argument(
        "--plans", metavar="FILE", help="the probabilities of each plan: a column plan, and one per arm"
    )
    group = parser.add_argument_group("arms")
    group.add_argument(
        "--arms", metavar="FILE", help="features of the arms (default: they have nothing in common)"
    )
    group.add_argument(
        "--reference", metavar="ARM", help="the arm that others are compared with (default: the first)"
    )


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("metrics (may be repeated)")

    def repeated(flag: str, metavar: str, words: str, kind: Any = str) -> None:
        group.add_argument(flag, action="append", type=kind, metavar=metavar, help=words)

    repeated("--metric", "COLUMN", "another metric; its intervals hold together with the reward's")
    repeated("--quantile", "METRIC:LEVEL", "a median (0.5) or another quantile: latency:0.95", quantile)
    repeated("--ratio", "N/D", "a metric that is a sum over a sum, such as revenue/clicks", ratio)
    harm = "a metric that no arm may raise by more than the margin; METRIC:MARGIN:lower where less is worse"
    repeated("--guardrail", "METRIC:MARGIN", harm, guardrail)
    margin = (
        "show that no arm is worse than the reference arm by more than a margin: crashed:0.002 for a rise,"
        " returned:-0.01 for a fall"
    )
    repeated("--noninferiority", "METRIC:MARGIN", margin, noninferiority)
    repeated("--cap", "METRIC=VALUE", "cut larger values of a metric to VALUE; fix it before you look", cap)
    repeated(
        "--range",
        "METRIC=LOW:HIGH",
        "the range that its values cannot leave, for exact intervals",
        value_range,
    )


def _add_known_before(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("known before the arm was drawn")
    group.add_argument(
        "--covariate",
        action="append",
        metavar="COLUMN",
        help="a number that makes intervals narrower (may be repeated)",
    )
    group.add_argument("--segment", metavar="COLUMN", help="groups: effects in each, and whether they differ")
    group.add_argument(
        "--context",
        nargs="+",
        action="extend",
        metavar="COLUMN",
        help="numbers that effects may depend on: what would each rule have earned, who should get what",
    )
    group.add_argument(
        "--rule",
        action="append",
        type=rule,
        metavar="NAME=RULE",
        help="a rule to judge, with --context: 'B on telephones=B if mobile >= 0.5 else A' (may be repeated)",
    )


def _add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("method")
    group.add_argument(
        "--delta", type=float, help="probability that any interval is ever wrong (default .05)"
    )
    group.add_argument(
        "--bucket",
        type=bucket,
        metavar="TIME",
        help="minute, hour, day, week, or 15m (default: from the data)",
    )
    group.add_argument("--baseline", choices=BASELINES, help="forecast of a bucket's level (default auto)")
    group.add_argument(
        "--bounds",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="the range that rewards cannot leave, for exact intervals (booleans need none)",
    )
    group.add_argument(
        "--asymptotic", action="store_true", help="asymptotic intervals even where exact ones are possible"
    )
    group.add_argument(
        "--fixed", action="store_true", help="ordinary intervals, which hold for a single look"
    )
    group.add_argument(
        "--compare", action="store_true", help="also show what other methods say about the same log"
    )
    group.add_argument(
        "--value",
        type=probabilities,
        metavar="ARM=P …",
        help='estimate the reward under other probabilities: "a=.2 b=.8"',
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
    given: dict[str, Any] = {name: getattr(options, name) for name in SINGLE}
    if is_summary:
        unnamed = {name: usual for name, usual in FIGURES.items() if given[name] is None}
        if given["std"] is not None:
            unnamed.pop("variance", None)
        given |= unnamed
    given |= {name: getattr(options, MEANT.get(name, name)) for name in REPEATED}
    given = {
        name: tuple(found) if name in REPEATED else found
        for name, found in given.items()
        if found is not None
    }
    # What was not given is left out, so that defaults have one home: the library.
    given |= {name: True for name in SWITCHES if getattr(options, name)}
    if options.quantile is not None:
        given["quantiles"] = tuple(options.quantile)
    if options.type is not None:
        given["types"] = dict(options.type)
    if options.rule is not None:
        given["rules"] = rules_of(options.rule)
    if options.noninferiority is not None:
        given["noninferiority"] = dict(options.noninferiority)
    if options.cap is not None:
        given["caps"] = caps_of(options.cap)
    if options.bounds is not None:
        given["bounds"] = tuple(options.bounds)
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
