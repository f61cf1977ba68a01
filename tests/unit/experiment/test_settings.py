import pytest

from orthobandit import AnytimeElimination, ArmSet
from orthobandit.errors import DamagedStoreError
from orthobandit.experiment.settings import Settings


@pytest.mark.parametrize("name", ["arms", "policy", "window"])
def test_settings_that_lack_something_are_damaged(name):
    kept = Settings(ArmSet.one_hot(2), AnytimeElimination(), key="0" * 64).to_json()
    assert Settings.from_json(kept).key == "0" * 64
    del kept[name]
    with pytest.raises(DamagedStoreError, match=f"the settings have no '{name}'"):
        Settings.from_json(kept)
