"""One batch of replications, from the first plan to the horizon."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._types import Array, Mask, Whole
from orthobandit.errors import ParameterError, ProbabilityError
from orthobandit.estimate import Plan
from orthobandit.policy import FOREVER, Decision, Policy
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.every_round import Learner, plans_every_round
from orthobandit.simulation.player import Player
from orthobandit.simulation.result import RunResult

# How often a policy that plans every round is asked which arms are out.
LOOK = 1024


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
        """Return what a reader of the result should know, as plain JSON values."""
        return {
            "policy": repr(self.policy),
            "environment": self.environment.describe(),
            "horizon": self.horizon,
            "seed": self.seed,
            "stop_when_declared": self.stop_when_declared,
        }


def play_group(job: Job, replications: Whole) -> RunResult:
    """Play some replications of a job side by side; the grouping changes no number."""
    policy, arms, size = job.policy, job.environment.arms, replications.size
    player = Player(job.environment, job.checkpoints, job.seed, replications, policy.baseline)
    clock = player.memory.clock
    state = policy.start(arms, (size,), seed=job.seed, replications=replications)
    learner = Learner(policy, arms) if plans_every_round(policy) else None
    log = _Log(size, len(arms), 1 if learner is None else LOOK, job.horizon)
    decision = policy.decide(state)
    is_running = np.ones(size, dtype=bool)
    while True:
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
        is_final = is_running & (plan.rounds >= FOREVER) & (np.count_nonzero(probabilities, axis=1) == 1)
        player.settle(np.flatnonzero(is_final), job.environment.gaps[np.argmax(probabilities, axis=1)])
        is_running &= ~is_final
        if not is_running.any():
            return _result(job, replications, player, log, decision)
        if learner is not None and player.is_oblivious and np.all(plan.rounds[is_running] == 1):
            played = (log.current, log.plans)
            state = learner.play(state, player, np.flatnonzero(is_running), log.next_look(clock), played)
        else:
            rounds = np.where(is_running, np.minimum(plan.rounds, job.horizon - clock), 0)
            state = policy.observe(state, plan, player.play(probabilities, rounds, plan.centre))
        decision = policy.decide(state)


class _Log:
    """What is noted of R replications along the way; every `look` rounds, which arms are out."""

    def __init__(self, size: int, count: int, look: int, horizon: int) -> None:
        self.stop_times = np.full(size, -1, dtype=np.int64)
        self.elimination_times = np.full((size, count), -1, dtype=np.int64)
        self.plans = np.zeros(size, dtype=np.int64)
        self.current = np.zeros((size, count))
        self._look, self._horizon = look, horizon

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
