"""States of earlier releases: of lists, or of arrays as texts."""

import json
from base64 import b64encode
from zlib import compress

import numpy as np
import pytest

from experiment_samples import ledger_of
from inside._foundation import unpacked
from inside.experiment import Ledger
from orthobandit import ArmSet, Experiment

KINDS = {"deadlines": np.float64, "forecasts": np.float64, "values": np.float64}
KINDS |= {"held": np.bool_, "informed": np.bool_}
WIDE = ("forecasts", "values", "informed")  # a row per metric


def column(name, kept):
    shape = (1, None) if name in WIDE else (None,)
    return unpacked(name, kept, KINDS.get(name, np.int64), shape)


def as_lists(state):
    """Return a state as releases up to 0.2 kept it."""
    waiting = {
        name: kept if name == "first" else column(name, kept) for name, kept in state["waiting"].items()
    }
    lists = {
        name: kept if name == "first" else np.where(np.isfinite(kept), kept.astype(object), None).tolist()
        for name, kept in waiting.items()
    }
    levels = [level | {"rows": [rows(level).tolist()] if level["rows"] else []} for level in state["levels"]]
    return state | {"waiting": lists, "levels": levels}


def rows(level):
    return unpacked("rows", level["rows"], np.float64, (None, None))


def as_texts(state):
    """Return a state as it was kept then: kind, shape and compressed bytes of an array in one text."""
    waiting = {
        name: kept if name == "first" else text(column(name, kept)) for name, kept in state["waiting"].items()
    }
    levels = [level | {"rows": text(rows(level)) if level["rows"] else ""} for level in state["levels"]]
    return state | {"waiting": waiting, "levels": levels}


def text(array):
    shape = ",".join(map(str, array.shape))
    return f"{array.dtype.kind} {shape} {b64encode(compress(array.tobytes(), 1)).decode()}"


@pytest.fixture
def made():
    """Return an experiment with proposals that wait, told and not."""
    made = Experiment.memory(ArmSet.one_hot(3), rewards=(0, 1), key="7" * 64)
    shown = made.ask_many(200)
    made.tell_many([one.id for one in shown[:150]], [float(one.arm == 1) for one in shown[:150]])
    made.tell(shown[180].id, 1.0)  # while others before it wait
    return made


@pytest.mark.parametrize("earlier", [as_lists, as_texts])
def test_states_of_earlier_releases_are_read(made, earlier):
    state = ledger_of(made).to_json()
    kept = json.loads(json.dumps(earlier(state)))
    assert kept != json.loads(json.dumps(state))
    assert Ledger.from_json(made.settings, kept).to_json() == state


@pytest.mark.parametrize("earlier", [as_lists, as_texts])
def test_states_without_anything_that_waits_are_read(earlier):
    made = Experiment.memory(ArmSet.one_hot(3), rewards=(0, 1), key="7" * 64)
    state = ledger_of(made).to_json()
    kept = json.loads(json.dumps(earlier(state)))
    assert Ledger.from_json(made.settings, kept).to_json() == state
