"""Medians and percentiles of the arms, over the same rounds for every arm."""

import duckdb
import numpy as np
import pyarrow
import pytest

from orthobandit.errors import InputError, ParameterError
from orthobandit.logs import Quantile, analyse, warehouse_sql

PLANS = {"early": {"old": 0.5, "new": 0.5}, "late": {"old": 0.2, "new": 0.8}}
ASKED = {"arm": "page", "reward": "paid", "time": "hour", "plan": "plan", "plans": PLANS}
GRID = tuple(np.linspace(40.0, 240.0, 21))


def log(rows=6000, seed=0):
    """Return a log whose level falls while the split moves to 'new', which is slower by a tenth."""
    rng = np.random.default_rng(seed)
    hour = np.sort(rng.integers(0, 40, rows))
    is_late = hour >= 20
    arm = (rng.random(rows) < np.where(is_late, 0.8, 0.5)).astype(int)
    level = np.where(is_late, 80.0, 120.0)
    return pyarrow.table(
        {
            "hour": hour,
            "plan": np.where(is_late, "late", "early"),
            "page": np.array(["old", "new"])[arm],
            "paid": rng.random(rows) < 0.1,
            "seconds": level * rng.lognormal(0.0, 0.3, rows) * (1.0 + 0.1 * arm),
        }
    )


def quantile_of(found):
    return next(one for one in found.metrics if one.kind == "quantile")


def test_quantiles_are_of_the_same_rounds_for_every_arm():
    rows = log()
    found = quantile_of(analyse(rows, **ASKED, metrics={"seconds": Quantile(0.5, GRID)}))
    assert found.name == "seconds median"
    # Half of the rounds are around 120 and half around 80: the median of the average distribution of 'old' is
    # about 98, that of 'new' a tenth more. Plain medians compare different times.
    by_arm = {one.arm: one.mean for one in found.summaries}
    assert by_arm["old"] == pytest.approx(97.5, abs=3.0)
    assert by_arm["new"] == pytest.approx(107.0, abs=3.0)
    page = np.asarray(rows["page"])
    plain = {one: float(np.median(np.asarray(rows["seconds"])[page == one])) for one in by_arm}
    assert plain["new"] < plain["old"]
    for one, (low, high) in zip(found.summaries, found.arm_intervals, strict=True):
        assert low <= one.mean <= high
        assert {low, high} <= set(GRID)
    effect = next(one for one in found.effects if one.arm == "new")
    old, new = (dict(zip(by_arm, found.arm_intervals, strict=True))[name] for name in ("old", "new"))
    assert effect.interval == pytest.approx((new[0] - old[1], new[1] - old[0]))


@pytest.mark.parametrize("fixed", [False, True])
def test_rounds_in_which_an_arm_could_not_be_drawn_are_left_out(fixed):
    # Both arms are alike; the level rises by 3 when the second begins to be shown.
    rng = np.random.default_rng(0)
    day = np.arange(6000) // 200
    has_begun = day >= 15
    arm = has_begun & (rng.random(6000) < 0.5)
    rows = pyarrow.table(
        {
            "day": day,
            "plan": np.where(has_begun, "both", "one"),
            "page": np.where(arm, "new", "old"),
            "seconds": rng.normal(size=6000) + 3.0 * has_begun,
        }
    )
    plans = {"one": {"old": 1.0, "new": 0.0}, "both": {"old": 0.5, "new": 0.5}}
    asked = {"arm": "page", "reward": "seconds", "time": "day", "plan": "plan", "plans": plans}
    median = {"seconds": Quantile(0.5, tuple(np.linspace(-2.0, 5.0, 29)))}
    found = quantile_of(analyse(rows, **asked, metrics=median, reference="old", fixed=fixed))
    (effect,) = (one for one in found.effects if one.arm == "new")
    assert effect.verdict == "undecided"
    assert effect.interval[0] < 0.0 < effect.interval[1]
    assert all(2.5 <= low < high <= 3.5 for low, high in found.arm_intervals)
    assert "over the rounds in which every arm could be drawn" in found.mode


def test_the_first_rows_choose_thresholds_and_do_not_count():
    found = analyse(log(), **ASKED, metrics={"seconds": [Quantile(0.9), "mean"]})
    assert [one.name for one in found.metrics] == ["paid", "seconds", "seconds p90"]
    assert found.metrics[0].delta == pytest.approx(0.05 / 3)
    ninth = quantile_of(found)
    assert ninth.summaries[0].mean == pytest.approx(153.0, abs=6.0)
    # Thresholds stay where they are as the log grows.
    rows = log()
    half = rows.slice(0, 3000)
    modes = [
        quantile_of(analyse(part, **ASKED, metrics={"seconds": Quantile(0.9)})).mode for part in (half, rows)
    ]
    assert modes[0] == modes[1]
    assert "seconds p90" in str(found)
    assert "seconds p90" in found.html()


def test_one_look_is_like_order_statistics():
    rng = np.random.default_rng(3)
    rows = pyarrow.table(
        {
            "arm": np.array(["a", "b"])[rng.integers(0, 2, 4000)],
            "y": rng.normal(size=4000),
            "r": rng.random(4000),
        }
    )
    asked = {"arm": "arm", "reward": "r", "split": "equal"}
    found = quantile_of(analyse(rows, **asked, metrics={"y": Quantile(0.5)}))
    low, high = found.arm_intervals[0]
    # δ is shared by two metrics and two arms, so z is 2.5; the density at the median is 0.4.
    expected = 2.5 * 0.5 / 0.4 / np.sqrt(2000)
    assert low < 0 < high
    assert (high - low) / 2 == pytest.approx(expected, rel=0.35)


def test_a_quantile_beyond_the_thresholds_has_no_end():
    found = quantile_of(analyse(log(), **ASKED, metrics={"seconds": Quantile(0.5, (10.0, 20.0))}))
    assert found.arm_intervals == ((20.0, None), (20.0, None))
    assert found.summaries[0].mean is None
    assert found.effects[1].interval == (None, None)
    assert found.effects[1].verdict == "undecided"


def test_a_warehouse_counts_at_given_thresholds():
    rows = log(2000)
    asked = ASKED | {"metrics": {"seconds": Quantile(0.5, GRID)}, "bucket": 1}
    sql = warehouse_sql("log", "duckdb", types={"hour": "integer", "paid": "boolean"}, **asked)
    with duckdb.connect() as connection:
        connection.register("log", rows)
        cells = connection.sql(sql).to_arrow_table()
    found = analyse(cells, cells=True, types={"hour": "integer", "paid": "boolean"}, **asked)
    assert quantile_of(found).arm_intervals == quantile_of(analyse(rows, **asked)).arm_intervals
    with pytest.raises(ParameterError, match="needs thresholds: nobody has seen the first rows"):
        warehouse_sql("log", "duckdb", **(ASKED | {"metrics": {"seconds": Quantile(0.5)}}))


def test_bad_quantiles_are_refused():
    with pytest.raises(ParameterError, match="level"):
        Quantile(1.0)
    with pytest.raises(ParameterError, match="must be a list of finite numbers"):
        Quantile(0.5, (1.0, float("nan")))
    with pytest.raises(ParameterError, match="'p95' of 'seconds' must be 'mean' or a Quantile"):
        analyse(log(100), **ASKED, metrics={"seconds": "p95"})
    with pytest.raises(InputError, match=r"quantiles='second'.*did you mean 'seconds'"):
        analyse(log(100), **ASKED, metrics={"second": Quantile(0.5)})
