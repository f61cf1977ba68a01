"""Which edits of the package change the hash of a piece of work, and which leave it alone."""

import shutil

import pytest

from inside.study import Cell
from orthobandit._foundation.fingerprint import ROOT, used_code, used_names
from orthobandit.errors import ParameterError
from orthobandit.study import cells


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a copy of the package's sources that is hashed instead of them, and a way to edit it."""
    root = tmp_path / "orthobandit"
    shutil.copytree(ROOT, root, ignore=lambda folder, names: [n for n in names if n == "__pycache__"])
    monkeypatch.setattr("inside._foundation.ROOT", root)

    def edit(path, old, new):
        text = (root / path).read_text(encoding="utf-8")
        assert old in text
        (root / path).write_text(text.replace(old, new), encoding="utf-8")
        forget()

    def forget():
        cells._task_code.cache_clear()

    forget()
    yield edit
    forget()


def content(policy):
    settings = {
        "policy": {"kind": policy, "settings": {}},
        "instance": {"kind": "exact-gap", "settings": {"seed": 1}},
        "shift": {"kind": "sine", "settings": {}},
        "noise": {"kind": "gaussian", "settings": {}},
    }
    return Cell("orthobandit.study.spec:run_policy", settings).content


def contents():
    return {policy: content(policy) for policy in ("sbe", "anytime", "bose", "rage")}


def changed(before):
    after = contents()
    return {policy for policy in before if before[policy] != after[policy]}


@pytest.mark.slow
def test_a_policys_own_code_touches_that_policy_alone(package):
    before = contents()
    package("policy/anytime/stages.py", "import numpy as np", "import numpy as np\n\nWAIT = 3")
    assert changed(before) == set()  # a name that nobody uses
    package("policy/sbe.py", "class SBE", "@dataclass\nclass SBE")
    assert changed(before) == {"sbe"}


@pytest.mark.slow
def test_code_that_all_share_touches_all(package):
    before = contents()
    package("simulation/noise.py", "class Gaussian", "@dataclass\nclass Gaussian")
    assert changed(before) == set(before)


@pytest.mark.slow
def test_prose_and_messages_touch_nobody(package):
    before = contents()
    package("simulation/noise.py", '"""Additive N(0, σ²) noise', '"""Said differently: normal noise')
    package("simulation/runner.py", "\ndef ", "\n# why it is so\ndef ")
    package("errors.py", "class ParameterError", "class Unrelated(Exception): ...\n\n\nclass ParameterError")
    package("showing/charts.py", "FADED", "PALE")
    assert changed(before) == set()


def test_how_code_is_compiled_and_kept_touches_nobody():
    names = used_names("orthobandit.policy.sbe:SBE")
    assert any(name.startswith("orthobandit._foundation.linalg") for name in names)
    assert not [name for name in names if name.startswith("orthobandit._foundation.compile")]


def test_doors_lead_to_where_a_name_is_defined():
    names = used_names("orthobandit.policy:SBE")
    assert "orthobandit.policy.sbe:SBE" in names
    assert not [name for name in names if name.startswith("orthobandit.policy.anytime")]


def test_the_walk_stops_at_catalogues():
    whole = used_names("orthobandit.study.spec:run_policy")
    cut = used_names("orthobandit.study.spec:run_policy", without=cells.CATALOGUES)
    assert "orthobandit.peers.bose:BOSE" in whole
    assert "orthobandit.peers.bose:BOSE" not in cut


@pytest.mark.parametrize("name", sorted(cells.CATALOGUES))
def test_the_catalogues_exist(name):
    assert used_names(name)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("orthobandit.policy", "must be written as module:name"),
        ("orthobandit.nowhere:x", "is not a module of orthobandit"),
        ("orthobandit.policy.sbe:nothing", "is not defined there"),
    ],
)
def test_an_unknown_start_is_refused(start, message):
    with pytest.raises(ParameterError, match=message):
        used_code(start)


def test_a_users_modules_are_read_wherever_they_are_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "mine_too"
    folder.mkdir()
    files = {
        "__init__.py": "from .constants import *\n",
        "constants.py": "SHARE = 0.5\n",
        "late.py": "def late(x):\n    import scipy.fft, mine_loose.one\n    return x, mine_loose, scipy\n",
        "policy.py": (
            "from . import SHARE\n\ndef plan():\n    from .late import late\n    return late(SHARE)\n"
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (tmp_path / "mine_loose").mkdir()  # without __init__.py
    (tmp_path / "mine_loose" / "one.py").write_text("ONE = 1\n")
    before = used_names("mine_too.policy:plan")
    assert {"mine_too.policy:plan", "mine_too.late:late", "mine_too.constants:SHARE"} <= set(before)
    assert "mine_loose.one:ONE" in before
    assert not any(name.startswith("scipy.fft.") for name in before)  # by version
    hashed = used_code("mine_too.policy:plan")
    (folder / "constants.py").write_text("SHARE = 0.25\n")
    assert used_code("mine_too.policy:plan") != hashed
    (folder / "constants.py").write_text("SHARE = 0.5  # a half\n")


def test_names_that_a_package_imports_late_are_found():
    assert "orthobandit.policy.sbe:SBE" in used_names("orthobandit:SBE")
