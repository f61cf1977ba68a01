"""Logs analysed from end to end."""

import json

import numpy as np
import pyarrow
import pyarrow.compute
import pytest

from log_worlds import paid_late
from orthobandit import ArmSet, Experiment, Guardrail, Metric, analyse
from orthobandit.errors import InputError, ParameterError
from orthobandit.logs import Ratio

LABELS = np.array(["old", "new", "video"])
SPLIT = {"old": 0.5, "new": 0.3, "video": 0.2}
ASKED = {"arm": "page", "reward": "spent", "time": "at", "split": SPLIT}


def log(rows=12_000, seed=0, gaps=(0.0, 0.0, 0.5)):
    """Return a log of four weeks under a strong daily season."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(rows)) * 28 * 86_400
    arm = rng.choice(3, rows, p=list(SPLIT.values()))
    before = rng.standard_normal(rows)
    spent = (
        10 + 5 * np.sin(2 * np.pi * at / 86_400) + np.array(gaps)[arm] + before + rng.standard_normal(rows)
    )
    visits = 1 + rng.poisson(2.0, rows)
    return pyarrow.table(
        {
            "at": pyarrow.array((1_760_000_000 + at).astype("int64"), pyarrow.timestamp("s")),
            "page": LABELS[arm],
            "spent": spent,
            "before": before,
            "bought": (rng.random(rows) < 0.1 + 0.1 * (arm == 2)).astype(int),
            "visits": visits,
            "clicks": visits * (1.0 + 0.3 * (arm == 1)) + rng.standard_normal(rows),
            "country": rng.choice(["de", "fr"], rows),
        }
    )


LOG = log()


def effects(found, metric=0):
    return {one.arm: one for one in found.metrics[metric].effects}


def test_the_best_arm_is_found_under_a_season():
    found = analyse(LOG, **ASKED)
    assert found.sentence.startswith("'video' is the best arm by 'spent' (wrong in at most 5 % of logs, ")
    assert effects(found)["video"].verdict == "better"
    assert effects(found)["new"].verdict == "undecided"
    assert effects(found)["old"].verdict == "reference"
    assert effects(found)["video"].interval[0] < 0.5 < effects(found)["video"].interval[1]
    assert set(found.metrics[0].droppable) == {"old", "new"}
    assert (found.bucket, found.rows, found.reference) == ("hour", 12_000, "old")
    assert {one.status for one in found.diagnostics} == {"fine"}
    assert found.metrics[0].saved["seasonal"] > 0.7
    json.dumps(found.to_json(), allow_nan=False)


def test_covariates_narrow_the_interval():
    plain, found = analyse(LOG, **ASKED), analyse(LOG, **ASKED, covariates=["before"])
    widths = [np.diff(effects(one)["video"].interval)[0] for one in (plain, found)]
    assert widths[1] < 0.9 * widths[0]
    assert found.metrics[0].saved["covariates"] > 0.2
    assert effects(found)["video"].lift == pytest.approx(effects(plain)["video"].lift, abs=0.02)


def test_metrics_share_the_level_and_each_has_its_mode():
    found = analyse(
        LOG,
        **ASKED,
        metrics=["bought"],
        ratios=[Ratio("clicks", "visits")],
        guardrails=[Guardrail("before", 0.2)],
        bounds={"bought": (0.0, 1.0)},
    )
    reward, bought, ratio, guard = found.metrics
    assert [one.delta for one in found.metrics] == pytest.approx([0.0125] * 4)
    assert [one.kind for one in found.metrics] == ["reward", "metric", "ratio", "guardrail"]
    assert reward.mode.startswith("asymptotic")
    assert bought.mode.startswith("exact for values from 0 to 1")
    assert effects(found, 1)["video"].verdict == "better"
    low, high = effects(found, 1)["video"].interval
    assert low < 0.1 < high
    low, high = effects(found, 2)["new"].interval
    assert low < 0.3 < high < 0.35
    assert ratio.summaries[1].mean == pytest.approx(1.3, abs=0.03)
    assert {(one.arm, one.over) for one in ratio.against_best} == {("old", "new"), ("video", "new")}
    low, high = ratio.against_best[0].interval
    assert low < -0.3 < high < 0.0
    assert ratio.against_best[0].verdict == "worse"
    # All pairs are in it, so that it is wider than against the reference arm alone.
    assert high - low > np.diff(effects(found, 2)["new"].interval)[0]
    assert {one.verdict for one in guard.effects} == {"reference", "safe"}
    assert all(one.more_rows is None for one in guard.effects)


def test_a_guardrail_that_is_broken_is_in_the_sentence():
    found = analyse(
        log(gaps=(0.0, 2.0, 0.0)), **ASKED, guardrails=[Guardrail("clicks", 0.1, "lower")], reference="new"
    )
    assert "'old' hurts 'clicks' by more than 0.1" in found.sentence
    assert effects(found, 1)["old"].verdict == "harmed"


@pytest.mark.parametrize(("worse", "verdict"), [("higher", "harmed"), ("lower", "safe")])
def test_more_may_be_worse(worse, verdict):
    found = analyse(LOG, **ASKED, guardrails=[Guardrail("bought", 0.01, worse)])
    assert effects(found, 1)["video"].verdict == verdict
    assert found.metrics[1].margin == (0.01 if worse == "higher" else -0.01)


def test_segments_and_whether_they_differ():
    table = LOG.to_pydict()
    moved = np.array(table["spent"]) + 2.0 * (np.array(table["country"]) == "fr") * (
        np.array(table["page"]) == "new"
    )
    found = analyse(LOG.set_column(2, "spent", pyarrow.array(moved)), **ASKED, segment="country")
    assert [one.segment for one in found.segments] == ["de", "fr"]
    assert sum(one.rows for one in found.segments) == 12_000
    new, video = found.heterogeneity
    assert new.apart == (("de", "fr"),)
    assert new.p_value < 1e-6
    assert video.apart == ()
    assert video.p_value > 1e-4


def test_without_time_the_log_is_looked_at_once():
    asked = {name: value for name, value in ASKED.items() if name != "time"}
    found = analyse(LOG, **asked)
    assert "no time column was named" in found.notes[0]
    assert found.metrics[0].mode.startswith("ordinary fixed-sample intervals")
    one, spent, page = effects(found)["video"], LOG["spent"].to_numpy(), np.array(LOG["page"].to_pylist())
    a, b = (spent[page == label] for label in ("old", "video"))
    error = np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert one.estimate == pytest.approx(b.mean() - a.mean(), abs=0.2 * error)
    # The gaps of three pairs share the level.
    assert np.diff(one.interval)[0] / 2 == pytest.approx(2.3940 * error, rel=0.02)
    assert one.interval == one.fixed


def test_a_look_inside_the_first_bucket_spends_nothing():
    # An ordinary interval of the first hour, and the sequence of all hours after it, would spend δ twice.
    first = LOG.set_column(0, "at", [pyarrow.array(np.full(12_000, 1_760_000_000), pyarrow.timestamp("s"))])
    found = analyse(first, **ASKED)
    assert {one.verdict for one in found.metrics[0].effects} == {"reference", "undecided"}
    assert [one.interval for one in found.metrics[0].effects[1:]] == [(None, None)] * 2
    assert found.sentence.startswith("Nothing can be said of 'spent' yet: too few rows after the first, ")
    assert found.notes[0].startswith("all rows are in one bucket (hour), and the first only tells level")
    assert "fixed=True" in found.notes[0]
    once = analyse(first, **ASKED, fixed=True)
    assert effects(once)["video"].verdict == "better"


def test_fixed_intervals_are_narrower():
    always, once = analyse(LOG, **ASKED), analyse(LOG, **ASKED, fixed=True)
    assert effects(once)["video"].interval == effects(always)["video"].fixed
    assert np.diff(effects(once)["video"].interval) < 0.8 * np.diff(effects(always)["video"].interval)


def test_other_probabilities_are_valued():
    found = analyse(LOG, **ASKED, value={"video": 1.0})
    assert found.value.interval[0] < 0.8 * 0.5 < found.value.interval[1]
    assert found.value.interval[0] > 0


def test_other_methods_stand_beside_ours_at_the_same_level():
    found = analyse(LOG, **ASKED, metrics=["bought"], compare=True)
    alone = analyse(LOG, **(ASKED | {"delta": 0.025}), compare=True)
    assert len(found.rivals) >= 12
    assert found.rivals == alone.rivals


def test_bounds_make_intervals_exact_and_must_hold():
    found = analyse(LOG, **ASKED, bounds=(-10.0, 30.0))
    assert found.metrics[0].mode.startswith("exact for values from -10 to 30")
    with pytest.raises(InputError, match=r"bounds=\(0.0, 1.0\) do not hold column 'spent'"):
        analyse(LOG, **ASKED, bounds=(0.0, 1.0))
    with pytest.raises(ParameterError, match="leave out one of the two"):
        analyse(LOG, **ASKED, bounds=(-10.0, 30.0), covariates=["before"])


def test_numbers_that_were_0_and_1_so_far_are_not_taken_as_bounded():
    asked = ASKED | {"reward": "bought"}
    found = analyse(LOG, **asked)
    assert found.metrics[0].mode.startswith("asymptotic")
    (note,) = found.notes
    assert note.startswith("'bought' has held only 0 and 1 so far")
    assert "bounds=(0, 1) (--bounds 0 1)" in note
    declared = analyse(LOG, **asked, bounds=(0, 1))
    assert declared.metrics[0].mode.startswith("exact for values from 0 to 1")
    assert declared.notes == ()
    assert analyse(LOG, **asked, asymptotic=True).notes == ()


def test_the_note_names_the_metric_that_could_be_declared():
    found = analyse(LOG, **ASKED, metrics=["bought"])
    assert "bounds={'bought': (0, 1)} (--range bought=0:1)" in found.notes[0]


def test_booleans_are_bounded_by_their_type_unless_a_unit_adds_them_up():
    asked = ASKED | {"reward": "bought"}
    place = LOG.column_names.index("bought")
    log = LOG.set_column(place, "bought", LOG["bought"].cast(pyarrow.bool_()))
    found = analyse(log, **asked)
    assert found.metrics[0].mode.startswith("exact for values from 0 to 1")
    assert found.notes == ()
    assert analyse(log, **asked, asymptotic=True).metrics[0].mode.startswith("asymptotic")
    users = log.append_column("user", pyarrow.array(np.arange(len(log)) // 2))
    by_user = analyse(users, **asked, unit="user")
    assert by_user.metrics[0].mode.startswith("asymptotic")


def test_bounds_of_what_is_no_metric_are_refused():
    with pytest.raises(ParameterError, match="bounds: 'spend' is not a metric; did you mean 'spent'"):
        analyse(LOG, **ASKED, bounds={"spend": (0.0, 1.0)})
    with pytest.raises(ParameterError, match="of 'spent' must be two finite numbers"):
        analyse(LOG, **ASKED, bounds={"spent": 1.0})


def test_a_wrong_split_is_an_alarm_that_comes_first():
    found = analyse(LOG, **(ASKED | {"split": "equal"}))
    assert found.sentence.startswith("Do not act on these effects yet: Arms did not come up as often")
    assert found.alarms


def test_progress_is_told():
    seen = []
    analyse(LOG, **ASKED, progress=lambda *given: seen.append(given))
    assert seen == [(0, 2, "reading the log"), (1, 2, "computing"), (2, 2, "done")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rewards": "spent"}, "argument='rewards'"),
        ({"delta": 0.0}, "delta"),
        ({"quantiles": {"bought": 0.95}}, r"quantiles={'bought': 0.95} must be a list of Quantile"),
        ({"guardrails": "bought"}, "guardrails='bought' must be a list of Guardrail"),
        ({"delta": 0.95}, "delta=0.95 lets claims be wrong .* give 0.05"),
        ({"baseline": "best"}, "baseline='best'"),
        ({"reward": None}, "reward= must name the column"),
        ({"reference": "older"}, "older"),
        ({"bounds": (1.0, 0.0)}, "smaller first"),
    ],
)
def test_what_cannot_be_asked_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        analyse(LOG, **(ASKED | given))


def test_one_arm_is_not_enough():
    only = LOG.filter(pyarrow.compute.equal(LOG["page"], "old"))
    with pytest.raises(InputError, match="only the arm 'old'"):
        analyse(only, arm="page", reward="spent", time="at", split={"old": 1.0})


def test_units_with_several_rows_are_counted_once():
    rng = np.random.default_rng(3)
    unit = rng.integers(0, 3000, 12_000)
    page = np.array(["a", "b"])[(unit % 2)]
    page[:40] = "a"
    rows = pyarrow.table(
        {"at": np.arange(12_000), "user": unit, "page": page, "spent": rng.random(12_000) + (page == "b")}
    )
    found = analyse(rows, arm="page", reward="spent", time="at", split="equal", unit="user", bucket=500)
    units = next(one for one in found.diagnostics if one.name == "units")
    assert found.rows == len(np.unique(unit)) == units.details["units"]
    assert 5 < units.details["several"] <= 40
    assert effects(found)["b"].verdict == "better"
    note = analyse(rows, arm="page", reward="spent", time="at", split="equal", bucket=500).notes
    assert any("user" in one for one in note)


def test_a_live_experiment_is_a_source():
    rng, clock = np.random.default_rng(2), [1_760_000_000.0]
    pages = Experiment.memory(
        ArmSet.one_hot(2, labels=["a", "b"]), rewards=(0, 1), key="0" * 32, clock=lambda: clock[0]
    )
    for _ in range(600):
        clock[0] += 600.0
        proposal = pages.ask()
        pages.tell(proposal.id, float(rng.random() < (0.9 if proposal.label == "b" else 0.2)))
    found = analyse(pages, missing="drop")
    pages.close()
    assert (found.reference, found.rows) == ("a", 600)
    assert effects(found)["b"].verdict == "better"


def delayed(silence="zero", proposals=1500):
    return paid_late(np.random.default_rng(4), proposals, silence=silence)


def test_draws_whose_rewards_are_awaited_are_not_analysed():
    pages = delayed()
    settled = pages.report().settled
    found = analyse(pages)
    assert 700 < settled < 800
    assert found.rows == settled
    assert f"{1500 - settled:,} draws whose rewards are still awaited are left out" in found.notes
    assert effects(found)["b"].verdict == "undecided"
    assert found.metrics[0].mode.startswith("exact for values from 0 to 2")


def test_an_export_is_read_as_far_as_it_is_settled(tmp_path):
    pages = delayed(proposals=900)
    pages.export(tmp_path / "log.csv")
    found = analyse(tmp_path / "log.csv", format="export")
    assert found.rows == pages.report().settled


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("silence", ["zero", "missing"])
def test_an_export_is_analysed_unaided_as_the_experiment_itself_is(silence, kind, tmp_path):
    now = [1_760_000_000.0]
    pages = Experiment.memory(
        ArmSet.one_hot(2, labels=["a", "b"]),
        rewards=(0, 1),
        metrics=[Metric("seconds", rewards=(0, 9))],
        guardrails=[Guardrail("seconds", margin=1.0, worse="higher")],
        window="1h",
        silence=silence,
        holdout=0.1,
        key="0" * 32,
        clock=lambda: now[0],
    )
    random = np.random.default_rng(5)
    for _ in range(100):
        now[0] += 60.0
        for proposal in pages.ask_many(20):
            if random.random() < (0.1, 0.3)[proposal.arm]:
                pages.tell(proposal.id, {"reward": 1.0})
            if random.random() < 0.5:
                pages.tell(proposal.id, {"seconds": 4.0})
    report = pages.report()
    path = tmp_path / f"log.{kind}"
    pages.export(path)
    for asked in ({}, {"metrics": ["seconds"]}):
        # What a file cannot know is the declared range.
        own = analyse(pages, bounds={}, **asked)
        other = analyse(path, format="export", **asked)
        assert other.rows == own.rows
        for metric, same in zip(own.metrics, other.metrics, strict=True):
            assert same.summaries == metric.summaries
            assert same.effects == metric.effects
        assert not [note for note in other.diagnostics if note.status == "alarm"]
    found = analyse(path, format="export")
    counted = [arm.settled - (arm.silent if silence == "missing" else 0) for arm in report.arms]
    assert [summary.rows for summary in found.metrics[0].summaries] == counted
    rates = [1.0, 1.0] if silence == "missing" else [1.0 - arm.silent / arm.settled for arm in report.arms]
    assert [summary.mean for summary in found.metrics[0].summaries] == pytest.approx(rates, rel=1e-12)


def test_silence_means_what_the_experiment_says():
    found = analyse(delayed("missing", 900))
    assert found.metrics[0].summaries[0].mean == 1.0
    assert analyse(delayed("missing", 900), covariates=["plan"]).metrics[0].mode.startswith("asymptotic")


@pytest.mark.parametrize("bounds", [None, (-10.0, 30.0)])
def test_the_run_of_today_is_the_beginning_of_that_of_tomorrow(bounds):
    hour = LOG["at"].cast(pyarrow.int64()).to_numpy() // 3600
    until = np.searchsorted(hour, hour[0] + 150)  # the end of a bucket, fewer than are shown
    later = np.searchsorted(hour, hour[0] + 190)
    today, tomorrow = (analyse(LOG.slice(0, int(end)), **ASKED, bounds=bounds) for end in (until, later))
    assert (
        today.bucket_rule == tomorrow.bucket_rule == {"width": 3600.0, "origin": 0.0, "doubles_after": None}
    )
    before, after = today.metrics[0].history, tomorrow.metrics[0].history
    assert 100 < len(before) < len(after)
    for one, other in zip(before, after, strict=False):
        assert (one.time, one.rows) == (other.time, other.rows)
        for part in ("estimates", "lows", "highs"):
            found = np.array([getattr(moment, part) for moment in (one, other)], dtype=float)
            np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)


def spending(rows=6_000):
    """Return a log in which one order dwarfs all others."""
    rng = np.random.default_rng(3)
    arm = rng.choice(3, rows, p=list(SPLIT.values()))
    spent = np.where(rng.random(rows) < 0.05 + 0.1 * (arm == 2), rng.uniform(10.0, 20.0, rows), 0.0)
    spent[3_007] = 300.0
    return pyarrow.table({"at": np.arange(rows) // 50, "page": LABELS[arm], "spent": spent})


@pytest.mark.parametrize("once", [True, False])
def test_intervals_that_wait_for_large_values_say_so_and_how_long(once):
    asked = {**ASKED, "time": None} if once else ASKED
    found = analyse(spending(), **asked)
    video = effects(found)["video"]
    assert (video.interval, video.lift, video.verdict) == ((None, None), (None, None), "undecided")
    assert video.more_rows[0] > 1_000  # the gap is clear: what is waited for are events
    # What cannot be bounded is not recommended, and its gap is not in the sentence.
    assert found.sentence.startswith("Too early: after 6,000 rows no gap of 'spent' has an interval")
    assert "more may be enough" in found.sentence
    assert "+" not in found.sentence
    assert "∞ (∞" not in str(found)
    (note,) = [note for note in found.notes if "has no intervals yet" in note]
    assert "a few large values (up to 300) carry most of the spread" in note
    assert "of the largest, and intervals wait for" in note
    assert "--cap spent=LIMIT" in note
    capped = analyse(spending(), **asked, caps={"spent": 50.0})
    assert effects(capped)["video"].verdict == "better"
    assert not any("has no intervals yet" in note for note in capped.notes)


def test_of_further_metrics_nobody_has_said_which_side_is_good():
    text = str(analyse(LOG, **ASKED, metrics=["bought"], ratios=[Ratio("clicks", "visits")]))
    reward, _, rest = text.partition("bought: gaps to")
    assert "better" in reward
    assert "can be dropped, proven worse" in reward
    assert "higher" in rest
    assert "against 'video', which is highest" in rest
    for word in ("better", "worse", "dropped"):
        assert word not in rest


def test_plain_means_that_point_the_other_way_are_named():
    rng = np.random.default_rng(8)
    share = np.repeat([0.1, 0.9], 3000)  # of the new page, while the level falls by 4
    is_new = rng.random(6000) < share
    spent = np.where(share > 0.5, 1.0, 5.0) + 0.1 * is_new + 0.05 * rng.standard_normal(6000)
    table = pyarrow.table(
        {
            "page": np.where(is_new, "new", "old"),
            "spent": spent,
            "at": np.arange(6000) // 100,
            "new": share,
            "old": 1.0 - share,
        }
    )
    asked = {"arm": "page", "reward": "spent", "time": "at", "reference": "old"}
    found = analyse(table, **asked, probabilities=["old", "new"])
    assert effects(found)["new"].estimate == pytest.approx(0.1, abs=0.02)
    [note] = [one for one in found.notes if one.startswith("plain means")]
    assert "mix times in which the baseline and the shares of arms were different" in note
    assert not [one for one in analyse(LOG, **ASKED).notes if one.startswith("plain means")]
    # The jump is a single large residual, so that no interval is known, and none is claimed.
    assert effects(found)["new"].interval == (None, None)
    assert "the gap of 'new' over 'old' is estimated at +0.12, without an interval yet" in note


def test_a_plain_mean_above_that_of_the_best_arm_is_named():
    rng = np.random.default_rng(8)
    phase = np.repeat([0, 1], 3000)
    shares = np.array([[0.3, 0.6, 0.1], [0.05, 0.05, 0.9]])[phase]  # of the best most while the level is low
    arm = (rng.random((6000, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)
    labels = np.array(["old", "other", "best"])
    spent = np.where(phase == 0, 5.0, 3.0) + np.array([0.0, 0.1, 0.3])[arm] + 0.5 * rng.standard_normal(6000)
    columns = {"page": labels[arm], "spent": spent, "at": np.arange(6000) // 100}
    columns |= {f"p:{label}": shares[:, place] for place, label in enumerate(labels)}
    asked = {"arm": "page", "reward": "spent", "time": "at", "probabilities": [f"p:{one}" for one in labels]}
    found = analyse(pyarrow.table(columns), **asked)
    assert found.metrics[0].against_best[0].over == "best"
    [note] = [one for one in found.notes if one.startswith("plain means")]
    assert "for 'other' and " in note
    assert "where the gap of 'other' over 'best' is -0.17 (-0.27 to -0.07)" in note
    # Of the best and the reference arm once, although it stands in both tables.
    assert note.count("'old'") == 2


def test_the_first_sentence_names_the_two_arms_whose_gap_is_the_closest():
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 3, 3000)
    rewards = np.array([0.0, 0.1, -1.0])[arms] + rng.normal(size=3000)
    log = pyarrow.table(
        {"at": np.arange(3000) // 100, "arm": np.array(list("abc"))[arms], "y": rewards},
    )
    found = analyse(log, arm="arm", reward="y", time="at", split="equal")
    assert "'c' can be dropped; 2 are left. If this split goes on, " in found.sentence
    assert " more rows decide on the gap of 'b' over 'a' (" in found.sentence
    # More rows are for those who may look again.
    once = "are for one look at a size fixed beforehand, and it did not decide"
    assert not any(once in note for note in found.notes)
    fixed = analyse(log, arm="arm", reward="y", time="at", split="equal", fixed=True)
    assert any(once in note for note in fixed.notes)


def test_a_leader_of_whom_too_little_is_known_is_not_said_to_look_best():
    rng = np.random.default_rng(5)
    arms = rng.choice(3, 3000, p=[0.495, 0.495, 0.01])
    paid = (rng.random(3000) < np.array([0.1, 0.1, 0.6])[arms]).astype(float)
    log = pyarrow.table({"at": np.arange(3000) // 200, "arm": np.array(list("abc"))[arms], "paid": paid})
    split = {"a": 0.495, "b": 0.495, "c": 0.01}
    found = analyse(log, arm="arm", reward="paid", time="at", split=split)
    assert effects(found)["b"].interval != (None, None)
    assert "How many more rows would decide cannot be foreseen: the gap of " in found.sentence
    assert found.sentence.endswith(f"over 'c' has no interval yet ('c' has {int((arms == 2).sum())} rows).")
    assert "against 'c', whose estimate is the highest (all pairs at once)" in str(found)


def test_one_large_value_of_an_arm_that_is_drawn_rarely_explains_missing_intervals():
    rng = np.random.default_rng(0)
    rows = 4000
    arms = np.where(rng.random(rows) < 0.02, "c", "a")
    rewards = rng.normal(size=rows)
    rewards[np.flatnonzero(arms == "c")[10]] = 7.0
    log = pyarrow.table({"at": np.arange(rows) // 100, "arm": arms, "y": rewards})
    found = analyse(log, arm="arm", reward="y", time="at", split={"a": 0.98, "c": 0.02})
    assert found.metrics[0].effects[1].interval == (None, None)
    (note,) = [note for note in found.notes if "has no intervals yet" in note]
    # Of all values together, 7² is less than a fiftieth of the spread.
    assert "a few large values (up to 7) carry most of the spread of its gaps: it is that of " in note
    assert float(note.split("it is that of ")[1].split()[0]) < 10


def test_lifts_that_are_far_less_certain_than_gaps_are_explained():
    rng = np.random.default_rng(4)
    share = np.repeat([0.01, 0.5], 4000)  # of the new page
    is_new = rng.random(8000) < share
    columns = {
        "page": np.where(is_new, "new", "old"),
        "paid": rng.random(8000) < 0.3 + 0.1 * is_new,
        "at": np.arange(8000) // 100,
        "p:old": 1.0 - share,
        "p:new": share,
    }
    asked = {"arm": "page", "reward": "paid", "time": "at", "probabilities": ["p:old", "p:new"]}
    found = analyse(pyarrow.table(columns), **asked)
    (note,) = [one for one in found.notes if one.startswith("the lift over")]
    assert note.startswith("the lift over 'old' of new is much less certain than the gap")
    even = columns | {"p:old": np.full(8000, 0.5), "p:new": np.full(8000, 0.5)}
    even["page"] = np.where(rng.random(8000) < 0.5, "new", "old")
    assert not any(one.startswith("the lift over") for one in analyse(pyarrow.table(even), **asked).notes)


def test_a_reference_that_is_best_is_compared_with_the_next_arm():
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 3, 3000)
    rewards = np.array([2.0, 1.0, 0.0])[arms] + rng.normal(size=3000)
    log = pyarrow.table({"at": np.arange(3000) // 100, "arm": np.array(list("abc"))[arms], "y": rewards})
    found = analyse(log, arm="arm", reward="y", time="at", split="equal")
    assert found.reference == "a"
    assert "'a' is the best arm by 'y'" in found.sentence
    assert " The gap of the next arm, 'b', over it is -1." in found.sentence
    two = pyarrow.table(log.filter(pyarrow.compute.field("arm") != "c").to_pydict())
    found = analyse(two, arm="arm", reward="y", time="at", split="equal")
    assert " The gap of 'b' over it is -1." in found.sentence
