"""What the command line says: help in colour where there is any, and errors in the words of the user."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.text import Text

from orthobandit.errors import OutputError


class _Console(Console):
    """A console that leaves a reader that has gone to the caller, who knows the exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Parser(ArgumentParser):
    """A parser whose help shows options and headings in colour on a terminal; plain text elsewhere."""

    def _print_message(self, message: str, file: Any = None) -> None:
        shown = Text(message)
        shown.highlight_regex(r"(?m)^[a-z][\w ]*:", "bold")
        shown.highlight_regex(r"(?<!\w)--?[a-z][\w-]*", "cyan")
        # The text is wrapped already.
        _Console(file=file or sys.stderr, soft_wrap=True).print(shown, end="")


def said(who: str, message: str) -> None:
    """Say on stderr who has what to complain about."""
    shown = Text.assemble((f"{who}: ", "bold"), message)
    _Console(file=sys.stderr, soft_wrap=True).print(shown)


def with_flags(message: str, parser: ArgumentParser, options: Namespace, meant: Mapping[str, str]) -> str:
    """Return a message about an argument as one about the flag that gave it: ``--arms 0``, not ``count=0``.

    Parameters
    ----------
    message : str
        Begins with ``name=value`` if it is about an argument.
    parser : ArgumentParser
    options : Namespace
        What was given.
    meant : dict of str to str
        Arguments of the library that a flag of another name gives.
    """
    flags = {action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings}
    for name, dest in [*((dest, dest) for dest in flags), *meant.items()]:
        given = getattr(options, dest, None)
        for value in given if isinstance(given, list) else [given]:
            begin = f"{name}={value!r}"
            if value is not None and message.startswith((f"{begin} ", f"{begin};", f"{begin}:")):
                return f"{flags[dest]} {value}{message[len(begin) :]}"
    return message


def stored(write: Callable[[], Iterable[Any]]) -> tuple[list[str], OutputError | None]:
    """Return the files that were written and why there are no more: what was computed is shown anyway."""
    files: list[str] = []
    try:
        for path in write():
            files.append(str(path))  # noqa: PERF401, kept when a later one fails
    except OutputError as error:
        return files, error
    return files, None


def whole(text: str) -> int:
    """Return a whole number, also from 1e6."""
    try:
        # A float finds what is too large to be written out, a decimal keeps every digit.
        return int(Decimal(text)) if "e" in text.lower() and float(text).is_integer() else int(text)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r} is not a whole number") from None
