"""Arms that come and go while anytime elimination runs, without restarting the randomisation."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from orthobandit.arms import ArmSet
from orthobandit.policy.anytime.fields import Stage
from orthobandit.policy.anytime.plans import wide_plan
from orthobandit.policy.anytime.stages import SHORTEST, AnytimeState

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination

State = TypeVar("State", bound=AnytimeState)


def retire_arm(run: State, policy: "AnytimeElimination", arm: int) -> State:
    """Return one run without an arm; arms that only it, or tests against it, had dropped come back."""
    run = _close_plan(run, policy).without_arm(policy, arm)
    return _reopen(run, policy).tune_new(policy)


def add_arms(run: State, policy: "AnytimeElimination", arms: ArmSet) -> State:
    """Return one run with all of these arms, which begin with those so far."""
    old = run.arms
    run = _close_plan(run, policy)
    # Coordinates of the hull change when it gets larger. Features so far are the same and new ones are 0, so
    # that differences of old arms, y = z·(old basis), have the coordinates y·(new basis)ᵀ: what was learnt is
    # kept.
    change = old.basis @ arms.basis[:, : old.features.shape[1]].T
    run = replace(
        run.with_arms(policy, arms),
        gram=change.T @ run.gram @ change,
        moment=change.T @ run.moment,
        # Both are made anew below.
        values=np.zeros(len(arms)),
        probabilities=np.zeros(len(arms)),
    )
    return _reopen(run, policy).tune_new(policy)


def _close_plan(run: State, policy: "AnytimeElimination") -> State:
    """Count the rounds so far of the plan in force; what is left of a pilot goes on under another plan."""
    rounds = int(run.tally.rounds)
    if not rounds or run.declared >= 0:
        return run
    run = run.absorb(policy.confidence, run.tally)
    return replace(run, length=run.length - rounds) if run.stage < Stage.COUNTING else run


def _reopen(run: State, policy: "AnytimeElimination") -> State:
    """Play the wide design until the next batch ends, unless the matter is settled."""
    run = replace(
        run,
        declared=np.full_like(run.declared, -1),
        epsilon=np.full_like(run.epsilon, np.inf),
        plans=run.plans + 1,
    ).find_leader(policy)
    if run.declared >= 0:
        return run
    length = np.maximum(np.ceil(policy.growth * run.rounds), SHORTEST).astype(np.int64)
    length = run.length - run.late if run.stage < Stage.COUNTING else length
    p = np.array(wide_plan(run.arms, run.retired))
    none = np.zeros_like(run.late)
    return replace(run, probabilities=p, length=np.asarray(length), late=none, designed=none)
