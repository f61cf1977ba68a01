"""Long arrays as short texts, and states of earlier releases that kept lists."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet, Experiment
from orthobandit.experiment.ledger import Ledger
from orthobandit.experiment.packed import packed, unpacked


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, -0.0, np.inf], [np.nan, 5e-324, -1e300]]),
        np.arange(-3, 4) * 2**50,
        np.array([True, False]),
        np.zeros((2, 0)),
    ],
)
def test_what_is_unpacked_is_what_was_packed(array):
    found = unpacked(json.loads(json.dumps(packed(array))))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


def as_lists(state):
    """Return a state as releases up to 0.2 kept it."""
    waiting = {name: kept if name == "first" else unpacked(kept) for name, kept in state["waiting"].items()}
    lists = {
        name: kept if name == "first" else np.where(np.isfinite(kept), kept.astype(object), None).tolist()
        for name, kept in waiting.items()
    }
    levels = [
        level | {"rows": [unpacked(level["rows"]).tolist()] if level["rows"] else []}
        for level in state["levels"]
    ]
    feeds = [json.loads(feed) for feed in state["book"]["feeds"]]
    return state | {"waiting": lists, "levels": levels, "book": state["book"] | {"feeds": feeds}}


def test_states_of_earlier_releases_are_read():
    made = Experiment.memory(ArmSet.one_hot(3), rewards=(0, 1), key="7" * 64)
    shown = made.ask(200)
    made.tell_many([one.id for one in shown[:150]], [float(one.arm == 1) for one in shown[:150]])
    made.tell(shown[180].id, 1.0)  # while others before it wait
    state = made._now().to_json()
    earlier = json.loads(json.dumps(as_lists(state)))
    assert earlier["waiting"]["deadlines"] == [None] * 50
    assert Ledger.from_json(made.settings, earlier).to_json() == state
