"""Units: the first row decides what was drawn, and what follows within the window adds up."""

from datetime import UTC

import numpy as np
import pyarrow
import pytest

from logs_samples import LABELS, by_key, gathered, looped, made, same
from orthobandit.logs.reading.rows import UnitCounts

P = tuple(f"p:{label}" for label in LABELS)
COLUMNS = ("bought", "revenue", "age")
FIELDS = {
    "time": "at",
    "probabilities": P,
    "metrics": ("revenue",),
    "covariates": ("age",),
    "segment": "country",
}
PAIRS = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)


def added_up(log, window):
    """Return one row per unit, by a loop over its rows."""
    units, out, several = {}, [], 0
    for row in log.to_pylist():
        units.setdefault(row["user"], []).append(row)
    for rows in units.values():
        rows.sort(key=lambda row: (row["at"], row["arm"]))
        first = dict(rows[0])
        begin = first["at"].replace(tzinfo=UTC).timestamp()
        counted = [row for row in rows if row["at"].replace(tzinfo=UTC).timestamp() - begin <= window]
        for name in ("bought", "revenue"):
            first[name] = sum(row[name] for row in counted)
        out.append(first)
        several += len({row["arm"] for row in rows}) > 1
    return pyarrow.Table.from_pylist(out), several


@pytest.mark.parametrize("window", [None, 7200, 100_000])
def test_units_are_what_a_loop_makes_of_their_rows(window):
    log = made()
    units, several = added_up(log, np.inf if window is None else window)
    found = gathered(log, unit="user", window=window, caps={"revenue": 30.0}, **FIELDS)
    same(by_key(found), looped(units, COLUMNS, segment="country", caps={"revenue": 30.0}, pairs=PAIRS))
    assert found.units == UnitCounts(len(units), 600, several)
    assert several > 0


def test_of_rows_at_the_same_time_the_first_arm_decides():
    log = pyarrow.table(
        {"user": [1, 1, 2], "at": [5, 5, 6], "arm": ["b", "a", "b"], "bought": [1.0, 2.0, 4.0]}
    )
    cells = gathered(log, unit="user", time="at", split="equal").cells
    assert [cells.arms.labels[one] for one in cells.arm] == ["a", "b"]
    assert cells.sums[:, 0].tolist() == [3.0, 4.0]


def test_a_window_of_numbers_is_in_their_units():
    log = pyarrow.table(
        {
            "user": [1, 1, 1, 2],
            "at": [0.0, 2.5, 2.6, 1.0],
            "arm": ["a", "a", "a", "b"],
            "bought": [1.0, 2.0, 4.0, 8.0],
        }
    )
    cells = gathered(log, unit="user", time="at", window=2.5, split="equal", bucket=1.0).cells
    assert cells.sums[:, 0].tolist() == [3.0, 8.0]


def test_a_unit_with_a_missing_row_is_missing():
    log = pyarrow.table(
        {
            "user": [1, 1, 2, 3],
            "at": [0, 1, 0, 0],
            "arm": ["a", "a", "b", "a"],
            "bought": [1.0, None, 2.0, 5.0],
        }
    )
    dropped = gathered(log, unit="user", time="at", split="equal", missing="drop").cells
    assert (dropped.counts.tolist(), dropped.dropped.tolist(), dropped.missing[:, 0].tolist()) == (
        [1, 1],
        [1, 0],
        [1, 0],
    )
    assert dropped.sums[:, 0].tolist() == [5.0, 2.0]
    zero = gathered(log, unit="user", time="at", split="equal", missing="zero").cells
    assert (zero.counts.tolist(), zero.dropped.tolist(), zero.missing[:, 0].tolist()) == (
        [2, 1],
        [0, 0],
        [1, 0],
    )
    assert zero.sums[:, 0].tolist() == [6.0, 2.0]


def returning(name="user", units=400, rows=3000, share=0.5, seed=1):
    """Return a log of units that keep their arm, beside columns that only look like units."""
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, units, rows)
    return pyarrow.table(
        {
            name: unit,
            "arm": np.where(rng.random(units) < share, "a", "b")[unit],
            "bought": (rng.random(rows) < 0.2).astype(float),
            "price": np.round(rng.exponential(10.0, rows), 1),
            "city": [f"city {place}" for place in rng.integers(0, 300, rows)],
            "page": rng.integers(0, 500, rows),
            "row": np.arange(rows),
        }
    )


@pytest.mark.parametrize("name", ["user", "session_id", "cookie", "uid", "Kundennummer"])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_units_that_repeat_are_noted_whatever_their_column_is_called(name, share):
    (note,) = gathered(returning(name, share=share), split="equal").notes
    assert note.startswith(f"{name!r} repeats (400 values in 3,000 rows), and rows with the same value keep")
    assert f"say unit={name!r}" in note


def test_columns_that_repeat_but_do_not_keep_to_an_arm_are_not_noted():
    assert gathered(returning().drop_columns("user"), split="equal").notes == ()
    assert gathered(made(), split="equal").notes == ()  # arms are drawn at every visit: rows are the draws
    assert gathered(returning(units=10), split="equal").notes == ()  # a segment


def test_units_are_noted_that_return_after_ten_thousand_rows():
    rows = 12_000
    rng = np.random.default_rng(2)
    unit = np.arange(rows) % 11_000  # the first 11,000 rows have a unit each
    unit[11_000:] = rng.integers(0, 500, 1000)
    log = pyarrow.table(
        {
            "visitor": unit.astype(float),
            "arm": np.where(rng.random(11_000) < 0.5, "a", "b")[unit],
            "bought": rng.random(rows),
        }
    )
    (note,) = gathered(log, split="equal").notes
    assert "'visitor' repeats (11,000 values in 12,000 rows)" in note


def test_of_users_and_their_sessions_users_are_named():
    log = returning()
    rng = np.random.default_rng(5)
    visits = zip(log["user"].to_pylist(), rng.integers(0, 3, 3000), strict=True)
    session = [f"{user}/{visit}" for user, visit in visits]
    (note,) = gathered(log.append_column("session", [session]), split="equal").notes
    assert note.startswith("'user' repeats")


def test_large_logs_count_units_approximately(monkeypatch):
    monkeypatch.setattr("inside.logs.MOST_EXACT", 100)
    (note,) = gathered(returning(), split="equal").notes
    assert note.startswith("'user' repeats (about ")
    assert gathered(returning().drop_columns("user"), split="equal").notes == ()


def test_units_without_time_are_fine_if_each_saw_one_arm():
    log = pyarrow.table({"user": [1, 1, 2], "arm": ["a", "a", "b"], "bought": [1.0, 2.0, 4.0]})
    found = gathered(log, unit="user", split="equal")
    assert found.units == UnitCounts(2, 3, 0)
    assert found.cells.sums[:, 0].tolist() == [3.0, 4.0]
