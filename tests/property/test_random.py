"""No arm is drawn that has no probability, and every arm owns its slice."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inside._foundation import arm_at, cumulative_probabilities

WEIGHTS = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1.0)), min_size=1, max_size=12).filter(any)


@given(WEIGHTS, st.floats(0, 1, exclude_max=True))
def test_the_arm_at_a_position_owns_it(weights, position):
    probabilities = np.array(weights) / np.sum(weights)
    cumulative = cumulative_probabilities(probabilities)
    arm = arm_at(cumulative, position)
    assert probabilities[arm] > 0
    assert position < cumulative[arm]
    assert arm == 0 or cumulative[arm - 1] <= position


@given(WEIGHTS)
def test_slices_are_as_long_as_the_probabilities(weights):
    probabilities = np.array(weights) / np.sum(weights)
    slices = np.diff(cumulative_probabilities(probabilities), prepend=0.0)
    assert np.all(slices >= 0)
    assert np.allclose(slices, probabilities, atol=1e-15 * len(weights))
