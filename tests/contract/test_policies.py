"""Every policy of the package keeps the contract, on every kind of arm set."""

import numpy as np
import pytest

from orthobandit import ArmSet, policy
from orthobandit.design import centred_design
from orthobandit.estimate import Bounded, NoBaseline, SubGaussian
from orthobandit.policy import (
    BOSE,
    GBAI,
    LUCB,
    P1RAGE,
    RAGE,
    SBE,
    SPBAI,
    UCB1,
    ActionCentredTS,
    ActionElimination,
    AdjacentBAI,
    AnytimeElimination,
    BudgetedSPBAI,
    FarthestPair,
    FixedBudget,
    FrankWolfeSampling,
    LazyTrackAndStop,
    LinGame,
    LinGapE,
    LinLUCB,
    LinTS,
    LinUCB,
    MABThompson,
    ODLinBAI,
    OneShot,
    P1Peace,
    Peace,
    PhasedElimination,
    PooledTrackAndStop,
    PureExploration,
    SemiparametricTS,
    StratifiedMeans,
    UniformAllocation,
    XYAdaptive,
    XYStatic,
)
from orthobandit.testing import check_policy

POLICIES = {
    "sbe": SBE(),
    "sbe theory": SBE(schedule="theory", delta=0.3, C2=0.25),
    "sbe adaptive": SBE(schedule="adaptive", delta=0.2, C2=0.5, C3=0.5),
    "sbe centred": SBE(design="centred"),
    "sbe contrast": SBE(design="contrast"),
    "sbe rule": SBE(design=centred_design),
    "sbe horizon": SBE(horizon=700),
    "explore": PureExploration(rounds=1000),
    "explore epsilon": PureExploration(epsilon=0.4, design="centred"),
    "bose": BOSE(horizon=3000),
    "bose uniform": BOSE(horizon=3000, distribution="uniform"),
    "bose theory": BOSE(horizon=3000, constants="theory", delta=0.3),
    "bose eager": BOSE(horizon=3000, scale=0.02, ridge=1.0),
    "farthest pair": FarthestPair(horizon=3000, scale=0.1),
    "semiparametric ts": SemiparametricTS(horizon=3000, scale=0.5, draws=200),
    "semiparametric ts released": SemiparametricTS(horizon=3000, scale=0.5, draws=200, rule="released"),
    "action centred": ActionCentredTS(),
    "linucb": LinUCB(),
    "lints": LinTS(),
    "lints posterior": LinTS(spread=0.5),
    "ucb1": UCB1(),
    "mab gaussian": MABThompson(),
    "mab beta": MABThompson(posterior="beta", low=-50.0, high=50.0),
    "uniform": UniformAllocation(),
    "sbe successor": SBE(schedule="successor", delta=0.3),
    "sbe cut": SBE(schedule="successor", delta=0.3, longest=500),
    "spbai": SPBAI(delta=0.3),
    "spbai released": SPBAI(delta=0.3, variant="released"),
    "spbai cut": SPBAI(delta=0.3, longest=400),
    "spbai budget": BudgetedSPBAI(700, delta=0.3),
    "spbai budget released": BudgetedSPBAI(700, delta=0.3, variant="released"),
    "one shot": OneShot(gap=1.0, delta=0.3),
    "phased": PhasedElimination(noise=0.3),
    "rage": RAGE(delta=0.3, noise=0.1),
    "rage released": RAGE(delta=0.3, noise=0.3, constants="released"),
    "xy static": XYStatic(noise=0.2),
    "xy adaptive": XYAdaptive(noise=0.2, alpha=0.5, constants="released"),
    "lingape": LinGapE(noise=0.3),
    "lingape eliminates": LinGapE(noise=0.1, eliminates=True, constants="paper"),
    "lazy track": LazyTrackAndStop(noise=0.3),
    "lazy draw": LazyTrackAndStop(noise=0.3, draw=True),
    "lingame": LinGame(noise=0.1, eliminates=True),
    "frank-wolfe": FrankWolfeSampling(noise=0.1, threshold="heuristic"),
    "lucb": LUCB(noise=0.5),
    "action elimination": ActionElimination(noise=0.1),
    "linlucb": LinLUCB(budget=230, epoch=50),
    "pooled": PooledTrackAndStop(period=100),
    "od-linbai": ODLinBAI(1000),
    "g-bai": GBAI(1000),
    "peace": Peace(1000),
    "p1-peace": P1Peace(1000),
    "adjacent": AdjacentBAI(1000),
    "stratified": StratifiedMeans(epoch=100),
    "p1rage": P1RAGE(budget=1000),
    "fixed budget": FixedBudget(1000),
    "anytime": AnytimeElimination(growth=0.4),
    "anytime earn": AnytimeElimination(goal="earn", delta=0.2, growth=0.4),
    "anytime epsilon": AnytimeElimination(epsilon=0.5, growth=0.4, baseline=NoBaseline()),
    "anytime bounded": AnytimeElimination(confidence=Bounded(-10.0, 12.0), growth=0.4),
    "anytime leader": AnytimeElimination(growth=0.4, pairs="leader"),
    "anytime leader bounded": AnytimeElimination(
        confidence=Bounded(-10.0, 12.0), goal="earn", growth=0.4, pairs="leader"
    ),
    "anytime sub-gaussian": AnytimeElimination(confidence=SubGaussian(-4.0, 8.0), goal="earn", growth=0.4),
}

# These play arms that are out of the race for what they tell about the others.
PLAY_DROPPED = {
    "spbai",
    "spbai released",
    "spbai cut",
    "spbai budget",
    "spbai budget released",
    "rage",
    "rage released",
    "xy static",
    "xy adaptive",
    "lingape",
    "lingape eliminates",
    "lazy track",
    "lazy draw",
    "lingame",
    "frank-wolfe",
    "lucb",
    "peace",
    "fixed budget",
    "anytime",
    "anytime epsilon",
    "anytime bounded",
    "anytime leader",
}

ARMS = {
    "random": ArmSet(np.random.default_rng(5).standard_normal((6, 3)) / 2),
    "one hot": ArmSet.one_hot(4),
    "flat": ArmSet(np.random.default_rng(6).standard_normal((5, 2)) @ np.ones((2, 4)) / 2 + 3),
    "repeated": ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.3]]),
    "identical": ArmSet(np.ones((3, 2))),
    "single": ArmSet([[2.0, 1.0]]),
}


# The first setting of a class meets every arm set. So does a setting that has code of its own.
FIRST = {type(policy): name for name, policy in reversed(POLICIES.items())}
THOROUGH = {*FIRST.values(), "anytime leader", "lazy draw"}
# Their steps take seconds to compile, or their plans to solve.
TAKE_SECONDS = {"lingape", "lingape eliminates", "lazy track", "lazy draw", "lingame", "frank-wolfe"}
TAKE_SECONDS |= {"lucb", "action elimination", "pooled"}
PLAYED = [
    pytest.param(name, arms, id=f"{name}-{arms}", marks=[pytest.mark.slow] if name in TAKE_SECONDS else [])
    for name in POLICIES
    for arms in (ARMS if name in THOROUGH else ["random"])
]


@pytest.mark.parametrize(("name", "arms"), PLAYED)
def test_policy_keeps_the_contract(name, arms):
    check_policy(POLICIES[name], ARMS[arms], may_play_dropped=name in PLAY_DROPPED)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["sbe", "explore", "bose eager"])
def test_contract_holds_for_a_wide_batch(name, seed):
    check_policy(POLICIES[name], ARMS["random"], replications=25, seed=seed)


def test_every_public_policy_plays_the_suite():
    classes = [getattr(policy, name) for name in policy.__all__]
    public = {kind for kind in classes if hasattr(kind, "observe") and kind is not policy.Policy}
    assert public == {type(played) for played in POLICIES.values()}
