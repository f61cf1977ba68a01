"""A small experiment whose clock the tests turn."""

import numpy as np
import pytest

from experiment_samples import Clock
from orthobandit import AnytimeElimination, ArmSet, Experiment


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(clock):
    """Return a maker of experiments in memory; exact mode, three arms."""

    def make(policy=None, arms=3, **settings):
        chosen = AnytimeElimination(rewards=(0.0, 1.0)) if policy is None else policy
        confidence = getattr(chosen, "confidence", None)
        if confidence is None or not confidence.is_exact:
            settings.setdefault("rewards", "unknown")
        return Experiment.memory(ArmSet.one_hot(arms), chosen, clock=clock, **settings)

    return make


def played(experiment, clock, rounds, means, rng, delay=0.0):
    """Play rounds with rewards of 0 or 1 that arrive after a while, those of 1 alone."""
    awaited = []
    for _ in range(rounds):
        clock.now += 1.0
        for due, number in [one for one in awaited if one[0] <= clock.now]:
            experiment.tell(number, 1.0)
            awaited.remove((due, number))
        proposal = experiment.ask()
        if rng.random() < np.asarray(means)[proposal.arm]:
            awaited.append((clock.now + rng.random() * delay, proposal.id))
    return experiment
