"""Tallies and moments merge in any order, in a batch as one by one, and survive JSON to the last bit."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orthobandit import ArmSet, Moments, Plan, Tally

ROUNDS = st.lists(st.tuples(st.integers(0, 3), st.floats(-1e6, 1e6)), max_size=30)
# Every size of reward that a tally accepts.
ANY_ROUNDS = st.lists(st.tuples(st.integers(0, 3), st.floats(-1e150, 1e150)), max_size=30)
ARMS = ArmSet([[0.0, 1.0], [2.0, -1.0], [1.0, 1.0], [3.0, 0.5]])


def tallied(rounds):
    return Tally.of([arm for arm, _ in rounds], [reward for _, reward in rounds], count=4)


def close(first, second, scale):
    """Compare sums of up to a hundred terms, each no larger than `scale`, to 1e-12."""
    return bool(np.all(np.abs(first - second) <= 1e-12 * scale))


@given(ROUNDS, ROUNDS)
def test_merging_commutes_exactly(first, second):
    one, other = tallied(first) + tallied(second), tallied(second) + tallied(first)
    assert np.array_equal(one.counts, other.counts)
    assert np.array_equal(one.sums, other.sums)
    assert np.array_equal(one.squares, other.squares)


@given(ROUNDS, ROUNDS, ROUNDS)
def test_merging_associates_and_equals_tallying_together(first, second, third):
    a, b, c = tallied(first), tallied(second), tallied(third)
    size = 90 * max([1.0, *(abs(reward) for _, reward in first + second + third)])
    for merged in ((a + b) + c, a + (b + c)):
        together = tallied(first + second + third)
        assert np.array_equal(merged.counts, together.counts)
        assert close(merged.sums, together.sums, size)
        assert close(merged.squares, together.squares, size**2)


@given(st.lists(ROUNDS, min_size=1, max_size=4), st.permutations(range(4)))
def test_moments_merge_in_any_order(parts, order):
    plan = Plan([0.1, 0.2, 0.3, 0.4], rounds=30)
    moments = [Moments.of(ARMS, plan, tallied(rounds)) for rounds in parts]
    forward = sum(moments, start=Moments.zeros(ARMS))
    other = sum((moments[i] for i in order if i < len(moments)), start=Moments.zeros(ARMS))
    size = 1e3 * max([1.0, *(abs(reward) for rounds in parts for _, reward in rounds)])
    assert np.array_equal(forward.rounds, other.rounds)
    assert close(forward.gram, other.gram, 1e3)
    assert close(forward.moment, other.moment, size)


@given(ROUNDS, ROUNDS)
def test_a_batch_merges_as_its_members(first, second):
    a, b = tallied(first), tallied(second)
    batch = Tally(*(np.stack(pair) for pair in zip(_parts(a), _parts(b), strict=True)))
    swapped = Tally(*(np.stack(pair) for pair in zip(_parts(b), _parts(a), strict=True)))
    merged = batch + swapped
    for array, single in zip(_parts(merged), _parts(a + b), strict=True):
        assert np.array_equal(array, np.stack([single, single]))


@given(ANY_ROUNDS)
def test_json_keeps_every_bit_of_a_tally(rounds):
    alone = tallied(rounds)
    batch = Tally(*(np.stack([part, part[::-1]]) for part in _parts(alone)))
    for tally in (alone, batch):
        again = Tally.from_json(json.loads(json.dumps(tally.to_json())))
        for array, original in zip(_parts(again), _parts(tally), strict=True):
            assert array.dtype == original.dtype
            assert array.shape == original.shape
            assert array.tobytes() == original.tobytes()


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=8), st.integers(0, 2**63 - 1))
def test_json_keeps_every_bit_of_a_plan(weights, rounds):
    probabilities = np.array(weights) / np.sum(weights)
    for plan in (Plan(probabilities, rounds), Plan([probabilities, probabilities[::-1]], [rounds, 1])):
        again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
        assert again.probabilities.shape == plan.probabilities.shape
        assert again.probabilities.tobytes() == plan.probabilities.tobytes()
        assert again.rounds.tobytes() == plan.rounds.tobytes()


def _parts(tally):
    return tally.counts, tally.sums, tally.squares
