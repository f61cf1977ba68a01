"""`orthobandit doctor`: check the installation and this machine."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from orthobandit import (
    ArmSet,
    Asymptotic,
    Bounded,
    ContrastSequence,
    Plan,
    Tally,
    __version__,
    centred_design,
)
from orthobandit._foundation.random import next_position
from orthobandit.cli._output import Screen, guide

MARKS = {"fine": ("✓", "green"), "note": ("–", "yellow"), "problem": ("✗", "bold red")}
# extra: the modules it brings, and what they give
EXTRAS = {
    "parquet": (("pyarrow",), "Parquet files; `sweep` and `reproduce`"),
    "plots": (("matplotlib", "jinja2"), "plots, and the pages of `reproduce`"),
    "frames": (("pandas",), "`to_frame` with pandas; polars and pyarrow will do too"),
    "logs": (("ibis", "duckdb", "narwhals"), "`analyse`"),
    "live": (("sqlalchemy", "alembic"), "experiments that are kept in a file or a database"),
    "service": (("fastapi", "uvicorn"), "`serve`"),
    "telemetry": (("opentelemetry.instrumentation.fastapi",), "OpenTelemetry, for `serve --telemetry`"),
    "client": (("httpx",), "asking a server from Python"),
    "postgres": (("psycopg",), "PostgreSQL, for logs and for the service"),
    "ray": (("ray",), "sweeps on a cluster"),
    "spark": (("pyspark",), "logs in Spark"),
}
MIN_BYTES = 2**29  # bytes of memory or disk below which something will fail
TIGHT_BYTES = 2**31  # bytes below which long work may fail
# Half widths of the interval in `_interval`, by mode: change them only together with the method.
INTERVALS = ((Asymptotic(), 0.373819811), (Bounded(0.0, 1.0), 0.392938735))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Check this machine: versions, which extras are installed and what the others are for, whether"
        " compiled code is cached, cores, memory and disk space; and compute a design and an interval with"
        " known values.",
        {"check": "doctor", "for a bug report": "doctor --json"},
        ["The exit code is 1 if there is a problem. An extra that is not installed is not a problem."],
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> int:
    """Check everything and print the findings; return 1 if there is a problem."""
    findings = checkup()
    problems = [one for one in findings if one.status == "problem"]
    if options.json:
        print(
            json.dumps({"problems": len(problems), "findings": plain(findings)}, indent=2, ensure_ascii=False)
        )
        return 1 if problems else 0
    screen = Screen(soft_wrap=True, highlight=False)
    width = max(len(one.name) for one in findings)
    for one in findings:
        mark, style = MARKS[one.status]
        screen.print(Text.assemble((mark, style), f" {one.name:<{width}}  {one.words}"))
    said = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}" if problems else "everything works"
    screen.print(f"\n{said}")
    return 1 if problems else 0


@dataclass(frozen=True)
class Finding:
    """The result of one check: ``fine``, ``note`` (something optional is missing) or ``problem``."""

    name: str
    status: str
    words: str


def checkup() -> list[Finding]:
    """Return the findings of all checks."""
    return [*_versions(), *_extras(), _compiled(), _threads(), _memory(), *_disk(), *_works()]


def plain(findings: list[Finding]) -> list[dict[str, Any]]:
    """Return findings as plain values."""
    return [asdict(one) for one in findings]


def _versions() -> list[Finding]:
    found = (
        f"orthobandit {__version__}, Python {platform.python_version()} on {platform.platform(terse=True)}"
    )
    is_new = sys.version_info >= (3, 11)
    words = found if is_new else f"{found}; Python 3.11 or newer is needed"
    core = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "numba", "rich"))
    return [Finding("version", "fine" if is_new else "problem", words), Finding("packages", "fine", core)]


def _extras() -> list[Finding]:
    out = []
    for extra, (modules, gives) in EXTRAS.items():
        missing = [name for name in modules if not _is_there(name)]
        if missing:
            words = f"not there: {gives}; pip install '.[{extra}]' in orthobandit's folder"
        else:
            words = f"{', '.join(map(_version, modules))}: {gives}"
        out.append(Finding(f"extra {extra}", "note" if missing else "fine", words))
    return out


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it is in is missing
        return False


def _version(module: str) -> str:
    name = {"ibis": "ibis-framework"}.get(module, module)
    try:
        return f"{module} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return module


def _compiled() -> Finding:
    """Check whether machine code is cached, so that only the first start is slow."""
    next_position(np.array([1, 2, 3, 4], dtype=np.uint64))
    folder = Path(next_position.stats.cache_path)  # type: ignore[attr-defined]
    if folder.is_dir() and os.access(folder, os.W_OK):
        return Finding("compiled code", "fine", f"kept in {folder}")
    return Finding(
        "compiled code",
        "problem",
        f"cannot be kept in {folder}, so that every start compiles anew; set NUMBA_CACHE_DIR to a folder that"
        " can be written to",
    )


def _threads() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    given = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    said = f"; {', '.join(given)}" if given else "; one a worker process where --jobs is above 1"
    return Finding("cores", "fine", f"{cores} to use{said}")


def _memory() -> Finding:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return Finding("memory", "note", "cannot be told on this system")
    # Files that are only kept for speed count as free; Linux says how much.
    kept = [line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemAvailable:")]
    return _room("memory", int(kept[0]) * 1024 if kept else free, f" of {_size(whole)}")


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def _disk() -> list[Finding]:
    out = []
    for name, folder in (("this folder", Path.cwd()), ("temporary files", Path(tempfile.gettempdir()))):
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"orthobandit")
        except OSError as error:
            reason = error.strerror or error
            out.append(Finding(name, "problem", f"{folder} cannot be written to ({reason})"))
            continue
        out.append(_room(name, shutil.disk_usage(folder).free, f" in {folder}"))
    return out


def _room(name: str, free: int, where: str) -> Finding:
    words = f"{_size(free)} free{where}"
    if free < MIN_BYTES:
        return Finding(name, "problem", f"{words}: too little; make room")
    if free < TIGHT_BYTES:
        return Finding(name, "note", f"{words}: tight for large studies and logs")
    return Finding(name, "fine", words)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def _works() -> list[Finding]:
    return [_tested("a known design", _design), _tested("a known interval", _interval)]


def _tested(name: str, test: Callable[[], str | None]) -> Finding:
    begin = time.perf_counter()
    wrong = test()
    seconds = time.perf_counter() - begin
    return Finding(name, "problem", wrong) if wrong else Finding(name, "fine", f"right, in {seconds:.2f} s")


def _design() -> str | None:
    design = centred_design(ArmSet.one_hot(4))
    off = float(np.abs(design.probabilities - 0.25).max())
    norm = abs(design.centred_norm - np.sqrt(3))
    return None if max(off, norm) < 1e-5 else f"four like arms get {design.probabilities.tolist()}"


def _interval() -> str | None:
    """Recompute an interval of each mode on made-up rewards; return what is wrong, or None."""
    rounds = np.arange(200)
    arms = rounds % 2
    rewards = (rounds * 7 % 10 < 3 + 4 * (rounds % 2)).astype(np.float64)
    for mode, half in INTERVALS:
        sequence = ContrastSequence.start(ArmSet.one_hot(2), [[1, 0]], mode, 0.05)
        plan = Plan([0.5, 0.5], 200, centre=sequence.centre() if mode.is_exact else None)
        tally = Tally.of(arms, plan.residuals(arms, rewards), 2)
        low, high = (float(end[0]) for end in sequence.add(plan, tally).intervals())
        if abs(low - (0.2 - half)) > 1e-6 or abs(high - (0.2 + half)) > 1e-6:
            return f"{mode.name}: {low:.6f} to {high:.6f} instead of {0.2 - half:.6f} to {0.2 + half:.6f}"
    return None
