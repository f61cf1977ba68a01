"""Fingerprints: equal only if settings and code are."""

import sys
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.simulation.test_resume import ENVIRONMENT, mine
from tests.unit.simulation.toys import FixedPolicy, nameless

from inside.simulation import Job, job_fingerprint
from orthobandit._foundation import fingerprint as _fingerprints
from orthobandit.errors import ParameterError
from orthobandit.simulation import Gaussian, PushLeader


@dataclass(frozen=True)
class Wrapped:
    """A policy with settings of every kind."""

    setting: Any
    start = plan = observe = decide = None


def _fingerprint(setting=None, **changes):
    settings = {
        "policy": Wrapped(setting),
        "environment": ENVIRONMENT,
        "horizon": 10,
        "seed": 0,
        "checkpoints": np.array([10]),
        "stop_when_declared": False,
    }
    return job_fingerprint(Job(**(settings | changes)))


def test_fingerprints_tell_settings_apart():
    settings = [
        None,
        1,
        1.0,
        "1",
        True,
        (1, 2),
        [1, 2],
        {"a": 1},
        {"a": 2},
        {1, 2},
        np.arange(2000),
        np.where(np.arange(2000) == 1000, 0, np.arange(2000)),
        np.arange(2000.0),
        len,
        np.sum,
        partial(round, ndigits=1),
        partial(round, ndigits=2),
        FixedPolicy((0.5, 0.5)),
        FixedPolicy((0.5, 0.5), rounds=3),
        ENVIRONMENT.arms,
        Gaussian(),
        Path("a"),
    ]
    found = [_fingerprint(setting) for setting in settings]
    found += [_fingerprint(horizon=11), _fingerprint(seed=1), _fingerprint(stop_when_declared=True)]
    found += [_fingerprint(environment=ENVIRONMENT.moved(PushLeader()))]
    assert len(set(found)) == len(found)
    assert found[: len(settings)] == [_fingerprint(setting) for setting in settings]


def test_an_edit_of_a_module_that_the_policy_uses_is_noticed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = set()
    for rounds in (50, 60, 50):
        (tmp_path / "mine_helper.py").write_text(f"ROUNDS = {rounds}\n")
        found.add(_fingerprint(mine(tmp_path, "mine")))
    assert len(found) == 2


def with_a_line_more(read, edited, path, **how):
    return read(path, **how) + "\nprint()" * (path == edited)


def test_an_edit_of_the_package_is_noticed(monkeypatch):
    before = _fingerprint()
    read = Path.read_text
    for name, is_used in (("simulation/player.py", True), ("policy/sbe.py", False)):
        source = _fingerprints.ROOT / name
        with monkeypatch.context() as patch:
            edited = partial(with_a_line_more, read, source)
            patch.setattr(Path, "read_text", lambda path, edited=edited, **how: edited(path, **how))
            assert (_fingerprint() != before) == is_used
    assert _fingerprint() == before


def test_functions_without_a_name_are_told_apart_by_their_code():
    made = nameless()
    assert len({_fingerprint(function) for function in made}) == len(made)
    assert _fingerprint(nameless()[0]) == _fingerprint(made[0])


def test_code_that_is_in_no_file_is_refused():
    names = {"__name__": "a notebook"}
    exec("class Mine: pass", names)
    with pytest.raises(ParameterError, match="a notebook:Mine is in no file; write it in a module"):
        _fingerprint(names["Mine"])


def test_a_setting_that_cannot_be_told_apart_is_refused():
    with pytest.raises(ParameterError, match="resumed; use values that can be pickled"):
        _fingerprint(threading.Lock())
