"""Cells on a Ray cluster; the one place that imports Ray."""

import os
from collections.abc import Generator, Sequence
from typing import Any

from orthobandit._files import optional_package
from orthobandit.errors import StudyError
from orthobandit.study.cells import Cell, Tables, compute, describe

RETRIES = 3  # how often a cell is started again after its worker died


def on_ray(cells: Sequence[Cell], jobs: int) -> Generator[tuple[Cell, Tables], None, None]:
    """Yield cells as they finish on the cluster at ``RAY_ADDRESS``, or on a local Ray with `jobs` workers.

    Only the caller stores results, so a cell that was started twice is still counted once.
    """
    ray = optional_package("ray", "ray", "backend='ray'")
    if not cells:
        return
    is_mine = not ray.is_initialized()
    if is_mine:
        _connect(ray, jobs)
    remote = ray.remote(max_retries=RETRIES, num_cpus=1)(compute)
    pending = {remote.remote(cell): cell for cell in cells}
    try:
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=1)
            for reference in ready:
                cell = pending.pop(reference)
                yield cell, _result(ray, reference, cell)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
        if is_mine:
            ray.shutdown()


def _connect(ray: Any, jobs: int) -> None:
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level="ERROR")
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local", num_cpus=jobs, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )


def _result(ray: Any, reference: Any, cell: Cell) -> Tables:
    try:
        tables: Tables = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise StudyError(
            f"cell {describe(cell)} was lost {RETRIES + 1} times on Ray ({type(error).__name__});"
            " what is finished is kept: run the same command again to go on"
        ) from None
    return tables
