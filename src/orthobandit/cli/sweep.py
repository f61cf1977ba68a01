"""`orthobandit sweep`: a study of your own, from a TOML file."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from orthobandit._files import pyarrow, write_text
from orthobandit.cli._progress import add_run_options, resumable
from orthobandit.cli._words import from_here, guide, stored
from orthobandit.study.results import SweepResult, run_sweep
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
    parser.add_argument("--latex", metavar="FILE", help="also write the table for a paper (booktabs)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Check, run, write, and print a summary."""
    from_here()
    study = read_spec(options.spec)
    pyarrow()
    folder = Path(options.out)
    with resumable(options.out) as progress:
        found = run_sweep(study, folder, jobs=options.jobs, backend=options.backend, progress=progress)
    files, failure = stored(lambda: _written(found, folder, options.latex))
    rows = found.rows
    if options.json:
        print(json.dumps({"rows": rows, "files": files}, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print(found)
        if any(row["declared"] < 1 for row in rows):
            print(f"\nruns that declare nothing count with the horizon, {study.horizon:,}, as their stop")
        if files:
            print("\nwrote " + "\n      ".join(files))
    if failure is not None:
        raise failure


def _written(found: SweepResult, folder: Path, latex: str | None) -> Iterator[Path]:
    yield from found.written(folder)
    if latex is not None:
        write_text(latex, found.to_latex())
        yield Path(latex)
