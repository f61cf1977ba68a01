import pytest

from orthobandit import SBE, AnytimeElimination, ArmSet, Guardrail, centred_design
from orthobandit.errors import DamagedStoreError, ParameterError, VersionError
from orthobandit.estimate import AutoRegression, Bounded
from orthobandit.experiment.settings import Settings, describe_settings, made
from orthobandit.policy import ActionCentredTS


@pytest.mark.parametrize("name", ["arms", "policy", "window"])
def test_settings_that_lack_something_are_damaged(name):
    kept = Settings(ArmSet.one_hot(2), AnytimeElimination(), key="0" * 64).to_json()
    assert Settings.from_json(kept).key == "0" * 64
    del kept[name]
    with pytest.raises(DamagedStoreError, match=f"the settings have no '{name}'"):
        Settings.from_json(kept)


def test_what_has_moved_since_it_was_written_is_found():
    begun = Settings(ArmSet.one_hot(3), SBE(design=centred_design, delta=0.2), key="0" * 64)
    kept = begun.to_json()
    assert kept["policy"]["settings"]["design"] == {"function": "orthobandit.design.criteria:centred_design"}
    kept["policy"]["settings"]["design"] = {"function": "orthobandit.design.centred:centred_design"}  # 0.2.0
    assert Settings.from_json(kept).policy == begun.policy
    assert Settings.from_json(kept, begun.policy).policy is begun.policy
    with pytest.raises(ParameterError, match="begun with SBE"):
        Settings.from_json(kept, SBE(design=centred_design, delta=0.1))


def test_a_guardrail_is_stored_by_the_place_that_earlier_releases_read():
    rail = Guardrail("seconds", 0.5, harm=0.1)
    kept = describe_settings(rail)
    assert kept["class"] == "orthobandit.experiment.settings:Guardrail"
    assert made(kept) == rail


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("orthobandit.estimate.confidence:Bounded", Bounded),  # a file of 0.2.0 that is a package now
        ("orthobandit.estimate.baseline:AutoRegression", AutoRegression),  # a file that has moved
        ("orthobandit.policy.anytime:AnytimeElimination", AnytimeElimination),
        ("orthobandit.policy.action_centred:ActionCentredTS", ActionCentredTS),  # joined with another file
    ],
)
def test_settings_of_earlier_releases_are_found_where_they_live_now(place, kind):
    settings = {"low": 0.0, "high": 1.0} if kind is Bounded else {}
    assert isinstance(made({"class": place, "settings": settings}), kind)


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
