"""A batch is its single runs, down to the last bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobandit import ArmSet, OrthogonalRegression, Plan, Tally


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 40),
    count=st.integers(2, 40),
    width=st.integers(1, 25),
)
def test_estimates_do_not_depend_on_the_size_of_the_batch(seed, batch, count, width):
    rng = np.random.default_rng(seed)
    arms = ArmSet(rng.standard_normal((count, width)))
    probabilities = rng.dirichlet(np.ones(count), size=batch)
    counts = rng.integers(1, 50, size=(batch, count))
    sums = counts * rng.standard_normal((batch, count))
    squares = counts + sums**2 / counts
    regression = OrthogonalRegression(delta=0.1)
    together = regression.fit(
        arms, [(Plan(probabilities, counts.sum(axis=-1)), Tally(counts, sums, squares))]
    )
    for i in range(batch):
        alone = regression.fit(
            arms, [(Plan(probabilities[i], counts[i].sum()), Tally(counts[i], sums[i], squares[i]))]
        )
        assert np.array_equal(together.gaps[i], alone.gaps)
        assert np.array_equal(together.theta[i], alone.theta)
