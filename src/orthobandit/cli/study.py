"""The commands of studies: `orthobandit init`, `sweep` and `reproduce`."""

import argparse
import json
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orthobandit._foundation.checks import MAX_DELTA, advise_on_delta
from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.files import write_text
from orthobandit.cli._durations import LONGEST_HOURS, MANY_ROUNDS, expected_seconds, time_in_words
from orthobandit.cli._output import from_here, guide, offer, store_files, whole
from orthobandit.cli._progress import add_run_options, resumable
from orthobandit.errors import InputWarning, ParameterError
from orthobandit.peers import POLICIES
from orthobandit.reproduction.paper import SECTIONS
from orthobandit.reproduction.report import chosen, in_words, measure
from orthobandit.reproduction.section import Scope
from orthobandit.study.spec import Sweep, environment_of, make_part
from orthobandit.study.starter import next_commands, write_starter
from orthobandit.study.sweep import SweepResult
from orthobandit.study.sweep import run_sweep as run_study
from orthobandit.study.toml import read_spec

EXTRAS = {"logs": "ibis", "parquet": "pyarrow"}  # that `analyse` and `sweep` need, and what they bring
MEANT = {"seeds": "seed"}  # an argument and the flag that gives it


def configure_init(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `orthobandit init`."""
    guide(
        parser,
        "Write three small sample files: arms.csv, a table of pages and their features; study.toml, a"
        " study that runs in seconds; log.csv, two weeks of an experiment whose baseline moved. Then print"
        " what to do with them.",
        {"in a folder of their own": "init first", "here": "init"},
        ["A file that exists is never overwritten: the command then writes nothing, and exits with 2."],
    )
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", default=".", help="where to write (default: here)"
    )
    parser.add_argument("--json", action="store_true", help="print files and commands as JSON")


def run_init(options: argparse.Namespace) -> None:
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
        print(f"some of them need more: pip install '.[{','.join(missing)}]' in orthobandit's folder")


def configure_sweep(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `orthobandit sweep`."""
    guide(
        parser,
        "Run policies × instances × shifts × seeds from a TOML file, and compare them. Finished cells are"
        " cached: if you add to the file later, only the new cells are computed.",
        {
            "a sample file": "init first",
            "run it on four cores": "sweep study.toml --out study --jobs 4",
            "the table for a paper": "sweep study.toml --out study --latex table.tex",
            "on the Ray cluster at RAY_ADDRESS": "sweep study.toml --backend ray",
        },
        [
            "A kind is a name that `orthobandit simulate --help` lists, or module:Name for your own class"
            " in a module that can be imported from here.",
            "runs.parquet and curves.parquet are tidy: one row per run, and one per run and round.",
        ],
    )
    parser.add_argument("spec", metavar="SPEC", help="the study, a .toml file")
    add_run_options(parser, out="sweep")
    parser.add_argument(
        "--yes", action="store_true", help=f"run even if it takes more than {LONGEST_HOURS:g} hours"
    )
    parser.add_argument("--latex", metavar="FILE", help="also write the table for a paper (booktabs)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run_sweep(options: argparse.Namespace) -> None:
    """Check, run, write, and print a summary."""
    from_here()
    study = read_spec(options.spec)
    pyarrow()
    _warn_of_deltas(study)
    if not options.yes:
        _refuse_to_take_for_ever(study, options.jobs)
    folder = Path(options.out)
    with resumable(options.out) as progress:
        found = run_study(study, folder, jobs=options.jobs, backend=options.backend, progress=progress)
    files, failure = store_files(lambda: _written(found, folder, options.latex))
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


def _refuse_to_take_for_ever(study: Sweep, jobs: int) -> None:
    """Raise `ParameterError` if a study would take days, by trials on its first instance and shift."""
    alike = len(study.instances) * len(study.shifts) * len(study.seeds) * study.replications
    if study.horizon * alike <= MANY_ROUNDS:
        return
    hours = 0.0
    first: dict[str, dict[str, Any]] = {}
    for cell in study.cells():
        first.setdefault(str(cell.labels["policy"]), dict(cell.settings))
    for settings in first.values():
        policy = make_part("policy", settings["policy"])
        seconds = expected_seconds(policy, environment_of(settings), study.horizon)
        hours += seconds * alike / max(jobs, 1) / 3600
    if hours > LONGEST_HOURS:
        raise ParameterError(
            f"the study would take about {time_in_words(hours)} with --jobs {jobs}: policies"
            f" {', '.join(first)}, each {alike:,} runs of {study.horizon:,} rounds; lower one of them, or add"
            " --yes"
        )


def _warn_of_deltas(study: Sweep) -> None:
    for name, part in study.policies.items():
        delta = part.settings.get("delta")
        if part.kind in POLICIES and isinstance(delta, float) and delta > MAX_DELTA:
            warnings.warn(f"delta {delta:g} of {name} {advise_on_delta(delta)}", InputWarning, stacklevel=1)


def _written(found: SweepResult, folder: Path, latex: str | None) -> Iterator[Path]:
    yield from found.written(folder)
    if latex is not None:
        write_text(latex, found.to_latex())
        yield Path(latex)


def configure_reproduce(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `orthobandit reproduce`."""
    guide(
        parser,
        "Run the paper's experiments and its successor's again, and write an HTML report:"
        " what was claimed, what was measured, and whether it is shown, refuted, or left open.",
        {
            "everything, in minutes": "reproduce --quick",
            "everything, with the runs that decide": "reproduce --full --out full",
            "some parts of it": "reproduce --only figure-1 figure-3",
        },
        [
            "Finished work is cached in the folder of the report: after Ctrl-C, repeat the command. The"
            " exit code is 1 if a claim is refuted, which is a finding and not a failure."
        ],
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="minutes on two cores (default)")
    form.add_argument("--full", action="store_true", help="an hour or two on two cores")
    only = parser.add_argument("--only", nargs="+", metavar="NAME", help=f"some of {', '.join(SECTIONS)}")
    offer(only, SECTIONS)
    parser.add_argument("--seed", type=whole, default=1, help="random seed (default %(default)s)")
    add_run_options(parser, out=None, said="report, or report-NAME with --only NAME")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")


def run_reproduce(options: argparse.Namespace) -> int:
    """Run, write, and print what was found, also if it cannot be written; 1 if a claim is refuted."""
    sections = chosen(SECTIONS, options.only)
    scope = Scope(not options.full, options.seed)
    out = options.out or "-".join(["report", *(section.name for section in sections if options.only)])
    with resumable(out) as progress:
        report = measure(
            sections,
            out,
            scope,
            is_whole=not options.only,
            jobs=options.jobs,
            backend=options.backend,
            progress=progress,
        )
    found = report.verdicts
    files, failure = store_files(lambda: report.write(Path(out)))
    if options.json:
        print(json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        for name, section in found["sections"].items():
            _print_section(name, section)
        print(f"\n{in_words(found['tally'])}")
        if failure is None:
            print(f"report: {Path(files[-1]).resolve()}")
    if failure is not None:
        raise failure
    return 1 if found["tally"]["refuted"] else 0


def _print_section(name: str, section: dict[str, Any]) -> None:
    print(f"{name}: {section['title']}")
    for verdict in section["verdicts"]:
        kind = verdict["kind"].upper() if verdict["kind"] == "refuted" else verdict["kind"]
        print(f"  {kind:11}  {verdict['claim']} ({verdict['evidence']})")
