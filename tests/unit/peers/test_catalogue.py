import pytest

from orthobandit.errors import ParameterError
from orthobandit.estimate import ExponentialMean, SeasonalRegression, SubGaussian
from orthobandit.policy import (
    POLICIES,
    SBE,
    AnytimeElimination,
    FixedBudget,
    PureExploration,
    named_policy,
    policy_settings,
)


def test_names_make_policies_with_settings():
    assert named_policy("sbe") == SBE()
    assert named_policy("sbe", delta=0.2, scale=4.0) == SBE(delta=0.2, scale=4.0)
    assert named_policy("explore", rounds=10) == PureExploration(rounds=10)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_says_what_it_takes(name):
    settings = policy_settings(name)
    assert len(set(settings)) == len(settings)
    assert "self" not in settings


def test_wrong_names_are_refused_with_the_nearest():
    with pytest.raises(ParameterError, match="did you mean 'explore'"):
        named_policy("explor")
    with pytest.raises(ParameterError, match="did you mean 'schedule'"):
        named_policy("sbe", shedule="theory")
    with pytest.raises(ParameterError, match="unknown policy 'x'; the names are"):
        policy_settings("x")


def test_anytime_elimination_is_made_from_words():
    assert named_policy("anytime") == AnytimeElimination()
    made = named_policy("anytime", confidence="sub-gaussian", low=0, high=4, baseline="exponential", rate=0.1)
    assert made == AnytimeElimination(confidence=SubGaussian(0, 4), baseline=ExponentialMean(0.1))
    seasonal = named_policy("anytime", goal="earn", baseline="seasonal", period=24, lags=2)
    assert seasonal == AnytimeElimination(goal="earn", baseline=SeasonalRegression((24,), lags=2))
    assert named_policy("fixed-budget", budget=50) == FixedBudget(50)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"confidence": "bounded", "low": 0}, "needs high"),
        ({"low": 0}, "confidence='bounded' needs high"),
        ({"confidence": "asymptotic", "low": 0}, "confidence='asymptotic' takes no low"),
        ({"baseline": "seasonal"}, "needs period"),
        ({"baseline": "mean", "lags": 3}, "baseline='mean' takes no lags"),
        ({"baseline": "ar"}, "baseline='ar' is not one of"),
        ({"confidence": "exact"}, "confidence='exact' is not one of"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        named_policy("anytime", **settings)
