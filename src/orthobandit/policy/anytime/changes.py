"""Arms that come and go while anytime elimination runs, without restarting the randomisation."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from orthobandit._foundation.types import Mask
from orthobandit.arms import ArmSet
from orthobandit.policy.anytime.all_pairs import AllPairs
from orthobandit.policy.anytime.delta import cautious_gaps, own_delta, shares
from orthobandit.policy.anytime.plans import wide_plan
from orthobandit.policy.anytime.stages import SHORTEST

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination


def retire_arm(run: AllPairs, policy: "AnytimeElimination", arm: int) -> AllPairs:
    """Return one run without an arm; arms that only it, or tests against it, had dropped come back."""
    run = _close_plan(run, policy)
    retired = run.retired | (np.arange(len(run.arms)) == arm)
    active = ~retired
    again = np.zeros(len(run.arms), dtype=np.bool_)
    if run.stage == 2:
        again = run.met[:, arm]
        run = _test_again(run, again)
        active = active & ~np.any(run.proven(policy.confidence) & ~retired, axis=1)
    # Proofs in a circle contradict each other: nothing follows.
    run = replace(run, retired=retired, active=active if active.any() else ~retired)
    return _tune_fresh(_reopen(run, policy), policy, np.diag(again))


def _test_again(run: AllPairs, again: Mask) -> AllPairs:
    """Start the tests of arms that have lost a rival again, at half of what is left of δ.

    They count rounds of plans to come. Had they counted rounds that are drawn and not settled, somebody who
    knows such rewards could begin a test just before a run of bad luck. Given all that was drawn before its
    start, a test that begins with the next draw fails wrongly with probability α, whoever chose the moment.
    """
    diagonal = np.diag(again)
    spent = np.where(again, run.left / 2.0, 0.0)
    return replace(
        run.with_evidence(lambda pairs: np.where(diagonal, 0.0, pairs)),
        alpha=np.where(diagonal, np.diag(spent), run.alpha),
        left=run.left - spent,
        met=run.met & ~again[:, np.newaxis],
        first_plan=np.where(diagonal, run.plans + 1, run.first_plan),
    )


def add_arms(run: AllPairs, policy: "AnytimeElimination", arms: ArmSet) -> AllPairs:
    """Return one run with all of these arms, which begin with those so far."""
    old = run.arms
    before = len(old)
    run = _close_plan(run, policy)
    # Differences of positions in the old basis, mapped to the new one: what was learnt is kept, though the
    # coordinates of the hull change when it gets larger.
    centre = arms.positions[:before].mean(axis=0)
    change = np.linalg.lstsq(
        old.positions - old.positions.mean(axis=0), arms.positions[:before] - centre, rcond=None
    )[0]
    run = replace(
        # New entries count the rounds of plans to come.
        run.grow(arms, left=own_delta(policy), first_plan=run.plans + 1),
        gram=change.T @ run.gram @ change,
        moment=change.T @ run.moment,
        # Both are made anew below.
        values=np.zeros(len(arms)),
        probabilities=np.zeros(len(arms)),
    )
    run = _share_delta(run, before, shares(policy)) if run.stage == 2 else run
    is_old = np.arange(len(arms)) < before
    return _tune_fresh(_reopen(run, policy), policy, ~(is_old[:, np.newaxis] & is_old))


def _close_plan(run: AllPairs, policy: "AnytimeElimination") -> AllPairs:
    """Count the rounds so far of the plan in force; what is left of a pilot goes on under another plan."""
    rounds = int(run.tally.rounds)
    if not rounds or run.declared >= 0:
        return run
    run = run.absorb(policy.confidence, run.tally)
    return replace(run, length=run.length - rounds) if run.stage < 2 else run


def _reopen(run: AllPairs, policy: "AnytimeElimination") -> AllPairs:
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
    length = run.length - run.late if run.stage < 2 else length
    p = np.array(wide_plan(run.arms, run.retired))
    none = np.zeros_like(run.late)
    return replace(run, probabilities=p, length=np.asarray(length), late=none, designed=none)


def _share_delta(run: AllPairs, before: int, own: tuple[float, float]) -> AllPairs:
    """Give new pairs of old arms half of what each row has left, and new arms what all had at first."""
    count = len(run.left)
    for_arms, for_pairs = own
    alpha = run.alpha.copy()
    spent = np.full(count, for_arms + for_pairs)
    spent[:before] = run.left[:before] / 2.0
    alpha[:before, before:] = (spent[:before] / (count - before))[:, np.newaxis]
    alpha[before:] = for_pairs / (count - 1)
    new = np.arange(before, count)
    alpha[new, new] = for_arms
    return replace(run, alpha=alpha, left=run.left - spent)


def _tune_fresh(run: AllPairs, policy: "AnytimeElimination", fresh: Mask) -> AllPairs:
    """Tune the boundaries of fresh entries (K, K), whose counted rounds begin now; the others keep theirs."""
    if run.stage < 2 or run.declared >= 0 or not fresh.any():
        return run
    variance = run.geometry().variance
    gaps = cautious_gaps(run.estimates(), variance, run.noise, np.maximum(run.length, 1), policy.expect)
    anew = run.tune(policy, gaps)
    return replace(run, rho=np.where(fresh, anew.rho, run.rho), scale=np.where(fresh, anew.scale, run.scale))
