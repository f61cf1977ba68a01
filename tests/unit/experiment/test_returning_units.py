"""Units that have come before, and arms that are added to those so far."""

import numpy as np
import pytest

from orthobandit import ArmSet, Experiment


@pytest.mark.parametrize("where", ["memory", "file"])
def test_a_unit_is_known_once_it_was_asked_for_and_nothing_is_drawn(where, tmp_path):
    arms = ArmSet.one_hot(2)
    if where == "memory":
        made = Experiment.memory(arms, rewards="unknown")
    else:
        made = Experiment.create(tmp_path / "log.db", arms, rewards="unknown")
    with made as pages:
        assert pages.known("ann") is None
        first = pages.ask(unit="ann")
        again = pages.known("ann")
        assert (again.id, again.arm, again.label, again.plan) == (1, first.arm, first.label, first.plan)
        assert np.array_equal(again.probabilities, first.probabilities)
        assert pages.known("bob") is None
        assert pages.report().proposals == 1


def test_arms_are_added_by_a_function_of_those_so_far():
    with Experiment.memory(ArmSet.one_hot(2, labels=["a", "b"]), rewards="unknown") as pages:
        for label in ("c", "d"):
            pages.extend(lambda arms, new=label: ArmSet.one_hot(len(arms) + 1, [*arms.labels, new]))
        assert pages.arms.labels == ("a", "b", "c", "d")
