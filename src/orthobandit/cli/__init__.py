"""The command line: parse, call the library, print. One file a command."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module, metadata

from orthobandit.errors import OrthobanditError

# name: what `orthobandit --help` says of it. The module of the same name adds arguments and runs.
COMMANDS = {
    "design": "which arms to play how often, with a certificate and the number of rounds",
    "simulate": "any policies on any instance under any shift: regret, errors, stop times, a plot",
    "reproduce": "the paper's figures and its successor's tables, in a report that says what is shown",
    "sweep": "a study of your own: policies × instances × shifts × seeds, from a file",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 1 for bad news, 2 for wrong input, 130 after Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(
        prog="orthobandit",
        description="Adaptive experiments that find the best arm, with guarantees, while the baseline moves.",
    )
    parser.add_argument(
        "--version", action="version", version=f"orthobandit {metadata.version('orthobandit')}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        # Only the command that is asked for is imported: the others' dependencies cost time.
        if name in given[:1]:
            import_module(f"orthobandit.cli.{name}").configure(command)
    options = parser.parse_args(given)
    try:
        # A command returns a code only if it may have bad news: a claim that is refuted.
        code: int | None = import_module(f"orthobandit.cli.{options.command}").run(options)
    except OrthobanditError as error:
        print(f"orthobandit {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return code or 0
