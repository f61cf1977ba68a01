"""When an experiment may end: its rule, simulated forward from what is known.

How far apart arms are is drawn from what is known of them, with a flat prior; then the rule goes on: batches
of normal rewards, plans in closed form, tests with the run's own sums and boundaries. The times at which the
paths end are a forecast. It is given as a range, from the time before which 5 % of the paths end to that
before which 80 % do: the median is off by more than a factor of two in half of the cases, and above there is
no end, for arms may be alike.

No prior says that gaps are usually small. One that did would delay the end wherever there is a clear winner.
The first steps are fine, because many who look are shortly before the end.

Live experiments and analyses of logs both use :func:`ends_of`. In a log that others made, and where arms
share features, the split is taken to stay as it is.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import inverse_root
from orthobandit._foundation.random import fill_normals, starting_point, stream
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.estimate.confidence.boundaries import (
    NEAR,
    WIDE,
    Grid,
    LogBets,
    log_mixture,
    tightest_rho,
)
from orthobandit.estimate.confidence.modes import Confidence, events_needed
from orthobandit.estimate.confidence.tightness import EARLY
from orthobandit.policy.anytime.all_pairs import AllPairs
from orthobandit.policy.anytime.delta import shares
from orthobandit.policy.anytime.fields import Stage
from orthobandit.policy.anytime.leaders import Leaders
from orthobandit.policy.anytime.plans import LEADER_COST
from orthobandit.policy.anytime.stages import AnytimeState, warm_up

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination

PATHS = 200
# With more than 12 arms there are fewer paths: the time that a report takes grows with the product.
PATHS_TIMES_ARMS = 2_400
FEWEST_PATHS = 40  # what is left of them with 60 arms and more
MAX_ARMS = 100  # still in the race, above which a forecast would take longer than the rest of a report
# Steps, as shares of the rounds so far: the first, its growth, and the largest.
FIRST_STEP = 0.02
STEP_GROWTH = 1.25
LARGEST_STEP = 0.12
FAR = 200.0  # times the rounds so far, after which a path is not followed further
FAR_FROM_START = 1e5  # the same, before anything is known
SOONEST, LATEST = 0.05, 0.8  # quantiles of the ends of the paths
LEAD_ERRORS = 3.2  # standard errors that an arm may lead the leader by, as far as plans care
LACK = 0.4  # E max(Z, 0) of a standard normal: what a leader that is tied with a rival may lack
STEPS_AT_ONCE = 16  # steps whose random numbers are made together, which is quicker
LOG_TWO = log(2.0)


class Ending(NamedTuple):
    """Further rounds before which 5 %, half and 80 % of the paths end; infinite where fewer ever do."""

    soonest: float
    middle: float
    latest: float


@dataclass(frozen=True, eq=False)
class Race:
    """What is known of K arms that may be the best, and the rule that is played on.

    Attributes
    ----------
    rounds : float
        So far.
    estimates : (K,) array
        Of their rewards, up to a common level.
    errors : (K, m) array
        The estimates are off by this times m standard normals.
    drawn : (K,) array
        Rounds of each.
    totals, weights, variances : (K,) arrays
        Of each arm's test that it is the best; see
        :class:`~orthobandit.estimate.confidence.evidence.Evidence`.
    rho, alpha : (K,) arrays
        Of its boundary.
    noise : float
        Variance of a residual.
    grid : Grid
    split : (K, r) array
        If the split stays as it is: in one round it estimates rewards with an error of this times r standard
        normals of variance `noise`, up to a common level. With r = 0 each batch has a plan of its own.
    floor : float
        Least probability of an arm in these plans.
    is_earning : bool
        Whether these plans weigh what rounds cost.
    wait : float
        Rounds before which nothing is decided.
    epsilon, bound_alpha : float
        It ends as soon as no arm is better than the leader by more than ε, each with this probability of
        being wrong; 0 for the last arm that is left.
    """

    rounds: float
    estimates: Array
    errors: Array
    drawn: Array
    totals: Array
    weights: Array
    variances: Array
    rho: Array
    alpha: Array
    noise: float
    grid: Grid
    split: Array
    floor: float = 0.0
    is_earning: bool = False
    wait: float = 0.0
    epsilon: float = 0.0
    bound_alpha: float = 0.5


def ends_of(race: Race, far: float = FAR) -> Ending:
    """Return when the race may end, in further rounds."""
    count = len(race.estimates)
    paths = max(FEWEST_PATHS, min(PATHS, PATHS_TIMES_ARMS // count))
    normals = stream(0, "forecast of the end").standard_normal((paths, race.errors.shape[1]))
    means = race.estimates + normals @ race.errors.T
    ends = np.full(paths, np.inf)
    _play(
        means,
        np.stack([race.estimates, race.drawn, race.totals, race.weights, race.variances]),
        np.ascontiguousarray(race.rho, dtype=np.float64),
        -np.log(race.alpha),
        np.ascontiguousarray(race.split, dtype=np.float64),
        (race.rounds, race.wait, race.noise, far, race.floor, race.epsilon, -log(race.bound_alpha)),
        race.is_earning,
        np.log(race.grid.shares),
        race.grid.multiples,
        ends,
    )
    ends = np.sort(ends)
    # The first end at which the share is reached: no value between an end and none.
    soonest, middle, latest = (ends[int(np.ceil(share * paths)) - 1] for share in (SOONEST, 0.5, LATEST))
    return Ending(float(soonest), float(middle), float(latest))


@compiled
def _play(
    means: Array,
    known: Array,
    rho: Array,
    goals: Array,
    split: Array,
    numbers: tuple[float, float, float, float, float, float, float],
    is_earning: bool,
    offsets: Array,
    multiples: Array,
    ends: Array,
) -> None:
    """Play the rule on for every path, and write the further rounds at which it ended to `ends`."""
    start, wait, noise, far, floor, epsilon, bound_goal = numbers
    paths, count = means.shape
    rank = split.shape[1]
    width = max(count, rank)
    normals = np.empty(STEPS_AT_ONCE * width)
    x = np.empty(count)
    p = np.empty(count)
    active = np.empty(count, dtype=np.bool_)
    for path in range(paths):
        state = known.copy()
        values, drawn, totals, weights, variances = state[0], state[1], state[2], state[3], state[4]
        active[:] = True
        left = count
        now = start
        step = FIRST_STEP
        number = 0
        while now < far * start and ends[path] == np.inf:
            length = min(step, LARGEST_STEP) * now
            step *= STEP_GROWTH
            leader, second = _first_two(values, active)
            at = number % STEPS_AT_ONCE
            if at == 0:
                fill_normals(starting_point(path, number), normals)
            z = normals[at * width : (at + 1) * width]
            number += 1
            if rank == 0:
                _share_out(values, drawn, active, leader, noise, floor, is_earning, p)
                for arm in range(count):
                    if p[arm] > 0.0:
                        x[arm] = means[path, arm] + z[arm] * sqrt(noise / (length * p[arm]))
                        values[arm] = (drawn[arm] * values[arm] + length * p[arm] * x[arm]) / (
                            drawn[arm] + length * p[arm]
                        )
                        drawn[arm] += length * p[arm]
            else:
                for arm in range(count):
                    off = 0.0
                    for k in range(rank):
                        off += split[arm, k] * z[k]
                    x[arm] = means[path, arm] + off * sqrt(noise / length)
                    values[arm] = (now * values[arm] + length * x[arm]) / (now + length)
            now += length
            may_speak = now >= wait
            is_close = may_speak
            for arm in range(count):
                if not active[arm]:
                    continue
                rival = second if arm == leader else leader
                if rank == 0:
                    both = p[arm] + p[rival]
                    weight = p[arm] * p[rival] / both if both > 0.0 else 0.0
                else:
                    factor = 0.0
                    for k in range(rank):
                        factor += (split[arm, k] - split[rival, k]) ** 2
                    weight = 1.0 / factor if factor > 0.0 else 0.0
                if weight > 0.0:
                    totals[arm] += weight * length * (x[arm] - x[rival])
                    weights[arm] += weight * length
                    variances[arm] += weight * length * noise
                if epsilon > 0.0 and arm != leader and is_close:
                    room = epsilon * weights[arm] - totals[arm]
                    is_close = _reaches(room, variances[arm], rho[arm], bound_goal, offsets, multiples)
            for arm in range(count):
                if not may_speak or not active[arm] or left == 1:
                    continue
                if _reaches(-totals[arm], variances[arm], rho[arm], goals[arm], offsets, multiples):
                    active[arm] = False
                    left -= 1
            if left == 1 or (epsilon > 0.0 and is_close):
                ends[path] = now - start


@compiled
def _reaches(total: float, v: float, rho: float, goal: float, offsets: Array, multiples: Array) -> bool:
    """Tell whether the mixture of normal mixtures has reached its goal."""
    # No mixture is above 2·exp(S²/2V).
    if total <= 0.0 or total * total < 2.0 * v * (goal - LOG_TWO):
        return False
    return log_mixture(total, v, rho, offsets, multiples)[0] >= goal


@compiled
def _first_two(values: Array, active: Mask) -> tuple[int, int]:
    """Return the two arms that look best among those that are left."""
    first = -1
    second = -1
    for arm in range(values.size):
        if not active[arm]:
            continue
        if first < 0 or values[arm] > values[first]:
            second = first
            first = arm
        elif second < 0 or values[arm] > values[second]:
            second = arm
    return first, second


@compiled
def _share_out(
    values: Array,
    drawn: Array,
    active: Mask,
    leader: int,
    noise: float,
    floor: float,
    is_earning: bool,
    p: Array,
) -> None:
    """Write the next plan: its closed form, for arms that share no features.

    A pair with the leader weighs 1/target², and its target is the gap, but no finer than what is known; see
    :func:`~orthobandit.policy.anytime.plans.pair_weights`. If all n pairs weigh the same, 1 : √n is the best
    ratio of the leader's rounds to those of all others. Where rounds cost, both are divided by √cost.
    """
    most = 0.0
    for arm in range(values.size):
        if active[arm] and arm != leader:
            gap = values[leader] - values[arm]
            error = sqrt(noise * (1.0 / drawn[arm] + 1.0 / drawn[leader]))
            most = max(most, LEAD_ERRORS * error - gap)
    total = 0.0
    largest = 0.0
    cost = 0.0
    lack = 0.0
    for arm in range(values.size):
        p[arm] = 0.0
        if active[arm] and arm != leader:
            gap = values[leader] - values[arm]
            error = sqrt(noise * (1.0 / drawn[arm] + 1.0 / drawn[leader]))
            lead = max(LEAD_ERRORS * error - gap, 0.0)
            target = max(gap, 0.5 * (lead + gap), 0.5 * most, 1e-300)
            p[arm] = 1.0 / target**2
            total += p[arm]
            largest = max(largest, p[arm])
            cost += p[arm] * gap
            lack = max(lack, LACK * error - 0.5 * gap)
    pairs = total / largest
    own = 1.0
    others = 1.0
    if is_earning:
        own = max(LEADER_COST * cost / total, lack, 1e-300)
        others = own + cost / total
    first = sqrt(others) / (sqrt(others) + sqrt(own * pairs))
    for arm in range(values.size):
        share = first if arm == leader else (1.0 - first) * p[arm] / total
        p[arm] = (1.0 - floor * values.size) * share + floor if active[arm] else 0.0


def race_of(policy: "AnytimeElimination", state: AnytimeState) -> Race | None:
    """Return the race that goes on in the state of one run; None where none does or nothing is known yet."""
    arms = state.arms
    left = np.flatnonzero(state.active)
    if state.declared >= 0 or not state.rounds or not 1 < len(left) <= MAX_ARMS or not state.squared > 0:
        return None
    if isinstance(state, AllPairs):
        sums = [np.diagonal(getattr(state, name))[left] for name in ("totals", "weights", "variances")]
        rho, alpha = np.diagonal(state.rho)[left], np.diagonal(state.alpha)[left]
    elif isinstance(state, Leaders) and state.tests is not None:
        sums = [getattr(state.tests, name) for name in ("totals", "weights", "variances")]
        rho = state.tests.rho
        alpha = np.broadcast_to(np.asarray(state.tests.alpha), rho.shape)
    else:
        return None
    if state.stage < Stage.COUNTING:
        return None
    try:
        errors = arms.positions[left] @ inverse_root(state.gram + state.ridge * np.eye(len(state.gram)))
        split = _split_of(arms, state.probabilities)[left]
    except np.linalg.LinAlgError:  # the plan in force does not tell all arms apart
        return None
    return Race(
        rounds=float(state.rounds),
        estimates=state.estimates()[left],
        errors=errors,
        drawn=np.maximum(state.drawn[left], 1.0),
        totals=sums[0],
        weights=sums[1],
        variances=sums[2],
        rho=rho,
        alpha=alpha,
        noise=float(state.squared / state.watched),
        # What suits an expected gap is a law of bets around one; a normal law around the same bet is near it.
        grid=NEAR if isinstance(state.grid, LogBets) else WIDE,
        split=split,
        floor=_floor(policy, int(np.count_nonzero(~state.retired))),
        is_earning=policy.goal == "earn",
        wait=_wait(policy.confidence, state, alpha),
        epsilon=policy.epsilon,
        bound_alpha=shares(policy)[1] / (len(arms) - 1),
    )


def _wait(confidence: Confidence, state: AnytimeState, alpha: Array) -> float:
    """Return the rounds before which the asymptotic mode has seen too few events to claim anything."""
    events = float(state.sizes.events)
    needed = float(np.max(events_needed(alpha)))
    if confidence.is_exact or events >= needed:
        return 0.0
    return float(state.rounds) * needed / events if events > 0 else float(np.inf)


def race_for_gap(policy: "AnytimeElimination", arms: ArmSet, gap: float, noise: float) -> Race:
    """Return the race before its first counted round, if one arm is better than all others by a gap."""
    count = len(arms)
    rounds = 2.0 * warm_up(policy, arms)
    alpha = shares(policy)[0]
    zeros = np.zeros(count)
    rho = float(tightest_rho(EARLY * -2.0 * log(alpha) * (noise / gap) ** 2, alpha))
    return Race(
        rounds=rounds,
        estimates=np.where(np.arange(count) == 0, gap, 0.0),
        errors=np.zeros((count, 1)),
        drawn=np.full(count, max(rounds / count, 1.0)),
        totals=zeros,
        weights=zeros,
        variances=zeros,
        rho=np.full(count, rho),
        alpha=np.full(count, alpha),
        noise=noise,
        grid=WIDE,
        split=_split_of(arms, np.full(count, 1.0 / count)),
        floor=_floor(policy, count),
        is_earning=policy.goal == "earn",
        epsilon=policy.epsilon,
        bound_alpha=shares(policy)[1] / max(count - 1, 1),
    )


def _floor(policy: "AnytimeElimination", count: int) -> float:
    """Return the least probability of an arm that plans which identify keep."""
    return 0.0 if policy.goal == "earn" else policy.mixing / count


def _split_of(arms: ArmSet, probabilities: Array) -> Array:
    """Return the split (K, r) of arms that share features, whose plans have no closed form; else (K, 0)."""
    if arms.dimension == len(arms) - 1:
        return np.zeros((len(arms), 0))
    centred = arms.positions - probabilities @ arms.positions
    return np.asarray(centred @ inverse_root(centred.T @ (probabilities[:, np.newaxis] * centred)))
