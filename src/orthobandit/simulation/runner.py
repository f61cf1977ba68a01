"""Simulate a policy in an environment, many replications at a time.

:func:`simulate` cuts the replications into groups, plays them in processes, keeps finished groups in a folder
if asked to, and merges their results. A replication's numbers never depend on how they were grouped.
"""

import warnings
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_fits, check_whole
from orthobandit._foundation.compile import compiled_for
from orthobandit._foundation.files import check_folder, read_sealed, write_sealed
from orthobandit._foundation.fingerprint import fingerprint
from orthobandit._foundation.pool import MAX_JOBS, in_processes
from orthobandit._foundation.types import Array, Mask, Progress, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import (
    Argument,
    DamagedFileWarning,
    FileFormatError,
    NotStoredWarning,
    OutputError,
    ParameterError,
    ProbabilityError,
    RewardError,
)
from orthobandit.estimate import Plan
from orthobandit.policy import FOREVER, Decision, Policy
from orthobandit.simulation.adversaries import STEP
from orthobandit.simulation.compiled_rounds import REFUSED, UNSOLVED, Plans, play_plans
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.noise import NOISE_STEP
from orthobandit.simulation.player import Player
from orthobandit.simulation.result import RunResult
from orthobandit.simulation.shifts import Oblivious

REMEDY = (
    "it was killed, or it could not import the script; call simulate below `if __name__ == '__main__':`, or"
    " with jobs=1"
)
REPLICATION_NUMBERS = 8  # numbers of a replication in a result, whatever its arms and checkpoints
BATCH_REPLICATIONS = 64  # replications in a batch: enough to share a path, few enough to report progress
MAX_BATCH_ARMS = 1_000_000  # of all replications of a batch together: a hundred megabytes or so
MAX_REPLICATIONS = 2**32 - 1  # each number names random streams, and keys of streams have 32 bits
# Rounds between two looks at which arms are out, where a look costs more than a compiled round.
LOOK_ROUNDS = 1024


@dataclass(frozen=True, eq=False)
class Job:
    """The settings that every replication of a run shares; see :func:`simulate`."""

    policy: Policy[Any]
    environment: Environment
    horizon: int
    seed: int
    checkpoints: Whole
    stop_when_declared: bool

    def describe(self) -> dict[str, Any]:
        """Return a description for readers of the result, as plain JSON values."""
        return {
            "policy": repr(self.policy),
            "environment": self.environment.describe(),
            "horizon": self.horizon,
            "seed": self.seed,
            "stop_when_declared": self.stop_when_declared,
        }


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
    check_whole("replications", replications, most=MAX_REPLICATIONS)
    _check_room(job, int(replications))
    check_whole("jobs", jobs, most=MAX_JOBS)
    check_whole("batch", 1 if batch is None else batch)
    check_whole("first", first, least=0, most=MAX_REPLICATIONS)
    numbers = np.arange(first, first + replications)
    parts = None if resume is None else Parts(resume, job)
    done = [] if parts is None else parts.load(numbers)
    finished = sum(part.replications.size for part in done)
    if progress is not None and finished:
        progress(finished, replications)
    # Closed on the way out, so that an error or Ctrl-C here ends the workers too.
    together = max(1, min(BATCH_REPLICATIONS, MAX_BATCH_ARMS // len(environment.arms)))
    groups = _groups(done, numbers, jobs, batch, together)
    with closing(in_processes(partial(play_group, job), groups, jobs, remedy=REMEDY)) as played:
        for _, part in played:
            if parts is not None:
                parts = parts.kept(part)
            done.append(part)
            finished += part.replications.size
            if progress is not None:
                progress(finished, replications)
    return RunResult.merge(done)


def _check_room(job: Job, replications: int) -> None:
    """Raise an error if the result of so many replications would not fit into memory."""
    count = len(job.environment.arms)
    # A number of 8 bytes: of each replication, checkpoint and arm; of an arm also whether it is active.
    each = 8 * (job.checkpoints.size + count + REPLICATION_NUMBERS) + count
    check_fits(
        f"the result of {replications:,} replications",
        2.0 * replications * each,  # the parts, and all of them together
        "run fewer, or several runs one after the other by `first`, of each of which you keep the summary",
    )


def _groups(
    done: list[RunResult], numbers: Whole, jobs: int, batch: int | None, together: int
) -> list[Whole]:
    missing = np.setdiff1d(numbers, np.concatenate([numbers[:0], *(part.replications for part in done)]))
    # No more than keeps every process busy.
    size = batch or max(1, min(together, -(-missing.size // jobs)))
    return [missing[i : i + size] for i in range(0, missing.size, size)]


def _checked_job(
    policy: Policy[Any],
    environment: Environment,
    horizon: int,
    seed: int,
    checkpoints: ArrayLike | None,
    stop_when_declared: bool,
) -> Job:
    if isinstance(policy, type):
        raise ParameterError(
            Argument("policy", policy), f" is a class; pass an object of it: {policy.__name__}()"
        )
    for method in ("start", "plan", "observe", "decide"):
        if not callable(getattr(policy, method, None)):
            raise ParameterError(Argument("policy", policy), f" has no method {method}(); it is not a Policy")
    if not hasattr(policy, "baseline"):
        raise ParameterError(
            Argument("policy", policy), " has no `baseline`; set it to None to tally rewards as they are"
        )
    if not isinstance(environment, Environment):
        raise ParameterError(f"environment is a {type(environment).__name__}; an Environment is needed")
    check_whole("horizon", horizon, most=FOREVER - 1)
    check_whole("seed", seed, least=0, most=2**128 - 1)
    if isinstance(environment.shift, Oblivious):
        environment.shift.require(horizon)
    marks = default_checkpoints(horizon) if checkpoints is None else checked_checkpoints(checkpoints, horizon)
    return Job(policy, environment, int(horizon), int(seed), marks, stop_when_declared)


def default_checkpoints(horizon: int) -> Whole:
    """Return up to 50 rounds, evenly spaced in the logarithm, ending with the horizon."""
    return np.unique(np.geomspace(1, horizon, 50).round().astype(np.int64).clip(1, horizon))


def checked_checkpoints(checkpoints: ArrayLike, horizon: int | None = None) -> Whole:
    """Return ascending rounds (C,) from at least 1 to at most the horizon, or say what they must be."""
    array = np.asarray(checkpoints)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ParameterError(Argument("checkpoints", array.tolist()), " must be a list of whole numbers")
    last = int(array[-1]) if horizon is None else horizon
    if array[0] < 1 or array[-1] > last or np.any(np.diff(array) <= 0):
        raise ParameterError(
            f"checkpoints run from {array[0]} to {array[-1]}; they must ascend from at least 1"
            f" to at most the horizon {last}"
        )
    return array.astype(np.int64)


def play_group(job: Job, replications: Whole) -> RunResult:
    """Play some replications of a job side by side; the grouping changes no number."""
    policy = job.policy
    arms = job.environment.arms
    size = replications.size
    player = Player(job.environment, job.checkpoints, job.seed, replications, policy.baseline)
    clock = player.memory.clock
    state = policy.start(arms, (size,), seed=job.seed, replications=replications)
    learner = Learner(policy, arms) if plans_every_round(policy) else None
    log = _Log(size, len(arms), 1 if learner is None else LOOK_ROUNDS, job.horizon)
    decision = policy.decide(state)
    is_running = np.ones(size, dtype=bool)
    while True:
        # Noted before anything is played: a policy may declare an arm without a single round.
        log.note(decision, clock)
        if job.stop_when_declared:
            stopped = is_running & (log.stop_times >= 0)
            player.settle(np.flatnonzero(stopped), np.zeros(size))
            is_running &= ~stopped
        is_running &= clock < job.horizon
        if not is_running.any():
            return _result(job, replications, player, log, decision)
        plan = policy.plan(state)
        probabilities = _checked_plan(plan, is_running, (size, len(arms)))
        log.note_plans(probabilities, is_running)
        # One arm for ever: its regret is known without playing it.
        is_final = is_running & (plan.rounds >= FOREVER) & (np.count_nonzero(probabilities, axis=1) == 1)
        player.settle(np.flatnonzero(is_final), job.environment.gaps[np.argmax(probabilities, axis=1)])
        is_running &= ~is_final
        if not is_running.any():
            return _result(job, replications, player, log, decision)
        if learner is not None and player.is_compiled and np.all(plan.rounds[is_running] == 1):
            played = (log.current, log.plans)
            state = learner.play(state, player, np.flatnonzero(is_running), log.next_look(clock), played)
        else:
            rounds = np.where(is_running, np.minimum(plan.rounds, job.horizon - clock), 0)
            state = policy.observe(state, plan, player.play(probabilities, rounds, plan.centre))
        decision = policy.decide(state)


class Learner:
    """Plays a policy that plans every round, through its compiled steps.

    Such a policy declares an arm only together with its last plan, so that no round in between needs a
    look at its decision.
    """

    def __init__(self, policy: Any, arms: ArmSet) -> None:
        self._policy = policy
        self._arms = arms
        self._steps = policy.compiled(arms)

    def play(self, state: Any, player: Player, rows: Whole, end: Whole, played: tuple[Array, Whole]) -> Any:
        """Play rows of a batch to their end (R,) or last plan; return the new state.

        `played` are the plans last played (R, K) and their number so far (R,), both brought up to date.
        """
        packed = self._policy.pack(state)
        clock = player.memory.clock
        steps = self._steps
        before = clock.copy()
        plans = Plans(packed.probabilities, packed.rounds, packed.memory, *played)
        about = (steps.settings, packed.memory, 0, packed.probabilities[0])
        while rows.size:
            window = player.window(rows, end)
            ready = rows[window.stop[rows] > clock[rows]]
            arguments = (ready, player.truth, player.memory, window, plans, steps.settings)
            examples = [(0, about), (False, (*about, 0, 0.0)), STEP, NOISE_STEP]
            kernel = compiled_for(play_plans, arguments, examples)
            outcome = kernel(*arguments, steps.plan_into, steps.observe, player.step, player.draw)
            player.check_outcome(outcome)
            if outcome == UNSOLVED:
                steps.fail()
            if outcome == REFUSED:
                raise RewardError(f"a reward cannot be used by {self._policy}; see its documentation")
            rows = rows[(clock[rows] < end[rows]) & (packed.rounds[rows] < FOREVER)]
        after = self._policy.unpack(self._arms, packed, (end.size,))
        return replace(after, number=state.number + clock - before)


class _Log:
    """Records of R replications along the way; every `look` rounds, which arms are out."""

    def __init__(self, size: int, count: int, look: int, horizon: int) -> None:
        self.stop_times = np.full(size, -1, dtype=np.int64)
        self.elimination_times = np.full((size, count), -1, dtype=np.int64)
        self.plans = np.zeros(size, dtype=np.int64)
        self.current = np.zeros((size, count))
        self._look = look
        self._horizon = horizon

    def next_look(self, clock: Whole) -> Whole:
        """Return the rounds (R,) after which the replications are looked at again."""
        return np.minimum((clock // self._look + 1) * self._look, self._horizon)

    def note(self, decision: Decision, clock: Whole) -> None:
        """Note the first declaration of each replication and the first absence of each arm."""
        is_new = (np.asarray(decision.declared) >= 0) & (self.stop_times < 0)
        self.stop_times[is_new] = clock[is_new]
        is_looked = is_new | (clock % self._look == 0) | (clock == self._horizon)
        is_out = is_looked[:, np.newaxis] & ~np.asarray(decision.active) & (self.elimination_times < 0)
        self.elimination_times[is_out] = np.broadcast_to(clock[:, np.newaxis], is_out.shape)[is_out]

    def note_plans(self, probabilities: Array, is_running: Mask) -> None:
        """Count the replications whose distribution differs from the one before."""
        is_new = is_running & np.any(probabilities != self.current, axis=1)
        self.plans[is_new] += 1
        self.current[is_new] = probabilities[is_new]


def _checked_plan(plan: Plan, is_running: Mask, shape: tuple[int, int]) -> Array:
    if plan.probabilities.shape != shape:
        raise ProbabilityError(
            f"the policy planned probabilities of shape {plan.probabilities.shape}; {shape} is needed"
        )
    if np.any(plan.rounds[is_running] < 1):
        raise ParameterError("the policy planned 0 rounds; a plan must be in force for at least one")
    return plan.probabilities


def _result(job: Job, replications: Whole, player: Player, log: _Log, decision: Decision) -> RunResult:
    return RunResult(
        replications=replications,
        checkpoints=job.checkpoints,
        gaps=job.environment.gaps,
        regret=player.memory.regret,
        stop_times=log.stop_times,
        elimination_times=log.elimination_times,
        plans=log.plans,
        clipped=player.memory.clipped,
        decision=decision,
        settings=job.describe(),
    )


def plans_every_round(policy: Policy[Any]) -> bool:
    """Tell whether a policy offers compiled steps (:mod:`orthobandit.policy.every_round`)."""
    return all(callable(getattr(policy, name, None)) for name in ("compiled", "pack", "unpack"))


def seconds_a_round(policy: Policy[Any]) -> float:
    """Return roughly what a round takes, for the order of work and the time left."""
    # Orders of magnitude on one core; the ratio decides what runs first.
    return 5e-5 if plans_every_round(policy) else 5e-8


class Parts:
    """The parts of one job in ``folder/<fingerprint>/``; other jobs may share the folder."""

    def __init__(self, folder: str | Path, job: Job) -> None:
        # The folder of the user first, so that an error names what was given.
        check_folder("resume", folder)
        self.folder = Path(folder) / job_fingerprint(job)
        check_folder("resume", self.folder)

    def load(self, numbers: Whole) -> list[RunResult]:
        """Return the stored replications of these numbers, each once.

        A part that is damaged is removed, with a warning: what it held counts as not yet computed.
        """
        missing = numbers
        found = []
        for path in sorted(self.folder.glob("part-*.json")):
            try:
                part = RunResult.from_json(read_sealed(path))
            except FileNotFoundError:
                continue  # another process with the same job found it damaged
            except FileFormatError as error:
                warnings.warn(f"{error}; its replications are run again", DamagedFileWarning, stacklevel=4)
                path.unlink(missing_ok=True)
                continue
            # An earlier call with another `batch` may have left parts that overlap.
            part = part.only(np.isin(part.replications, missing))
            missing = np.setdiff1d(missing, part.replications)
            found.append(part)
        return found

    def kept(self, part: RunResult) -> "Parts | None":
        """Keep a finished part; None, with a warning, if there is no room for it or for others to come."""
        first, last = int(part.replications[0]), int(part.replications[-1])
        try:
            write_sealed(self.folder / f"part-{first:09d}-{last:09d}.json", part.to_json())
        except OutputError as error:
            warnings.warn(f"{error}; the run goes on without keeping parts", NotStoredWarning, stacklevel=3)
            return None
        return self


def job_fingerprint(job: Job) -> str:
    """Return a hash of all that decides what a replication of this job does: settings and code."""
    settings = {field.name: getattr(job, field.name) for field in fields(job)}
    return fingerprint(settings, "orthobandit.simulation:simulate")
