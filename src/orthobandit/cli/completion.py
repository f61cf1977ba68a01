"""`orthobandit completion`: a script by which a shell completes commands, options and values."""

import argparse

from orthobandit.cli._completion import SHELLS
from orthobandit.cli._words import guide


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Print a script by which a shell completes commands, options, names of policies and shifts, and"
        " files.",
        {
            "in this bash, now": "completion bash > ~/.orthobandit.bash; . ~/.orthobandit.bash",
            "in this zsh, now": "completion zsh > ~/.orthobandit.zsh; . ~/.orthobandit.zsh",
            "in every new fish": "completion fish > ~/.config/fish/completions/orthobandit.fish",
        },
        ["Print it again after an upgrade: the script lists what this version knows."],
    )
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    from orthobandit.cli import every_parser

    print(SHELLS[options.shell](every_parser()), end="")
