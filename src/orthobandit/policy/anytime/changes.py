"""Arms that come and go while anytime elimination runs, without restarting the randomisation."""

from dataclasses import replace

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import PairGeometry, Tally
from orthobandit.policy.anytime.delta import cautious_gaps, own_delta, shares
from orthobandit.policy.anytime.plans import wide_plan
from orthobandit.policy.anytime.run import SHORTEST, Run
from orthobandit.policy.anytime.settings import Settings


def without(run: Run, policy: Settings, arms: ArmSet, tally: Tally, arm: int) -> Run:
    """Return the run without an arm; arms that only it, or tests against it, had dropped come back."""
    run = _closed(run, policy, arms, tally)
    retired = run.retired | (np.arange(len(arms)) == arm)
    active = ~retired
    again = np.zeros(len(arms), dtype=np.bool_)
    if run.stage == 2:
        again = run.met[:, arm]
        run = _tested_again(run, again)
        active = active & ~np.any(run.proven(policy.confidence) & ~retired, axis=1)
    # Proofs in a circle contradict each other: nothing follows.
    run = replace(run, retired=retired, active=active if active.any() else ~retired)
    return _tuned(_reopened(run, policy, arms), policy, arms, np.diag(again))


def _tested_again(run: Run, again: Mask) -> Run:
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


def extended(run: Run, policy: Settings, sets: tuple[ArmSet, ArmSet], tally: Tally) -> Run:
    """Return the run with the arms of the second set, which begins with those of the first."""
    old, arms = sets
    before = len(old)
    count = len(arms)
    run = _closed(run, policy, old, tally)
    # Differences of positions in the old basis, mapped to the new one.
    centre = arms.positions[:before].mean(axis=0)
    change = np.linalg.lstsq(
        old.positions - old.positions.mean(axis=0), arms.positions[:before] - centre, rcond=None
    )[0]
    run = replace(
        run.with_evidence(lambda pairs: _grown(pairs, count, 0.0)),
        active=np.append(run.active, np.ones(count - before, dtype=np.bool_)),
        retired=np.append(run.retired, np.zeros(count - before, dtype=np.bool_)),
        gram=change.T @ run.gram @ change,
        moment=change.T @ run.moment,
        values=np.zeros(count),
        drawn=np.append(run.drawn, np.zeros(count - before)),
        relative=np.append(run.relative, np.zeros(count - before)),
        alpha=_grown(run.alpha, count, 0.5),
        left=np.append(run.left, np.full(count - before, own_delta(policy))),
        met=_grown(run.met.astype(np.float64), count, 0.0) > 0,
        first_plan=_grown(run.first_plan, count, float(run.plans + 1)).astype(np.int64),
        rho=_grown(run.rho, count, 1.0),
        scale=_grown(run.scale, count, 1.0),
        probabilities=np.zeros(count),
    )
    run = _shared(run, before, shares(policy)) if run.stage == 2 else run
    is_old = np.arange(count) < before
    return _tuned(_reopened(run, policy, arms), policy, arms, ~(is_old[:, np.newaxis] & is_old))


def _closed(run: Run, policy: Settings, arms: ArmSet, tally: Tally) -> Run:
    """Count the rounds so far of the plan in force; what is left of a pilot goes on under another plan."""
    rounds = int(tally.rounds)
    if not rounds or run.declared >= 0:
        return run
    run = run.absorbed(policy.confidence, arms, PairGeometry.of(arms.positions, run.probabilities), tally)
    return replace(run, length=run.length - rounds) if run.stage < 2 else run


def _reopened(run: Run, policy: Settings, arms: ArmSet) -> Run:
    """Play the wide design until the next batch ends, unless the matter is settled."""
    run = replace(
        run,
        declared=np.full_like(run.declared, -1),
        epsilon=np.full_like(run.epsilon, np.inf),
        plans=run.plans + 1,
    ).led(arms, policy)
    if run.declared >= 0:
        return run
    length = np.maximum(np.ceil(policy.growth * run.rounds), SHORTEST).astype(np.int64)
    length = run.length - run.late if run.stage < 2 else length
    p = np.array(wide_plan(arms, run.retired))
    none = np.zeros_like(run.late)
    return replace(run, probabilities=p, length=np.asarray(length), late=none, designed=none)


def _grown(pairs: Array | Whole, count: int, fill: float) -> Array:
    out = np.full((count, count), fill)
    out[: len(pairs), : len(pairs)] = pairs
    return out


def _shared(run: Run, before: int, own: tuple[float, float]) -> Run:
    """Give new pairs of old arms half of what each row has left, and new arms what all had at first."""
    count, for_arms, for_pairs = len(run.left), *own
    alpha = run.alpha.copy()
    spent = np.full(count, for_arms + for_pairs)
    spent[:before] = run.left[:before] / 2.0
    alpha[:before, before:] = (spent[:before] / (count - before))[:, np.newaxis]
    alpha[before:] = for_pairs / (count - 1)
    new = np.arange(before, count)
    alpha[new, new] = for_arms
    return replace(run, alpha=alpha, left=run.left - spent)


def _tuned(run: Run, policy: Settings, arms: ArmSet, fresh: Mask) -> Run:
    """Tune the boundaries of fresh entries (K, K), whose counted rounds begin now; the others keep theirs."""
    if run.stage < 2 or run.declared >= 0 or not fresh.any():
        return run
    variance = PairGeometry.of(arms.positions, run.probabilities).variance
    gaps = cautious_gaps(run.estimates(arms), variance, run.noise, np.maximum(run.length, 1))
    anew = run.tuned(policy.confidence, arms, gaps)
    return replace(run, rho=np.where(fresh, anew.rho, run.rho), scale=np.where(fresh, anew.scale, run.scale))
