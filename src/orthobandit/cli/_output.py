"""Help and errors of the command line: colours, suggestions, and messages that name the user's flags."""

import re
import sys
from argparse import (
    Action,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
    _SubParsersAction,
)
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from orthobandit.errors import Argument, OutputError

HELP_WIDTH = 78  # characters of a line of help: fits a terminal of 80


class Screen(Console):
    """A console that raises an error if the reader has closed the output, so that the caller can exit."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Parser(ArgumentParser):
    """A parser whose help shows options and headings in colour on a terminal; plain text elsewhere."""

    def _print_message(self, message: str, file: Any = None) -> None:
        shown = Text(message)
        shown.highlight_regex(r"(?m)^[a-z][\w ]*:", "bold")
        shown.highlight_regex(r"(?<!\w)--?[a-z][\w-]*", "cyan")
        # The text is wrapped already.
        Screen(file=file or sys.stderr, soft_wrap=True).print(shown, end="")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; the command's own parser, which knows its options, reports unknown ones."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            commands = [action.choices for action in self._actions if isinstance(action, _SubParsersAction)]
            parser = commands[0][options.command] if commands else self
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        """Exit with 2 after one line that says what is wrong and suggests what was meant."""
        say_error(self.prog, f"{suggest(message, self)}\n  `{self.prog} --help` lists what there is")
        self.exit(2)


def suggest(message: str, parser: ArgumentParser) -> str:
    """Return an error of argparse, with the nearest valid name if there is one."""
    from orthobandit._foundation.checks import nearest_name  # needs numpy, and help does not

    unknown = re.match(r"unrecognized arguments: (.*)", message)
    if unknown:
        words = [word for word in unknown[1].split() if word.startswith("-")] or unknown[1].split()
        flags = [flag for flag in parser._option_string_actions if flag.startswith("--")]
        kind = "option" if words[0].startswith("-") else "argument"
        near = nearest_name(words[0].partition("=")[0], flags)
        return f"there is no {kind} {words[0]}" + (f"; did you mean {near}?" if near else "")
    choice = re.match(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message)
    if choice:
        names = [name.strip(" '") for name in choice[3].split(",")]
        near = nearest_name(choice[2], names)
        what = "a command" if choice[1] == "COMMAND" else f"a value of {choice[1]}"
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
        return f"{choice[2]!r} is not {what}; {hint}"
    wrong_type = re.match(r"argument (\S+): invalid (int|float) value: (.*)", message)
    if wrong_type:
        flag, kind, given = wrong_type.groups()
        return f"{flag} {given} must be a {'whole ' * (kind == 'int')}number"
    needless = re.match(r"argument (\S+): ignored explicit argument (.*)", message)
    if needless:
        return f"{needless[1]} is a switch and takes no value; leave {needless[2]} out"
    valueless = re.match(r"argument (\S+): expected one argument", message)
    if valueless:
        flag = valueless[1]
        return f"{flag} needs a value; write {flag}=VALUE for one that begins with a dash"
    return message


def guide(parser: ArgumentParser, what: str, examples: Mapping[str, str], notes: Sequence[str] = ()) -> None:
    """Turn the help of a command into a guide: what it does, examples by purpose, and what to know.

    Parameters
    ----------
    parser : ArgumentParser
    what : str
        What the command does, in a few sentences.
    examples : dict of str to str
        Commands without the ``orthobandit`` in front, by what they do.
    notes : sequence of str
        What else a newcomer should know, a paragraph each.
    """
    parser.formatter_class = RawDescriptionHelpFormatter  # lines stay as they are here
    parser.description = fill(what, HELP_WIDTH)
    lines = [f"  # {why}\n  orthobandit {command}" for why, command in examples.items()]
    parser.epilog = "\n\n".join(
        ["examples:\n" + "\n".join(lines), *(fill(note, HELP_WIDTH) for note in notes)]
    )


def from_here() -> None:
    """Let the user's own modules be imported from the current folder, after all installed ones."""
    here = str(Path.cwd())
    # Last, so that no file of the user's hides an installed module of the same name.
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def offer(action: Action, names: Iterable[str]) -> None:
    """Give shells values to complete for an option that takes other values as well."""
    action.offered = tuple(names)  # type: ignore[attr-defined]


def say_error(who: str, message: str) -> None:
    """Print an error or a warning on stderr, after the name of the command that it comes from."""
    shown = Text.assemble((f"{who}: ", "bold"), message)
    Screen(file=sys.stderr, soft_wrap=True).print(shown)


def with_flags(
    words: Iterable[str | Argument],
    parser: ArgumentParser,
    options: Namespace,
    meant: Mapping[str, str],
    always: Collection[str] = (),
) -> str:
    """Return a message with flags for arguments of the library: ``--missing zero``, not ``missing='zero'``.

    Parameters
    ----------
    words : iterable of str or Argument
        Of an :class:`~orthobandit.errors.InputError`.
    parser : ArgumentParser
    options : Namespace
        What was given: an argument is a flag's if it has the flag's value.
    meant : dict of str to str
        Arguments of the library that a flag of another name gives.
    always : collection of str
        Arguments that are their flags' whatever the value, also those that a remedy mentions.

    Examples
    --------
    >>> parser = ArgumentParser()
    >>> _ = parser.add_argument("--arms", type=int), parser.add_argument("--missing")
    >>> options = parser.parse_args(["--arms", "0"])
    >>> words = Argument("count", 0), " and ", Argument("missing", "zero"), ", not ", Argument("count", 1)
    >>> with_flags(words, parser, options, {"count": "arms"}, ["missing"])
    '--arms 0 and --missing zero, not count=1'
    """
    return "".join(
        word if isinstance(word, str) else _flag_of(word, parser, options, meant, always) for word in words
    )


def _flag_of(
    argument: Argument,
    parser: ArgumentParser,
    options: Namespace,
    meant: Mapping[str, str],
    always: Collection[str],
) -> str:
    """Return an argument as the flag that gives it, or as Python spells it if no flag does."""
    flags = [
        action
        for dest in (argument.name, meant.get(argument.name))
        for action in parser._actions
        if action.dest == dest and action.option_strings
    ]
    # A switch that is off may have a flag of its own.
    flags.sort(key=lambda action: (action.const is False) != argument.is_off)
    for action in flags:
        value = getattr(options, action.dest, None)
        values = [value, *(value if isinstance(value, list) else [])]
        is_own = any(argument.python == Argument(argument.name, entry).python for entry in values)
        if is_own or argument.name in always:
            flag = action.option_strings[-1]
            return flag if argument.shell is None else f"{flag} {argument.shell}"
    return str(argument)


def store_files(write: Callable[[], Iterable[Any]]) -> tuple[list[str], OutputError | None]:
    """Write files; return those written, and the error that stopped the writing, if any.

    Results are printed even if they could not be stored.
    """
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
