"""`orthobandit reproduce`: the paper's figures and its successor's tables, in one report."""

import argparse
import json
from pathlib import Path
from typing import Any

from orthobandit.cli._cells import add_run_options, resumable
from orthobandit.cli._words import whole
from orthobandit.study.paper import SECTIONS
from orthobandit.study.report import build, chosen
from orthobandit.study.sections import Scope

MEANT = {"seeds": "seed"}  # an argument and the flag that gives it


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Run the paper's experiments and its successor's again, and write an HTML report of what holds."
    )
    parser.epilog = "example: orthobandit reproduce --quick --only figure-1 figure-3"
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="minutes on two cores (default)")
    form.add_argument("--full", action="store_true", help="up to an hour on two cores")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--seed", type=whole, default=1, help="names all chance (default %(default)s)")
    add_run_options(parser, out="report")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")


def run(options: argparse.Namespace) -> None:
    """Run, write, and print what holds."""
    sections, scope = chosen(SECTIONS, options.only), Scope(not options.full, options.seed)
    with resumable(options.out) as progress:
        found = build(
            sections, options.out, scope, jobs=options.jobs, backend=options.backend, progress=progress
        )
    if options.json:
        print(json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False))
        return
    for name, section in found["sections"].items():
        _print_section(name, section)
    print(f"\nreport: {(Path(options.out) / 'index.html').resolve()}")


def _print_section(name: str, section: dict[str, Any]) -> None:
    print(f"{name}: {section['title']}")
    for verdict in section["verdicts"]:
        mark = "holds        " if verdict["holds"] else "does NOT hold"
        numbers = f"{verdict['value']:.3f} {verdict['relation']} {verdict['bound']:.3f}"
        print(f"  {mark}  {verdict['claim']} ({numbers})")
