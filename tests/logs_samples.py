"""A log of every kind of column, and the cells that a plain loop makes of it."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow

from inside.logs import cells_of, open_source
from orthobandit.logs import Question

BEGIN = datetime(2024, 3, 1, tzinfo=UTC)
PLANS = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
LABELS = np.array(["a", "b", "c"])


def made(rows=600, seed=3, holes=False):
    """Return a log as a pyarrow table: 3 arms, 2 plans, 40 hours, 150 users, 3 countries."""
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.integers(0, 40 * 3600, rows))
    plan = (seconds > 20 * 3600).astype(int)
    arm = np.array([rng.choice(3, p=PLANS[place]) for place in plan])
    revenue = np.round(rng.exponential(10, rows), 3)
    clicks = rng.integers(0, 4, rows).astype(float)
    if holes:
        revenue[rng.choice(rows, 20, replace=False)] = np.nan
        clicks[rng.choice(rows, 10, replace=False)] = np.inf
    columns = {
        "at": [(BEGIN + timedelta(seconds=int(one))).replace(tzinfo=None) for one in seconds],
        "arm": LABELS[arm],
        "plan": np.where(plan == 1, "late", "early"),
        "bought": (rng.random(rows) < 0.2).astype(float),
        "revenue": revenue,
        "clicks": clicks,
        "age": 1e6 + np.round(rng.normal(0, 1, rows), 4),
        "country": rng.choice(["de", "fr", "uk"], rows),
        "user": rng.integers(0, 150, rows),
    }
    columns |= {f"p:{label}": PLANS[plan, place] for place, label in enumerate(LABELS)}
    return pyarrow.table(columns)


def gathered(source, table=None, **fields):
    with open_source(source, table) as opened:
        return cells_of(opened, Question(**{"arm": "arm", "reward": "bought", **fields}))


def by_key(found):
    """Return {(bucket, arm, segment, distribution): (counts, dropped, missing, capped, Σv, Σvv, low, high)}.

    Values are of v, not of v − offset, so that cells with other offsets can be compared.
    """
    cells, out = found.cells, {}
    for g in range(len(cells.counts)):
        n, o, s = cells.counts[g], cells.offset, cells.sums[g]
        products = cells.products[g] + np.outer(s, o) + np.outer(o, s) + n * np.outer(o, o)
        ends = (cells.low[g] + o, cells.high[g] + o) if n else (0 * o, 0 * o)
        key = (
            cells.times[cells.bucket[g]],
            cells.arms.labels[cells.arm[g]],
            cells.segments[cells.segment[g]],
            tuple(cells.plans[cells.plan[g]]),
        )
        assert key not in out
        out[key] = (n, cells.dropped[g], cells.missing[g], cells.capped[g], s + n * o, products, *ends)
    return out


def same(left, right, rtol=1e-9):
    """Check that two results of :func:`by_key` are the same."""
    assert left.keys() == right.keys()
    for key, values in left.items():
        for one, other in zip(values, right[key], strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-9)


def looped(table, columns, *, width=3600.0, segment=None, caps=None, missing="refuse", pairs=None):
    """Return what :func:`by_key` should, of rows that are units, by a loop over rows."""
    rows, caps = defaultdict(list), caps or {}
    for row in table.to_pylist():
        at = row["at"].replace(tzinfo=UTC).timestamp() if "at" in row else 0.0
        begin = at // width * width if width else 0.0
        law = tuple(row[f"p:{label}"] for label in LABELS)
        key = (begin, row["arm"], row[segment] if segment else "", law)
        rows[key].append([np.nan if row[name] is None else row[name] for name in columns])
    return {
        key: _summed(np.array(values, dtype=float), columns, caps, missing, pairs)
        for key, values in rows.items()
    }


def _summed(values, columns, caps, missing, pairs):
    bad = ~np.isfinite(values)
    absent, n = bad.sum(axis=0), len(values)
    values = np.where(bad, 0.0, values) if missing == "zero" else values[~bad.any(axis=1)]
    tops = np.array([caps.get(name, np.inf) for name in columns])
    capped, values = (values > tops).sum(axis=0), np.minimum(values, tops)
    products = values.T @ values
    if pairs is not None:
        products = np.where(pairs, products, np.nan)
    zero = np.zeros(len(columns))
    ends = (values.min(axis=0), values.max(axis=0)) if len(values) else (zero, zero)
    return (len(values), n - len(values), absent, capped, values.sum(axis=0), products, *ends)
