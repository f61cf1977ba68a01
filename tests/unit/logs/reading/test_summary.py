"""Aggregated data say what the rows say from which they were made, bucket by bucket."""

import numpy as np
import pyarrow
import pyarrow.compute
import pytest

from orthobandit import Guardrail, analyse
from orthobandit.errors import InputError, ParameterError
from orthobandit.verify import verify_file

SPLIT = {"old": 0.5, "mid": 0.3, "new": 0.2}
LABELS = np.array(list(SPLIT))
FIGURES = {"n": "n", "mean": "mean", "variance": "variance"}
ENDS = {"smallest": "smallest", "largest": "largest"}


def log(kind="normal", rows=6000, days=20, seed=1, segments=False):
    """Return rows of an experiment whose level moves."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, days, rows))
    arm = rng.choice(3, rows, p=list(SPLIT.values()))
    level = np.sin(day / 3.0)
    if kind == "binary":
        values = (rng.random(rows) < 0.3 + 0.1 * level + 0.05 * arm).astype(float)
    elif kind == "skewed":
        values = rng.exponential(2.0 + level + 0.2 * arm)
    else:
        values = 1000.0 + level + 0.3 * arm + rng.normal(size=rows)
    columns = {"day": day, "arm": LABELS[arm], "value": values}
    if segments:
        columns["place"] = rng.choice(["home", "away"], rows)
    return pyarrow.table(columns)


def summarise(rows, keys=("day", "arm")):
    """Return count, mean, sample variance, smallest and largest value by key."""
    spread = pyarrow.compute.VarianceOptions(ddof=1)
    wanted = [
        ("value", "count"),
        ("value", "mean"),
        ("value", "variance", spread),
        ("value", "min"),
        ("value", "max"),
    ]
    found = rows.group_by(list(keys)).aggregate(wanted)
    return found.rename_columns([*keys, "n", "mean", "variance", "smallest", "largest"])


def accumulate(rows, days=20):
    """Return the summary of everything up to each day."""
    parts = []
    for day in range(days):
        until = rows.filter(pyarrow.compute.less_equal(rows["day"], day))
        part = summarise(until, ("arm",))
        parts.append(part.append_column("day", [np.full(len(part), day)]))
    return pyarrow.concat_tables(parts)


def check_same(found, expected, *, ends=True, rtol=1e-9):
    """Check that two analyses say the same at the end and after every bucket."""
    one, other = found.metrics[0], expected.metrics[0]
    assert found.rows == expected.rows
    assert found.labels == expected.labels
    for a, b in zip(one.effects, other.effects, strict=True):
        fields = ("estimate", "interval", "lift") + (("fixed",) if ends else ())
        for name in fields:
            left, right = (np.array(getattr(each, name), dtype=float) for each in (a, b))
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=rtol)
        assert a.verdict == b.verdict
    assert len(one.history) == len(other.history) > 5
    for a, b in zip(one.history, other.history, strict=True):
        assert (a.time, a.rows) == (b.time, b.rows)
        for name in ("level", "forecast", "estimates", "lows", "highs", "shares"):
            left, right = (np.array(getattr(each, name), dtype=float) for each in (a, b))
            np.testing.assert_allclose(left, right, rtol=1e-6, atol=rtol)


@pytest.mark.parametrize("kind", ["normal", "skewed"])
def test_a_summary_with_ends_says_what_its_rows_say(kind):
    rows = log(kind)
    asked = {"arm": "arm", "time": "day", "split": SPLIT, "reference": "old"}
    found = analyse(summarise(rows), **asked, **FIGURES, **ENDS)
    expected = analyse(rows, **asked, reward="value")
    check_same(found, expected)
    ratio, own = (
        next(one for one in each.diagnostics if one.name == "sample ratio") for each in (found, expected)
    )
    assert ratio.p_value == pytest.approx(own.p_value)


def test_light_tails_need_no_ends():
    rows = log()
    asked = {"arm": "arm", "time": "day", "split": SPLIT}
    found = analyse(summarise(rows), **asked, **FIGURES)
    check_same(found, analyse(rows, **asked, reward="value"), ends=False)
    assert any("does not show single values" in note for note in found.notes)


def test_zeros_and_ones_are_exact_once_they_are_declared():
    rows = log("binary")
    asked = {"arm": "arm", "time": "day", "split": SPLIT, "bounds": (0, 1)}
    found = analyse(summarise(rows), **asked, **FIGURES)
    check_same(found, analyse(rows, **asked, reward="value"))
    assert found.metrics[0].mode.startswith("exact for values from 0 to 1")
    # Undeclared, they are as zeros and ones of a log that nobody declared.
    asked = {"arm": "arm", "time": "day", "split": SPLIT}
    undeclared = analyse(summarise(rows), **asked, **FIGURES)
    check_same(undeclared, analyse(rows, **asked, reward="value"))
    assert any("held only 0 and 1 so far" in note for note in undeclared.notes)


def test_declared_bounds_stand_for_ends_that_nobody_knows():
    rows = log("skewed")
    bounds = (0.0, 60.0)
    asked = {"arm": "arm", "time": "day", "split": SPLIT, "bounds": bounds}
    found = analyse(summarise(rows), **asked, **FIGURES).metrics[0]
    known = analyse(rows, **asked, reward="value").metrics[0]
    for one, other in zip(found.effects[1:], known.effects[1:], strict=True):
        assert one.estimate == pytest.approx(other.estimate)
        # Wider, for values may have been anywhere in the range; but not by much.
        assert one.interval[0] <= other.interval[0] + 1e-12
        assert other.interval[1] <= one.interval[1] + 1e-12
        assert np.ptp(one.interval) < 1.5 * np.ptp(other.interval)


def test_segments_and_standard_deviations():
    rows = log(segments=True)
    table = summarise(rows, ("day", "arm", "place"))
    table = table.append_column("std", pyarrow.compute.sqrt(table["variance"])).drop(["variance"])
    asked = {"arm": "arm", "time": "day", "split": SPLIT, "segment": "place"}
    found = analyse(table, **asked, n="n", mean="mean", std="std", **ENDS)
    expected = analyse(rows, **asked, reward="value")
    check_same(found, expected)
    assert [one.segment for one in found.segments] == ["away", "home"]
    for one, other in zip(found.segments, expected.segments, strict=True):
        assert one.effects[1].interval == pytest.approx(other.effects[1].interval)


def test_cumulative_figures_are_differenced():
    rows = log()
    asked = {"arm": "arm", "time": "day", "split": SPLIT}
    found = analyse(accumulate(rows), **asked, **FIGURES, cumulative=True)
    check_same(found, analyse(rows, **asked, reward="value"), ends=False, rtol=1e-6)
    assert "cumulative figures of 20 times were differenced into 20 periods" in found.notes


@pytest.mark.parametrize("days", [2, 3])
def test_two_periods_whose_counts_grow_are_asked_about_too(days):
    asked = {"arm": "arm", "time": "day", "split": SPLIT, **FIGURES}
    figures = accumulate(log(days=days), days)
    with pytest.raises(InputError, match=r"never fall with time.*cumulative=False"):
        analyse(figures, **asked)
    # Of an arm that has just begun nothing can be told; the others still look cumulative.
    late = pyarrow.compute.and_(
        pyarrow.compute.equal(figures["arm"], "new"), pyarrow.compute.less(figures["day"], days - 1)
    )
    with pytest.raises(InputError, match="never fall with time"):
        analyse(figures.filter(pyarrow.compute.invert(late)), **asked)
    assert analyse(figures, **asked, cumulative=True).rows == 6000


def test_a_single_period_is_the_same_either_way():
    asked = {"arm": "arm", "time": "day", "split": SPLIT, **FIGURES}
    assert analyse(summarise(log(days=1)), **asked).rows == 6000


def test_figures_that_look_cumulative_must_be_declared():
    asked = {"arm": "arm", "time": "day", "split": SPLIT, **FIGURES}
    with pytest.raises(InputError, match=r"never fall with time.*say cumulative=True"):
        analyse(accumulate(log()), **asked)
    # Who insists that they are of single periods is believed.
    assert analyse(accumulate(log()), **asked, cumulative=False).rows > 6000
    # Counts of single periods that grow do not look cumulative: differences have no variance.
    rng = np.random.default_rng(0)
    growing = {
        "day": np.tile(np.arange(8), 3),
        "arm": np.repeat(LABELS, 8),
        "n": np.tile(1000 + 10 * np.arange(8), 3),
        "mean": rng.normal(5.0, 0.1, 24),
        "variance": np.full(24, 4.0),
    }
    assert analyse(pyarrow.table(growing), **asked).buckets == 8


def test_snapshots_that_cannot_be_differenced_are_joined_and_named():
    table = accumulate(log()).sort_by([("day", "ascending"), ("arm", "ascending")]).to_pandas()
    is_new = table["arm"] == "new"
    table.loc[is_new & (table["day"] == 4), "n"] -= 100
    table.loc[is_new & (table["day"] == 9), "variance"] /= 9.0
    table = table[~(is_new & (table["day"] == 12))]
    asked = {"arm": "arm", "time": "day", "split": SPLIT, **FIGURES}
    found = analyse(table, **asked, cumulative=True)
    note = next(one for one in found.notes if "differenced into 17 periods" in one)
    assert (
        "3 cannot be differenced and are joined to the period after: 4 (the count of 'new' falls from" in note
    )
    assert "9 (the variance of 'new' would be negative); 12 (a gap: no row of 'new')" in note
    assert found.rows == 6000
    with pytest.raises(InputError, match=r"cannot be differenced.*say cumulative=False"):
        analyse(summarise(log()), **asked, cumulative=True)


def test_without_a_split_the_ratio_cannot_be_checked():
    rows = log()
    found = analyse(summarise(rows), arm="arm", time="day", **FIGURES)
    ratio = next(one for one in found.diagnostics if one.name == "sample ratio")
    assert (ratio.status, ratio.p_value) == ("note", None)
    assert "nobody declared the split" in ratio.words
    stated = analyse(summarise(rows), arm="arm", time="day", split=SPLIT, reference="mid", **FIGURES)
    by_arm = {effect.arm: effect.estimate for effect in stated.metrics[0].effects}
    for effect in found.metrics[0].effects:
        assert effect.over == "mid"
        assert effect.estimate == pytest.approx(by_arm[effect.arm], abs=0.05)


def shares_that_move(n_of_b, level, days=28, seed=3, **more):
    """Return days of 1,000 rows each, of arms that are alike, and how many rows `b` had on each."""
    rng = np.random.default_rng(seed)
    counts = np.stack([1000 - n_of_b, n_of_b], axis=1)
    values = [[level[day] + rng.normal(size=n) for n in counts[day]] for day in range(days)]
    rows = [
        {"day": day, "arm": arm, "n": len(own), "mean": own.mean(), "variance": own.var(ddof=1)} | more
        for day in range(days)
        for arm, own in zip("ab", values[day], strict=True)
        if len(own)
    ]
    return pyarrow.Table.from_pylist(rows)


def gap_of_b(analysis):
    return next(effect for effect in analysis.metrics[0].effects if effect.arm == "b")


WEEKEND = np.arange(28) % 7 >= 5


def test_a_split_that_nobody_declared_may_move_with_the_level():
    table = shares_that_move(np.where(WEEKEND, 200, 500), np.where(WEEKEND, -2.0, 2.0))
    found = analyse(table, arm="arm", time="day", **FIGURES, cumulative=False)
    low, high = gap_of_b(found).interval
    assert low < 0.0 < high
    assert high - low < 0.2
    ratio = next(one for one in found.diagnostics if one.name == "sample ratio")
    assert ratio.status == "note"
    assert "The split moved: 'a' had 50.0% to 80.0% of the rows of 28 periods (p-value" in ratio.words
    assert ratio.details["alike_p_value"] < 1e-9
    # The bucket does not matter: rows of several days are not added up before arms are compared.
    weekly = gap_of_b(analyse(table, arm="arm", time="day", bucket=7, **FIGURES, cumulative=False))
    assert weekly.interval[0] < 0.0 < weekly.interval[1]


def test_gaps_are_those_between_means_of_the_same_period():
    table = shares_that_move(np.where(WEEKEND, 200, 500), np.where(WEEKEND, -2.0, 2.0))
    found = analyse(table, arm="arm", time="day", **FIGURES, cumulative=False, baseline="none")
    figures = table.to_pandas().pivot(index="day", columns="arm").iloc[1:]  # the first day is the pilot
    weights = 1.0 / (1.0 / figures["n"]["a"] + 1.0 / figures["n"]["b"])
    gaps = figures["mean"]["b"] - figures["mean"]["a"]
    assert gap_of_b(found).estimate == pytest.approx((weights * gaps).sum() / weights.sum(), rel=1e-9)


def test_nothing_is_said_of_periods_that_lack_an_arm():
    begins = np.where(np.arange(28) < 14, 0, 500)
    found = analyse(
        shares_that_move(begins, np.linspace(3.0, -3.0, 28)),
        arm="arm",
        time="day",
        **FIGURES,
        cumulative=False,
    )
    assert gap_of_b(found).interval[0] < 0.0 < gap_of_b(found).interval[1]
    blind = next(one for one in found.diagnostics if one.name == "blind buckets")
    assert (blind.status, blind.details["by_arm"]) == ("note", {"b": 0.5})


def test_rows_of_one_arm_and_period_need_a_name_or_a_split():
    table = shares_that_move(np.full(28, 500), np.zeros(28))
    with pytest.raises(
        InputError, match=r"'a' has 28 rows .*nobody declared the split.*\(time= or segment=\), or"
    ):
        analyse(table, arm="arm", **FIGURES)
    assert analyse(table, arm="arm", **FIGURES, split="equal").rows == 28_000
    places = [shares_that_move(np.full(28, 500), np.zeros(28), place=place) for place in ("home", "away")]
    both = pyarrow.concat_tables(places)
    asked = {"arm": "arm", "time": "day", "cumulative": False, **FIGURES}
    with pytest.raises(InputError, match=r"'a' has 2 rows of one time .*\(segment=\), or declare"):
        analyse(both, **asked)
    assert analyse(both, **asked, segment="place").rows == 56_000


@pytest.mark.parametrize("time", ["day", None])
def test_segments_have_shares_of_their_own(time):
    share = {"home": 200, "away": 600}
    level = {"home": -2.0, "away": 2.0}
    days = 14 if time else 1
    table = pyarrow.concat_tables(
        shares_that_move(np.full(days, share[place]), np.full(days, level[place]), days=days, place=place)
        for place in share
    )
    found = analyse(table, arm="arm", time=time, **FIGURES, segment="place", cumulative=False)
    low, high = gap_of_b(found).interval
    assert low < 0.0 < high
    for segment in found.segments:
        effect = next(one for one in segment.effects if one.arm == "b")
        assert effect.interval[0] < 0.0 < effect.interval[1]


def test_periods_that_cannot_be_separated_are_left_out_without_a_split():
    table = accumulate(log()).sort_by([("day", "ascending"), ("arm", "ascending")]).to_pandas()
    table = table[~((table["arm"] == "new") & (table["day"] == 12))]
    asked = {"arm": "arm", "time": "day", "cumulative": True, **FIGURES}
    found = analyse(table, **asked)
    note = next(one for one in found.notes if "differenced" in one)
    assert "1 cannot be differenced and are left out with the period after, as nobody declared" in note
    day = log()["day"].to_numpy()
    assert found.rows == 6000 - np.isin(day, [12, 13]).sum()


def test_one_row_an_arm_is_one_look():
    table = pyarrow.table(
        {"arm": ["a", "b"], "n": [10_000, 10_000], "mean": [0.10, 0.12], "variance": [0.09, 0.1056]}
    )
    found = analyse(table, arm="arm", split="equal", **FIGURES)
    low, high = found.metrics[0].effects[1].interval
    error = np.sqrt(0.09 / 10_000 + 0.1056 / 10_000)
    assert (low + high) / 2 == pytest.approx(0.02, abs=2e-4)
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.02)


def test_times_of_halves_and_dates_are_periods():
    halves = pyarrow.table(
        {
            "since": np.repeat(np.arange(1, 31) / 10.0, 2),
            "arm": ["a", "b"] * 30,
            "n": [50, 52] * 30,
            "mean": [1.0, 1.1] * 30,
            "variance": [1.0] * 60,
        }
    )
    assert analyse(halves, arm="arm", time="since", split="equal", **FIGURES).buckets == 30
    days = halves.set_column(0, "since", [[f"2025-03-{1 + place // 2:02d}" for place in range(60)]])
    found = analyse(days, arm="arm", time="since", split="equal", **FIGURES)
    assert (found.buckets, found.bucket) == (30, "day")


BAD = {
    "n": ({"n": [5.5, 4]}, r"n='n' is 5.5 in row 1 \(1 such rows\); a count is a whole number"),
    "mean": ({"mean": [None, 1.0]}, "mean='mean' is missing in row 1"),
    "variance": ({"variance": [1.0, -1.0]}, "variance='variance' is -1 in row 2"),
    "empty": ({"n": [0, 0]}, "n='n' is 0 in all rows"),
    "arm": ({"arm": ["a", "a"]}, "only the arm 'a'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_figures_are_refused_by_name(case):
    columns, words = BAD[case]
    table = {"arm": ["a", "b"], "n": [5, 4], "mean": [1.0, 1.0], "variance": [1.0, 1.0]} | columns
    with pytest.raises(InputError, match=words):
        analyse(pyarrow.table(table), arm="arm", split="equal", **FIGURES)


def test_questions_that_a_summary_cannot_answer_are_refused():
    table = summarise(log())
    asked = {"arm": "arm", "time": "day", "split": SPLIT}
    cases = [
        ({"n": "n"}, "mean= is missing: aggregated data have the columns"),
        (FIGURES | {"std": "variance"}, "one of variance and std"),
        ({"n": "n", "mean": "mean"}, "one of variance and std"),
        (FIGURES | {"reward": "mean"}, "reward='mean' is for a log of single rows"),
        (FIGURES | {"covariates": ["smallest"]}, r"covariates=\('smallest',\) needs single rows"),
        (FIGURES | {"guardrails": [Guardrail("largest", 1.0)]}, "a summary has one metric"),
        (FIGURES | {"split": None, "bounds": (0, 2000)}, "exact intervals need the probabilities"),
        (FIGURES | {"time": None, "cumulative": True}, "cumulative=True needs the time"),
    ]
    for fields, words in cases:
        with pytest.raises(ParameterError, match=words):
            analyse(table, **(asked | fields))
    with pytest.raises(InputError, match=r"bounds=\(999, 1001\) do not hold 'mean'"):
        analyse(table, **asked, **FIGURES, bounds=(999, 1001))
    with pytest.raises(InputError, match="no such column"):
        analyse(table, **asked, n="count", mean="mean", variance="variance")
    with pytest.raises(ParameterError, match="split='observed' is for aggregated data"):
        analyse(log(), arm="arm", reward="value", split="observed")


def printed(rows, digits):
    """Return equal rates of two arms on ten days, `rows` a day and arm, with so many digits."""
    rng = np.random.default_rng(1)
    day, arm = np.repeat(np.arange(10), 2), np.tile(["a", "b"], 10)
    mean = rng.binomial(rows, 0.03137, 20) / rows
    figures = {"mean": mean.round(digits), "variance": mean * (1 - mean)}
    return pyarrow.table({"day": day, "arm": arm, "n": np.full(20, rows), **figures})


def test_figures_with_too_few_digits_for_so_many_rows_are_named():
    asked = {"arm": "arm", "time": "day", "split": "equal", "n": "n", "mean": "mean", "variance": "variance"}
    said = {
        (rows, digits): [
            note
            for note in analyse(printed(rows, digits), **asked, cumulative=False).notes
            if "digits" in note
        ]
        for rows, digits in ((10_000, 4), (10**9, 4), (10**9, 9))
    }
    assert said[10_000, 4] == said[10**9, 9] == []
    (note,) = said[10**9, 4]
    # All means are rounded to the same side, for they scatter by less than a digit.
    assert note.startswith("means have 4 digits after the point: rounding moves them by up to 5e-05, which")


def sales(rate, rows, digits, *, cumulative=False, spread="variance", seed=1):
    """Return the rates of two arms on 28 days with so many digits, about `rows` a day and arm."""
    rng = np.random.default_rng(seed)
    n = rng.poisson(rows, (28, 2))
    ones = rng.binomial(n, rate)
    if cumulative:
        n, ones = n.cumsum(axis=0), ones.cumsum(axis=0)
    mean = (ones / n).ravel()
    variance = mean * (1.0 - mean) * n.ravel() / (n.ravel() - 1)
    figures = {"mean": mean, spread: variance if spread == "variance" else np.sqrt(variance)}
    printed = {name: values.round(digits) for name, values in figures.items()}
    return {"day": np.repeat(np.arange(28), 2), "arm": ["a", "b"] * 28, "n": n.ravel(), **printed}


@pytest.mark.parametrize("spread", ["variance", "std"])
def test_rates_of_four_digits_are_whole_counts(spread):
    asked = {"arm": "arm", "time": "day", "split": "equal", "bounds": (0, 1), "cumulative": False}
    asked |= {"n": "n", "mean": "mean", spread: spread}
    rounded, whole = (
        analyse(pyarrow.table(sales(0.2, 1000, digits, spread=spread)), **asked) for digits in (4, 15)
    )
    check_same(rounded, whole)
    assert rounded.metrics[0].mode.startswith("exact for values from 0 to 1")


@pytest.mark.parametrize(("rate", "rows", "cumulative"), [(0.2, 50_000, False), (0.003, 1000, True)])
def test_intervals_allow_for_what_digits_leave_open(rate, rows, cumulative):
    asked = {"arm": "arm", "time": "day", "split": "equal", "cumulative": cumulative, **FIGURES}
    tables = [pyarrow.table(sales(rate, rows, digits, cumulative=cumulative)) for digits in (4, 15)]
    rounded, whole = (analyse(table, **asked) for table in tables)
    own, other = gap_of_b(rounded), gap_of_b(whole)
    assert own.estimate == pytest.approx(other.estimate, abs=0.1 * np.ptp(other.interval))
    # Where digits leave open less than a thousandth of the scatter, nothing is added.
    assert 0.999 < np.ptp(own.interval) / np.ptp(other.interval) < 1.15
    # No period is lost because a rounded rate seems to fall.
    assert rounded.rows == whole.rows
    assert not any("cannot be differenced" in note for note in rounded.notes)


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_exact_intervals_hold_however_rates_were_rounded(share, cumulative):
    """A gap of .002 looks like one of .01: with two digits, 20.6 % are always 21 % and 20.4 % always 20 %."""
    rng = np.random.default_rng(5)
    n = rng.poisson(400_000 * np.array([1.0 - share, share]), (20, 2))
    ones = rng.binomial(n, [0.206, 0.204])
    if cumulative:
        n, ones = n.cumsum(axis=0), ones.cumsum(axis=0)
    mean = (ones / n).ravel()
    asked = {
        "arm": "arm",
        "time": "day",
        "split": {"a": 1.0 - share, "b": share},
        "bounds": (0, 1),
        **FIGURES,
    }
    widths = []
    for digits in (2, 3, 4, 15):
        figures = {"mean": mean.round(digits), "variance": (mean * (1.0 - mean)).round(digits)}
        table = {"day": np.repeat(np.arange(20), 2), "arm": ["a", "b"] * 20, "n": n.ravel(), **figures}
        analysis = analyse(pyarrow.table(table), cumulative=cumulative, **asked)
        low, high = gap_of_b(analysis).interval
        assert low <= -0.002 <= high
        widths.append(high - low)
        notes = [note for note in analysis.notes if "digits after the point" in note]
        assert len(notes) == (digits < 15)
        assert all("up to" in note and "widens intervals" in note for note in notes)
    assert widths == sorted(widths, reverse=True)


def test_certificates_of_rounded_rates_are_recomputed(tmp_path):
    asked = {"arm": "arm", "time": "day", "split": "equal", "bounds": (0, 1), "cumulative": False, **FIGURES}
    analysis = analyse(pyarrow.table(sales(0.2, 200_000, 3)), **asked)
    analysis.save(tmp_path / "rates.json")
    verdict = verify_file(tmp_path / "rates.json")
    assert verdict.valid
    assert "means rounded by up to 0.0005" in verdict.claim


def test_values_of_few_digits_widen_exact_intervals():
    rng = np.random.default_rng(6)
    n = np.full(40, 50_000)
    mean = np.tile([2.43, 2.47], 20) + rng.normal(size=40) / np.sqrt(n)
    asked = {"arm": "arm", "time": "day", "split": "equal", "bounds": (0, 10), "cumulative": False, **FIGURES}
    for digits in (1, 2, 15):
        figures = {"mean": mean.round(digits), "variance": np.ones(40)}
        table = pyarrow.table({"day": np.repeat(np.arange(20), 2), "arm": ["a", "b"] * 20, "n": n, **figures})
        low, high = gap_of_b(analyse(table, **asked)).interval
        assert low <= 0.04 <= high


def test_values_that_are_no_rates_stay_what_they_are():
    table = sales(0.2, 1000, 4)
    table["variance"] = table["variance"] / 2.0  # of values between 0 and 1
    found = analyse(pyarrow.table(table), arm="arm", time="day", split="equal", **FIGURES, cumulative=False)
    assert not any("held only 0 and 1" in note for note in found.notes)
    table["variance"] = table["variance"] * 2.1  # of no values between 0 and 1
    with pytest.raises(
        InputError, match=r"cannot have a variance of .*; declare a range that holds all values"
    ):
        analyse(
            pyarrow.table(table),
            arm="arm",
            time="day",
            split="equal",
            **FIGURES,
            bounds=(0, 1),
            cumulative=False,
        )
