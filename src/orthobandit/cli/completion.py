"""`orthobandit completion`: a script by which a shell completes commands, options and values."""

import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import NamedTuple

from orthobandit.cli._words import guide

PLACES = ("FILE", "DIR", "FOLDER", "ARMS", "SPEC", "SOURCE")  # what the help calls files and folders


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Print a script by which a shell completes commands, options, names of policies and shifts, and"
        " files.",
        {
            "in this bash, now": "completion bash > ~/.orthobandit.bash; . ~/.orthobandit.bash",
            "in every new zsh": 'completion zsh > "${fpath[1]}/_orthobandit"',
            "in every new fish": "completion fish > ~/.config/fish/completions/orthobandit.fish",
        },
        ["Print it again after an upgrade: the script lists what this version knows."],
    )
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(options: Namespace) -> None:
    """Print the script."""
    from orthobandit.cli import every_parser

    print(SHELLS[options.shell](every_parser()), end="")


class Option(NamedTuple):
    """One option: its flag, what it is for, the values it may have, and whether it wants a value, a file."""

    flag: str
    words: str
    values: tuple[str, ...]
    has_value: bool
    is_path: bool


def options_of(parser: ArgumentParser) -> list[Option]:
    """Return the long options of a parser."""
    return [
        Option(
            flag=next(flag for flag in action.option_strings if flag.startswith("--")),
            words=first_words(action.help or ""),
            values=values_of(action),
            has_value=action.nargs != 0,
            is_path=any(place in str(action.metavar or "") for place in PLACES),
        )
        for action in parser._actions
        if any(flag.startswith("--") for flag in action.option_strings)
    ]


def values_of(action: Action) -> tuple[str, ...]:
    """Return the values that an option may have, or that are offered."""
    if action.choices is not None:
        return tuple(map(str, action.choices))
    return tuple(getattr(action, "offered", ()))


def positional_values(parser: ArgumentParser) -> tuple[str, ...]:
    """Return the words that may stand as arguments; none where files may."""
    return tuple(
        value for action in parser._actions if not action.option_strings for value in values_of(action)
    )


def first_words(text: str) -> str:
    """Return a help text up to its first remark, without what shells would take for themselves."""
    short = re.split(r"[(;:]", text.replace("%(default)s", ""))[0].strip()
    return re.sub(r"[^\w ,./-]", "", short)[:60]


def bash(parsers: Mapping[str, ArgumentParser]) -> str:
    """Return a script for bash."""
    cases = []
    for name, parser in parsers.items():
        options = options_of(parser)
        flags = " ".join(option.flag for option in options)
        words = " ".join([flags, *positional_values(parser)])
        values = "".join(
            f'            {option.flag}) values="{" ".join(option.values)}" ;;\n'
            for option in options
            if option.values
        )
        paths = "|".join(option.flag for option in options if option.has_value and not option.values)
        cases.append(
            f"    {name})\n        words='{words}'\n"
            f'        case "$option" in\n{values}'
            + (f"            {paths}) files=yes ;;\n" if paths else "")
            + "        esac ;;\n"
        )
    return BASH.replace("@COMMANDS@", " ".join(parsers)).replace("@CASES@", "".join(cases))


BASH = """\
# Completion of orthobandit for bash.
_orthobandit() {
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} option='' words='' values='' files='' i
    COMPREPLY=()
    if [ "$COMP_CWORD" -le 1 ]; then
        COMPREPLY=($(compgen -W '@COMMANDS@ --help --version' -- "$current"))
        return
    fi
    # The option whose value this is: the last one before the cursor, which may take several.
    for ((i = COMP_CWORD - 1; i > 1; i--)); do
        case "${COMP_WORDS[i]}" in --*) option=${COMP_WORDS[i]}; break ;; esac
    done
    case "$command" in
@CASES@    esac
    case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *)
        if [ -n "$values" ]; then
            COMPREPLY=($(compgen -W "$values" -- "$current"))
        elif [ -z "$files" ] && [ -n "$words" ]; then
            COMPREPLY=($(compgen -W "$words" -- "$current"))
        fi
        if [ ${#COMPREPLY[@]} -eq 0 ] || [ -z "$current" ]; then
            COMPREPLY+=($(compgen -f -- "$current"))
        fi ;;
    esac
}
complete -o filenames -F _orthobandit orthobandit
"""


def zsh(parsers: Mapping[str, ArgumentParser]) -> str:
    """Return a script for zsh."""
    cases = []
    for name, parser in parsers.items():
        lines = [f"        '{_zsh_option(option)}'" for option in options_of(parser)]
        given = positional_values(parser)
        lines.append(f"        '*:argument:({' '.join(given)})'" if given else "        '*:file:_files'")
        cases.append(f"    {name})\n      _arguments \\\n" + " \\\n".join(lines) + "\n      ;;\n")
    commands = "\n".join(f"    '{name}:{first_words(_what(parser))}'" for name, parser in parsers.items())
    return ZSH.replace("@COMMANDS@", commands).replace("@CASES@", "".join(cases))


def _zsh_option(option: Option) -> str:
    begin = f"*{option.flag}[{option.words}]"
    if option.values:
        return f"{begin}:value:({' '.join(option.values)})"
    return f"{begin}:value:_files" if option.has_value else begin


ZSH = """\
#compdef orthobandit
# Completion of orthobandit for zsh.
_orthobandit() {
  local -a commands
  commands=(
@COMMANDS@
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  case $name in
@CASES@  esac
}
compdef _orthobandit orthobandit
"""


def fish(parsers: Mapping[str, ArgumentParser]) -> str:
    """Return a script for fish."""
    lines = ["# Completion of orthobandit for fish."]
    for name, parser in parsers.items():
        lines.append(
            f"complete -c orthobandit -n __fish_use_subcommand -f -a {name} -d '{first_words(_what(parser))}'"
        )
        where = f"complete -c orthobandit -n '__fish_seen_subcommand_from {name}'"
        for option in options_of(parser):
            wanted = f" -x -a '{' '.join(option.values)}'" if option.values else " -r" * option.has_value
            lines.append(f"{where} -l {option.flag[2:]}{wanted} -d '{option.words}'")
        given = positional_values(parser)
        if given:
            lines.append(f"{where} -f -a '{' '.join(given)}'")
    return "\n".join(lines) + "\n"


def _what(parser: ArgumentParser) -> str:
    return " ".join((parser.description or "").split())


SHELLS: Mapping[str, Callable[[Mapping[str, ArgumentParser]], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}
