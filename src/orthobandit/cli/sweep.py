"""`orthobandit sweep`: a study of your own, from a TOML file."""

import argparse
import json
from pathlib import Path

from orthobandit.cli._cells import add_run_options, resumable
from orthobandit.study.cache import Cache
from orthobandit.study.sweep import run_cells
from orthobandit.study.tables import compared, join, pyarrow, text_table, write_parquet
from orthobandit.study.toml import read_spec


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Run policies × instances × shifts × seeds from a TOML file. Finished cells are kept: what is added"
        " to the file later is all that is computed."
    )
    parser.epilog = "example: orthobandit sweep study.toml --out study --jobs 4"
    parser.add_argument("spec", metavar="SPEC", help="the study, a .toml file")
    add_run_options(parser, out="sweep")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Check, run, write, and print a summary."""
    cells = read_spec(options.spec).cells()
    pyarrow()
    folder = Path(options.out)
    with resumable() as progress:
        cache = Cache(folder / "cells")
        results = run_cells(cells, cache, jobs=options.jobs, backend=options.backend, progress=progress)
    tables = join(cells, results)
    files = [folder / f"{name}.parquet" for name in tables]
    for path, columns in zip(files, tables.values(), strict=True):
        write_parquet(path, columns)
    rows = compared(tables["runs"])
    if options.json:
        report = {"rows": rows, "files": [str(path) for path in files]}
        print(json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False))
        return
    print(text_table(rows))
    print("\nwrote " + "\n      ".join(str(path) for path in files))
