"""`orthobandit completion`: print a script that lets a shell complete commands, options and values.

Not by shtab (1.13): of an option that takes several values, as ``--policy anytime sbe``, its scripts complete
the first alone in zsh and fish.
"""

import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import NamedTuple

from orthobandit.cli._output import guide


def configure(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Print a script that lets a shell complete commands, options, names of policies and shifts, and"
        " files.",
        {
            "in this bash, now": "completion bash > ~/.orthobandit.bash; . ~/.orthobandit.bash",
            "in this zsh, now": "completion zsh > ~/.orthobandit.zsh; . ~/.orthobandit.zsh",
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
    """One option: its flag, what it is for, the values it may have, and whether it wants one or several."""

    flag: str
    words: str
    values: tuple[str, ...]
    has_value: bool
    has_several: bool


def options_of(parser: ArgumentParser) -> list[Option]:
    """Return the long options of a parser."""
    return [
        Option(
            flag=next(flag for flag in action.option_strings if flag.startswith("--")),
            words=first_words(action.help or ""),
            values=values_of(action),
            has_value=action.nargs != 0,
            has_several=action.nargs in ("+", "*"),
        )
        for action in parser._actions
        if any(flag.startswith("--") for flag in action.option_strings)
    ]


def values_of(action: Action) -> tuple[str, ...]:
    """Return the values that an option may have, or that are offered."""
    if action.choices is not None:
        return tuple(map(str, action.choices))
    return tuple(getattr(action, "offered", ()))


def positionals(parser: ArgumentParser) -> list[tuple[str, ...]]:
    """Return the values of each positional argument, in order; none where a file is expected."""
    return [values_of(action) for action in parser._actions if not action.option_strings]


def first_words(text: str) -> str:
    """Return a help text up to its first remark, without characters that have a meaning for shells."""
    # Quotes, brackets and backticks would end strings or run commands in the scripts below.
    short = re.split(r"[(;:]", text.replace("%(default)s", ""))[0].strip()
    return re.sub(r"[^\w ,./-]", "", short)[:60]


def bash(parsers: Mapping[str, ArgumentParser]) -> str:
    """Return a script for bash."""
    cases = []
    for name, parser in parsers.items():
        options = options_of(parser)
        flags = " ".join(option.flag for option in options)
        words = " ".join([flags, *(value for values in positionals(parser) for value in values)])
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
    several = []
    for name, parser in parsers.items():
        options = options_of(parser)
        lines = [f"        '{_zsh_option(option)}'" for option in options]
        for place, given in enumerate(positionals(parser), 1):
            lines.append(
                f"        '{place}:argument:({' '.join(given)})'" if given else "        '*:file:_files'"
            )
        cases.append(f"    {name})\n      _arguments \\\n" + " \\\n".join(lines) + "\n      ;;\n")
        several += [
            f"    '{name} {option.flag}') compadd -- {' '.join(option.values)}; return ;;\n"
            for option in options
            if option.values and option.has_several
        ]
    commands = "\n".join(f"    '{name}:{first_words(_what(parser))}'" for name, parser in parsers.items())
    script = ZSH.replace("@COMMANDS@", commands).replace("@SEVERAL@", "".join(several))
    return script.replace("@CASES@", "".join(cases))


def _zsh_option(option: Option) -> str:
    begin = f"*{option.flag}{'=' * option.has_value}[{option.words}]"
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
    if [[ $PREFIX == -* ]]; then
      compadd -- --help --version
    else
      _describe 'command' commands
    fi
    return
  fi
  local name=$words[2] option='' i
  shift words
  (( CURRENT-- ))
  # An option may take several values: the last one before the cursor is the one whose value this is.
  for (( i = CURRENT - 1; i > 1; i-- )); do
    if [[ $words[i] == --* ]]; then
      option=$words[i]
      break
    fi
  done
  [[ $PREFIX == -* ]] || case "$name $option" in
@SEVERAL@  esac
  case $name in
@CASES@  esac
}
# Read from a folder of $fpath, this is the function's body and has to answer; sourced, it is made known.
if [[ $funcstack[1] == _orthobandit ]]; then
  _orthobandit "$@"
else
  compdef _orthobandit orthobandit
fi
"""


def fish(parsers: Mapping[str, ArgumentParser]) -> str:
    """Return a script for fish."""
    lines = [FISH]
    for name, parser in parsers.items():
        lines.append(
            f"complete -c orthobandit -n __fish_use_subcommand -f -a {name} -d '{first_words(_what(parser))}'"
        )
        begin = "complete -c orthobandit -n"
        where = f"{begin} '__fish_seen_subcommand_from {name}'"
        for option in options_of(parser):
            wanted = " -x" if option.values else " -r" * option.has_value
            lines.append(f"{where} -l {option.flag[2:]}{wanted} -d '{option.words}'")
            values = f"-a '{' '.join(option.values)}'"
            if option.values:
                lines.append(f"{where} -l {option.flag[2:]} -x {values}")
            if option.values and option.has_several:
                lines.append(f"{begin} '__orthobandit_after {name} {option.flag}' -f {values}")
        given = positionals(parser)
        if any(given):
            only = " -f" * all(given)  # and no files
            values = " ".join(value for one in given for value in one)
            lines.append(f"{where}{only} -a '{values}'")
    return "\n".join(lines) + "\n"


FISH = """\
# Completion of orthobandit for fish.
# Whether the cursor is behind an option of a command, which may take several values.
function __orthobandit_after
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"; or return 1
    for word in $words[-1..1]
        if string match -q -- '--*' $word
            test $word = $argv[2]
            return
        end
    end
    return 1
end
complete -c orthobandit -n __fish_use_subcommand -f -l help -d 'show the commands'
complete -c orthobandit -n __fish_use_subcommand -f -l version -d 'show the version'"""


def _what(parser: ArgumentParser) -> str:
    return " ".join((parser.description or "").split())


SHELLS: Mapping[str, Callable[[Mapping[str, ArgumentParser]], str]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}
