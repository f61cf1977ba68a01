"""BOSE's distribution keeps its inequality for all survivors, also on degenerate arm sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobandit import ArmSet, Tally
from orthobandit.policy import BOSE, FOREVER, FarthestPair

KINDS = {
    "spread": lambda rng, n, r: rng.standard_normal((n, r)),
    "sphere": lambda rng, n, r: _unit(rng.standard_normal((n, r)) + 1e-3),
    "duplicates": lambda rng, n, r: rng.standard_normal((n, r))[rng.integers(0, n, size=n)],
    "line": lambda rng, n, r: np.outer(rng.standard_normal(n), rng.standard_normal(r)) + 1.0,
    "one hot": lambda _rng, n, _r: np.eye(n),
    "grid": lambda rng, n, r: rng.integers(0, 3, size=(n, r)).astype(float),
}


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def excess(arms, gram, p, active):
    """Return max ‖x_a − μ‖² / tr(V⁻¹Σ_p) over the survivors."""
    white = np.linalg.solve(np.linalg.cholesky(gram), arms.positions.T).T
    squares = np.sum((white - p @ white) ** 2, axis=1)
    return squares[active].max() / (p @ squares)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 12), width=st.integers(1, 6))
def test_survivors_are_within_the_trace(kind, seed, count, width):
    rng = np.random.default_rng(seed)
    arms = ArmSet(KINDS[kind](rng, count, width))
    for policy, limit in (
        (BOSE(60, scale=0.1, ridge=1.0), 1.0),
        (FarthestPair(60, scale=0.1, ridge=1.0), 3.0),
    ):
        state = policy.start(arms)
        for _ in range(40):
            plan = policy.plan(state)
            if plan.rounds == FOREVER:
                break
            gram = state.memory.gram + np.eye(arms.dimension)
            active = policy.decide(state).active
            assert excess(arms, gram, plan.probabilities, active) <= limit * (1 + 2e-8)
            arm = int(rng.choice(count, p=plan.probabilities / plan.probabilities.sum()))
            tally = Tally.of([arm], [rng.standard_normal() + arm], count)
            state = policy.observe(state, plan, tally)
