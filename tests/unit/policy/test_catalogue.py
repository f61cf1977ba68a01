import pytest

from orthobandit.errors import ParameterError
from orthobandit.policy import POLICIES, SBE, PureExploration, named_policy, policy_settings


def test_names_make_policies_with_settings():
    assert named_policy("sbe") == SBE()
    assert named_policy("sbe", delta=0.2, scale=4.0) == SBE(delta=0.2, scale=4.0)
    assert named_policy("explore", rounds=10) == PureExploration(rounds=10)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_says_what_it_takes(name):
    assert "delta" in policy_settings(name)


def test_wrong_names_are_refused_with_the_nearest():
    with pytest.raises(ParameterError, match="did you mean 'explore'"):
        named_policy("explor")
    with pytest.raises(ParameterError, match="did you mean 'schedule'"):
        named_policy("sbe", shedule="theory")
    with pytest.raises(ParameterError, match="policy='x' is not one of"):
        policy_settings("x")
