"""The value of other probabilities: what they would have earned on a log, compared with the logged ones."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import nearest
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import Argument, LabelError, ProbabilityError
from orthobandit.estimate.follow.averages import Aim, Score
from orthobandit.estimate.follow.cells import Cells
from orthobandit.estimate.plan import checked_probabilities
from orthobandit.logs.results import Value
from orthobandit.showing.numbers import finite


def aim_of(cells: Cells, wanted: Mapping[str, float] | ArrayLike) -> Aim:
    """Return the score whose average is the value of other probabilities on a log.

    For a row of arm a whose level was forecast as m, (q_a/p_a − 1)(r − m) has the mean
    Σ_a (q_a − p_a)·(mean of a), whatever the baseline does, for any m that was known before the draw. All
    rounds have the same weight; gaps need not be constant.

    Parameters
    ----------
    cells : Cells
    wanted : mapping of str to float, or array-like (K,) or (P, K)
        q: by the arms' labels (0 for those not named), or the same for all rows, or one row per plan.

    Raises
    ------
    ProbabilityError
        Where an arm would be drawn that the log's probabilities never draw: nothing is known of it there.
    """
    if isinstance(wanted, Mapping):
        given = np.zeros(len(cells.arms))
        for label, probability in wanted.items():
            if label not in cells.arms.labels:
                raise LabelError(
                    Argument("value", ending=""),
                    f": {label!r} is not an arm; {nearest(label, cells.arms.labels)}",
                )
            given[cells.arms.index(label)] = probability
        wanted = given
    q = checked_probabilities(wanted)
    if q.shape not in ((len(cells.arms),), cells.plans.shape):
        raise ProbabilityError(
            f"probabilities have shape {q.shape}; one per arm, ({len(cells.arms)},), or one row per plan,"
            f" {cells.plans.shape}, is needed"
        )
    # Probabilities asked for may differ by plan; the same for all rows is one of these cases.
    q = np.array(np.broadcast_to(q, cells.plans.shape))
    blind = (q > 0) & (cells.plans == 0)
    # Plans that no row has are no matter.
    here = np.asarray(blind.any(axis=1))[cells.plan] & (cells.counts > 0)
    if here.any():
        raise ProbabilityError(_no_overlap(cells, q, blind, here))
    return Aim.instead(cells.plans, q)


def value_of(score: Score | None, delta: float, mode: str, *, once: bool) -> Value:
    """Return the value from a finished score.

    Parameters
    ----------
    score : Score or None
        Of :func:`aim_of`; None if no row counted.
    delta : float
    mode : str
        What intervals rest on, in words.
    once : bool
        Whether the interval is for one look.
    """
    if score is None:
        return Value(0.0, (None, None), "too few rows")
    low, high = score.interval()
    if once:
        low, high = score.interval_once(delta / 2.0)
    return Value(score.estimate, (finite(low), finite(high)), mode)


def _no_overlap(cells: Cells, wanted: Array, blind: Mask, here: Mask) -> str:
    """Say which arm is wanted where it was never drawn."""
    plans = np.unique(cells.plan[here])
    buckets = np.unique(cells.bucket[here])
    plan = int(plans[0])
    arm = int(np.argmax(blind[plans[0]]))
    names = ", ".join(str(one) for one in plans[:5]) + (", …" if len(plans) > 5 else "")
    begin = cells.time_words(float(cells.times[buckets[0]]))
    return (
        f"probabilities give {cells.arms.labels[arm]!r} {wanted[plan, arm]:g}, but plan {plan} never draws"
        f" it: nothing is known of it there. So it is with {cells.counts[here].sum():,} of {cells.rows:,}"
        f" rows, in {len(buckets):,} of {len(np.unique(cells.bucket)):,} buckets, from that of {begin} on;"
        f" plans: {names}. Give 0 to arms that a plan does not draw, or leave these rows out"
    )
