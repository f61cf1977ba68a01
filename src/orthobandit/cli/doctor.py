"""`orthobandit doctor`: whether everything works on this machine."""

import argparse
import json

from rich.text import Text

from orthobandit.cli._machine import checkup, plain
from orthobandit.cli._words import Screen, guide

MARKS = {"fine": ("✓", "green"), "note": ("–", "yellow"), "problem": ("✗", "bold red")}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Look at this machine: versions, which extras are installed and what the others would give, whether"
        " compiled code is kept, cores, memory, room on disk; and compute a design and an interval whose"
        " values are known.",
        {"look": "doctor", "for a bug report": "doctor --json"},
        ["The exit code is 1 if there is a problem. An extra that is not installed is none."],
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> int:
    """Look, and print what was found; 1 if there is a problem."""
    findings = checkup()
    problems = [one for one in findings if one.status == "problem"]
    if options.json:
        print(
            json.dumps({"problems": len(problems), "findings": plain(findings)}, indent=2, ensure_ascii=False)
        )
        return 1 if problems else 0
    screen = Screen(soft_wrap=True, highlight=False)
    width = max(len(one.name) for one in findings)
    for one in findings:
        mark, style = MARKS[one.status]
        screen.print(Text.assemble((mark, style), f" {one.name:<{width}}  {one.words}"))
    said = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}" if problems else "everything works"
    screen.print(f"\n{said}")
    return 1 if problems else 0
