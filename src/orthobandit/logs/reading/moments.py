"""The aggregates of the one GROUP BY: counts, sums, products and ends of every column."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.logs.question import Question
from orthobandit.logs.reading.engine import Opened, ibis
from orthobandit.logs.reading.rows import Rows

FAR = 100.0  # standard deviations from 0 at which a level is taken off before squares are added up


@dataclass(frozen=True)
class Moments:
    """Aggregates of G groups, called as in :class:`~orthobandit.logs.cells.Cells`.

    Besides: `rows` (G,) are all rows, `there` (G,) those without NULL, and `raw` (G, q) sums before caps, 0
    where there is no cap.
    """

    counts: Whole
    rows: Whole
    there: Whole
    raw: Array
    missing: Whole
    sums: Array
    products: Array
    low: Array
    high: Array
    capped: Whole
    rest_low: Array | None
    rest_high: Array | None

    @property
    def is_whole(self) -> bool:
        """Whether no value was missing or not finite."""
        is_there = np.array_equal(self.there, self.counts)
        ends = np.isfinite(self.raw) & np.isfinite(self.sums) & np.isfinite(self.low) & np.isfinite(self.high)
        return bool(is_there and np.all(ends))


def offsets(opened: Opened, question: Question) -> Array:
    """Return what to take off each column (q,), so that squares keep their digits: 0 unless far from 0."""
    found = np.zeros(len(question.columns))
    for place, name in enumerate(question.columns):
        values = opened.sample[name].cast("float64", safe=False).to_numpy()
        totals = question.unit is not None and name in question.measured
        values = _totals(opened, question.unit, values) if totals and question.unit else values
        found[place] = _offset(values[np.isfinite(values)])
    return found


def _totals(opened: Opened, unit: str, values: Array) -> Array:
    codes = opened.sample[unit].combine_chunks().dictionary_encode().indices.fill_null(0).to_numpy()
    return np.asarray(
        np.bincount(codes, weights=np.where(np.isfinite(values), values, 0.0)), dtype=np.float64
    )


def _offset(values: Array) -> float:
    if not values.size or np.all((values == 0) | (values == 1)):
        return 0.0
    with np.errstate(over="ignore"):
        middle = float(np.median(values))
        spread = float(values.std())
    if abs(middle) <= FAR * spread:
        return 0.0
    if spread == 0:
        return middle
    unit = 10.0 ** np.floor(np.log10(spread))
    return float(np.round(middle / unit) * unit)


def slopes(opened: Opened, question: Question) -> Array | None:
    """Return guesses (q, q) of how metrics go along with covariates, from the first rows; None without any.

    Units are not gathered for it: their metrics are sums, and the guess is none.
    """
    if not question.covariates or question.unit is not None:
        return None
    q = len(question.columns)
    measured = len(question.measured)
    values = np.stack(
        [opened.sample[name].cast("float64", safe=False).to_numpy() for name in question.columns], axis=1
    )
    for place, name in enumerate(question.columns):
        values[:, place] = np.minimum(values[:, place], (question.caps or {}).get(name, np.inf))
    values = values[np.isfinite(values).all(axis=1)]
    out = np.zeros((q, q))
    if len(values) > q:
        around = values - values.mean(axis=0)
        found = np.linalg.lstsq(around[:, measured:], around[:, :measured], rcond=None)[0]
        out[:measured, measured:] = np.where(np.isfinite(found), found, 0.0).T
    return out


def pairs_of(question: Question) -> list[tuple[int, int]]:
    """Return the pairs (i ≤ j) of columns whose products somebody needs."""
    names = question.columns
    measured = len(question.measured)
    pairs = []
    for i in range(len(names)):
        pairs += [(i, j) for j in range(i, len(names)) if i == j or j >= measured]
    for ratio in question.ratios:
        i, j = sorted((names.index(ratio.numerator), names.index(ratio.denominator)))
        pairs += [] if (i, j) in pairs else [(i, j)]
    return pairs


def aggregates(
    table: Any, rows: Rows, question: Question, offset: Array, guessed: Array | None
) -> dict[str, Any]:
    """Return the expressions to aggregate, by the names under which :func:`moments` finds them."""
    package = ibis()
    out = {"n": table.count()}
    caps = question.caps or {}
    names = question.columns
    kept: Any = None
    if rows.is_masked and question.missing == "drop":
        kept = table.m0 == 0
        for place in range(1, rows.columns):
            kept = kept & (table[f"m{place}"] == 0)
        out["kept"] = kept.cast("int32").sum()
    values = []
    for place, name in enumerate(names):
        value = table[f"x{place}"]
        if name in caps:
            over = value > caps[name] if kept is None else (value > caps[name]) & kept
            out[f"k{place}"] = over.fill_null(False).cast("int32").sum()
            out[f"raw{place}"] = value.sum()  # NaN and infinite values show here alone
            value = package.ifelse(value > caps[name], caps[name], value)
        value = value - offset[place] if offset[place] else value
        value = value if kept is None else package.ifelse(kept, value, None)
        values.append(value)
        out |= {f"s{place}": value.sum(), f"low{place}": value.min(), f"high{place}": value.max()}
        if rows.is_masked:
            out[f"m{place}"] = table[f"m{place}"].sum()
    if not rows.is_masked:  # a sum with NULL is NULL
        out["there"] = sum((table[f"x{place}"] for place in range(1, rows.columns)), table.x0).count()
    out |= {f"q{i}_{j}": (values[i] * values[j]).sum() for i, j in pairs_of(question)}
    if guessed is not None:
        for i in range(len(question.measured)):
            rest = values[i]
            for j in np.flatnonzero(guessed[i]):
                rest = rest - float(guessed[i, j]) * values[j]
            out |= {f"restlow{i}": rest.min(), f"resthigh{i}": rest.max()}
    return out | {name: table[name].sum() for name in rows.extra}


def moments(groups: Any, rows: Rows, question: Question) -> Moments:
    """Return what came back (a pyarrow table of G rows) as arrays."""
    q = len(question.columns)

    def whole(name: str) -> Whole:
        return np.asarray(groups[name].to_numpy().astype(np.int64))

    def each(letter: str, absent: float) -> Array:
        names = [f"{letter}{place}" for place in range(q)]
        found = [
            groups[name].cast("float64").to_numpy()
            if name in groups.column_names
            else np.full(len(groups), absent)
            for name in names
        ]
        return np.stack(found, axis=1)

    products = np.full((len(groups), q, q), np.nan)
    for i, j in pairs_of(question):
        products[:, i, j] = products[:, j, i] = groups[f"q{i}_{j}"].cast("float64").to_numpy()
    counts = whole("kept") if "kept" in groups.column_names else whole("n")
    empty = (counts == 0)[:, np.newaxis]  # sums over no rows are NULL
    products[(counts == 0)[:, np.newaxis, np.newaxis] & ~_unasked(question)] = 0.0
    return Moments(
        counts,
        whole("n"),
        counts if rows.is_masked else whole("there"),
        each("raw", 0.0),
        each("m", 0).astype(np.int64) if rows.is_masked else np.zeros((len(groups), q), dtype=np.int64),
        np.where(empty, 0.0, each("s", 0.0)),
        products,
        np.where(empty, 0.0, each("low", 0.0)),
        np.where(empty, 0.0, each("high", 0.0)),
        each("k", 0).astype(np.int64),
        np.where(empty, 0.0, each("restlow", 0.0)) if "restlow0" in groups.column_names else None,
        np.where(empty, 0.0, each("resthigh", 0.0)) if "resthigh0" in groups.column_names else None,
    )


def _unasked(question: Question) -> Mask:
    """Return which products (q, q) nobody asked for."""
    q = len(question.columns)
    unasked = np.ones((q, q), dtype=bool)
    for i, j in pairs_of(question):
        unasked[i, j] = unasked[j, i] = False
    return unasked
