"""`orthobandit init`: files to play with, and what to do with them."""

import argparse
import json
from importlib.util import find_spec

from orthobandit.cli._words import guide
from orthobandit.study.starter import next_commands, write_starter

EXTRAS = {"logs": "ibis", "parquet": "pyarrow"}  # that `analyse` and `sweep` need, and what they bring


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Write three small files to begin with: arms.csv, a table of pages and their features; study.toml, a"
        " study that runs in seconds; log.csv, two weeks of an experiment whose baseline moved. Then print"
        " what to do with them.",
        {"in a folder of their own": "init first", "here": "init"},
        ["A file that exists is never overwritten: the command then writes nothing, and exits with 2."],
    )
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=".", help="where to write (default: here)"
    )
    parser.add_argument("--json", action="store_true", help="print files and commands as JSON")


def run(options: argparse.Namespace) -> None:
    """Write, and print the next commands."""
    files = [str(path) for path in write_starter(options.folder)]
    commands = next_commands(options.folder)
    if options.json:
        plain = {"files": files, "commands": [command for _, command in commands]}
        print(json.dumps(plain, indent=2, ensure_ascii=False))
        return
    print("wrote " + "\n      ".join(files) + "\n\nnow try\n")
    for why, command in commands:
        print(f"  # {why}\n  {command}\n")
    missing = [extra for extra, module in EXTRAS.items() if find_spec(module) is None]
    if missing:
        print(f"some of them need more: pip install 'orthobandit[{','.join(missing)}]'")
