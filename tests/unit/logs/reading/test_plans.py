"""Arms and the distributions they were drawn from, however these are stated."""

import numpy as np
import pyarrow
import pytest

from logs_samples import LABELS, PLANS, by_key, gathered, made, same
from orthobandit import analyse
from orthobandit.errors import ProbabilityError
from orthobandit.logs.reading import plans

P = tuple(f"p:{label}" for label in LABELS)
LAWS = {
    name: dict(zip(LABELS.tolist(), law.tolist(), strict=True))
    for name, law in zip(("early", "late"), PLANS, strict=True)
}


def test_columns_and_plans_state_the_same(tmp_path):
    expected = by_key(gathered(made(), time="at", probabilities=P))
    same(by_key(gathered(made(), time="at", plan="plan", plans=LAWS)), expected)
    lines = [f"{name},{','.join(map(str, law.values()))}" for name, law in LAWS.items()]
    (tmp_path / "plans.csv").write_text("\n".join(["plan,a,b,c", *lines]))
    same(by_key(gathered(made(), time="at", plan="plan", plans=tmp_path / "plans.csv")), expected)


def test_columns_are_matched_by_name_whatever_their_order(tmp_path):
    (tmp_path / "arms.csv").write_text("label,size\nc,1\na,2\nb,3\n")
    for names in (P, P[::-1]):
        cells = gathered(made(), time="at", probabilities=names, arms=tmp_path / "arms.csv").cells
        assert cells.arms.labels == ("c", "a", "b")
        np.testing.assert_array_equal(cells.plans[cells.plan[0]], PLANS[0][[2, 0, 1]])


def test_columns_of_other_names_are_taken_in_the_order_of_the_arms():
    log = made()
    log = log.rename_columns(
        [name.replace("p:", "share of ").replace(" a", " 1") for name in log.column_names]
    )
    found = gathered(log, time="at", probabilities=("share of 1", "share of b", "share of c"))
    assert "share of 1 for a, share of b for b" in found.notes[0]
    same(by_key(found), by_key(gathered(made(), time="at", probabilities=P)))


def test_of_two_arms_one_column_is_enough():
    p, arm = np.array([0.3, 0.7, 0.9, 0.1]), ["a", "b", "a", "b"]
    log = pyarrow.table({"arm": arm, "bought": np.ones(4), "p": p, "at": [1, 1, 2, 2]})
    cells = gathered(log, probabilities=("p",), time="at").cells
    np.testing.assert_allclose(cells.plans, [[0.3, 0.7], [0.9, 0.1]])
    assert cells.plan.tolist() == [0, 0, 1, 1]


def test_of_many_arms_one_column_is_enough_if_it_is_always_the_same():
    log = pyarrow.table({"arm": ["a", "b", "c", "a"], "bought": np.ones(4), "p": [0.5, 0.3, 0.2, 0.5]})
    np.testing.assert_array_equal(gathered(log, probabilities=("p",)).cells.plans, [[0.5, 0.3, 0.2]])
    log = pyarrow.table({"arm": ["a", "b", "c"], "bought": np.ones(3), "p": [0.5, 0.3, 0.1]})
    with pytest.raises(ProbabilityError, match="do not sum to 1: with more than two arms"):
        gathered(log, probabilities=("p",))


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([2, 10, 2], ("2", "10")),
        ([2.0, 10.0, 2.0], ("2", "10")),
        ([True, False, True], ("false", "true")),
        (["b", "A", "b"], ("A", "b")),
    ],
)
def test_arms_of_every_type_have_labels_in_their_order(values, labels):
    log = pyarrow.table({"arm": values, "bought": np.ones(3)})
    assert gathered(log, split="equal").cells.arms.labels == labels
    assert gathered(log, split=dict.fromkeys(labels, 0.5)).cells.counts.sum() == 3


def test_categories_of_a_frame_are_arms_and_segments():
    log = made().to_pandas()
    expected = by_key(gathered(log, time="at", probabilities=P, segment="country"))
    log["arm"], log["country"] = log["arm"].astype("category"), log["country"].astype("category")
    same(by_key(gathered(log, time="at", probabilities=P, segment="country")), expected)


def test_segments_without_a_value_have_a_name():
    log = pyarrow.table({"arm": ["a", "b", "b"], "bought": np.ones(3), "country": ["de", None, "de"]})
    cells = gathered(log, split="equal", segment="country").cells
    assert cells.segments == ("de", "(missing)")
    assert cells.segment.tolist() == [0, 0, 1]


def test_a_level_of_a_billion_leaves_the_digits():
    rng = np.random.default_rng(8)
    noise = rng.normal(0, 1, 5000)
    log = pyarrow.table({"arm": ["a", "b"] * 2500, "bought": 1e9 + noise})
    cells = gathered(log, split="equal").cells
    for arm in range(2):
        n, s, q = cells.counts[arm], cells.sums[arm, 0], cells.products[arm, 0, 0]
        assert q / n - (s / n) ** 2 == pytest.approx(np.var((1e9 + noise)[arm::2]), rel=1e-6)


def test_booleans_are_numbers():
    log = pyarrow.table({"arm": ["a", "b", "b"], "bought": [True, False, True]})
    found = gathered(log, split="equal")
    assert (found.cells.sums[:, 0].tolist(), found.is_binary.tolist()) == ([1.0, 1.0], [True])


@pytest.mark.parametrize("role", ["reward", "covariates"])
def test_whole_numbers_beyond_those_that_floats_know_are_rounded(role):
    log = pyarrow.table(
        {"arm": ["a", "b", "b"], "bought": [1.0, 0.0, 1.0], "big": [2**60 + 1, 2**60 + 2**20, 7]}
    )
    fields = {"reward": "big"} if role == "reward" else {"covariates": ("big",)}
    cells = gathered(log, split="equal", **fields).cells
    place = cells.columns.index("big")
    totals = cells.sums[:, place] + cells.counts * cells.offset[place]
    np.testing.assert_allclose(totals, [2.0**60, 2.0**60 + 2**20 + 7])


def test_probabilities_of_few_digits_are_divided_by_their_sum_and_it_is_said():
    rows = pyarrow.table(
        {"arm": ["a", "b", "a"], "reward": [0.0, 1.0, 1.0], "p:a": [0.3333333] * 3, "p:b": [0.6666666] * 3}
    )
    found = gathered(rows, arm="arm", reward="reward", probabilities=("p:a", "p:b"))
    assert found.cells.plans.sum() == pytest.approx(1.0, abs=1e-15)
    assert any("were divided by their sums" in note for note in found.notes)


def own_probabilities(rows=800):
    """Return a log in which nearly every row has a distribution of its own, and some have the same."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), rows)
    p[::7] = p[0]
    p = np.maximum(p, 0.02)
    p /= p.sum(axis=1, keepdims=True)
    arm = (rng.random(rows)[:, np.newaxis] > np.cumsum(p, axis=1)).sum(axis=1)
    columns = {f"p:{label}": p[:, place] for place, label in enumerate("abc")}
    reward = rng.normal(size=rows) + 0.5 * arm + np.arange(rows) / 500
    return pyarrow.table({"at": np.arange(rows), "arm": np.array(list("abc"))[arm], "y": reward, **columns})


def test_many_distributions_are_analysed_as_few_are(monkeypatch):
    asked = {"arm": "arm", "reward": "y", "time": "at", "probabilities": P, "bucket": 50}
    log = own_probabilities()
    monkeypatch.setattr("inside.estimate.MANY_PLANS", 10**9)
    slow = analyse(log, **asked)
    monkeypatch.setattr("inside.estimate.MANY_PLANS", 0)
    monkeypatch.setattr(plans, "MOST_FEEDS", 0)  # distributions in another order
    fast = analyse(log, **asked)
    for one, other in zip(slow.metrics[0].effects, fast.metrics[0].effects, strict=True):
        numbers = [
            np.array(
                [each.estimate, *each.interval, *each.fixed, *each.lift], dtype=np.float64
            )  # None is NaN
            for each in (one, other)
        ]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-9, abs=1e-9, nan_ok=True)
        assert other.verdict == one.verdict
    assert [one.status for one in fast.diagnostics] == [one.status for one in slow.diagnostics]


@pytest.mark.parametrize("mixer", [plans.MIXER, np.uint64(0)], ids=["apart", "all the same 64 bits"])
def test_distinct_rows_are_found_in_the_order_of_their_numbers(monkeypatch, mixer):
    monkeypatch.setattr("inside.logs.MIXER", mixer)
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, size=(200, 3)) / 4.0
    rows[:50] *= -0.0
    first, codes = plans._distinct_rows(rows)
    wanted, wanted_codes = np.unique(rows, axis=0, return_inverse=True)
    np.testing.assert_array_equal(rows[first], wanted)
    np.testing.assert_array_equal(codes, wanted_codes.ravel())
