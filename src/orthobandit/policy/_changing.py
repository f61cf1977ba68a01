"""Arms that come and go while anytime elimination runs, without restarting the randomisation."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orthobandit.arms import ArmSet
from orthobandit.estimate import PairGeometry, Tally
from orthobandit.policy._allocation import cautious_gaps, tuned
from orthobandit.policy._elimination import RESERVE, SHORTEST, Run, Settings
from orthobandit.policy._replanning import wide_plan

Array = NDArray[np.float64]
Seen = tuple[Array, Array, Array]


def part(tally: Tally, place: tuple[int, ...]) -> Seen:
    """Return counts, sums and squares (K,) of one replication."""
    counts = np.asarray(tally.counts[place], dtype=np.float64)
    return counts, tally.sums[place], tally.squares[place]


def without(run: Run, policy: Settings, arms: ArmSet, seen: Seen, arm: int) -> Run:
    """Return the run without an arm; arms that only it was proven better than come back."""
    run = _closed(run, policy, arms, seen)
    retired = run.retired | (np.arange(len(arms)) == arm)
    active = ~retired
    if run.stage == 2:
        proven = policy.confidence.exceeds(*run._evidence())
        active = active & ~np.any(proven & ~retired, axis=1)
    # Proofs in a circle contradict each other: nothing follows.
    run = replace(run, retired=retired, active=active if active.any() else ~retired)
    return _reopened(run, policy, arms)


def extended(run: Run, policy: Settings, sets: tuple[ArmSet, ArmSet], seen: Seen) -> Run:
    """Return the run with the arms of the second set, which begins with those of the first."""
    old, arms = sets
    before, count = len(old), len(arms)
    run = _closed(run, policy, old, seen)
    # Differences of positions in the old basis, mapped to the new one.
    centre = arms.positions[:before].mean(axis=0)
    change = np.linalg.lstsq(
        old.positions - old.positions.mean(axis=0), arms.positions[:before] - centre, rcond=None
    )[0]
    run = replace(
        run,
        active=np.append(run.active, np.ones(count - before, dtype=np.bool_)),
        retired=np.append(run.retired, np.zeros(count - before, dtype=np.bool_)),
        gram=change.T @ run.gram @ change,
        moment=change.T @ run.moment,
        values=np.zeros(count),
        alpha=_shared(run.alpha, count, policy.delta) if run.stage == 2 else np.full((count, count), 0.5),
        rho=_grown(run.rho, count, 1.0),
        scale=_grown(run.scale, count, 1.0),
        probabilities=np.zeros(count),
        totals=_grown(run.totals, count, 0.0),
        weights=_grown(run.weights, count, 0.0),
        variances=_grown(run.variances, count, 0.0),
        slack=_grown(run.slack, count, 0.0),
    )
    run = _reopened(run, policy, arms)
    if run.stage < 2 or run.declared >= 0:
        return run
    return _tuned(run, policy, arms, before)


def _closed(run: Run, policy: Settings, arms: ArmSet, seen: Seen) -> Run:
    """Count the rounds so far of the plan in force; what is left of a pilot goes on under another plan."""
    rounds = int(seen[0].sum())
    if not rounds or run.declared >= 0:
        return run
    run = run._absorbed(policy.confidence, arms, PairGeometry.of(arms.positions, run.probabilities), seen)
    return replace(run, length=run.length - rounds) if run.stage < 2 else run


def _reopened(run: Run, policy: Settings, arms: ArmSet) -> Run:
    """Play the wide design until the next batch ends, unless the matter is settled."""
    run = replace(run, declared=-1, epsilon=np.inf)._led(arms, policy)
    if run.declared >= 0:
        return run
    length = run.length if run.stage < 2 else max(int(np.ceil(policy.growth * run.rounds)), SHORTEST)
    p = np.array(wide_plan(arms, run.retired))
    return replace(run, probabilities=p, length=length, plans=run.plans + 1, designed=0)


def _grown(pairs: Array, count: int, fill: float) -> Array:
    out = np.full((count, count), fill)
    out[: len(pairs), : len(pairs)] = pairs
    return out


def _shared(alpha: Array, count: int, delta: float) -> Array:
    """Give new pairs half of what each row has left; a new arm's row is split evenly."""
    before = len(alpha)
    out = np.full((count, count), (1.0 - RESERVE) * delta / (count - 1))
    out[:before, :before] = alpha
    left = delta - (alpha.sum(axis=1) - np.diagonal(alpha))
    out[:before, before:] = (left / 2.0 / (count - before))[:, np.newaxis]
    np.fill_diagonal(out, 0.5)
    return out


def _tuned(run: Run, policy: Settings, arms: ArmSet, before: int) -> Run:
    """Tune the boundaries of new pairs, whose counted rounds begin now; the others keep theirs."""
    confidence, geometry = policy.confidence, PairGeometry.of(arms.positions, run.probabilities)
    reach = geometry.reach(run.probabilities) if confidence.is_exact else np.ones_like(geometry.variance)
    gaps = cautious_gaps(run._estimates(arms), geometry.variance, run.noise, max(run.length, 1))
    tuning = tuned(run.alpha, gaps, geometry, reach, confidence, (run.noise, run.rounds))
    is_old = np.arange(len(arms)) < before
    kept = is_old[:, np.newaxis] & is_old
    return replace(
        run, rho=np.where(kept, run.rho, tuning.rho), scale=np.where(kept, run.scale, tuning.scale)
    )
