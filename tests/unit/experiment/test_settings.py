import pytest

from orthobandit import SBE, AnytimeElimination, ArmSet, centred_design
from orthobandit.errors import DamagedStoreError, ParameterError, VersionError
from orthobandit.experiment.settings import Settings, made


@pytest.mark.parametrize("name", ["arms", "policy", "window"])
def test_settings_that_lack_something_are_damaged(name):
    kept = Settings(ArmSet.one_hot(2), AnytimeElimination(), key="0" * 64).to_json()
    assert Settings.from_json(kept).key == "0" * 64
    del kept[name]
    with pytest.raises(DamagedStoreError, match=f"the settings have no '{name}'"):
        Settings.from_json(kept)


def test_settings_are_compared_with_a_policy_that_is_given_again():
    begun = Settings(ArmSet.one_hot(3), SBE(design=centred_design, delta=0.2), key="0" * 64)
    kept = begun.to_json()
    assert Settings.from_json(kept).policy == begun.policy
    assert Settings.from_json(kept, begun.policy).policy is begun.policy
    with pytest.raises(ParameterError, match="begun with SBE"):
        Settings.from_json(kept, SBE(design=centred_design, delta=0.1))


def test_settings_that_this_release_does_not_have_are_refused_by_name():
    with pytest.raises(ParameterError, match=r"orthobandit\.policy\.gone:Gone, which release"):
        made({"class": "orthobandit.policy.gone:Gone", "settings": {}})


def test_settings_of_a_newer_release_are_refused_by_the_name_of_the_release():
    kept = Settings(ArmSet.one_hot(2), AnytimeElimination(), key="0" * 64).to_json()
    with pytest.raises(VersionError, match=r"the settings .* written by release 9\.1\.0"):
        Settings.from_json({**kept, "format": 1000, "release": "9.1.0"})
    kept["policy"]["settings"]["patience"] = 3
    with pytest.raises(
        ParameterError, match=r"patience=3.*cannot make .*open it with the release that wrote"
    ):
        Settings.from_json(kept)
