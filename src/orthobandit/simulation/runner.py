"""Simulate a policy in an environment, many replications at a time."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._checks import check_whole
from orthobandit._pool import MOST_JOBS, in_processes
from orthobandit._progress import Progress
from orthobandit._types import Whole
from orthobandit.errors import ParameterError
from orthobandit.policy import FOREVER, Policy
from orthobandit.simulation.batch import Job, play_group
from orthobandit.simulation.checkpoints import checked_checkpoints, default_checkpoints
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.paths import Oblivious
from orthobandit.simulation.result import RunResult
from orthobandit.simulation.resume import Parts

REMEDY = (
    "it was killed, or it could not import the script; call simulate below `if __name__ == '__main__':`, or"
    " with jobs=1"
)
SIDE_BY_SIDE = 64  # replications in a batch: enough to share a path, few enough to report progress


def simulate(
    policy: Policy[Any],
    environment: Environment,
    *,
    horizon: int,
    replications: int,
    seed: int,
    checkpoints: ArrayLike | None = None,
    jobs: int = 1,
    stop_when_declared: bool = False,
    progress: Progress | None = None,
    resume: str | Path | None = None,
    batch: int | None = None,
    first: int = 0,
) -> RunResult:
    """Run a policy for `horizon` rounds in independent replications.

    The result depends on the policy, the environment, the horizon, the seed and each replication's number
    only: not on `jobs`, `batch`, an interruption, or how many other replications there are. Checkpoints
    change nothing but where the regret is noted.

    Parameters
    ----------
    policy : Policy
    environment : Environment
        Its arms are shown to the policy, its truth is not.
    horizon : int
        Rounds of each replication.
    replications : int
        How many independent runs.
    seed : int
        Non-negative; names all streams together with each replication's number.
    checkpoints : array-like (C,) of int, optional
        Ascending rounds in [1, horizon] after which the regret is noted; by default up to 50 of them,
        evenly spaced in the logarithm, ending with the horizon.
    jobs : int
        Processes to use. With more than one, scripts need the usual ``if __name__ == "__main__":``.
    stop_when_declared : bool
        End a replication when an arm is declared best; its regret is then constant.
    progress : callable (done, total), optional
        Called with the number of finished replications.
    resume : path, optional
        A folder in which finished parts are kept: after an interruption the same call goes on from there.
    batch : int, optional
        Replications played side by side in one process; speed and memory only.
    first : int
        Number of the first replication: ``first=10, replications=5`` are numbers 10 to 14 of a longer run.

    Returns
    -------
    RunResult
    """
    job = _checked_job(policy, environment, horizon, seed, checkpoints, stop_when_declared)
    check_whole("replications", replications, most=2**32 - 1)
    check_whole("jobs", jobs, most=MOST_JOBS)
    check_whole("batch", 1 if batch is None else batch)
    check_whole("first", first, least=0, most=2**32 - 1)
    numbers = np.arange(first, first + replications)
    parts = None if resume is None else Parts(resume, job)
    done = [] if parts is None else parts.load(numbers)
    finished = sum(part.replications.size for part in done)
    if progress is not None and finished:
        progress(finished, replications)
    # Closed on the way out, so that an error or Ctrl-C here ends the workers too.
    groups = _groups(done, numbers, jobs, batch)
    with closing(in_processes(partial(play_group, job), groups, jobs, remedy=REMEDY)) as played:
        for _, part in played:
            if parts is not None:
                parts = parts.kept(part)
            done.append(part)
            finished += part.replications.size
            if progress is not None:
                progress(finished, replications)
    return RunResult.merge(done)


def _groups(done: list[RunResult], numbers: Whole, jobs: int, batch: int | None) -> list[Whole]:
    missing = np.setdiff1d(numbers, np.concatenate([numbers[:0], *(part.replications for part in done)]))
    size = batch or max(1, min(SIDE_BY_SIDE, -(-missing.size // jobs)))
    return [missing[i : i + size] for i in range(0, missing.size, size)]


def _checked_job(
    policy: Policy[Any],
    environment: Environment,
    horizon: int,
    seed: int,
    checkpoints: ArrayLike | None,
    stop_when_declared: bool,
) -> Job:
    for method in ("start", "plan", "observe", "decide"):
        if not callable(getattr(policy, method, None)):
            raise ParameterError(f"policy={policy!r} has no method {method}(); it is not a Policy")
    if not isinstance(environment, Environment):
        raise ParameterError(f"environment is a {type(environment).__name__}; an Environment is needed")
    check_whole("horizon", horizon, most=FOREVER - 1)
    check_whole("seed", seed, least=0, most=2**128 - 1)
    if isinstance(environment.shift, Oblivious):
        environment.shift.require(horizon)
    marks = default_checkpoints(horizon) if checkpoints is None else checked_checkpoints(checkpoints, horizon)
    return Job(policy, environment, int(horizon), int(seed), marks, stop_when_declared)
