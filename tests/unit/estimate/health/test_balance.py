"""Sample ratio, missing rewards and constancy of gaps: small cases by hand."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet, Bounded, Plan, Tally
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate.health.balance import BELIEF, Missing, SampleRatio
from orthobandit.estimate.health.constancy import Constancy


def test_the_first_bucket_says_nothing_and_the_second_what_the_first_suggests():
    ratio = SampleRatio.start(2).and_of([0.5, 0.5], [30, 10])
    assert ratio.p_value == 1.0
    again = ratio.and_of([0.25, 0.75], [20, 20])
    wealth = []
    for kappa in BELIEF:
        raised = np.array([30 + kappa, 10 + kappa]) / (20 + kappa)
        q = np.array([0.25, 0.75]) * raised
        q /= q.sum()
        wealth.append((q[0] / 0.25) ** 20 * (q[1] / 0.75) ** 20)
    assert again.p_value == pytest.approx(1 / np.mean(wealth))
    assert again.observed.tolist() == [50, 30]
    assert again.expected.tolist() == [30.0, 50.0]


def test_wealth_is_one_on_average_over_the_draws():
    past = SampleRatio.start(3).and_of([0.2, 0.3, 0.5], [9, 1, 4])
    p = np.array([0.6, 0.1, 0.3])
    each = [np.exp(past.and_of(p, np.eye(3, dtype=int)[a]).wealth) for a in range(3)]
    assert np.allclose(p @ each, np.exp(past.wealth))


def test_the_p_value_never_rises_again():
    ratio, last = SampleRatio.start(2), 1.0
    for counts in ([60, 40], [60, 40], [40, 60], [10, 90], [50, 50]):
        ratio = ratio.and_of([0.5, 0.5], counts)
        assert ratio.p_value <= last
        last = ratio.p_value


def test_what_cannot_happen_is_an_alarm_at_once():
    ratio = SampleRatio.start(2).and_of([1.0, 0.0], [5, 1])
    assert ratio.alarm
    assert ratio.p_value == 0.0
    assert SampleRatio.from_json(json.loads(json.dumps(ratio.to_json()))).p_value == 0.0


def test_arms_that_come_later_begin_with_nothing():
    ratio = SampleRatio.start(2).and_of([0.5, 0.5], [5, 5]).and_of([0.2, 0.3, 0.5], [2, 3, 5])
    assert ratio.observed.tolist() == [7, 8, 5]
    missing = Missing.start(2).and_of([5, 5], [1, 1]).and_of([5, 5, 5], [1, 1, 0])
    assert missing.drawn.tolist() == [10, 10, 5]


def test_silence_is_compared_with_what_was_drawn_not_with_the_plan():
    missing = Missing.start(2)
    for _ in range(50):
        missing = missing.and_of([900, 100], [90, 10])
    assert not missing.alarm
    assert missing.p_value > 0.5
    assert missing.shares.tolist() == [0.1, 0.1]
    assert missing.ratio.expected == pytest.approx([4500.0, 500.0])
    assert missing.and_of([0, 0], [0, 0]) is missing


@pytest.mark.parametrize("start", [SampleRatio.start(2), Missing.start(2)])
def test_counts_that_cannot_be_are_named(start):
    first = [0.5, 0.5] if isinstance(start, SampleRatio) else [5, 5]
    for wrong in ([1], [1, -1], [0.5, 1.0]):
        with pytest.raises(TallyError, match="must be 2 whole numbers of at least 0"):
            start.and_of(first, wrong)
    with pytest.raises(TallyError, match=r"silent\[1\]=6 is more than the 5 that were drawn"):
        Missing.start(2).and_of([5, 5], [1, 6])
    with pytest.raises(TallyError, match=r"probabilities have shape \(1,\); \(2,\) or more"):
        SampleRatio.start(2).and_of([1.0], [3])


def test_states_survive_json_to_the_last_digit():
    ratio = SampleRatio.start(3).and_of([0.2, 0.3, 0.5], [3, 3, 1]).and_of([0.2, 0.3, 0.5], [7, 3, 1])
    data = json.loads(json.dumps(ratio.to_json()))
    assert SampleRatio.from_json(data).to_json() == ratio.to_json()
    missing = Missing.start(2).and_of([7, 3], [2, 1]).and_of([7, 3], [2, 1])
    assert Missing.from_json(json.loads(json.dumps(missing.to_json()))).to_json() == missing.to_json()


def watched(gaps, rounds=100, feeds=40, confidence=None, seed=0, arms=2):
    """Return a test that saw feeds with the gap of the last arm given by feed."""
    rng, test = np.random.default_rng(seed), Constancy.start(ArmSet.one_hot(arms), 0, confidence, alpha=0.01)
    for n in range(feeds):
        centre = None if confidence is None else test.sequence.centre()
        plan = Plan(np.full(arms, 1 / arms), rounds, centre)
        drawn = rng.integers(0, arms, rounds)
        means = 0.5 + gaps(n) * (drawn == arms - 1) / 2
        rewards = (rng.random(rounds) < means).astype(float)
        test = test.and_of(
            plan, Tally.of(drawn, plan.residuals(drawn, rewards, 0.5 if centre else 0.0), arms)
        )
        yield test


@pytest.mark.parametrize("confidence", [None, Bounded(0.0, 1.0)])
@pytest.mark.parametrize("arms", [2, 4])
def test_a_gap_that_changes_sign_is_found_and_named(confidence, arms):
    *_, test = watched(lambda n: 0.8 if n < 20 else -0.8, confidence=confidence, arms=arms)
    assert test.alarm
    drift = test.found
    assert (drift.arm, drift.reference) == (arms - 1, 0)
    assert drift.split <= 2000 < drift.found <= 4000
    assert drift.before[1] < drift.after[0] or drift.after[1] < drift.before[0]
    assert drift.before[0] <= 0.4 <= drift.before[1]
    assert f"the gap of arm {arms - 1} over arm 0 was in [" in str(drift)
    assert f"in the first {drift.split:,} rounds" in str(drift)


def test_an_alarm_stays():
    tests = list(watched(lambda n: 0.8 if n < 20 else -0.8, feeds=60))
    first = next(test for test in tests if test.alarm)
    assert all(test.found == first.found for test in tests[tests.index(first) :])


def test_sums_after_a_split_are_those_of_a_sequence_that_began_there():
    tests = list(watched(lambda n: 0.2, confidence=Bounded(0.0, 1.0)))
    number = 2
    split = tests[-1].splits[number]
    begin = next(test for test in tests if test.rounds == split.rounds)
    total = tests[-1].sequence.evidence.totals - begin.sequence.evidence.totals
    weight = tests[-1].sequence.evidence.weights - begin.sequence.evidence.weights
    low, high = tests[-1].after(number)
    assert (low + high) / 2 == pytest.approx(total / weight)
    assert low[0] < 0.1 < high[0]


def test_memory_grows_with_the_logarithm_of_the_rounds():
    tests = list(watched(lambda n: 0.0, feeds=80))
    assert [split.rounds for split in tests[-1].splits] == [100, 200, 400, 800, 1600, 3200, 6400]


def test_an_exact_test_stored_before_bets_is_no_surer_than_it_was():
    test = list(watched(lambda n: 0.1, confidence=Bounded(0.0, 1.0)))[-1]
    data = json.loads(json.dumps(test.to_json(), allow_nan=False))
    del data["sequence"]["bets"]
    for parts in (data["sequence"]["evidence"], *(split["parts"] for split in data["splits"])):
        parts["pooled"] = [0.0]  # in other units, up to 0.2
    again = Constancy.from_json(ArmSet.one_hot(2), Bounded(0.0, 1.0), data)
    assert again.splits
    for number in range(len(again.splits)):
        (low, high), (lower, higher) = test.after(number), again.after(number)
        assert lower[0] < low[0] < high[0] < higher[0]


@pytest.mark.parametrize("confidence", [None, Bounded(0.0, 1.0)])
def test_a_test_goes_on_after_json_as_if_nothing_had_happened(confidence):
    tests = list(watched(lambda n: 0.8 if n < 20 else -0.8, confidence=confidence))
    for test in (tests[0], tests[5], tests[-1]):
        data = json.loads(json.dumps(test.to_json(), allow_nan=False))
        again = Constancy.from_json(ArmSet.one_hot(2), confidence, data)
        assert again.to_json() == test.to_json()
        centre = None if confidence is None else test.sequence.centre()
        plan, tally = Plan([0.5, 0.5], 4, centre), Tally.of([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.25], 2)
        assert again.and_of(plan, tally).to_json() == test.and_of(plan, tally).to_json()


def test_rounds_beyond_the_end_of_a_plan_count_and_no_rounds_do_not():
    test = Constancy.start(ArmSet.one_hot(2))
    tally = Tally.of([0, 1, 1], [0.0, 1.0, 2.0], 2)
    assert test.and_of(Plan([0.5, 0.5], 1), tally).rounds == 3
    assert test.and_of(Plan([0.5, 0.5], 1), Tally.zeros(2)) is test


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ParameterError, match="reference=2 is not one of at least two arms"):
        Constancy.start(ArmSet.one_hot(2), 2)
    with pytest.raises(ParameterError, match="reference=0 is not one of at least two arms"):
        Constancy.start(ArmSet.one_hot(1))
    with pytest.raises(ParameterError, match="alpha=2"):
        Constancy.start(ArmSet.one_hot(2), alpha=2)


def test_a_table_of_distributions_is_as_all_of_them():
    rng = np.random.default_rng(3)
    ratio = table = SampleRatio.start(3)
    missing = quiet = Missing.start(3)
    for rows in (5, 40, 1):
        p = rng.dirichlet(np.ones(3), rows)
        counts = np.array([rng.multinomial(rng.integers(1, 50), row) for row in p])
        silent = rng.binomial(counts, 0.2)
        ratio, table = ratio.and_all(list(zip(p, counts, strict=True))), table.and_table(p, counts)
        missing = missing.and_all(list(zip(counts, silent, strict=True)))
        quiet = quiet.and_table(counts, silent)
    assert table.observed.tolist() == ratio.observed.tolist()
    assert table.expected == pytest.approx(ratio.expected)
    assert table.wealth == pytest.approx(ratio.wealth, rel=1e-9)
    assert table.largest == pytest.approx(ratio.largest, rel=1e-9)
    assert quiet.drawn.tolist() == missing.drawn.tolist()
    assert quiet.ratio.wealth == pytest.approx(missing.ratio.wealth, rel=1e-9)


def test_tables_that_cannot_be_are_named():
    assert SampleRatio.start(2).and_table([[1.0, 0.0]], [[5, 1]]).p_value == 0.0
    assert Missing.start(2).and_table([[0, 0]], [[0, 0]]).drawn.tolist() == [0, 0]
    with pytest.raises(TallyError, match=r"probabilities have shape \(1, 3\); \(n, 2\) is needed"):
        SampleRatio.start(2).and_table([[0.2, 0.3, 0.5]], [[1, 2, 3]])
    with pytest.raises(TallyError, match="must be 1 × 2 whole numbers"):
        SampleRatio.start(2).and_table([[0.5, 0.5]], [[1, -1]])
    with pytest.raises(TallyError, match=r"silent\[0, 1\]=6 is more than the 5 that were drawn"):
        Missing.start(2).and_table([[5, 5]], [[1, 6]])
