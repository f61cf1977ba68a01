"""Rows with distributions of their own, followed row by row, give what the GROUP BY gives.

The GROUP BY, in which each such row is a group, is the older and simpler way: everything that an analysis
says must be the same, up to rounding.
"""

import numpy as np
import pyarrow as pa
import pytest

from inside.logs import cells_of, open_source
from orthobandit import Guardrail
from orthobandit.errors import CertificateError, OrthobanditError
from orthobandit.logs import analyse, analysis_of
from orthobandit.logs.analysis import _question
from orthobandit.logs.reading import group_by
from orthobandit.verify import verify_file
from plain_data import assert_alike

OWN = {"arm": "arm", "time": "hour", "bucket": 1, "probabilities": ["p_a", "p_b", "p_c"]}


def made(seed, rows=3000, *, hours=60, never=0.0, absent=0.0, repeated=0, scale=1.0):
    """Return a log of three arms; a share of rows cannot draw some arm, and a share has no reward."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1.0, 1.0, 1.0], rows)
    p = 0.02 + 0.94 * p
    none = rng.random(rows)
    p[none < never, 2] = 0.0
    p[none > 1.0 - never / 3.0, 0] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    u = rng.random((rows, 1))
    arm = np.minimum((u > np.cumsum(p, axis=1)).sum(axis=1), 2)
    arm = np.where(p[np.arange(rows), arm] > 0, arm, np.argmax(p, axis=1))
    hour = np.sort(rng.integers(0, hours, rows))
    reward = scale * (3.0 * np.sin(hour / 7.0) + 0.4 * arm + rng.normal(size=rows))
    paid = (rng.random(rows) < 0.3 + 0.1 * (arm == 1)).astype(float)
    gone = rng.random(rows) < absent
    return pa.table(
        {
            "hour": hour,
            "arm": np.array(["a", "b", "c"])[arm],
            "p_a": p[:, 0],
            "p_b": p[:, 1],
            "p_c": p[:, 2],
            "reward": pa.array(reward, mask=gone),
            "paid": paid,
            "country": np.array(["x", "y", "z"])[rng.integers(0, 3, rows)],
            "user": np.arange(rows) // (2 if repeated else 1) if repeated else np.arange(rows) * 7919 % rows,
        }
    )


def both(monkeypatch, log, **asked):
    """Return what both ways say of a log."""
    monkeypatch.setattr(group_by, "MOST_FEEDS", 10)
    monkeypatch.setattr(group_by, "MOST_NUMBERS", 10)
    question = _question(OWN | asked)
    found = []
    for by_row in (True, False):
        with open_source(log) as opened:
            gathered = cells_of(opened, question, by_row=by_row)
        assert (gathered.cells.own is not None) == by_row
        found.append(analysis_of(gathered, question))
    return found


CASES = {
    "asymptotic": ({}, {"reward": "reward"}),
    "exact": ({}, {"reward": "paid", "bounds": (0, 1)}),
    "exact, some arms never": ({"never": 0.2}, {"reward": "paid", "bounds": (0, 1)}),
    "some arms never": ({"never": 0.3}, {"reward": "reward"}),
    "many that cannot tell": ({"never": 0.7, "hours": 20}, {"reward": "reward", "reference": "c"}),
    "several metrics": ({}, {"reward": "reward", "metrics": ["paid"], "noninferiority": {"paid": 0.1}}),
    "a guardrail": ({}, {"reward": "paid", "guardrails": [Guardrail("reward", 0.3, "lower")]}),
    "segments": ({"rows": 6000}, {"reward": "reward", "segment": "country"}),
    "rewards missing, counted as zero": ({"absent": 0.1}, {"reward": "reward", "missing": "zero"}),
    "rewards missing, left out": ({"absent": 0.1}, {"reward": "reward", "missing": "drop"}),
    "units": ({"repeated": 2}, {"reward": "reward", "unit": "user"}),
    "units with a window": ({"repeated": 2}, {"reward": "reward", "unit": "user", "window": 3}),
    "capped": ({}, {"reward": "reward", "caps": {"reward": 2.0}}),
    "one look": ({}, {"reward": "reward", "fixed": True}),
    "one look at 0 and 1": ({}, {"reward": "paid", "fixed": True}),
    "one look, exact": ({}, {"reward": "paid", "bounds": (0, 1), "fixed": True}),
    "another baseline": ({}, {"reward": "reward", "baseline": "autoregressive"}),
    "another reference": ({"never": 0.1}, {"reward": "reward", "reference": "b"}),
    "few rows": ({"rows": 150, "hours": 100}, {"reward": "reward"}),
    "a gap that drifts": ({"rows": 4000, "scale": -1.0}, {"reward": "reward", "asymptotic": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_say_what_groups_say(case, monkeypatch):
    shape, asked = CASES[case]
    one, other = both(monkeypatch, made(3, **shape), **asked)
    assert_alike(one.to_json(), other.to_json(), rel=1e-7)


def test_rows_that_even_out_at_the_end_do_not_hide_what_gaps_rest_on(monkeypatch):
    # Twenty draws of the last arm come before the last hour, in which it carries little.
    rng = np.random.default_rng(5)
    p = np.tile([0.49, 0.49, 0.02], (1000, 1))
    p[-15:] = [0.1, 0.1, 0.8]
    p *= 1.0 + 0.01 * rng.random(p.shape)
    p /= p.sum(axis=1, keepdims=True)
    arm = np.arange(1000) % 2
    arm[20::50] = 2
    arm[-15:] = [0, 1, 2] * 5
    log = pa.table(
        {
            "hour": np.minimum(np.arange(1000) // 20, 49),
            "arm": np.array(["a", "b", "c"])[arm],
            **dict(zip(("p_a", "p_b", "p_c"), p.T, strict=True)),
            "reward": rng.normal(size=1000),
        }
    )
    for analysis in both(monkeypatch, log, reward="reward"):
        intervals = {effect.arm: effect.interval for effect in analysis.metrics[0].effects}
        assert None not in intervals["b"]
        assert intervals["c"] == (None, None)


def test_a_file_of_small_parts_gives_the_same(monkeypatch):
    log = made(5, never=0.1, rows=2000)
    whole, _ = both(monkeypatch, log, reward="reward", segment="country")
    monkeypatch.setattr("inside.estimate.CHUNK_ROWS", 7)
    monkeypatch.setattr("inside.logs.BATCH_ROWS", 300)
    parts, groups = both(monkeypatch, log, reward="reward", segment="country")
    assert_alike(parts.to_json(), whole.to_json(), rel=1e-7)
    assert_alike(parts.to_json(), groups.to_json(), rel=1e-7)


def test_rows_may_come_in_any_order(monkeypatch):
    log = made(6, never=0.1, rows=2000)
    mixed = log.take(np.random.default_rng(0).permutation(len(log)))
    one, _ = both(monkeypatch, log, reward="reward")
    other, _ = both(monkeypatch, mixed, reward="reward")
    assert_alike(one.to_json(), other.to_json(), rel=1e-7)


def test_rows_that_share_a_distribution_each_count(monkeypatch):
    """Only how boundaries are tuned differs: the pilot's rows count where the GROUP BY has its groups."""
    log = made(7)
    one, other = both(monkeypatch, pa.concat_tables([log, log.slice(0, 1000)]), reward="paid", bounds=(0, 1))
    for left, right in zip(one.metrics[0].effects, other.metrics[0].effects, strict=True):
        assert left.estimate == pytest.approx(right.estimate, rel=1e-9)
        assert left.interval == pytest.approx(right.interval, rel=0.02)
    assert [note for note in one.notes if "copies" in note] == [
        note for note in other.notes if "copies" in note
    ]
    assert any("copies" in note for note in one.notes)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("p_a", 0.9999, "are not a distribution in 1 rows"),
        ("p_b", None, "are not a distribution in 1 rows"),
        ("arm", "d", "cannot be matched with the 4 arms 'a', 'b', 'c', 'd'"),
        ("arm", None, "is empty in 1 rows"),
        ("hour", None, "is missing in 1 rows"),
        ("reward", None, "missing"),
    ],
)
def test_what_is_wrong_is_said_as_ever(column, value, words, monkeypatch):
    log = made(8, rows=400)
    values = log[column].to_pylist()
    values[100] = value
    place = log.column_names.index(column)
    wrong = log.set_column(place, column, pa.array(values, log[column].type))
    monkeypatch.setattr(group_by, "MOST_FEEDS", 10)
    said = []
    for by_row in (True, False):
        with open_source(wrong) as opened, pytest.raises(OrthobanditError, match=words) as caught:
            cells_of(opened, _question(OWN | {"reward": "reward"}), by_row=by_row)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_short_log_keeps_its_certificate(tmp_path):
    analyse(made(9, rows=300), **OWN, reward="paid", bounds=(0, 1)).save(tmp_path / "certificate.json")
    assert verify_file(tmp_path / "certificate.json").valid


def test_few_distributions_are_grouped(monkeypatch):
    monkeypatch.setattr(group_by, "MOST_FEEDS", 10)
    log = made(10, rows=400)
    for name, p in (("p_a", 0.2), ("p_b", 0.3), ("p_c", 0.5)):
        log = log.set_column(log.column_names.index(name), name, pa.array(np.full(400, p)))
    with open_source(log) as opened:
        assert cells_of(opened, _question(OWN | {"reward": "reward"}), by_row=True).cells.own is None


def test_a_log_without_certificate_says_why(monkeypatch, tmp_path):
    found, _ = both(monkeypatch, made(11, rows=400), reward="reward")
    with pytest.raises(CertificateError, match="pairs of a bucket and a plan"):
        found.save(tmp_path / "certificate.json")
