"""Ratios and lifts that drift are found, and what does not drift raises no alarm."""

from dataclasses import replace

import numpy as np
import pyarrow

from inside.logs import RatioScores, follow_metric
from orthobandit import analyse
from orthobandit.logs import Ratio, checks
from orthobandit.logs.checks import constant_lift, constant_ratios, split_places
from ratio_worlds import HOURS, cells_of_ratio, drawn, lifted, measure, noisy, ramp, ramped


def drifting(rng, before=0.3, after=-0.3):
    """Return rows whose ratio is larger with the new arm at first, and smaller later."""
    plans = ramp(0.3)
    hour, arm = drawn(rng, plans, 400)
    below = rng.poisson(5.0, len(hour)).astype(float)
    above = noisy(rng, 1.0 + np.where(hour < HOURS // 2, before, after) * arm, below)
    return hour, arm, above, below, plans


def test_a_ratio_that_drifts_raises_an_alarm_with_both_intervals():
    found = constant_ratios(
        "n/d", RatioScores.of(cells_of_ratio(*drifting(np.random.default_rng(0))), measure())
    )
    assert found.status == "alarm"
    assert found.details["before"][0] > 0 > found.details["after"][1]
    assert found.words.startswith(
        "Effects change with time: the difference of 'n/d', '1' over '0', was between"
    )


def test_equal_ratios_under_a_ramp_do_not_drift():
    scores = RatioScores.of(ramped(np.random.default_rng(1))[0], measure())
    found = constant_ratios("n/d", scores)
    assert (found.status, found.details["metric"]) == ("fine", "n/d")
    rows = scores.joint.rows[split_places(scores.joint.rows.tolist())]
    assert np.all(rows[1:] >= 2 * rows[:-1])


def test_what_cannot_be_judged_is_said(monkeypatch):
    cells = cells_of_ratio(*drifting(np.random.default_rng(2)))
    few = cells.only(cells.bucket < 1)
    assert constant_ratios("n/d", RatioScores.of(few, measure())).status == "note"
    monkeypatch.setattr(checks, "MOST_PAIRED", 1)
    found = constant_ratios("n/d", RatioScores.of(cells, measure()))
    assert found.words == "Whether differences of 'n/d' drift is not checked with more than 1 arms."


def test_the_alarm_of_a_ratio_reaches_the_sentence():
    hour, arm, above, below, plans = drifting(np.random.default_rng(3))
    table = pyarrow.table(
        {
            "hour": hour,
            "arm": np.array(["a", "b"])[arm],
            "revenue": above,
            "clicks": below,
            "p:a": plans[hour, 0],
            "p:b": plans[hour, 1],
        }
    )
    columns = {"arm": "arm", "reward": "clicks", "time": "hour", "probabilities": ["p:a", "p:b"]}
    found = analyse(table, **columns, ratios=[Ratio("revenue", "clicks")])
    assert [one.name for one in found.alarms] == ["constant ratios"]
    assert found.sentence.startswith("Do not act on these effects yet: Effects change with time")


def test_an_arm_that_multiplies_has_a_constant_lift_though_its_gap_drifts():
    follower = follow_metric(lifted(np.random.default_rng(4)), measure(denominator=None))
    found = constant_lift(follower, "1")
    assert found.status == "note"
    assert found.words.startswith("The lift of '1' over '0' does not drift")


def test_a_lift_that_drifts_raises_an_alarm():
    cells = lifted(np.random.default_rng(5), lift=0.5)
    # The second half as if arms were the other way round: what the new arm multiplied, the old one does.
    late = cells.bucket >= HOURS // 2
    order = np.lexsort((np.where(late, 1 - cells.arm, cells.arm), cells.plan, cells.bucket))
    swapped = replace(cells, arm=np.where(late, 1 - cells.arm, cells.arm), plans=_swapped(cells.plans))
    found = constant_lift(follow_metric(swapped.only(order), measure(denominator=None)), "1")
    assert found.status == "alarm"
    assert "the lift of '1' over '0' was between +" in found.words


def _swapped(plans):
    out = plans.copy()
    out[HOURS // 2 :] = out[HOURS // 2 :, ::-1]
    return out


def test_too_few_rows_say_nothing_of_a_lift():
    cells = lifted(np.random.default_rng(6))
    follower = follow_metric(cells.only(cells.bucket < 2), measure(denominator=None))
    assert constant_lift(follower, "1") is None
