"""Estimates, their errors and limits, and what they make of a claim."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from inside.reproduction import (
    CAREFUL,
    CAREFUL_MEAN,
    FAMILY,
    LEVEL,
    MOST_VERDICTS,
    Fit,
    Judgement,
    Measured,
    _hall,
    tally,
)


def kind(measured, relation="≤", bound=1.0):
    return Judgement("name", "claim", "here", "statistic", measured, relation, bound).kind


@pytest.mark.parametrize(
    ("low", "high", "below", "above"),
    [
        (0.5, 0.9, "shown", "refuted"),
        (0.5, 1.0, "shown", "undecided"),
        (0.9, 1.1, "undecided", "undecided"),
        (1.0, 1.1, "undecided", "shown"),
        (1.1, 1.2, "refuted", "shown"),
        (-math.inf, math.inf, "undecided", "undecided"),
    ],
)
def test_limits_decide_on_either_side(low, high, below, above):
    measured = Measured((max(low, -9) + min(high, 9)) / 2, None, low, high)
    assert kind(measured, "≤") == below
    assert kind(measured, "≥") == above


def test_shares_have_the_limits_of_clopper_and_pearson():
    exact = stats.binomtest(7, 50).proportion_ci(1 - 2 * LEVEL, method="exact")
    found = Measured.share(7, 50)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert Measured.share(0, 100).high == pytest.approx(1 - LEVEL ** (1 / 100))
    assert Measured.share(100, 100).high == 1.0


def test_a_share_that_is_the_largest_of_many_is_refuted_less_easily():
    alone, chosen = Measured.share(9, 30), Measured.share(9, 30, among=13)
    assert chosen.low < alone.low
    assert chosen.high == alone.high


def test_numbers_that_are_the_largest_of_many_are_refuted_less_easily():
    values = np.linspace(3.0, 7.0, 20)
    fit = Fit.of(np.array([1.0, 2.0, 4.0]), np.array([[1.0, 1.1], [2.1, 1.9], [4.0, 4.2]]))
    for measure in (
        partial(Measured.estimate, 1.0, 0.1, 9),
        partial(Measured.mean, values),
        partial(Measured.ratio, values, values[::-1]),
        partial(Measured.exponent, fit),
    ):
        alone = measure()
        chosen = measure(among=5)
        assert chosen.low < alone.low
        assert chosen.high == alone.high


def test_means_have_limits_that_are_further_away_on_the_side_of_the_tail():
    values = np.arange(1.0, 21.0) ** 3 - 1e4
    found = Measured.mean(values)
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(stats.sem(values))
    # Skewed to the right: the lower limit is Student's, the upper one further away.
    reach = stats.t.ppf(1 - CAREFUL_MEAN * LEVEL, 19) * stats.sem(values)
    assert found.value - found.low == pytest.approx(reach)
    assert found.high - found.value > 1.1 * reach


def test_means_without_skewness_have_student_limits_on_both_sides():
    values = np.array([-3.0, -1.0, 1.0, 3.0])
    found = Measured.mean(values)
    reach = stats.t.ppf(1 - CAREFUL_MEAN * LEVEL, 3) * stats.sem(values)
    assert (found.low, found.high) == pytest.approx((-reach, reach))


def test_hall_limits_solve_his_equation():
    for a in (-0.4, -1e-3, 0.02, 0.7):
        for end, T in zip((-3.0, 3.0), _hall(3.0, a), strict=True):
            assert T + a * (T**2 / 3 + 1 / 6) + a**2 * T**3 / 27 == pytest.approx(end)


def test_means_of_positive_values_have_positive_limits():
    found = Measured.mean([0.1, 0.2, 5.0])
    assert found.low == 0.0
    assert found.high > 0.1 + found.value * 10


def test_a_whole_report_is_right_at_once():
    assert math.isclose(LEVEL * MOST_VERDICTS, FAMILY)


def test_one_run_decides_nothing():
    found = Measured.mean([3.0])
    assert (found.low, found.high, found.error) == (-math.inf, math.inf, None)
    assert found.to_json() == {"value": 3.0, "error": None, "low": None, "high": None}
    assert kind(found) == "undecided"


def test_ratios_on_the_same_arm_sets_profit_from_their_likeness():
    generator = np.random.default_rng(1)
    bottom = generator.uniform(1, 9, 20)
    top = bottom * generator.uniform(0.45, 0.55, 20)
    paired, mixed = Measured.ratio(top, bottom), Measured.ratio(top, generator.permutation(bottom))
    assert paired.value == pytest.approx(mixed.value)
    assert paired.error < mixed.error / 5
    assert kind(paired, "≤", 0.6) == "shown"
    assert kind(mixed, "≤", 0.6) == "undecided"


def test_limits_of_ratios_are_passed_as_rarely_as_they_say():
    generator = np.random.default_rng(2)
    pairs = generator.gamma(4.0, size=(4000, 2, 12))
    found = [Measured.ratio(top, bottom) for top, bottom in pairs]
    passed = sum(one.low > 1 for one in found) + sum(one.high < 1 for one in found)
    # 8 are expected if the linearised error is right; a Poisson count is above 30 once in 10⁸.
    assert passed <= 30
    assert sum(one.high < 1.5 for one in found) > 0


@pytest.mark.parametrize(
    ("value", "low", "high", "factor"),
    [(3.0, 2.0, 4.0, (3.0, 2.0, 4.0)), (0.5, 0.4, 0.8, (2.0, 1.25, 2.5)), (1.1, 0.5, 2.0, (1.1, 1.0, 2.0))],
)
def test_factors_count_in_both_directions(value, low, high, factor):
    found = Measured(value, 0.1, low, high).factor_from(1.0)
    assert (found.value, found.low, found.high) == pytest.approx(factor)


def test_a_mean_that_may_be_nothing_may_be_any_factor_away():
    assert Measured(1.0, 1.0, -0.5, 2.5).factor_from(1.0).high == math.inf


def test_geometric_means_and_exponents_carry_their_errors():
    assert Measured.geometric([1.0, 100.0]).value == pytest.approx(10.0)
    fit = Fit.of(np.array([1.0, 2.0, 4.0]), np.array([[1.0, 1.1], [2.1, 1.9], [4.0, 4.2]]))
    found = Measured.exponent(fit)
    assert found.value == fit.exponent
    assert found.high == pytest.approx(fit.exponent + stats.t.ppf(1 - CAREFUL * LEVEL, 1) * fit.error)


def test_the_largest_is_shown_only_if_all_are():
    several = [Measured(0.5, None, 0.4, 1.2), Measured(0.9, None, 0.8, 0.95)]
    largest = Measured.largest(several)
    assert (largest.value, largest.low, largest.high) == (0.9, 0.8, 1.2)
    assert kind(largest) == "undecided"


def test_a_tally_counts_every_kind():
    verdicts = [
        Judgement("a", "", "here", "", Measured.exactly(value), "≤", 1.0) for value in (0.0, 0.5, 2.0)
    ]
    verdicts.append(Judgement("b", "", "question", "", Measured.exactly(2.0), "≤", 1.0))
    assert tally(verdicts) == {"refuted": 1, "undecided": 0, "shown": 2, "no": 1, "open": 0, "yes": 0}
    assert set(tally([]).values()) == {0}


def test_the_page_on_studies_states_the_levels_that_the_report_uses():
    page = " ".join(Path(__file__).parents[3].joinpath("docs/study.md").read_text(encoding="utf-8").split())
    assert f"at most {100 * LEVEL:.2g} %, so with {100 * (1 - FAMILY):.0f} % probability" in page
    assert f"none of up to {MOST_VERDICTS} verdicts" in page
    assert f"at {100 * CAREFUL:.0f} % of the level, those of means at {100 * CAREFUL_MEAN:.0f} %" in page


def test_a_verdict_names_the_interval_that_decided_it():
    measured = Measured(0.324, 0.1, 0.21, 1.07)
    judgement = Judgement("ratio", "it is less", "here", "ratio", measured, "≤", 1.0)
    assert str(judgement) == "undecided: 0.324, from 0.21 to 1.07 at level 3·10⁻⁴, needed ≤ 1"
    assert judgement.to_json()["evidence"] == "0.324, from 0.21 to 1.07 at level 3·10⁻⁴, needed ≤ 1"
    lone = replace(judgement, measured=Measured.estimate(1234.5, 1.0, 0), relation="≥")
    assert lone.evidence == "1,234, from −∞ to ∞ at level 3·10⁻⁴, needed ≥ 1"
    assert replace(judgement, measured=Measured.exactly(2)).evidence == "2, computed exactly, needed ≤ 1"
