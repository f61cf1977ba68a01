"""The command line: parse, call the library, print. One file a command, or a family of them."""

import os
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import UnsupportedOperation
from pathlib import Path
from typing import NamedTuple

from orthobandit import __version__
from orthobandit.cli._words import Parser, guide, said, with_flags
from orthobandit.errors import InputError, OrthobanditError, OrthobanditWarning

# name: what `orthobandit --help` says of it.
COMMANDS = {
    "init": "files to begin with: arms, a study and a log, and what to do with them",
    "design": "which arms to play how often, with a certificate and the number of rounds",
    "simulate": "any policies on any instance under any shift: regret, errors, stop times, a plot",
    "reproduce": "the paper's figures and its successor's tables, in a report that says what is shown",
    "sweep": "a study of your own: policies × instances × shifts × seeds, from a file",
    "analyse": "effects and honest intervals from a finished experiment's log, checked before it is believed",
    "serve": "experiments over HTTP: ask, tell and report, in a file or a PostgreSQL database",
    "db": "upgrade, back up, restore and check the database of the service",
    "demo-traffic": "made-up visitors against a server, for a first look",
    "verify": "recompute a certificate of a decision or of a log: valid, or which number is wrong",
    "doctor": "does everything work on this machine, and what could be installed",
    "completion": "a script that lets bash, zsh or fish complete commands and options",
}
# Commands that share a file, which has `configure_<name>` and `run_<name>`; others have their own, with
# `configure` and `run`.
SHARED = {
    **dict.fromkeys(("init", "sweep", "reproduce"), "study"),
    **dict.fromkeys(("serve", "db", "demo-traffic"), "service"),
}
WRONG = 2
FAILED = 1
INTERRUPTED = 130
CLOSED = 141
FIRST = {
    "files to play with, and what to do with them": "init first",
    "does everything work here?": "doctor",
    "how often to show each arm": "design arms.csv",
    "what a log says": "analyse log.csv --arm page --reward ordered --time at --split equal",
    "all about one command": "simulate --help",
}
EXIT_CODES = (
    "Exit codes: 0 done; 1 done, and the news are bad (an alarm, a refuted claim, a certificate that is not"
    " valid), or the machine has no room; 2 the input is wrong; 130 after Ctrl-C; 141 when the reader of the"
    " output has gone."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    0; 1 for bad news, a claim that is refuted, and when the machine has no room or no rights; 2 for input
    that is wrong or results that could not be written, which are printed first; 130 after Ctrl-C; 141 when
    the reader of the output has gone.
    """
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:
            if sys.stdout is not None:  # closed before we began
                sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return CLOSED
    except OSError as error:
        _drop_output()
        said("orthobandit", str(error))
        return FAILED


def main_parser() -> Parser:
    """Return the parser of everything before the command."""
    parser = Parser(prog="orthobandit")
    guide(
        parser,
        "Adaptive experiments that find the best arm, with guarantees, while the baseline moves.",
        FIRST,
        [EXIT_CODES],
    )
    return parser


def every_parser() -> dict[str, ArgumentParser]:
    """Return the parsers of all commands by name, with all their options."""
    commands = main_parser().add_subparsers()
    parsers: dict[str, ArgumentParser] = {name: commands.add_parser(name) for name in COMMANDS}
    for name, parser in parsers.items():
        _command(name).configure(parser)
    return parsers


def _run(given: list[str]) -> int:
    parser = main_parser()
    parser.add_argument("--version", action="version", version=f"orthobandit {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {name: commands.add_parser(name, help=summary) for name, summary in COMMANDS.items()}
    # Only the command that is asked for is imported: the others' dependencies cost time.
    wanted = next((word for word in given if word in COMMANDS), None)
    if wanted is not None:
        _command(wanted).configure(parsers[wanted])
    options = parser.parse_args(given)
    with warnings.catch_warnings():
        warnings.simplefilter("always", OrthobanditWarning)
        warnings.showwarning = lambda message, *_: said(
            f"orthobandit {options.command}: warning", str(message)
        )
        return _called(_command(options.command), parsers[options.command], options)


class _Command(NamedTuple):
    """What adds the arguments, what runs, and arguments that a flag of another name gives."""

    configure: Callable[[ArgumentParser], None]
    # Returns a code only if it may have bad news: a claim that is refuted.
    run: Callable[[Namespace], int | None]
    meant: Mapping[str, str]


def _command(name: str) -> _Command:
    module = import_module(f"orthobandit.cli.{SHARED.get(name, name)}")
    ending = f"_{name.replace('-', '_')}" if name in SHARED else ""
    configure, run = (getattr(module, f"{what}{ending}") for what in ("configure", "run"))
    return _Command(configure, run, getattr(module, "MEANT", {}))


def _called(command: _Command, parser: ArgumentParser, options: Namespace) -> int:
    who = f"orthobandit {options.command}"
    try:
        code = command.run(options)
    except InputError as error:
        said(who, with_flags(str(error), parser, options, command.meant))
        return WRONG
    except OrthobanditError as error:
        said(who, str(error))
        return WRONG
    except MemoryError as error:
        said(who, f"not enough memory{f' ({error})' if str(error) else ''}; try fewer arms or replications")
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code or 0


def _drop_output() -> None:
    """Let what is still unwritten go nowhere: the interpreter would try again at its end, and complain."""
    # Where stdout is no file there is nothing to redirect.
    with suppress(UnsupportedOperation), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
