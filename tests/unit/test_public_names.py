"""The package's front door: every public name is there, and opening it is quick."""

import subprocess
import sys

import pytest

import orthobandit


@pytest.mark.parametrize("name", orthobandit.__all__)
def test_every_public_name_exists(name):
    assert getattr(orthobandit, name) is not None


def test_other_names_do_not():
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = orthobandit.simulat


def test_the_simulator_is_imported_only_when_asked_for():
    script = (
        "import sys, orthobandit; assert 'orthobandit.simulation' not in sys.modules;"
        "orthobandit.simulate; assert 'orthobandit.simulation' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
