"""Sample ratio and missing rewards, at all times at once: small cases by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from orthobandit.errors import TallyError
from orthobandit.estimate.health.missing import Missing
from orthobandit.estimate.health.sample_ratio import BELIEF, BETS, SampleRatio


def by_totals(observed, expected):
    """Return what half of the stake has won, arm by arm: Bennett's bound, with p for p(1 − p)."""
    won, left = 0.0, 1.0
    for number, (seen, due) in enumerate(zip(observed, expected, strict=True), 1):
        bets = [sign * bet * (seen - due) - due * (np.exp(bet) - 1 - bet) for bet in BETS for sign in (1, -1)]
        won += np.mean(np.exp(bets)) / (number * (number + 1))
        left -= 1 / (number * (number + 1))
    return won + left


def test_the_second_bucket_is_judged_by_the_first_and_both_by_their_totals():
    ratio = SampleRatio.start(2).and_of([0.5, 0.5], [30, 10])
    assert not ratio.wealth.any()
    first = 0.5 + 0.5 * by_totals([30, 10], [20, 20])
    assert ratio.p_value == pytest.approx(1 / first)
    again = ratio.and_of([0.25, 0.75], [20, 20])
    wealth = []
    for kappa in BELIEF:
        raised = np.array([30 + kappa, 10 + kappa]) / (20 + kappa)
        q = np.array([0.25, 0.75]) * raised
        q /= q.sum()
        wealth.append((q[0] / 0.25) ** 20 * (q[1] / 0.75) ** 20)
    second = 0.5 * np.mean(wealth) + 0.5 * by_totals([50, 30], [30, 50])
    assert again.p_value == pytest.approx(1 / second)
    assert again.observed.tolist() == [50, 30]
    assert again.expected.tolist() == [30.0, 50.0]


def test_one_bucket_of_one_arm_is_an_alarm_however_the_other_follows():
    ratio = SampleRatio.start(2).and_of([0.5, 0.5], [342, 0])
    assert ratio.alarm
    assert ratio.and_of([0.5, 0.5], [0, 161]).alarm


def test_a_draw_wins_nothing_on_average_whatever_came_before():
    past = SampleRatio.start(2).and_of([0.5, 0.5], [12, 3])
    p = np.array([0.3, 0.1, 0.6])  # of an arm that has joined
    each = [
        np.exp(replace(past, largest=-np.inf).and_of(p, np.eye(3, dtype=int)[a]).largest) for a in range(3)
    ]
    assert p @ each <= np.exp(past.largest)
    assert p @ each >= 0.95 * np.exp(past.largest)  # nor does it lose much


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
