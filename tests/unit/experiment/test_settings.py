import pytest

from orthobandit import SBE, AnytimeElimination, ArmSet, centred_design
from orthobandit.errors import DamagedStoreError, ParameterError
from orthobandit.experiment.settings import Settings


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
