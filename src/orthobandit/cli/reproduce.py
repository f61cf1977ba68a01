"""`orthobandit reproduce`: the paper's figures and its successor's tables, in one report."""

import argparse
import json
from pathlib import Path
from typing import Any

from orthobandit.cli._progress import add_run_options, resumable
from orthobandit.cli._words import guide, offer, stored, whole
from orthobandit.study.paper import SECTIONS
from orthobandit.study.report import chosen, in_words, measure
from orthobandit.study.sections import Scope

MEANT = {"seeds": "seed"}  # an argument and the flag that gives it


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Run the paper's experiments and its successor's again, and write an HTML report of what that shows:"
        " what was claimed, what was measured, and whether it is shown, refuted, or left open.",
        {
            "everything, in minutes": "reproduce --quick",
            "everything, with the runs that decide": "reproduce --full --out full",
            "some parts of it": "reproduce --only figure-1 figure-3",
        },
        [
            "Finished work is kept in the folder of the report: after Ctrl-C the same command goes on. The"
            " exit code is 1 if a claim is refuted, which is a finding and not a failure."
        ],
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="minutes on two cores (default)")
    form.add_argument("--full", action="store_true", help="an hour or two on two cores")
    only = parser.add_argument("--only", nargs="+", metavar="NAME", help=f"some of {', '.join(SECTIONS)}")
    offer(only, SECTIONS)
    parser.add_argument("--seed", type=whole, default=1, help="names all chance (default %(default)s)")
    add_run_options(parser, out=None, said="report, or report-NAME with --only NAME")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")


def run(options: argparse.Namespace) -> int:
    """Run, write, and print what was found, also if it cannot be written; 1 if a claim is refuted."""
    sections, scope = chosen(SECTIONS, options.only), Scope(not options.full, options.seed)
    out = options.out or "-".join(["report", *(section.name for section in sections if options.only)])
    with resumable(out) as progress:
        report = measure(
            sections,
            out,
            scope,
            is_whole=not options.only,
            jobs=options.jobs,
            backend=options.backend,
            progress=progress,
        )
    found = report.verdicts
    files, failure = stored(lambda: report.write(Path(out)))
    if options.json:
        print(json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        for name, section in found["sections"].items():
            _print_section(name, section)
        print(f"\n{in_words(found['tally'])}")
        if failure is None:
            print(f"report: {Path(files[-1]).resolve()}")
    if failure is not None:
        raise failure
    return 1 if found["tally"]["refuted"] else 0


def _print_section(name: str, section: dict[str, Any]) -> None:
    print(f"{name}: {section['title']}")
    for verdict in section["verdicts"]:
        error = "" if verdict["error"] is None else f" ± {verdict['error']:.3f}"
        numbers = f"{verdict['value']:.3f}{error} {verdict['relation']} {verdict['bound']:.3f}"
        kind = verdict["kind"].upper() if verdict["kind"] == "refuted" else verdict["kind"]
        print(f"  {kind:11}  {verdict['claim']} ({numbers})")
