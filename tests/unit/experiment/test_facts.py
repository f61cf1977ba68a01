"""Facts of a log survive JSON bit by bit, and refuse what contradicts itself."""

import json
from typing import Any

import numpy as np
import pytest

from inside.policy import PlanRecord
from orthobandit import Plan, Tally
from orthobandit.errors import ParameterError
from orthobandit.estimate import Centre
from orthobandit.experiment.facts import Change, Changed, PlanMade, Restricted, Why

THIRDS = np.array([0.1 + 0.2, 0.35, 0.35])
PLAN = Plan(
    THIRDS,
    500,
    Centre(np.array([0.1, 1 / 3, 0.0]), np.array(-np.inf), np.array(2.0), limit=3.0),
    number=4,
    rivals=[1, 0, -1],
)
RECORD = PlanRecord(
    [True, True, False], 1, -1, np.inf, 2, {"design": THIRDS, "beaten_by": np.array([-1, -1, 1])}
)
TALLY = Tally.of([0, 1, 1], [0.1, 0.2, 1 / 3], count=3)


def made(**fields: Any) -> PlanMade:
    return PlanMade(
        **({"at": 5, "why": "batch", "plan": PLAN, "record": RECORD, "rests_on": {3: TALLY}} | fields)
    )


FACTS = [
    made(),
    made(why="start", rests_on={}),
    Restricted(6.5, 5, 4, (0, 2), np.array([0.25, 0.0, 0.75])),
    Changed(7.0, "retire", "Ada", {"arm": 2}),
    Changed(7.0, "settings", "Python", {"window": 0.1 + 0.2, "names": ["é", "B"]}),
]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_a_fact_survives_json_exactly(fact: Any) -> None:
    text = json.dumps(fact.to_json(), allow_nan=False)
    again = type(fact).from_json(json.loads(text))
    assert json.dumps(again.to_json(), allow_nan=False) == text


def test_a_plan_fact_keeps_what_was_decided_bit_by_bit() -> None:
    again = PlanMade.from_json(json.loads(json.dumps(made().to_json())))
    assert again.record.same_as(RECORD)
    assert again.plan.probabilities.tobytes() == PLAN.probabilities.tobytes()
    assert again.rests_on[3].sums.tobytes() == TALLY.sums.tobytes()
    assert again.why is Why.BATCH


def test_records_that_differ_in_one_bit_are_not_the_same() -> None:
    for change in (
        {"epsilon": 1.0},
        {"stage": 1},
        {"active": [True, False, False]},
        {"details": {"design": np.nextafter(THIRDS, 1), "beaten_by": np.array([-1, -1, 1])}},
        {"details": {"design": THIRDS}},
    ):
        fields = {
            name: getattr(RECORD, name) for name in ("active", "leader", "declared", "epsilon", "stage")
        }
        other = PlanRecord(**(fields | {"details": RECORD.details} | change))
        assert not other.same_as(RECORD), change


def test_what_a_fact_holds_cannot_be_changed() -> None:
    restricted = FACTS[2]
    for array in (RECORD.active, RECORD.details["design"], restricted.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made(why="whim"), "why='whim' is not one of 'start', 'batch', 'change', 'visitor'"),
        (lambda: made(at=np.nan), "at=nan must be a finite number"),
        (lambda: made(plan=Plan([0.5, 0.5], 1, number=4)), "record is of 3 arms and the plan of 2"),
        (lambda: made(plan=Plan(np.ones((2, 3)) / 3, 1)), "the plan has a batch"),
        (lambda: made(rests_on={4: TALLY}), "cannot rest on rounds of plan 4"),
        (lambda: made(rests_on={3: Tally.zeros(4)}), "cannot rest on rounds of plan 3 with 4"),
        (lambda: Restricted(6, 5, 4, (0,), THIRDS), r"arms \[1, 2\] may be drawn and are not available"),
        (lambda: Restricted(6, 5, 4, (2, 0), THIRDS), "in rising order"),
        (lambda: Restricted(6, 5, 4, (), THIRDS), "must name some"),
        (lambda: Restricted(6, 5, 4, (0, 1, 3), THIRDS), "must name some of the 3 arms"),
        (lambda: Restricted(6, 4, 4, (0, 1, 2), THIRDS), "cannot be cut down from plan 4"),
        (lambda: Changed(7, "explode", "Ada", {}), "kind='explode' is not one of"),
        (lambda: Changed(7, "pause", "", {}), "who='' must be a name"),
        (lambda: Changed(7, "settings", "Ada", {"x": float("nan")}), "cannot be kept as JSON"),
        (lambda: PlanRecord([], 0, -1, 0, 0), r"active has shape \(0,\)"),
        (lambda: PlanRecord([True], [0], -1, 0, 0), r"leader has shape \(1,\)"),
        (lambda: PlanRecord([True], 0, -1, 0, 0, {"names": np.array(["A"])}), "numbers or truth values"),
    ],
)
def test_a_fact_that_contradicts_itself_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_changes_have_the_names_that_logs_use() -> None:
    assert {"pause", "resume", "stop", "retire", "extend", "exclude", "ship", "settings"} <= {*Change}
