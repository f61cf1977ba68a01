"""The command line: parse, call the library, print. One file a command, or a family of them."""

import os
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import UnsupportedOperation
from pathlib import Path
from typing import NamedTuple

from orthobandit import __version__
from orthobandit.cli._output import Parser, guide, say_error, with_flags
from orthobandit.errors import InputError, OrthobanditError, OrthobanditWarning

# name: what `orthobandit --help` says of it.
COMMANDS = {
    "init": "write sample files (arms, a study, a log) and print what to do with them",
    "design": "compute how often to play each arm, with a certificate and the rounds to plan for",
    "simulate": "compare policies on an instance under a shift: regret, errors, stop times, a plot",
    "reproduce": "re-measure the paper's figures and its successor's tables, and report on each claim",
    "sweep": "run a study of your own from a file: policies × instances × shifts × seeds",
    "analyse": "check the log of a finished experiment, and estimate effects with intervals",
    "serve": "serve experiments over HTTP, from a SQLite file or a PostgreSQL database",
    "db": "upgrade, back up, restore and check the database of the service",
    "demo-traffic": "send simulated visitors to a server, for a first look",
    "verify": "recompute the certificate of a decision or a log, and name any wrong number",
    "doctor": "check that everything works on this machine, and list the extras",
    "completion": "print a completion script for bash, zsh or fish",
}
# Commands that share a file, which has `configure_<name>` and `run_<name>`; others have their own, with
# `configure` and `run`.
SHARED = {
    **dict.fromkeys(("init", "sweep", "reproduce"), "study"),
    **dict.fromkeys(("serve", "db", "demo-traffic"), "service"),
}
# Exit codes. argparse ends with 2 where options are wrong, so wrong input does; the last two are what a shell
# reports for a program that SIGINT and SIGPIPE ended (128 + the signal).
FAILED = 1
WRONG = 2
INTERRUPTED = 130
CLOSED = 141
FIRST = {
    "sample files, and what to do with them": "init first",
    "does everything work here?": "doctor",
    "how often to show each arm": "design arms.csv",
    "effects from a log": "analyse log.csv --arm page --reward ordered --time at --split equal",
    "help on one command": "simulate --help",
}
EXIT_CODES = (
    "Exit codes: 0 done; 1 done, with a bad result (an alarm, a refuted claim, an invalid certificate), or"
    " for lack of disk space, memory or permissions; 2 the input is wrong; 130 after Ctrl-C; 141 if the"
    " reader of the output has closed it."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code.

    0 if done; 1 for a bad result such as a refuted claim, or if disk space, memory or permissions are
    missing; 2 for wrong input or results that could not be written, which are printed first; 130 after
    Ctrl-C; 141 if the reader of the output has closed it.
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
        say_error("orthobandit", str(error))
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
    # The first word that is a command, since no option before it takes a value.
    wanted = next((word for word in given if word in COMMANDS), None)
    if wanted is not None:
        _command(wanted).configure(parsers[wanted])
    options = parser.parse_args(given)
    with warnings.catch_warnings():
        warnings.simplefilter("always", OrthobanditWarning)
        warnings.showwarning = lambda message, *_: say_error(
            f"orthobandit {options.command}: warning", str(message)
        )
        return _run_command(_command(options.command), parsers[options.command], options)


class _Command(NamedTuple):
    """A command: how it adds its arguments, how it runs, and which arguments have a flag of another name."""

    configure: Callable[[ArgumentParser], None]
    # Returns a code only if it may have bad news: a claim that is refuted.
    run: Callable[[Namespace], int | None]
    meant: Mapping[str, str]
    always: Collection[str]  # arguments that a message may mention without their being given


def _command(name: str) -> _Command:
    module = import_module(f"orthobandit.cli.{SHARED.get(name, name)}")
    ending = f"_{name.replace('-', '_')}" if name in SHARED else ""
    configure, run = (getattr(module, f"{what}{ending}") for what in ("configure", "run"))
    return _Command(configure, run, getattr(module, "MEANT", {}), getattr(module, "ALWAYS", ()))


def _run_command(command: _Command, parser: ArgumentParser, options: Namespace) -> int:
    """Run a command and return the exit code; errors are said on stderr in one sentence."""
    who = f"orthobandit {options.command}"
    try:
        code = command.run(options)
    except InputError as error:
        say_error(who, with_flags(error.words, parser, options, command.meant, command.always))
        return WRONG
    except OrthobanditError as error:
        say_error(who, str(error))
        return WRONG
    except MemoryError as error:
        say_error(
            who, f"not enough memory{f' ({error})' if str(error) else ''}; try fewer arms or replications"
        )
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code or 0


def _drop_output() -> None:
    """Discard unwritten output: the interpreter would try to write it again at exit, and complain."""
    # Where stdout is not a file there is nothing to redirect.
    with suppress(UnsupportedOperation), Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
