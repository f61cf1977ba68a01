"""Speed and memory of analysing logs, beside the bare GROUP BY and beside pandas with statsmodels.

``make bench NAMES=logs`` takes about three minutes on two quiet cores, and 2.5 GB of disk for a while;
``python -m benchmarks.bench_logs --rows 1e9`` asks for the large log (25 GB; TMPDIR says where), and
``--quick`` for a tenth of the default. ``--links 1,10`` counts every file of the large log once and, by hard
links, ten times; ``--turns 1`` measures once; ``--large`` leaves out the million rows of several sources, and
``--spotify PYTHON`` names an interpreter that has spotify-confidence, which wants a pandas of its own.

Every measurement has a process of its own on two cores, which first analyses a few rows, so that nothing is
imported later; then come the seconds of the clock, of the processor (all threads; other work on the machine
disturbs these less) and the peak of resident memory. Rivals take turns, and the best of a few turns is shown.

The bare GROUP BY is what one writes by hand for the same counts, sums and products on the same files, with
DuckDB; `cells` are ours as far as the engine does them, and the rest of `analyse` is Python, some time a
bucket and none a row.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import has_peer
from benchmarks.made_logs import SPLIT, fixed_split, own_split, write, write_folder

ROWS = 100_000_000
FEW = 1_000_000
LITTLE = 10_000  # rows of the first day, which load what is imported late
LITTLE_OWN = 300_000  # as many as are followed row by row
TURNS = 3
SPOTIFY = Path(__file__).with_name("spotify_task.py")
CHILD = "--one"  # measures one task; not ``python -c``, where DuckDB prints how far it is
ROOT = Path(__file__).parents[1]
ASKED: dict[str, Any] = {
    "arm": "arm",
    "reward": "reward",
    "time": "time",
    "bucket": "hour",
    "split": SPLIT,
    "covariates": ["covariate"],
}
OWN = {
    "arm": "arm",
    "reward": "reward",
    "time": "time",
    "bucket": "hour",
    "probabilities": ["p_a", "p_b", "p_c"],
}
RULES = OWN | {
    "context": ["mobile", "hour"],
    "rules": {"b on telephones": "b if mobile >= 0.5 else a", "c at night": "c if hour < 8 else a"},
}
BARE = """
    SELECT
        date_trunc('hour', time), arm, count(*), sum(reward), sum(covariate),
        sum(reward * reward), sum(reward * covariate), sum(covariate * covariate)
    FROM read_parquet('{}/*.parquet') GROUP BY ALL"""


@dataclass(frozen=True)
class Measured:
    """Seconds of the clock and of the processor, peak megabytes, and rows that were counted."""

    seconds: float
    processor: float
    megabytes: float
    rows: int


def bare(path: str) -> int:
    """Do the GROUP BY by hand."""
    import duckdb

    with duckdb.connect(config={"threads": 2}) as connection:
        return sum(row[2] for row in connection.execute(BARE.format(path)).fetchall())


def cells(path: str) -> int:
    """Ask for cells alone."""
    from orthobandit.logs import Question
    from orthobandit.logs.reading.group_by import cells_of
    from orthobandit.logs.reading.source import open_source

    with open_source(path) as opened:
        return cells_of(opened, Question(**ASKED | {"covariates": ("covariate",)})).cells.rows


def ours(source: Any, asked: dict[str, Any] = ASKED) -> int:
    """Analyse a log."""
    from orthobandit.logs import analyse

    return analyse(source, **asked).rows


def regression(path: str) -> int:
    """Read a CSV with pandas, and regress the reward on arm and covariate with errors of the kind HC1."""
    import pandas as pd
    import statsmodels.formula.api as formulas

    rows = pd.read_csv(path, parse_dates=["time"])
    return int(formulas.ols("reward ~ C(arm) + covariate", rows).fit(cov_type="HC1").nobs)


def task(name: str, path: str) -> Callable[[], int]:
    """Return what is to be measured, with frames already in memory."""
    if name == "pandas":
        import pandas as pd

        return partial(ours, pd.read_parquet(path))
    if name == "polars":
        import polars as pl

        return partial(ours, pl.read_parquet(path))
    if name in ("own", "rules"):
        return partial(ours, path, OWN if name == "own" else RULES)
    plain: dict[str, Callable[[str], int]] = {"bare": bare, "cells": cells, "regression": regression}
    return partial(plain.get(name, ours), path)


def child(name: str, path: str, little: str) -> None:
    """Measure one task, after the same on a few rows, and print it as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    task(name, little)()
    work = task(name, path)
    clock, processor = time.perf_counter(), time.process_time()
    rows = work()
    spent = (time.perf_counter() - clock, time.process_time() - processor)
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    print(json.dumps([*spent, peak, rows]))


def measured(name: str, path: Path, little: Path, python: str = sys.executable) -> Measured:
    """Measure one task in a process of its own."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    child = [str(SPOTIFY)] if name == "spotify" else ["-m", "benchmarks.bench_logs", CHILD, name]
    done = subprocess.run(
        [python, *child, str(path), str(little)],
        cwd=ROOT,
        env={**os.environ, **single},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Measured(*json.loads(done.stdout))


def best(names: dict[str, tuple[Path | str, ...]], rows: int, turns: int) -> dict[str, Measured]:
    """Measure tasks in turn; return and print the least seconds and the highest peak of each."""
    print(f"  load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {turns} turns", flush=True)
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for _ in range(turns):
        for name, paths in names.items():
            found[name].append(measured(name, *paths))  # type: ignore[arg-type]
    out = {}
    for name, runs in found.items():
        assert {run.rows for run in runs} == {rows}, f"{name} counted {runs[0].rows:,} of {rows:,} rows"
        out[name] = one = Measured(
            min(run.seconds for run in runs),
            min(run.processor for run in runs),
            max(run.megabytes for run in runs),
            rows,
        )
        print(
            f"  {name:<12} {one.seconds:>8.2f} s, processor {one.processor:>8.2f} s,"
            f" peak {one.megabytes:>6,.0f} MB, {rows / one.seconds:>13,.0f} rows/s",
            flush=True,
        )
    return out


def report(name: str, value: float, target: float, *, least: bool = True) -> None:
    """Print a number beside its target, which is the least that will do, or the most."""
    is_met, sign = (value >= target, "≥") if least else (value <= target, "≤")
    print(f"{name:<58} {value:>10,.2f}   {sign} {target:<7,g} {'met' if is_met else 'MISSED'}", flush=True)


def many(folder: Path, rows: int, links: list[int], turns: int) -> None:
    """Analyse a folder of Parquet beside the bare GROUP BY, with every file counted so many times."""
    large, little = folder / "large", folder / "little"
    large.mkdir()
    little.mkdir()
    write(little / "0.parquet", fixed_split(FEW), 0, LITTLE)
    start = time.perf_counter()
    size = write_folder(large, rows)
    made = time.perf_counter() - start
    print(f"{rows:,} rows of Parquet, {size / rows:.1f} bytes each, made in {made:.0f} s", flush=True)
    files = sorted(large.iterdir())
    for times in links:
        for file in files:
            for place in range(1, times):
                (large / f"{file.stem}_{place}.parquet").unlink(missing_ok=True)
                os.link(file, large / f"{file.stem}_{place}.parquet")
        print(f"{rows * times:,} rows, each file counted {times} times:")
        beside_bare(large, little, rows * times, turns)


def beside_bare(large: Path, little: Path, rows: int, turns: int) -> None:
    """Measure a folder of so many rows."""
    names: dict[str, tuple[Path | str, ...]] = dict.fromkeys(("bare", "cells", "analyse"), (large, little))
    found = best(names, rows, turns)
    one, alone, hand = found["analyse"], found["cells"], found["bare"]
    report("analyse: million rows/s", rows / one.seconds / 1e6, 8)
    report("analyse: bare GROUP BY's seconds over ours", hand.seconds / one.seconds, 0.8)
    report("  the same of the processor's", hand.processor / one.processor, 0.8)
    report("  cells alone, seconds", hand.seconds / alone.seconds, 0.8)
    report("  cells alone, the processor's", hand.processor / alone.processor, 0.8)
    report("analyse: peak MB", one.megabytes, 2000, least=False)


def few(folder: Path, spotify: str | None, turns: int) -> None:
    """Analyse a million rows from several sources, beside pandas and statsmodels, and spotify-confidence."""
    for name, sql in (("few.csv", fixed_split), ("few.parquet", fixed_split), ("own.parquet", own_split)):
        write(folder / name, sql(FEW), 0, FEW)
        write(folder / f"little_{name}", sql(FEW), 0, LITTLE_OWN if sql is own_split else LITTLE)
    files = {"csv": "few.csv", "regression": "few.csv", "own": "own.parquet", "rules": "own.parquet"}
    names: dict[str, tuple[Path | str, ...]] = {}
    peers = {"regression": ("pandas", "statsmodels"), "pandas": ("pandas",), "polars": ("polars",)}
    wanted = ("csv", "regression", "parquet", "pandas", "polars", "own", "rules")
    for name in (one for one in wanted if has_peer(*peers.get(one, ()))):
        file = files.get(name, "few.parquet")
        names[name] = (folder / file, folder / f"little_{file}")
    print(
        f"{FEW:,} rows; regression is pandas and statsmodels; in own and rules every row has probabilities of"
        " its own, and rules judges two of them with a context of two columns:"
    )
    if spotify is not None:
        names["spotify"] = (*names["csv"], spotify)
    found = best(names, FEW, turns)
    report("CSV: seconds", found["csv"].seconds, 3, least=False)
    if "regression" in found:
        report(
            "CSV: pandas and statsmodels' seconds over ours",
            found["regression"].seconds / found["csv"].seconds,
            1,
        )
    if spotify is None:
        print("spotify-confidence is not beside them: name an interpreter that has it with --spotify")
    else:
        report(
            "CSV: spotify-confidence's seconds over ours", found["spotify"].seconds / found["csv"].seconds, 1
        )


def main(arguments: list[str] | None = None) -> None:
    """Print all measurements."""
    given = arguments or []
    if given[:1] == [CHILD]:
        child(*given[1:])
        return

    def option(name: str, usual: str | None) -> str | None:
        return given[given.index(name) + 1] if name in given else usual

    rows = int(float(option("--rows", str(ROWS // 10 if "--quick" in given else ROWS)) or ROWS))
    links = [int(times) for times in (option("--links", None) or "1").split(",")]
    turns = int(option("--turns", None) or TURNS)
    with tempfile.TemporaryDirectory(prefix="orthobandit-bench-") as folder:
        if "--large" not in given:
            few(Path(folder), option("--spotify", None), turns)
        many(Path(folder), rows, links, turns)


if __name__ == "__main__":
    main(sys.argv[1:])
