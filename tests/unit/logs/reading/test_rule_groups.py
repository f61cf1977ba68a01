"""The GROUP BY of rules, and logs that it refuses."""

import numpy as np
import pyarrow as pa
import pytest

from inside.logs import open_source
from orthobandit import analyse
from orthobandit.errors import InputError, LabelError, ParameterError, ProbabilityError, RewardError
from orthobandit.logs import Question
from orthobandit.logs.reading.rule_groups import rule_cells_of
from rule_worlds import RULES, cells_by_hand, make

PROBABILITIES = ("p:A", "p:B", "p:C")
WORLD = make(0, "who comes", "own", rows=20)
ASKED = {
    "arm": "page",
    "reward": "bought",
    "time": "t",
    "probabilities": PROBABILITIES,
    "context": ("mobile", "hour"),
    "rules": RULES,
}


def gather(columns, **changed):
    with open_source(pa.table(columns)) as opened:
        return rule_cells_of(opened, Question(**ASKED | changed))


def test_groups_are_those_made_by_hand():
    found = gather(WORLD.columns()).cells
    wanted = cells_by_hand(WORLD)
    for name in ("bucket", "arm", "choice"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name
    for name in ("products", "inverse", "fourfold", "reach", "expected", "scatter", "low", "high"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-9), name
    assert found.times.tolist() == wanted.times.tolist()


def test_a_split_and_named_plans_are_the_same_as_columns():
    world = make(0, "drift", "even", rows=20)
    columns = world.columns() | {"plan": np.array(["first", "second"])[world.bucket % 2]}
    wanted = gather(columns).cells
    law = dict.fromkeys("ABC", 1 / 3)
    changes = [
        {"probabilities": (), "split": "equal"},
        {"probabilities": (), "plan": "plan", "plans": {"first": law, "second": law}},
    ]
    for change in changes:
        found = gather(columns, **change).cells
        assert found.inverse == pytest.approx(wanted.inverse, rel=1e-9)
        assert found.choice.tolist() == wanted.choice.tolist()


def test_the_probability_of_the_drawn_arm_is_enough_for_two_arms():
    rows = {"arm": ["a", "b", "a", "b"], "y": [1.0, 2.0, 3.0, 4.0], "z": [0.0, 1.0, 1.0, 0.0]}
    both = {"p:a": [0.25, 0.5, 0.75, 0.2], "p:b": [0.75, 0.5, 0.25, 0.8]}
    table = pa.table(rows | both | {"p": [0.25, 0.5, 0.75, 0.8]})
    asked = {"arm": "arm", "reward": "y", "context": ("z",)}
    with open_source(table) as opened:
        one = rule_cells_of(opened, Question(**asked, probabilities=("p",))).cells
        two = rule_cells_of(opened, Question(**asked, probabilities=("p:a", "p:b"))).cells
    assert one.inverse == pytest.approx(two.inverse)
    with pytest.raises(ProbabilityError, match="more than two arms"):
        gather(WORLD.columns() | {"p": WORLD.p[:, 0]}, probabilities=("p",))


def test_where_an_arm_could_not_be_drawn_rules_show_the_reference():
    columns = WORLD.columns()
    # In the first bucket A alone could be drawn, in the second A and C.
    first = WORLD.bucket == 0
    second = WORLD.bucket == 1
    keep = ~((first & (WORLD.arm > 0)) | (second & (WORLD.arm == 1)))
    for name, alone, beside in (("p:A", 1.0, 0.5), ("p:B", 0.0, 0.0), ("p:C", 0.0, 0.5)):
        columns[name] = np.where(first, alone, np.where(second, beside, columns[name]))
    found = gather({name: column[keep] for name, column in columns.items()})
    cells = found.cells
    assert np.all(cells.choice[cells.bucket == 0] == 0)
    assert set(cells.choice[cells.bucket == 1].ravel().tolist()) == {0, 2}
    assert found.replaced_rows == int(np.sum(keep & (first | second)))
    personal = analyse(pa.table({name: column[keep] for name, column in columns.items()}), **ASKED)
    assert personal.personal.one_arm_rows == int(np.sum(keep & first))
    assert any("rows had one arm only" in note for note in personal.notes)
    assert any("a rule's arm had the probability 0" in note for note in personal.notes)


def test_digits_that_a_log_has_lost_are_made_up_for():
    columns = WORLD.columns()
    rounded = {name: np.round(columns[name], 7) for name in PROBABILITIES}
    found = gather(columns | rounded)
    assert any("were divided by their sums" in note for note in found.notes)
    assert found.cells.expected.sum() == pytest.approx(len(WORLD.arm), abs=1e-8)


def test_large_offsets_keep_their_digits():
    columns = WORLD.columns()
    far = columns | {"bought": columns["bought"] * 0.3 + 1e8, "hour": columns["hour"] + 1e7}
    rules = {"C late": "C if hour > 10000020 else A"}
    near = analyse(
        pa.table(columns | {"bought": columns["bought"] * 0.3}),
        **ASKED | {"rules": {"C late": "C if hour > 20 else A"}, "asymptotic": True},
    )
    found = analyse(pa.table(far), **ASKED | {"rules": rules, "asymptotic": True})
    for one, other in zip(found.personal.rules, near.personal.rules, strict=True):
        assert one.estimate == pytest.approx(other.estimate, abs=1e-6)
    slope, other = (
        next(one for one in each.personal.effects if one.column == "hour") for each in (found, near)
    )
    assert slope.estimate == pytest.approx(other.estimate, abs=1e-6)


def spoilt(name, row, value):
    column = np.array(WORLD.columns()[name], dtype=object)
    column[row] = value
    kind = pa.string() if name == "page" else pa.float64()
    return WORLD.columns() | {name: pa.array(column.tolist(), kind)}


@pytest.mark.parametrize(
    ("columns", "changed", "error", "words"),
    [
        ({}, {"context": ("mobil",)}, InputError, "context='mobil'.*no such column.*'mobile'"),
        (spoilt("hour", 6, None), {}, InputError, "column of the context 'hour' is missing.*first in row 7"),
        (spoilt("hour", 6, np.nan), {}, InputError, "column of the context 'hour'.*first in row 7"),
        (spoilt("bought", 3, np.inf), {}, RewardError, "metric 'bought' is missing.*first in row 4"),
        (spoilt("p:A", 9, 0.9999), {}, ProbabilityError, "not a distribution in 1 rows, first in row 10"),
        (spoilt("p:A", 9, None), {}, ProbabilityError, "not a distribution in 1 rows, first in row 10"),
        (spoilt("page", 2, "D"), {}, InputError, "page.*'D'.*row 3|cannot be matched"),
        (spoilt("t", 4, np.nan), {}, InputError, "time='t' cannot be read in 1 rows.*first in row 5"),
        (
            {},
            {"rules": {"x": "D if hour < 8 else A"}},
            LabelError,
            "'x'.*'D' is not an arm; arms are A",
        ),
        (
            {},
            {"rules": {"x": "B if age < 8 else A"}},
            ParameterError,
            "'x'.*'age' is not a column of the c",
        ),
        ({}, {"rules": {"x": "B if hour"}}, ParameterError, "rules: 'x'.*ends with a condition"),
        ({}, {"rules": {"A for all": "B"}}, ParameterError, "two rules are named 'A for all'"),
        ({}, {"context": ()}, ParameterError, "name them with context="),
        ({}, {"context": ("hour", "hour")}, ParameterError, "context names the column 'hour' twice"),
        ({}, {"context": ("page",)}, ParameterError, "'page' is named twice, as arm and as context"),
        ({}, {"segment": "mobile", "context": ("hour",), "rules": {}}, ParameterError, "leave out segment"),
        ({}, {"reference": "D"}, LabelError, "reference='D' is not an arm"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name_and_row(columns, changed, error, words):
    with pytest.raises(error, match=words):
        gather(columns or WORLD.columns(), **changed)


def test_an_arm_that_was_drawn_with_probability_0_is_refused():
    columns = WORLD.columns()
    row = int(np.argmax(WORLD.arm == 1))
    for name, p in (("p:A", 0.5), ("p:B", 0.0), ("p:C", 0.5)):
        columns[name] = columns[name].copy()
        columns[name][row] = p
    with pytest.raises(ProbabilityError, match=f"'B' was played in 1 rows .*is 0, first in row {row + 1}"):
        gather(columns)


def test_rows_without_a_value_can_be_left_out_or_count_as_nothing():
    columns = spoilt("bought", 3, None)
    dropped = analyse(pa.table(columns), **ASKED | {"missing": "drop"})
    assert dropped.rows == len(WORLD.arm) - 1
    assert [one.name for one in dropped.diagnostics] == ["sample ratio", "missing"]
    zero = analyse(pa.table(columns), **ASKED | {"missing": "zero"})
    assert zero.rows == len(WORLD.arm)


def test_units_count_once_with_the_context_of_their_first_row():
    columns = WORLD.columns()
    twice = {name: np.concatenate([column, column]) for name, column in columns.items()}
    twice["t"] = np.concatenate([columns["t"], columns["t"] + 100])
    twice["hour"] = np.concatenate([columns["hour"], 23.0 - columns["hour"]])
    twice["unit"] = np.tile(np.arange(len(WORLD.arm)), 2)
    found = gather(twice, unit="unit")
    alone = gather(columns | {"bought": 2.0 * columns["bought"]})
    assert found.cells.products == pytest.approx(alone.cells.products)
    assert found.units.units == len(WORLD.arm)
