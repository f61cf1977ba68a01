"""Checks of a log: what is fine is said to be, what is wrong is found, and in plain words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn, follow
from orthobandit import ArmSet
from orthobandit.logs import Question
from orthobandit.logs.checks import _ratio, constant_gaps, diagnose

ASK = Question("arm", "reward")
EVEN = np.array([[0.5, 0.5]])


def log(seed=0, plans=EVEN, buckets=20, size=200, **world):
    """Return rows of one plan per bucket, the plans in turn."""
    bucket = np.repeat(np.arange(buckets), size)
    return drawn(np.random.default_rng(seed), plans, bucket % len(plans), bucket, **world)


def checked(cells, question=ASK, units=None):
    reference = 0 if question.reference is None else cells.arms.index(question.reference)
    return diagnose(cells, question, follow(cells, reference=reference), units)


def only(cells, name, question=ASK, units=None):
    return [one for one in checked(cells, question, units) if one.name == name]


def skewed(rows, keep, seed=9):
    """Return rows of which a share of arm 1 was lost before it was logged."""
    kept = (rows.arm == 0) | (np.random.default_rng(seed).random(len(rows.arm)) < keep)
    parts = {name: getattr(rows, name)[kept] for name in ("bucket", "plan", "arm", "reward")}
    return replace(rows, **parts)


def test_a_log_as_planned_is_fine_in_every_respect():
    found = checked(cells_of(log()), ASK, SimpleNamespace(units=4000, rows=4000, in_several_arms=1))
    assert [one.name for one in found] == [
        "sample ratio",
        "missing",
        "constant gaps",
        "blind buckets",
        "units",
    ]
    assert {one.status for one in found} == {"fine"}
    assert found[0].words.startswith("Arms came up as often as the probabilities say; furthest off, '")
    assert found[0].details["expected"] == {"0": 2000.0, "1": 2000.0}
    assert sum(found[0].details["rows"].values()) == 4000


def test_lost_rows_of_an_arm_are_an_alarm():
    (found,) = only(cells_of(skewed(log(), 0.7)), "sample ratio")
    assert found.status == "alarm"
    assert found.p_value < 1e-4
    assert "Find out why before you believe any effect." in found.words
    assert "Most of the difference" not in found.words  # it is the same all the time


def test_the_alarm_says_when_rows_were_lost():
    rows = log(buckets=100)
    lost = skewed(rows, 0.3)
    in_time = [(rows, (0, 39)), (lost, (40, 49)), (rows, (50, 99))]
    parts = {
        name: np.concatenate(
            [getattr(one, name)[(one.bucket >= begin) & (one.bucket <= end)] for one, (begin, end) in in_time]
        )
        for name in ("bucket", "plan", "arm", "reward")
    }
    (found,) = only(cells_of(replace(rows, **parts)), "sample ratio")
    assert found.status == "alarm"
    # Buckets are hours since 1970: from the 40th to the end of the 49th.
    assert "Most of the difference arose from 1970-01-02 16:00 to 1970-01-03 02:00." in found.words


def test_rows_without_a_value_were_drawn_all_the_same():
    rows = log()
    rows.lost = (rows.arm == 1) & (np.random.default_rng(1).random(4000) < 0.3)
    found = checked(cells_of(rows))
    assert found[0].status == "fine"
    assert found[0].details["rows"]["1"] == (rows.arm == 1).sum()
    assert found[1].status == "alarm"
    assert found[1].words.startswith(
        "Whether 'reward' is missing depends on the arm, from 0.00% of rows with '0'"
    )
    assert found[1].details["share"]["1"] == pytest.approx(0.3, abs=0.05)


def test_silence_that_is_alike_for_all_arms_is_a_note():
    rows = log()
    rows.lost = np.random.default_rng(2).random(4000) < 0.2
    (found,) = only(cells_of(rows), "missing")
    assert found.status == "note"
    assert found.words.startswith(f"'reward' is missing in {rows.lost.sum():,} of 4,000 rows, from ")


@pytest.mark.parametrize("depends", [False, True])
def test_silence_where_every_row_has_its_own_probabilities(depends):
    rng, size = np.random.default_rng(3), 2000
    plans = rng.dirichlet([5.0, 5.0], size)
    rows = drawn(rng, plans, np.arange(size), np.arange(size) // 100)
    rows.lost = rng.random(size) < np.where(rows.arm == 1, 0.5 if depends else 0.2, 0.2)
    found = checked(cells_of(rows))
    assert (found[0].status, found[1].status) == ("fine", "alarm" if depends else "note")


def test_segments_are_tested_each_and_pay_for_their_number():
    rows = log(4, size=400)
    rows.segment = np.arange(8000) % 2
    lost = (rows.segment == 1) & (rows.arm == 1) & (np.random.default_rng(5).random(8000) < 0.4)
    rows = replace(
        rows, **{name: getattr(rows, name)[~lost] for name in ("bucket", "plan", "arm", "reward", "segment")}
    )
    cells = cells_of(rows, segments=("new", "old"))
    overall, new, old = only(cells, "sample ratio")
    assert (overall.segment, new.segment, old.segment) == (None, "new", "old")
    assert (new.status, old.status) == ("fine", "alarm")
    assert "in segment 'old'" in old.words
    assert "for 2 segments at once" in old.words
    (alone,) = only(replace(cells.of_segment(1), segments=("",)), "sample ratio")
    assert old.p_value == pytest.approx(2 * alone.p_value)


CASES = {"fine": (0.5, False), "slightly off": (0.47, True), "broken": (0.44, True)}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_on_sample_ratios_is_that_of_ssrm_test(case, monkeypatch):
    theirs = pytest.importorskip("ssrm_test.ssrm_test")
    monkeypatch.setattr(np, "Inf", np.inf, raising=False)  # a name that it still uses
    share, wrong = CASES[case]
    rng = np.random.default_rng(6)
    counts = rng.multinomial(1000, [1 - share, share], size=40)
    bucket = np.repeat(np.arange(40), 1000)
    arm = np.concatenate([np.repeat([0, 1], pair) for pair in counts])
    rows = replace(log(), bucket=bucket, plan=0 * bucket, arm=arm, reward=np.zeros(40_000))
    (ours,) = only(cells_of(rows), "sample ratio")
    p_value = theirs.sequential_p_values(counts, [0.5, 0.5])[-1]
    assert (ours.status == "alarm") == (p_value <= 1e-4) == wrong
    # Both average over ratios that may be off, with other priors: log p-values are −2.6 and −1.2, −67 and
    # −56, −263 and −215. Theirs believes the plan as if it had been seen in 10 000 rows.
    assert np.log(ours.p_value) == pytest.approx(np.log(p_value), rel=0.25, abs=2.0)


def test_a_gap_that_turns_is_a_violated_model():
    rows = log(7, size=300, levels=2.0, gaps=[0.0, 1.0])
    rows.reward -= 2.0 * rows.arm * (rows.bucket >= 10)
    cells = cells_of(rows)
    (found,) = only(cells, "constant gaps")
    assert found.status == "alarm"
    assert found.words.startswith("The model is violated: the gap of '1' over '0' was between ")
    assert " until 1970-01-01 0" in found.words
    assert found.details["before"][0] > found.details["after"][1]
    assert found.details["split"] < 11 * 3600.0 <= found.details["found"]
    (named,) = only(replace(cells, is_clock=False), "constant gaps", replace(ASK, reference="1"))
    assert "the gap of '0' over '1'" in named.words
    assert f" until {named.details['split']:g}, and" in named.words


def test_what_cannot_be_checked_is_said():
    (one,) = only(cells_of(log(buckets=1)), "constant gaps")
    assert (one.status, one.words) == (
        "note",
        "Whether gaps drift cannot be checked: all rows are in one bucket.",
    )
    (few,) = only(cells_of(log(buckets=4, size=5)), "constant gaps")
    assert few.words == "Whether gaps drift cannot be told from 20 rows."
    assert (one.status, few.status) == ("note", "note")


@pytest.mark.parametrize(("share", "status"), [(1, "fine"), (5, "note")])
def test_rows_that_cannot_tell_arms_apart_are_counted(share, status):
    plans = np.array([[0.5, 0.25, 0.25]] * (20 - share) + [[0.5, 0.5, 0.0]] * share)
    (found,) = only(cells_of(log(plans=plans)), "blind buckets")
    assert found.status == status
    assert found.words.startswith(f"{share * 5:.1f}% of rows, in {share} of 20 buckets, were drawn from prob")
    assert found.details["by_arm"] == {"1": 0.0, "2": share / 20}


def test_an_arm_that_no_plan_can_tell_is_an_alarm():
    (found,) = only(cells_of(log(plans=np.array([[0.5, 0.5, 0.0]]))), "blind buckets")
    assert found.status == "alarm"
    assert found.words.startswith("The log says nothing of '2': no row was drawn from probabilities that can")


def test_shared_features_tell_arms_that_are_never_drawn():
    line = ArmSet([[0.0], [1.0], [2.0]])
    (found,) = only(cells_of(log(plans=np.array([[0.5, 0.5, 0.0]])), arms=line), "blind buckets")
    assert (found.status, found.words) == ("fine", "Every row can tell all arms from '0'.")


def test_capped_values_are_shown_by_arm():
    cells = cells_of(log())
    cut = np.where(cells.arm == 1, 5, 0)[:, np.newaxis]
    question = replace(ASK, caps={"reward": 3.0, "elsewhere": 1.0})
    (found,) = only(replace(cells, capped=cut), "capped", question)
    assert found.status == "note"
    assert found.words.startswith("2.50% of the values of 'reward' were cut to 3: from 0.00% with '0' to ")
    assert only(cells, "capped", question)[0].status == "fine"
    assert only(cells, "capped") == []


@pytest.mark.parametrize(("several", "status"), [(0, "fine"), (5, "note"), (50, "alarm")])
def test_units_in_several_arms(several, status):
    (found,) = only(
        cells_of(log()), "units", units=SimpleNamespace(units=1000, rows=4000, in_several_arms=several)
    )
    assert found.status == status
    assert found.details == {"units": 1000, "rows": 4000, "several": several}


def test_better_forecasts_find_smaller_drifts():
    rows = log(8, buckets=60, size=100, levels=0.0, gaps=[0.0, 0.5])
    rows.reward += 5.0 * np.sin(rows.bucket / 5.0) - rows.arm * (rows.bucket >= 30)
    cells = cells_of(rows, offset=1.0)
    statuses = [constant_gaps(cells, follow(cells, baseline=name)).status for name in ("mean", "auto")]
    assert statuses == ["fine", "alarm"]


def test_a_log_without_values_is_described_and_not_a_crash():
    rows = log(buckets=3)
    rows.lost = np.ones(600, dtype=bool)
    found = {one.name: one for one in checked(cells_of(rows))}
    assert found["missing"].words.startswith("'reward' is missing in 600 of 600 rows")
    assert found["constant gaps"].status == "note"
    assert found["blind buckets"].status == "fine"


@pytest.mark.parametrize("end", [1, 5, 7, 9, 10, 14, 18, 20, 28])
def test_the_check_of_a_longer_log_goes_on_from_that_of_a_shorter_one(end):
    # The first 5 buckets stand alone, 5 to 9 are taken by twos, 10 to 19 by fours, 20 to 39 by eights.
    cells = cells_of(log(buckets=40, size=40))

    def tested(stop):
        part = cells.only(cells.bucket < stop)
        return _ratio(part, None, 5)[0]

    before = tested(end)
    after = tested(end + 1)
    again = before.and_table(EVEN, (after.observed - before.observed)[np.newaxis])
    assert after.wealth == pytest.approx(again.wealth)
    assert after.p_value == pytest.approx(again.p_value)


@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_a_log_without_time_is_tested_all_the_same(lost):
    rng, zeros = np.random.default_rng(2), np.zeros(4000, dtype=int)
    rows = drawn(rng, [[0.5, 0.5]], zeros, zeros)
    gone = (rows.arm == 1) & (rng.random(4000) < lost)
    rows.bucket, rows.plan, rows.arm, rows.reward = (
        part[~gone] for part in (rows.bucket, rows.plan, rows.arm, rows.reward)
    )
    rows.lost = rng.random(len(rows.arm)) < np.where(rows.arm == 1, 0.1 + lost, 0.1)
    ratio, missing, *_ = diagnose(cells_of(rows), Question("arm", "reward"), follow(cells_of(rows)))
    assert (ratio.status, missing.status) == (("alarm", "alarm") if lost else ("fine", "note"))


def rows_needed(plans, size):
    """Return the fewest buckets of which a log is no longer too short for the sample ratio."""
    for buckets in range(1, 60):
        if only(cells_of(log(1, plans, buckets, size)), "sample ratio")[0].status == "fine":
            return buckets
    return None


def test_three_rows_are_too_early_for_the_sample_ratio():
    (found,) = only(cells_of(log(buckets=3, size=1)), "sample ratio")
    assert (found.status, found.p_value) == ("note", None)
    assert found.words == (
        "Too early to tell whether arms come up as often as the probabilities say: even if all 3 rows had"
        " shown '0', that could be chance."
    )
    assert sum(found.details["rows"].values()) == 3


def test_it_is_fine_from_the_row_on_at_which_one_arm_alone_would_be_an_alarm():
    # One look at one bucket: χ² of n to 0 where n/2 is expected is n, and 15.14 has the p-value 10⁻⁴.
    sizes = [
        size for size in range(2, 30) if only(cells_of(log(1, EVEN, 1, size)), "sample ratio")[0].p_value
    ]
    assert sizes == list(range(16, 30))
    needed = rows_needed(EVEN, 4)
    for buckets, status in ((needed - 1, "note"), (needed, "fine")):
        rows = log(1, EVEN, buckets, 4)
        assert only(cells_of(rows), "sample ratio")[0].status == status
        rows.arm[:] = 0
        assert (_ratio(cells_of(rows), None, 500)[1] <= 1e-4) == (status == "fine")


def test_rows_with_probabilities_that_cross_are_not_too_early_for_ever():
    # All rows with the likelier arm: totals are as planned, so that one arm is followed through all plans.
    assert rows_needed(np.array([[0.9, 0.1], [0.1, 0.9]]), 20) < 20


def test_small_segments_are_named_once():
    rows = log(4)
    rows.segment = np.where(np.arange(4000) < 3990, 0, 1 + np.arange(4000) % 5)
    cells = cells_of(rows, segments=("large", *"abcde"))
    overall, large, small = only(cells, "sample ratio")
    assert (overall.status, large.status, large.segment) == ("fine", "fine", "large")
    assert (small.status, small.segment) == ("note", None)
    assert small.words.startswith("Too early to tell in 5 of 6 segments whether arms")
    assert "'a', 'b', 'c', 'd', 'e'." in small.words


def test_an_alarm_is_raised_however_early_it_is():
    rows = log(buckets=6, size=5, plans=np.array([[1.0 - 1e-6, 1e-6]]))
    assert only(cells_of(rows), "sample ratio")[0].status == "note"
    rows.arm[:] = 1
    assert only(cells_of(rows), "sample ratio")[0].status == "alarm"
