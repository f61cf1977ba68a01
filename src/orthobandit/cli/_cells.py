"""What commands that run cells share: their options, progress, and that they can be stopped and go on."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orthobandit._files import check_folder
from orthobandit.cli._bars import bar
from orthobandit.cli._words import whole
from orthobandit.study.sweep import BACKENDS


def add_run_options(parser: argparse.ArgumentParser, out: str | None, said: str = "%(default)s") -> None:
    """Add what every command that runs cells shares; `said` is what the help calls the default folder."""
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=whole, default=cores, help="processes (default: all, %(default)s)")
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="processes",
        help="where to run; ray uses the cluster at RAY_ADDRESS, or a local one (default %(default)s)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default=out, help=f"where to write, and to go on from (default {said})"
    )


@contextmanager
def resumable(out: str) -> Iterator[Callable[..., None]]:
    """Yield the progress of cells, if `out` can be written to; after Ctrl-C say that the command goes on."""
    check_folder("out", out)
    try:
        with bar("cells") as progress:
            yield progress
    except KeyboardInterrupt:
        print("stopped on the way; run the same command again to go on", file=sys.stderr)
        raise
