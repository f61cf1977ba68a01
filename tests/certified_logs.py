"""Logs of several kinds, analysed: each can be saved as a certificate."""

from dataclasses import replace
from functools import cache

import numpy as np

from cells_by_hand import cells_of, drawn
from inside.logs import Gathered, certify
from orthobandit import ArmSet
from orthobandit.logs import Question, analysis_of

ROWS, HOURS = 2400, 60
SQUARE = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], labels=["none", "red", "large", "both"])


def rows_of(seed, plans, plan=None, gaps=None, rows=ROWS, hours=HOURS, zero_one=False):
    """Return rows in order, with a baseline that moves; rewards of 0 or 1 have a rate instead of a level."""
    rng, plans = np.random.default_rng(seed), np.asarray(plans, dtype=float)
    plan = np.zeros(rows, dtype=int) if plan is None else plan(rng, rows)
    bucket = np.arange(rows) * hours // rows
    gaps = np.zeros(plans.shape[1]) if gaps is None else np.asarray(gaps)
    out = drawn(rng, plans, plan, bucket, levels=2.0 * np.sin(bucket / 9.0), gaps=gaps)
    if zero_one:
        rate = 0.2 + 0.1 * np.sin(bucket / 9.0) + gaps[out.arm]
        return replace(out, reward=(rng.random(rows) < rate).astype(float))
    return out


def side_by_side(rng, rows):
    """Return plans that change: the first, then both, then the second."""
    late = np.arange(rows) / rows
    return (rng.random(rows) < np.clip(3.0 * late - 1.0, 0.0, 1.0)).astype(int)


def own(_, rows):
    return np.arange(rows)


def _dirichlet(count, rows):
    return 0.1 / count + 0.9 * np.random.default_rng(9).dirichlet(np.ones(count), rows)


# Of each log: what makes its rows, and what is asked of it.
LOGS = {
    "two arms of 0 and 1": lambda: (rows_of(1, [[0.5, 0.5]], gaps=[0.0, 0.2], zero_one=True), {}),
    "arms with features": lambda: (
        rows_of(2, [[0.25] * 4], gaps=[0.0, 0.5, -0.3, 0.2]),
        {"arms": SQUARE, "reference": "red"},
    ),
    "plans that change": lambda: (
        rows_of(3, [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], side_by_side, [0.0, 0.5, -0.5]),
        {},
    ),
    "exact with plans that change": lambda: (
        rows_of(4, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], side_by_side, [0.0, 0.3, 0.1], zero_one=True),
        {"bounds": (-0.5, 1.25), "reference": "1"},
    ),
    "probabilities of its own for every row": lambda: (
        rows_of(5, _dirichlet(3, ROWS), own, [0.0, 0.4, 0.8]),
        {},
    ),
    "an arm that is hardly drawn": lambda: (
        rows_of(6, [[0.5, 0.4995, 0.0005]], gaps=[0.0, 0.4, 3.0]),
        {},
    ),
    "an arm that was hardly drawn until the end": lambda: (
        rows_of(
            14,
            [[0.98, 0.02], [0.2, 0.8]],
            lambda _, rows: (np.arange(rows) >= rows - 25).astype(int),
            rows=700,
        ),
        {},
    ),
    "an arm that comes late": lambda: (
        rows_of(7, [[0.5, 0.5, 0.0], [0.3, 0.3, 0.4]], side_by_side, [0.0, 0.4, 0.8]),
        {"delta": 0.1},
    ),
    "an arm that never comes": lambda: (
        rows_of(8, [[0.5, 0.5, 0.0]], gaps=[0.0, 0.4, 0.0], zero_one=True),
        {},
    ),
    "gaps told by other arms": lambda: (
        rows_of(10, [[0.5, 0.5, 0.0, 0.0]], gaps=[0.0, 0.5, 0.2, 0.7]),
        {"arms": SQUARE, "reference": "large"},
    ),
    "rare events": lambda: (_rare(), {"asymptotic": True}),
    "a level far away": lambda: (_shifted(), {"offset": 1e6}),
}


def _rare():
    rows = rows_of(11, [[0.7, 0.3]], gaps=[0.0, 0.05], zero_one=True)
    rng = np.random.default_rng(12)
    return replace(rows, reward=np.where(rng.random(ROWS) < 0.03, rng.exponential(20.0, ROWS), 0.0))


def _shifted():
    rows = rows_of(13, [[0.5, 0.5]], gaps=[0.0, 0.3])
    return replace(rows, reward=rows.reward + 1e6)


@cache
def analysed(name):
    """Return the analysis of a log."""
    rows, asked = LOGS[name]()
    return found_in(rows, **asked)


def found_in(rows, *, arms=None, offset=0.0, **asked):
    """Return the analysis of rows."""
    cells = cells_of(rows, offset=offset, arms=arms)
    binary = np.array([bool(np.isin(rows.reward, (0.0, 1.0)).all())])
    question = Question(**{"arm": "arm", "reward": "reward", "time": "at"} | asked)
    return analysis_of(Gathered(cells, None, (), binary, is_boolean=binary), question)


@cache
def certified(name):
    """Return the certificate of a log; copy it before you change it."""
    return saved(analysed(name))


def saved(analysis):
    """Return the certificate of an analysis."""
    return certify(analysis, analysis._record).document
