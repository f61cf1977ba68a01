import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.simulation.toys import DropWorst, FixedPolicy

from orthobandit.errors import FileFormatError, ParameterError
from orthobandit.simulation import Gaussian, PushLeader, Sine, one_hot, simulate
from orthobandit.simulation._group import Job
from orthobandit.simulation._parts import fingerprint

ENVIRONMENT = one_hot([0.0, 0.3, 0.1], shift=Sine())
SETTINGS = {"horizon": 600, "seed": 4}


def _interrupt_after(count):
    def progress(done, total):
        if done >= count:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_run_goes_on_to_the_same_result(tmp_path):
    run = partial(simulate, DropWorst(), ENVIRONMENT, replications=10, batch=3, **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        run(resume=tmp_path, progress=_interrupt_after(6))
    assert len(list(tmp_path.glob("*/part-*.json"))) == 2
    calls = []
    resumed = run(resume=tmp_path, progress=lambda *call: calls.append(call))
    assert calls == [(6, 10), (9, 10), (10, 10)]
    assert resumed.equals(run())


def test_finished_parts_serve_longer_and_shorter_runs(tmp_path):
    run = partial(simulate, DropWorst(), ENVIRONMENT, **SETTINGS)
    run(replications=7, batch=4, resume=tmp_path)
    for replications in (5, 9, 6, 12):
        resumed = run(replications=replications, batch=2, resume=tmp_path)
        assert resumed.equals(run(replications=replications))


def test_other_settings_do_not_share_parts(tmp_path):
    simulate(DropWorst(), ENVIRONMENT, replications=2, resume=tmp_path, **SETTINGS)
    other = simulate(DropWorst(first=60), ENVIRONMENT, replications=2, resume=tmp_path, **SETTINGS)
    assert other.equals(simulate(DropWorst(first=60), ENVIRONMENT, replications=2, **SETTINGS))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_part_is_named(tmp_path):
    simulate(DropWorst(), ENVIRONMENT, replications=2, resume=tmp_path, **SETTINGS)
    next(tmp_path.glob("*/part-*.json")).write_text("{")
    with pytest.raises(FileFormatError, match="part-"):
        simulate(DropWorst(), ENVIRONMENT, replications=2, resume=tmp_path, **SETTINGS)


@pytest.mark.parametrize("shift", [Sine(), PushLeader()], ids=repr)
def test_processes_change_nothing(shift):
    run = partial(simulate, DropWorst(), ENVIRONMENT.moved(shift), replications=5, **SETTINGS)
    assert run(n_jobs=2).equals(run())


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
    return fingerprint(Job(**(settings | changes)))


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


def test_nameless_functions_cannot_be_resumed():
    with pytest.raises(ParameterError, match="no lasting name"):
        _fingerprint(lambda: None)


SCRIPT = """
from orthobandit.simulation import simulate
from tests.unit.simulation.test_resume import ENVIRONMENT, FixedPolicy
if __name__ == "__main__":
    settings = dict(horizon=10**8, replications=400, seed=0, batch=1)
    simulate(FixedPolicy(), ENVIRONMENT, n_jobs=2, resume={!r}, **settings)
"""


def _has_members(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_ends_the_workers_and_leaves_the_parts(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.format(str(tmp_path / "parts")))
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while process.poll() is None and not list(tmp_path.glob("parts/*/part-*.json")):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1].decode()
    assert errors.rstrip().endswith("KeyboardInterrupt")
    deadline = time.monotonic() + 60
    while _has_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _has_members(process.pid)
    assert not list(tmp_path.glob("parts/*/.part*"))
