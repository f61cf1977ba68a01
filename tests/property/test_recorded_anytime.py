"""Whoever takes recorded plans of anytime elimination comes to the state of who made them, bit by bit."""

import json
from collections import Counter

import numpy as np
import pytest

from inside.anytime import RecordedElimination
from inside.testing import content
from orthobandit import AnytimeElimination, ArmSet, Bounded, Plan, SubGaussian, Tally
from orthobandit.estimate import SameShape
from orthobandit.policy.contract import Batch, PlanRecord

MODES = (None, Bounded(0.0, 1.0), SubGaussian(-3.0, 3.0), SameShape(clip=3.0))
MAX_PLANS = 120


def random_run(seed):
    """Return a policy, its arms, their means and what the run's rounds are drawn with."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 8))
    confidence = MODES[seed % len(MODES)]
    has_features = rng.random() < 0.4 and not isinstance(confidence, SameShape)
    arms = ArmSet(rng.standard_normal((count, 2))) if has_features else ArmSet.one_hot(count)
    policy = AnytimeElimination(
        delta=0.3,
        epsilon=float(rng.choice([0.0, 0.3])) if not isinstance(confidence, SameShape) else 0.0,
        goal=str(rng.choice(["identify", "earn"])),
        confidence=confidence,
        growth=float(rng.choice([0.05, 0.3])),
        pairs=("all", "leader")[seed // len(MODES) % 2],
        expect=[None, 0.3][rng.integers(2)],
    )
    means = np.clip(0.5 + 0.25 * arms.features @ rng.standard_normal(arms.features.shape[1]), 0.02, 0.98)
    return policy, arms, means, rng


def played(plan, rounds, means, rng):
    """Return the tally of rounds (...) of a plan, of rewards that are 0 or 1."""
    tallies = []
    for place in np.ndindex(plan.rounds.shape):
        single = plan.at(place)
        drawn = rng.choice(plan.count, int(rounds[place]), p=single.probabilities)
        rewards = (rng.random(len(drawn)) < means[drawn]).astype(float)
        tallies.append(Tally.of(drawn, single.residuals(drawn, rewards, 0.1), plan.count))
    names = ("counts", "sums", "squares", "largest")
    parts = (np.array([getattr(tally, name) for tally in tallies]) for name in names)
    return Tally(*(part.reshape(plan.probabilities.shape) for part in parts))


def stored(plan, record):
    """Return a plan and its record as a log gives them back."""
    text = json.dumps([plan.to_json(), record.to_json()], allow_nan=False)
    data = json.loads(text)
    return Plan.from_json(data[0]), PlanRecord.from_json(data[1])


def follow(seed, batch=()):
    """Play a run three ways and compare the states at every plan; return what its plans decided."""
    settings, arms, means, rng = random_run(seed)
    policy = RecordedElimination(settings)
    state = settings.start(arms, batch)
    writer = reader = policy.start(arms, batch)
    earlier, seen = [], Counter()
    for _ in range(MAX_PLANS):
        plan = settings.plan(state)
        rounds = np.where(state.declared >= 0, 0, plan.rounds)
        if not rounds.any():
            break
        batches = []
        if earlier and rng.random() < 0.4:
            late = earlier[rng.integers(max(len(earlier) - 5, 0), len(earlier))]
            few = np.where(state.declared >= 0, 0, np.minimum(rng.integers(1, 6), rounds - 1))
            batches.append(Batch(late, played(late, few, means, rng)))
            state = settings.late(state, *batches[0][:2])
            rounds = np.where(state.declared >= 0, 0, settings.plan(state).rounds)
            seen["late"] += 1
        batches.append(Batch(plan, played(plan, rounds, means, rng)))
        earlier.append(plan)
        state = settings.observe(state, *batches[-1][:2])
        order = rng.permutation(len(batches))
        writer = policy.observe(writer, batches)
        reader = policy.observe(reader, [batches[place] for place in order])
        before = writer.state
        plan, record = policy.plan(writer)
        seen.update(name for name in record.details)
        seen["dropped"] += bool(np.any(before.active & ~record.active))
        seen["declared"] += bool(np.any(record.declared >= 0))
        writer = policy.adopt(writer, plan, record)
        reader = policy.adopt(reader, *stored(plan, record))
        assert not writer.batches
        assert content(writer.state) == content(state)
        assert content(reader) == content(writer)
    return seen


@pytest.mark.parametrize("seed", range(24))
def test_a_reader_who_never_plans_has_the_state_of_the_writer(seed):
    seen = follow(seed)
    assert {"values", "length"} <= seen.keys()


@pytest.mark.parametrize("seed", [0, 1, 4, 5])
def test_so_has_one_of_several_replications(seed):
    follow(seed, batch=(3,))
