"""The enclosing ball meets its optimality conditions on all kinds of point sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside.design import enclosing_ball

KINDS = {
    "spread": lambda rng, n, r: rng.standard_normal((n, r)) * 10.0 ** rng.integers(-4, 4, size=r),
    "far away": lambda rng, n, r: rng.standard_normal((n, r)) + 1e4,
    "sphere": lambda rng, n, r: _unit(rng.standard_normal((n, r))),
    "duplicates": lambda rng, n, r: rng.standard_normal((n, r))[rng.integers(0, n, size=n)],
    "line": lambda rng, n, r: np.outer(rng.standard_normal(n), rng.standard_normal(r)) + 3.0,
    "one hot": lambda _rng, n, _r: np.eye(n),
    "grid": lambda rng, n, r: rng.integers(0, 3, size=(n, r)).astype(float),
    "crowd": lambda rng, n, r: 1.0 + 1e-9 * rng.standard_normal((n, r)),
}


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 40), width=st.integers(1, 12))
def test_no_point_is_beyond_the_radius(kind, seed, count, width):
    points = KINDS[kind](np.random.default_rng(seed), count, width)
    ball = enclosing_ball(points)
    assert np.all(ball.probabilities >= 0)
    assert ball.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    squares = np.sum((points - ball.probabilities @ points) ** 2, axis=1)
    # Coordinates carry rounding errors of their own size; the ball cannot know better.
    slack = 1e-8 * ball.squared_radius + 1e-13 * np.max(np.abs(points)) * np.sqrt(ball.squared_radius)
    assert squares.max() <= ball.squared_radius + slack
    assert np.all(squares[ball.probabilities > 0] >= ball.squared_radius - slack)
    assert np.count_nonzero(ball.probabilities) <= min(count, points.shape[1] + 1)
