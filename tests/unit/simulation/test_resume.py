import importlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.unit.simulation.toys import DropWorst

from orthobandit.errors import DamagedFileWarning
from orthobandit.simulation import PushLeader, Sine, one_hot, simulate
from processes import has_members

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


def _without_a_run(text):
    data = json.loads(text)
    data["rows"] = {name: rows[:-1] for name, rows in data["rows"].items()}
    return json.dumps(data)


DAMAGES = {
    "empty": lambda text: "",
    "truncated": lambda text: text[: len(text) // 2],
    "a list": lambda text: "[]",
    "a digit": lambda text: text.replace('"stop_times": [', '"stop_times": [9'),
    "a key": lambda text: text.replace('"regret":', '"regrets":'),
    "a run": _without_a_run,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_computed_again_and_said_so(tmp_path, damage):
    run = partial(simulate, DropWorst(), ENVIRONMENT, replications=4, batch=2, **SETTINGS)
    run(resume=tmp_path)
    path = min(tmp_path.glob("*/part-*.json"))
    was = path.read_text()
    path.write_text(DAMAGES[damage](was))
    assert path.read_text() != was
    with pytest.warns(DamagedFileWarning, match=r"part-000000000-000000001\.json .* run again"):
        resumed = run(resume=tmp_path)
    assert resumed.equals(run())
    assert run(resume=tmp_path).equals(run())  # and now without a warning


@pytest.mark.parametrize("shift", [Sine(), pytest.param(PushLeader(), marks=pytest.mark.slow)], ids=repr)
def test_processes_change_nothing(shift):
    run = partial(simulate, DropWorst(), ENVIRONMENT.moved(shift), replications=5, **SETTINGS)
    assert run(jobs=2).equals(run())


EDITED = """
from dataclasses import dataclass
import numpy as np
from orthobandit import Plan
from tests.unit.simulation.toys import FixedPolicy
import {name}_helper
SHARE = 0.5

def share():
    return SHARE

@dataclass(frozen=True)
class Mine(FixedPolicy):
    rounds: int = 50

    def plan(self, state):
        chosen = [share(), 0.25, 1 - share() - 0.25]
        return Plan(np.broadcast_to(chosen, state.counts.shape), {name}_helper.ROUNDS)
"""


def mine(folder, name, **edits):
    """Return the policy of a module of this name, after edits of its text, as a new process would see it."""
    text = EDITED.format(name=name)
    for old, new in edits.values():
        assert old in text
        text = text.replace(old, new)
    (folder / f"{name}.py").write_text(text)
    for module in (name, f"{name}_helper"):
        sys.modules.pop(module, None)
    importlib.invalidate_caches()
    return importlib.import_module(name).Mine()


@pytest.mark.parametrize(
    "edit",
    [
        ("0.25, 1 - share() - 0.25", "0.125, 1 - share() - 0.125"),
        ("SHARE = 0.5", "SHARE = 0.25"),
        ("rounds: int = 50", "rounds: int = 60"),
    ],
    ids=["method", "constant", "default"],
)
def test_an_edit_of_the_policy_is_noticed(tmp_path, monkeypatch, edit):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"mine_{len(edit[0])}"
    (tmp_path / f"{name}_helper.py").write_text("ROUNDS = 50\n")
    parts = tmp_path / "parts"
    run = partial(simulate, environment=ENVIRONMENT, replications=2, **SETTINGS)
    first = run(mine(tmp_path, name), resume=parts)
    assert run(mine(tmp_path, name), resume=parts).equals(first)
    assert len(list(parts.iterdir())) == 1
    edited = mine(tmp_path, name, one=edit)
    assert run(edited, resume=parts).equals(run(edited))
    assert len(list(parts.iterdir())) == 2


SCRIPT = """
from orthobandit.simulation import simulate
from tests.unit.simulation.test_resume import ENVIRONMENT
from tests.unit.simulation.toys import FixedPolicy
if __name__ == "__main__":
    settings = dict(horizon=10**8, replications=400, seed=0, batch=1)
    simulate(FixedPolicy(), ENVIRONMENT, jobs=2, resume={!r}, **settings)
"""


def _started(tmp_path):
    """Start a run with two workers in a session of its own, and wait for its first part."""
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.format(str(tmp_path / "parts")))
    tests = Path(__file__).parents[2]
    path = os.pathsep.join([str(tests.parent), str(tests), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while process.poll() is None and not list(tmp_path.glob("parts/*/part-*.json")):
        time.sleep(0.05)
    assert process.poll() is None, process.communicate()[1].decode()
    return process


def _wait_for_the_end_of(group):
    deadline = time.monotonic() + 60
    while has_members(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not has_members(group)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
def test_workers_end_with_their_parent_however_it_ends(tmp_path, end):
    process = _started(tmp_path)
    os.kill(process.pid, end)
    process.communicate(timeout=60)
    assert process.returncode == -end
    assert _wait_for_the_end_of(process.pid)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_ends_the_workers_and_leaves_the_parts(tmp_path):
    process = _started(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1].decode()
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert _wait_for_the_end_of(process.pid)
    assert not list(tmp_path.glob("parts/*/.part*"))
