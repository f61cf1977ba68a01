"""A million arms: who can hold them, and what the others say before anything is allocated."""

import tracemalloc

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet
from orthobandit.design import contrast_design
from orthobandit.errors import ParameterError
from orthobandit.policy import (
    BOSE,
    P1RAGE,
    RAGE,
    FarthestPair,
    FixedBudget,
    LinUCB,
    StratifiedMeans,
)
from orthobandit.policy.phases import pairs_of

ARMS = ArmSet(np.linspace(0.0, 1.0, 1_000_000)[:, np.newaxis])
SQUARES = {
    "anytime": AnytimeElimination(pairs="all"),
    "bose": BOSE(horizon=1000),
    "farthest": FarthestPair(horizon=1000),
    "linucb": LinUCB(),
    "rage": RAGE(),
    "stratified": StratifiedMeans(epoch=100),
}


@pytest.mark.parametrize("policy", SQUARES.values(), ids=SQUARES)
def test_a_square_of_a_million_is_refused_before_it_is_made(policy):
    tracemalloc.start()
    with pytest.raises(
        ParameterError, match=r"would need [\d,]+ GiB of memory, and this machine has"
    ) as error:
        policy.start(ARMS)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "pairs='leader'" in str(error.value) or "AnytimeElimination" in str(error.value)
    assert most < 2**20


SLOW = {
    "fixed budget": lambda: FixedBudget(budget=10_000).start(ARMS),
    "p1-rage": lambda: P1RAGE(budget=10_000).start(ARMS),
    "design": lambda: contrast_design(ARMS),
}


@pytest.mark.parametrize("ask", SLOW.values(), ids=SLOW)
def test_what_would_take_hours_is_refused_before_it_begins(ask):
    with pytest.raises(ParameterError, match=r"499,999,500,000 pairs .* about 8\.9 hours") as error:
        ask()
    assert "centred_design" in str(error.value)
    assert "AnytimeElimination" in str(error.value)


def test_designs_for_all_pairs_are_refused_too():
    with pytest.raises(ParameterError, match=r"all pairs of 1,000,000 arms would need 14,901 GiB"):
        pairs_of(np.ones(1_000_000, dtype=np.bool_))


def test_bounds_on_all_pairs_are_refused_and_one_row_is_not():
    policy = AnytimeElimination()
    state = policy.start(ARMS)
    with pytest.raises(ParameterError, match="ask for one row or one column"):
        policy.upper_bounds(state)
    assert policy.upper_bounds(state, over=5).shape == (1_000_000,)
