"""`orthobandit analyse`: effects with intervals from the log of a finished experiment."""

import argparse
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from orthobandit._foundation.files import check_folder, write_text
from orthobandit.cli._log_values import (
    bucket,
    cap,
    caps_of,
    duration,
    guardrail,
    probabilities,
    ranges_of,
    ratio,
    split,
    value_range,
)
from orthobandit.cli._progress import bar
from orthobandit.cli._words import guide, stored
from orthobandit.errors import ParameterError
from orthobandit.logs.question import BASELINES, MISSING

FORMATS = ("export", "growthbook", "vw", "obp")
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
    "caps": "cap",
}
# Flags that reach the library under their own name, and those that may be repeated under another.
SINGLE = (
    *("arm", "reward", "time", "arms", "plan", "plans", "split", "unit", "window", "missing", "segment"),
    *("bucket", "reference", "delta", "baseline", "table", "format", "value"),
)
REPEATED = ("probabilities", "covariates", "metrics", "guardrails", "ratios")
SWITCHES = ("asymptotic", "fixed", "compare")


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
        },
        ["`orthobandit init` writes a log to try, and prints the command for it."],
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="a CSV or Parquet file, a folder of them, or the URL of a database"
    )
    _add_columns(parser)
    _add_randomisation(parser)
    _add_metrics(parser)
    _add_known_before(parser)
    _add_method(parser)
    _add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Analyse, write, and print; return 1 if a diagnostic raises an alarm."""
    asked = _asked(options)
    _check_output(options)
    # Engines cost time to import, and help needs none.
    analyse = import_module("orthobandit.logs").analyse
    with bar("reading the log") as show:
        analysis = analyse(options.source, progress=show, **asked)
    files, failure = stored(lambda: _written(options, analysis))
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
        "--unit", metavar="COLUMN", help="user with several rows: the first decides, rewards add up"
    )
    group.add_argument(
        "--window",
        type=duration,
        metavar="TIME",
        help="how long they add up: 30m, 12h, 7d (default for ever)",
    )
    group.add_argument(
        "--missing", choices=MISSING, help="what becomes of rows without a reward (default refuse)"
    )
    group.add_argument("--table", metavar="NAME", help="the table of a database")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="not a plain table: our export, GrowthBook's exposures, Vowpal Wabbit's lines, Open Bandit's"
        " arrays",
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
        help="one column an arm, or the one with the probability of the arm that was drawn",
    )
    group.add_argument("--plan", metavar="COLUMN", help="which plan a row was drawn from; with --plans")
    group.add_argument(
        "--plans", metavar="FILE", help="the probabilities of each plan: a column plan, and one per arm"
    )
    group = parser.add_argument_group("arms")
    group.add_argument(
        "--arms", metavar="FILE", help="features of the arms (default: they have nothing in common)"
    )
    group.add_argument("--reference", metavar="ARM", help="what others are compared with (default the first)")


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("metrics (may be repeated)")

    def repeated(flag: str, metavar: str, words: str, kind: Any = str) -> None:
        group.add_argument(flag, action="append", type=kind, metavar=metavar, help=words)

    repeated("--metric", "COLUMN", "a further metric, at a level joint with the reward")
    repeated("--ratio", "N/D", "a metric that is a sum over a sum, such as revenue/clicks", ratio)
    harm = "a metric that no arm may raise by more than the margin; METRIC:MARGIN:lower where less is worse"
    repeated("--guardrail", "METRIC:MARGIN", harm, guardrail)
    repeated("--cap", "METRIC=VALUE", "the largest value that counts, fixed beforehand", cap)
    repeated("--range", "METRIC=LOW:HIGH", "where its values must lie: exact intervals", value_range)


def _add_known_before(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("known before the arm was drawn")
    group.add_argument(
        "--covariate",
        action="append",
        metavar="COLUMN",
        help="a number that makes intervals narrower (may be repeated)",
    )
    group.add_argument("--segment", metavar="COLUMN", help="groups: effects in each, and whether they differ")


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
        help="where rewards must lie: exact intervals (booleans need none)",
    )
    group.add_argument(
        "--asymptotic", action="store_true", help="no exact intervals, even where there could be"
    )
    group.add_argument("--fixed", action="store_true", help="ordinary intervals, for those who look once")
    group.add_argument("--compare", action="store_true", help="what other methods say of the same log")
    group.add_argument(
        "--value",
        type=probabilities,
        metavar="ARM=P …",
        help='the reward of other probabilities: "a=.2 b=.8"',
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print everything as JSON")
    group.add_argument("--html", metavar="FILE", help="write one page with pictures that needs no network")
    group.add_argument("--parquet", metavar="FILE", help="write the effects as a tidy table")
    group.add_argument("--save", metavar="FILE", help="write a certificate, for `orthobandit verify`")


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was given as arguments of the library, which has the defaults."""
    for name in ("arm", "reward"):
        if getattr(options, name) is None and options.format is None:
            raise ParameterError(f"--{name} is missing; name the column of the log that holds the {name}")
    given: dict[str, Any] = {name: getattr(options, name) for name in SINGLE}
    given |= {name: getattr(options, MEANT.get(name, name)) for name in REPEATED}
    given = {
        name: tuple(found) if name in REPEATED else found
        for name, found in given.items()
        if found is not None
    }
    given |= {name: True for name in SWITCHES if getattr(options, name)}
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


def _check_output(options: argparse.Namespace) -> None:
    """Find out before a long run whether its results can be written."""
    for flag, example in (
        ("html", "report.html"),
        ("parquet", "effects.parquet"),
        ("save", "certificate.json"),
    ):
        path = getattr(options, flag)
        if path is not None and (not path or Path(path).is_dir()):
            raise ParameterError(f"--{flag} {path!r} is not a file; name one, as in --{flag} {example}")
        if path is not None:
            check_folder(f"--{flag}", Path(path).parent)
    if options.html is not None and options.html == options.save:
        raise ParameterError(f"--html and --save are both {options.html!r}; name two files")


def _written(options: argparse.Namespace, analysis: Any) -> Iterator[Path]:
    if options.html is not None:
        write_text(options.html, analysis.html())
        yield Path(options.html)
    if options.parquet is not None:
        analysis.to_parquet(options.parquet)
        yield Path(options.parquet)
    if options.save is not None:
        analysis.save(options.save)
        yield Path(options.save)
