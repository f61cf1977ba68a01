"""Margins by name: shown, not yet, refuted."""

import numpy as np
import pyarrow
import pytest

from orthobandit import Guardrail, analyse
from orthobandit.errors import InputError, ParameterError

ASKED = {"arm": "page", "reward": "bought", "time": "day", "split": "equal", "reference": "old"}


@pytest.fixture(scope="module")
def log():
    """Return a log in which 'new' crashes 5 points more, keeps users, and is as quick."""
    rng = np.random.default_rng(5)
    rows = 12_000
    arm = rng.integers(0, 2, rows)
    return pyarrow.table(
        {
            "day": np.sort(rng.integers(0, 30, rows)),
            "page": np.array(["old", "new"])[arm],
            "bought": rng.random(rows) < 0.2,
            "crashed": rng.random(rows) < 0.05 + 0.05 * arm,
            "returned": rng.random(rows) < 0.5,
            "seconds": rng.normal(3.0, 1.0, rows),
        }
    )


def test_each_margin_is_shown_open_or_refuted(log):
    margins = {"crashed": 0.01, "returned": -0.08, "seconds": 0.03}
    found = analyse(log, **ASKED, noninferiority=margins)
    said = {one.metric: one for one in found.noninferiority}
    assert {name: one.status for name, one in said.items()} == {
        "crashed": "refuted",
        "returned": "shown",
        "seconds": "not yet",
    }
    assert said["crashed"].words.startswith(
        "'new' is not worse than 'old' by more than 1 percentage point in 'crashed': refuted (it is worse by"
    )
    assert "8 percentage points in 'returned': shown" in said["returned"].words
    assert "by more than 0.03 in 'seconds': not yet (it may be worse by up to 0.0" in said["seconds"].words
    # The statements follow from the intervals that are shown, and are part of every form.
    low, high = next(one for one in found.metrics[2].effects if one.arm == "new").interval
    assert found.metrics[2].name == "returned"
    assert -0.08 < low < high
    text = " ".join(str(found).split())
    assert all(" ".join(one.words.split()) in text for one in found.noninferiority)
    assert "refuted" in found.html()
    assert found.to_json()["noninferiority"][0]["status"] == "refuted"
    assert "But 'new' hurts 'crashed' by more than 0.01" in found.sentence


def test_a_margin_of_the_reward_costs_no_part_of_delta(log):
    found = analyse(log, **ASKED, noninferiority={"bought": -0.05})
    assert [one.name for one in found.metrics] == ["bought"]
    assert found.metrics[0].delta == 0.05
    assert [one.status for one in found.noninferiority] == ["shown"]


def test_guardrails_are_margins_as_well(log):
    found = analyse(log, **ASKED, guardrails=[Guardrail("returned", 0.08, worse="lower")])
    assert [(one.metric, one.margin, one.status) for one in found.noninferiority] == [
        ("returned", -0.08, "shown")
    ]


def test_a_margin_beside_that_of_a_guardrail_is_answered_too(log):
    # 'new' crashes 5 points more: that is within 10, and not within 1.
    rail = Guardrail("crashed", margin=0.1)
    found = analyse(log, **ASKED, guardrails=[rail], noninferiority={"crashed": 0.01}).noninferiority
    assert [(one.margin, one.status) for one in found] == [(0.1, "shown"), (0.01, "refuted")]
    same = analyse(log, **ASKED, guardrails=[rail], noninferiority={"crashed": 0.1}).noninferiority
    assert [(one.margin, one.status) for one in same] == [(0.1, "shown")]


def test_margins_must_be_numbers_of_metrics(log):
    for margin in (0.0, float("inf")):
        with pytest.raises(ParameterError, match="must be a finite number other than 0"):
            analyse(log, **ASKED, noninferiority={"crashed": margin})
    with pytest.raises(ParameterError, match=r"noninferiority: 'much' of 'crashed' must be a number"):
        analyse(log, **ASKED, noninferiority={"crashed": "much"})
    with pytest.raises(InputError, match=r"noninferiority='crashes': .*did you mean 'crashed'"):
        analyse(log, **ASKED, noninferiority={"crashes": 0.1})
