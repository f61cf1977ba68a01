"""An experiment that two releases have open at once, where one of them plans differently."""

from contextlib import contextmanager

import numpy as np
import pytest

from orthobandit import Experiment, __version__
from orthobandit._foundation import release
from orthobandit.experiment.ledger import policy_feed
from orthobandit.policy.anytime import stages

CHANCES = (0.3, 0.35, 0.4)


@contextmanager
def another_release(shortest=23):
    """Plan as a release might that is not this one: with longer batches, or shorter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "SHORTEST", shortest)
        patch.setattr(release, "__version__", "9.1.0")
        patch.setattr(policy_feed, "__version__", "9.1.0")
        yield


class Clock:
    now = 1000.0

    def __call__(self):
        self.now += 1.0
        return self.now


def visit(experiment, first, count=10, chances=CHANCES):
    """Ask for units and tell their rewards."""
    shown = experiment.ask_many(units=[f"unit {number}" for number in range(first, first + count)])
    draws = [np.random.default_rng(one.id).random() for one in shown]
    rewards = [float(draw < chances[one.arm]) for draw, one in zip(draws, shown, strict=True)]
    experiment.tell_many([one.id for one in shown], rewards)
    return sum(rewards)


def entries_of(experiment):
    return [entry for _, entry in experiment._store.entries()]


def plans_of(experiment):
    return [entry.data for entry in entries_of(experiment) if getattr(entry, "kind", "") == "plan"]


def check_shared(where, mine, shortest, batches=24, **more):
    """Let two releases take turns on an experiment, and check what they have made of it."""
    clock = mine._methods._clock
    with another_release(shortest):
        theirs = Experiment.open(where, clock=clock, **more)
    told = 0.0
    for place in range(batches):
        if place % 2:
            told += visit(mine, 10 * place)
        else:
            with another_release(shortest):
                told += visit(theirs, 10 * place)
    assert mine.audit().passed
    assert mine.audit().proposals == 10 * batches
    assert sum(row.rewards["reward"] for row in mine._store.table()) == told
    made = plans_of(mine)
    assert [one["plan"]["number"] for one in made] == list(range(1, len(made) + 1))
    assert {one["release"] for one in made} == {__version__, "9.1.0"}
    assert len(made) < batches  # neither takes back at once what the other has planned
    # Both count all rewards, and know which plans they would not have made.
    ledger = mine._now()
    assert ledger.drawn.sum() == 10 * batches
    assert int(ledger.feed.now().rounds) == 10 * batches
    assert "9.1.0" in ledger.feed.differences.releases
    replay = mine.replay()
    assert replay.passed, str(replay)
    assert "9.1.0" in replay.planned_by
    with another_release(shortest):
        in_force = theirs._now().feed.plan
        assert np.array_equal(in_force.probabilities, ledger.feed.plan.probabilities)
        assert int(in_force.number) == int(ledger.feed.plan.number)
        theirs.close()
    mine.close()
