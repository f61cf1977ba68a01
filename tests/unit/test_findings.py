"""Findings and verdicts cannot contradict themselves, and survive JSON."""

import json
from typing import Any

import pytest

from orthobandit.errors import ParameterError
from orthobandit.findings import RECOMMENDED, Finding, Level, Verdict, VerdictKind, worst

LOST = Finding(
    "missing",
    "alarm",
    {"arm": "B", "share": 0.1 + 0.2, "rows": 7, "is_certain": True, "by": None, "days": [1, 2]},
    "B lost 30 % of its rewards.",
    "Mend the beacon.",
    1e-300,
    "signup",
)


def test_a_finding_survives_json_exactly() -> None:
    assert Finding.from_json(json.loads(json.dumps(LOST.to_json(), allow_nan=False))) == LOST


def test_levels_rise_from_fine_to_alarm() -> None:
    assert [level.rank for level in (Level.FINE, Level.NOTE, Level.ALARM)] == [0, 1, 2]
    fine, note = Finding("drift", "fine"), Finding("units", "note", {}, "Units differ.")
    assert worst([fine, note, LOST, note]) is LOST
    assert worst([]) is None


def test_facts_are_copied_and_not_shared() -> None:
    days = [1]
    finding = Finding("gaps", "fine", {"days": days})
    days.append(2)
    assert finding.facts["days"] == [1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "Sample ratio"}, "must be like 'sample-ratio'"),
        ({"level": "panic"}, "level='panic' must be one of fine, note, alarm"),
        ({"level": "alarm", "sentence": ""}, "needs a sentence"),
        ({"facts": {"gap": float("nan")}}, "cannot be a fact"),
        ({"facts": {"gap": float("inf")}}, "cannot be a fact"),
        ({"facts": {"arms": {1: "A"}}}, "cannot be a fact"),
        ({"facts": {"gap": (1.0, 2.0)}}, "of type tuple cannot be a fact"),
        ({"p_value": 1.5}, "p_value=1.5"),
        ({"p_value": float("nan")}, "p_value=nan"),
    ],
)
def test_a_finding_that_cannot_mean_anything_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Finding(**({"name": "drift", "level": "note", "sentence": "It drifts."} | fields))


@pytest.mark.parametrize("kind", VerdictKind)
def test_only_a_recommendation_names_something(kind: VerdictKind) -> None:
    roles = RECOMMENDED.get(kind, ())
    for role in roles:
        verdict = Verdict(kind, "Words.", **{role: "B"}, risk=0.05)
        assert verdict.names == "B"
        assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict
    if not roles:
        assert Verdict(kind, "Words.").names is None
    for role in {"arm", "rule"} - {*roles}:
        with pytest.raises(ParameterError, match=r"cannot name 'B'|must name one"):
            Verdict(kind, "Words.", **{role: "B"})


def test_no_verdict_but_a_recommendation_states_a_risk() -> None:
    with pytest.raises(ParameterError, match=r"risk=0.05 of a verdict 'go-on' means nothing"):
        Verdict("go-on", "Go on.", risk=0.05)
    with pytest.raises(ParameterError, match=r"risk=1.0 of a verdict 'show'"):
        Verdict("show", "Show 'B'.", arm="B", risk=1.0)


def test_a_recommendation_names_one_thing_alone() -> None:
    with pytest.raises(ParameterError, match="must name one arm or rule, and no more"):
        Verdict("hold", "Hold.", arm="B", rule="B for all")
    with pytest.raises(ParameterError, match="must name one arm, and no more"):
        Verdict("show", "Show.")
