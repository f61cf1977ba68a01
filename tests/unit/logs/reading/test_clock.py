"""Times become buckets whose boundaries stay put as a log grows."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow
import pytest
from pyarrow import csv

from logs_samples import by_key, gathered, same

BEGIN = datetime(2024, 3, 1, 10, 30, tzinfo=UTC)


def cells(times, **fields):
    count = len(times)
    log = pyarrow.table({"at": times, "arm": ["a", "b"] * (count // 2), "bought": np.ones(count)})
    return gathered(log, time="at", split="equal", **fields).cells


@pytest.mark.parametrize("hours", [2, 23, 25, 10_000, 10_001])
def test_buckets_of_a_clock_are_hours_whatever_the_span(hours):
    found = cells([BEGIN, BEGIN + timedelta(hours=hours)])
    assert (found.width, found.is_clock) == (3600.0, True)
    assert found.times[0] == BEGIN.timestamp() // 3600.0 * 3600.0


@pytest.mark.parametrize(
    ("bucket", "begin"), [("week", "2024-02-26"), ("day", "2024-03-01"), (1800, "2024-03-01T10:30")]
)
def test_a_given_width(bucket, begin):
    found = cells([BEGIN, BEGIN + timedelta(seconds=30)], bucket=bucket)
    assert found.times.tolist() == [datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp()]


def test_times_of_every_kind_are_the_same():
    naive = [
        BEGIN.replace(tzinfo=None),
        BEGIN.replace(tzinfo=None) + timedelta(hours=30, microseconds=999_999),
    ]
    kinds = [
        naive,
        [one.replace(tzinfo=UTC) for one in naive],
        [one.isoformat() for one in naive],
        [one.isoformat(" ") + "Z" for one in naive],
        [(one + timedelta(hours=2)).isoformat() + "+02:00" for one in naive],
    ]
    expected = [
        datetime(2024, 3, 1, 10, tzinfo=UTC).timestamp(),
        datetime(2024, 3, 2, 16, tzinfo=UTC).timestamp(),
    ]
    # pandas makes nanoseconds; with a time zone they are a type of DuckDB's own.
    kinds.append(pyarrow.array(naive, pyarrow.timestamp("ns", "Europe/Berlin")))
    for times in kinds:
        assert cells(times).times.tolist() == expected


def test_dates():
    found = cells([date(2024, 1, 1), date(2024, 1, 9)], bucket="day")
    assert (np.diff(found.times) / 86400).tolist() == [8.0]


def test_times_before_1970():
    found = cells([datetime(1969, 12, 31, 23, 59, 59, 500_000), datetime(1970, 1, 2, 3)])
    assert found.times.tolist() == [-3600.0, 86400 + 3 * 3600.0]


@pytest.mark.parametrize(
    ("times", "begins", "width"),
    [
        ([7, 3, 3, 5], [3.0, 5.0, 7.0], 1.0),
        ([0.5, 10.25], [0.5, 5.5], 5.0),
        ([3, 3], [3.0], 1.0),
        ([2.5] * 20 + [3.0, 4.0], [2.5, 3.0, 4.0], 0.5),
        ([0, 10**6], [0.0, 999_936.0], 1.0),
    ],
)
def test_numbers(times, begins, width):
    found = cells(times)
    assert (found.is_clock, found.width) == (False, width)
    np.testing.assert_allclose(found.times, begins)


def test_buckets_of_many_whole_numbers_double_with_time():
    found = cells(np.arange(20_000))
    assert (found.width, len(found.times), found.counts.sum()) == (1.0, 10_000, 20_000)
    assert np.unique(np.diff(found.times[:5001])).tolist() == [1.0]
    assert np.unique(np.diff(found.times[5000:7501])).tolist() == [2.0]
    assert np.unique(np.diff(found.times[7500:])).tolist() == [4.0]


@pytest.mark.parametrize("kind", ["whole", "float", "clock"])
def test_no_boundary_moves_as_a_log_grows(kind):
    rng = np.random.default_rng(6)
    times = np.cumsum(rng.exponential(3.0, 12_000))
    times = {"whole": times.astype(int), "float": times}.get(kind, times)
    if kind == "clock":
        times = [(BEGIN + timedelta(minutes=float(one))).replace(tzinfo=None) for one in times]
    whole = cells(times)
    for rows in (20, 200, 3000, 9000):
        part = cells(times[:rows])
        assert part.width == whole.width
        assert part.times.tolist() == whole.times[: len(part.times)].tolist()


def test_without_time_there_is_one_bucket():
    log = pyarrow.table({"arm": ["a", "b", "a"], "bought": [1.0, 0.0, 1.0]})
    found = gathered(log, split="equal").cells
    assert (found.times.tolist(), found.width, found.bucket.tolist()) == ([0.0], 0.0, [0, 0])


def test_infinite_times_are_refused():
    with pytest.raises(
        ValueError, match=r"time='at' cannot be read in 1 rows .*first in row 2, such as inf; finite"
    ):
        cells([1.0, np.inf])


@pytest.mark.parametrize(("hours", "width"), [(5, 3600.0), (200, 3600.0)])
@pytest.mark.parametrize("holes", [False, True])
def test_text_is_cut_as_other_sources_are(tmp_path, hours, width, holes):
    rng, rows = np.random.default_rng(4), 3000
    values = rng.normal(5.0, 1.0, rows)
    values[:5] = np.nan if holes else 1.0
    log = pyarrow.table(
        {
            "at": [
                (BEGIN + timedelta(seconds=int(one))).replace(tzinfo=None)
                for one in rng.integers(0, 3600 * hours, rows)
            ],
            "arm": rng.choice(["a", "b"], rows),
            "bought": values,
            "before": rng.normal(size=rows),
            "country": rng.choice(["de", "fr"], rows),
        }
    )
    csv.write_csv(log, tmp_path / "log.csv")
    asked = {"split": "equal", "covariates": ("before",), "segment": "country", "missing": "drop"}
    one, other = (gathered(source, time="at", **asked) for source in (log, str(tmp_path / "log.csv")))
    assert one.cells.width == other.cells.width == width
    same(by_key(one), by_key(other))
    for name in ("rest_low", "rest_high"):
        assert getattr(other.cells, name) == pytest.approx(getattr(one.cells, name), rel=1e-9)
