"""`orthobandit sweep`: a study of your own, from a TOML file."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from orthobandit.cli._progress import add_run_options, resumable
from orthobandit.cli._words import guide, stored
from orthobandit.study.cells import Cache
from orthobandit.study.sweep import run_cells
from orthobandit.study.tables import Columns, compared, compared_table, join, pyarrow, write_parquet
from orthobandit.study.toml import read_spec


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Run policies × instances × shifts × seeds from a TOML file, and set them side by side. Finished"
        " cells are kept: what is added to the file later is all that is computed.",
        {
            "a file to begin with": "init first",
            "run it on four cores": "sweep study.toml --out study --jobs 4",
            "the table for a paper": "sweep study.toml --out study --latex table.tex",
            "on the Ray cluster at RAY_ADDRESS": "sweep study.toml --backend ray",
        },
        [
            "A kind is a name that `orthobandit simulate --help` lists, or module:Name for a class of yours"
            " in a module that can be imported from here.",
            "runs.parquet and curves.parquet in the folder are tidy: a row a run, a row a run and round.",
        ],
    )
    parser.add_argument("spec", metavar="SPEC", help="the study, a .toml file")
    add_run_options(parser, out="sweep")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Check, run, write, and print a summary."""
    study = read_spec(options.spec)
    cells = study.cells()
    pyarrow()
    folder = Path(options.out)
    with resumable(options.out) as progress:
        cache = Cache(folder / "cells")
        results = run_cells(cells, cache, jobs=options.jobs, backend=options.backend, progress=progress)
    tables = join(cells, results)
    files, failure = stored(lambda: _written(folder, tables))
    rows = compared(tables["runs"], study.horizon)
    if options.json:
        print(json.dumps({"rows": rows, "files": files}, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print(compared_table(rows))
        if any(row["declared"] < 1 for row in rows):
            print(f"\nruns that declare nothing count with the horizon, {study.horizon:,}, as their stop")
        if files:
            print("\nwrote " + "\n      ".join(files))
    if failure is not None:
        raise failure


def _written(folder: Path, tables: dict[str, Columns]) -> Iterator[Path]:
    for name, columns in tables.items():
        path = folder / f"{name}.parquet"
        write_parquet(path, columns)
        yield path
