"""Speed and memory of the design solvers, as ratios to one pass over the arms timed in the same run.

The floor is one blocked pass computing the leverages of all arms through a whitening view. Times are
processor times on one thread, of a fresh `ArmSet`, so that they include the decision on the rank.
"""

# ruff: noqa: E402 - the number of threads is read when numpy is loaded
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import importlib
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks import has_peer
from orthobandit import ArmSet
from orthobandit._foundation.affine import affine_frame
from orthobandit.design import Design, centred_design, contrast_design, g_optimal_design
from orthobandit.design._contrast_optimal import AllPairs
from orthobandit.design._points import Points

Array = NDArray[np.float64]

HERE = Path(__file__).parent
ROWS = 10_000  # made at a time, so that no temporary is as large as the features
CLUSTERS, SPREAD, CONDITION = 50, 0.1, 1e4
CVXPY_LIMIT = 120.0  # seconds after which the general solver is stopped and its time a lower bound
SOLVERS: dict[str, Callable[[ArmSet], Design]] = {"G-optimal": g_optimal_design, "centred": centred_design}


@dataclass(frozen=True)
class Row:
    """One measurement beside its target; `note` is for the reader."""

    job: str
    measured: float
    target: float
    unit: str
    note: str = ""
    is_lower_bound: bool = False  # of a speed-up: more is better

    @property
    def passed(self) -> bool:
        """Whether the target is met."""
        return self.measured >= self.target if self.is_lower_bound else self.measured <= self.target

    def __str__(self) -> str:
        sign, verdict = ("≥" if self.is_lower_bound else "≤"), ("pass" if self.passed else "FAIL")
        digits = 1 if self.measured > 5 else 2
        shown = f"{self.measured:9,.{digits}f} {sign} {self.target:,g} {self.unit}"
        return f"  {self.job:46} {shown:34} {verdict}  {self.note}"


def arms_of(kind: str, count: int, width: int, seed: int = 0) -> Array:
    """Return read-only features (count, width), made in place: Gaussian, on the sphere, or in clusters.

    Clusters: fifty Gaussian centres, spread 0.1, stretched to condition number 1e4 and turned.
    """
    rng = np.random.default_rng(seed)
    features = np.empty((count, width))
    centres = rng.standard_normal((CLUSTERS, width))
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0]
    stretch = np.geomspace(1, 1 / CONDITION, width)[:, np.newaxis] * turn
    for start in range(0, count, ROWS):
        block = features[start : start + ROWS]
        rng.standard_normal(out=block)
        if kind == "sphere":
            block /= np.linalg.norm(block, axis=1, keepdims=True)
        elif kind == "cluster":
            block[:] = (SPREAD * block + centres[rng.integers(CLUSTERS, size=len(block))]) @ stretch
    features.flags.writeable = False
    return features


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median processor time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def designed(solver: Callable[[ArmSet], Design], arms: ArmSet) -> Design:
    """Solve for the same arms with nothing remembered; labels are shared, to time no strings."""
    again = ArmSet.__new__(ArmSet)
    again.__dict__.update({key: value for key, value in arms.__dict__.items() if key.startswith("_")})
    return solver(again)


def floors(kind: str, count: int, width: int, target: float) -> list[Row]:
    """Time both D-optimal designs in units of one pass over the arms."""
    arms = ArmSet(arms_of(kind, count, width))
    rows = []
    for label, solver in SOLVERS.items():
        has_intercept = label == "centred"
        frame = affine_frame(arms.features, through_zero=not has_intercept)
        points = Points.of(arms.features, frame, has_intercept=has_intercept)
        view = points.rough_view()[0]
        repeats = 3 if count > 500_000 else 5
        floor = seconds(partial(points.leverages, view), 3 * repeats)
        design = designed(solver, arms)
        taken = seconds(partial(designed, solver, arms), repeats)
        job = f"{label}, {kind}, K = {count:,}, d = {width}"
        note = f"{taken * 1e3:.0f} ms, gap {design.optimality_gap:.0e}, {len(design.support)} arms"
        rows.append(Row(job, taken / floor, target, "floors", note))
    return rows


def general_solver(count: int, width: int) -> None:
    """Solve the centred design with CVXPY and Clarabel; print seconds and certified gap (in a child)."""
    cp: Any = importlib.import_module("cvxpy")  # slow to import, and wanted in the child only
    lifted = np.hstack([np.ones((count, 1)), arms_of("gaussian", count, width)])
    p = cp.Variable(count, nonneg=True)
    moment = lifted.T @ cp.multiply(p[:, np.newaxis], lifted)
    problem = cp.Problem(cp.Maximize(cp.log_det(moment)), [cp.sum(p) == 1])
    start = time.process_time()
    problem.solve(solver=cp.CLARABEL)
    taken = time.process_time() - start
    found: Array = np.maximum(p.value, 0.0)
    weights = found / found.sum()
    white = np.linalg.solve(np.linalg.cholesky((lifted.T * weights) @ lifted), lifted.T)
    gap = float((np.square(white).sum(axis=0).max() - width - 1) / width)
    print(json.dumps({"seconds": taken, "gap": gap}))


def child(call: str, limit: float | None = None) -> dict[str, Any] | None:
    """Run a function of this file in a fresh process; return what it prints, or None after the limit."""
    command = [sys.executable, "-c", f"from benchmarks import bench_design as b; b.{call}"]
    try:
        done = subprocess.run(
            command, cwd=HERE.parent, check=True, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def against_cvxpy(count: int, width: int, target: float) -> Row:
    """Compare with a general convex solver on the same arms."""
    arms = ArmSet(arms_of("gaussian", count, width))
    gap = centred_design(arms).optimality_gap
    ours = seconds(partial(designed, centred_design, arms), 9)
    theirs = child(f"general_solver({count}, {width})", CVXPY_LIMIT)
    if theirs is None:
        taken, note = CVXPY_LIMIT, f"CVXPY stopped after {CVXPY_LIMIT:.0f} s, so this is a lower bound"
    else:
        taken, note = theirs["seconds"], f"{theirs['seconds']:.1f} s and gap {theirs['gap']:.0e}"
    note = f"{note}; ours {ours * 1e3:.1f} ms and gap {gap:.0e}"
    job = f"faster than CVXPY + Clarabel, ({count:,}, {width})"
    return Row(job, taken / ours, target, "×", note, is_lower_bound=True)


def pair_pass(points: Array) -> float:
    """Return the largest distance over all ordered pairs, one full K × K pass in blocks of rows."""
    squares, largest = np.einsum("ij,ij->i", points, points), 0.0
    for start in range(0, len(points), 500):
        block = slice(start, start + 500)
        table = squares[block, np.newaxis] + squares - 2.0 * (points[block] @ points.T)
        largest = max(largest, float(table.max()))
    return largest


def contrasts(kind: str, count: int, width: int) -> Row:
    """Count the passes over all pairs of the contrast design, and time it in units of a plain one."""
    arms = ArmSet(arms_of(kind, count, width))
    with patch.object(AllPairs, "worst", autospec=True, side_effect=AllPairs.worst) as priced:
        design = designed(contrast_design, arms)
    taken = seconds(partial(designed, contrast_design, arms), 3)
    plain = taken / seconds(partial(pair_pass, arms.features), 9)
    note = f"{taken * 1e3:.0f} ms, as {plain:.0f} plain passes; gap {design.optimality_gap:.0e}"
    return Row(f"contrast, {kind}, ({count:,}, {width})", priced.call_count, 40, "passes over pairs", note)


def peak_bytes() -> int:
    """Return the most memory this process has held; where Linux tells, without what its parent held."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory(kind: str, writeable: bool) -> None:
    """Print the peak memory of one design beyond the interpreter, in units of the features (in a child)."""
    centred_design(ArmSet(arms_of(kind, 100, 3)))
    before = peak_bytes()
    features = arms_of(kind, 1_000_000, 20)
    if writeable:
        features.flags.writeable = True
    centred_design(ArmSet(features))
    print(json.dumps({"ratio": (peak_bytes() - before) / features.nbytes}))


def start_up() -> Row:
    """Time a small design in a fresh process, from the start of the interpreter to its end."""
    call = "import numpy, orthobandit as o; o.centred_design(o.ArmSet(numpy.eye(4)))"
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", call], cwd=HERE.parent, check=True)
        times.append(time.perf_counter() - start)
    return Row("first call in a fresh process, with imports", min(times), 1.5, "s", "compiled code cached")


def measured() -> list[Row]:
    """Return all measurements, printing each as it is done."""
    rows: list[Row] = []

    def add(more: list[Row]) -> None:
        for row in more:
            print(row, flush=True)
        rows.extend(more)

    for count in (100_000, 1_000_000):
        for kind, target in (("gaussian", 12), ("cluster", 12), ("sphere", 40)):
            add(floors(kind, count, 20, target))
    for kind in ("gaussian", "cluster"):
        add(floors(kind, 100_000, 50, 15))
    if has_peer("cvxpy", "clarabel"):
        add([against_cvxpy(1_000, 10, 100), against_cvxpy(10_000, 20, 500)])
    for count, width in ((500, 10), (2_000, 20)):
        for kind in ("gaussian", "cluster", "sphere"):
            add([contrasts(kind, count, width)])
    for kind in ("gaussian", "sphere"):
        for writeable in (False, True):
            found = child(f"memory({kind!r}, {writeable})") or {}
            note = "features copied by ArmSet" if writeable else "features read-only, not copied"
            add([Row(f"peak memory, {kind}, (1,000,000, 20)", found["ratio"], 3, "× features", note)])
    add([start_up()])
    return rows


def main() -> None:
    """Print each measurement beside its target and write them to results/design.json."""
    print(f"designs, {platform.processor() or platform.machine()}, one thread; load {os.getloadavg()[0]:.1f}")
    rows = measured()
    target = HERE / "results" / "design.json"
    target.parent.mkdir(exist_ok=True)
    report = [asdict(row) | {"passed": row.passed} for row in rows]
    target.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"  {sum(row.passed for row in rows)} of {len(rows)} targets met; {target}")


if __name__ == "__main__":
    main()
