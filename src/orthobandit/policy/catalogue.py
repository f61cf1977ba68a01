"""Policies by name, for the command line and for sweeps."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from orthobandit._foundation.registry import WithOwn, make_named, maker_of, settings_of
from orthobandit.policy.anytime.policy import anytime_elimination
from orthobandit.policy.base import Policy
from orthobandit.policy.best_of_k import LUCB, ActionElimination, LinLUCB, PooledTrackAndStop
from orthobandit.policy.bose import BOSE, FarthestPair
from orthobandit.policy.budget import P1RAGE, FixedBudget
from orthobandit.policy.budget_peers import GBAI, AdjacentBAI, ODLinBAI, P1Peace, Peace
from orthobandit.policy.explore import PureExploration, UniformAllocation
from orthobandit.policy.gap_exploration import LinGapE
from orthobandit.policy.linear import LinTS, LinUCB
from orthobandit.policy.multi_armed import UCB1, MABThompson
from orthobandit.policy.phased import RAGE, PhasedElimination
from orthobandit.policy.sbe import SBE
from orthobandit.policy.spbai import SPBAI, OneShot
from orthobandit.policy.spbai_budget import BudgetedSPBAI
from orthobandit.policy.stratified import StratifiedMeans
from orthobandit.policy.thompson import ActionCentredTS, SemiparametricTS
from orthobandit.policy.track_and_stop import FrankWolfeSampling, LazyTrackAndStop, LinGame
from orthobandit.policy.xy_allocation import XYAdaptive, XYStatic

# A policy's settings are the arguments of its maker.
POLICIES: Mapping[str, Callable[..., Policy[Any]]] = {
    "sbe": SBE,
    "explore": PureExploration,
    "anytime": anytime_elimination,
    "fixed-budget": FixedBudget,
    "bose": BOSE,
    "semiparametric-ts": SemiparametricTS,
    "action-centred-ts": ActionCentredTS,
    "farthest-pair": FarthestPair,
    "sp-bai": SPBAI,
    "sp-bai-budget": BudgetedSPBAI,
    "one-shot": OneShot,
    "stratified": StratifiedMeans,
    "phased-elimination": PhasedElimination,
    "rage": RAGE,
    "xy-static": XYStatic,
    "xy-adaptive": XYAdaptive,
    "lingape": LinGapE,
    "lazy-track-and-stop": LazyTrackAndStop,
    "lingame": LinGame,
    "frank-wolfe-sampling": FrankWolfeSampling,
    "p1-rage": P1RAGE,
    "od-linbai": ODLinBAI,
    "g-bai": GBAI,
    "peace": Peace,
    "p1-peace": P1Peace,
    "adjacent-bai": AdjacentBAI,
    "lucb": LUCB,
    "action-elimination": ActionElimination,
    "linlucb": LinLUCB,
    "pooled-track-and-stop": PooledTrackAndStop,
    "linucb": LinUCB,
    "lints": LinTS,
    "ucb1": UCB1,
    "mab-thompson": MABThompson,
    "uniform": UniformAllocation,
}
POLICIES = WithOwn("policy", POLICIES, "orthobandit.policies")


def named_policy(name: str, **settings: Any) -> Policy[Any]:
    """Return the policy of this name, a key of ``POLICIES``, with the given settings.

    Examples
    --------
    >>> named_policy("sbe", delta=0.1) == SBE(delta=0.1)
    True
    """
    return make_named("policy", POLICIES, name, settings)


def range_settings(name: str, settings: Mapping[str, Any], rewards: tuple[float, float]) -> dict[str, float]:
    """Return the range of rewards as settings of a policy, if it takes them and none were given.

    Parameters
    ----------
    name : str
    settings : dict
        Settings that were given.
    rewards : (float, float)
        Lowest and highest, infinite if they are not known.

    Examples
    --------
    >>> range_settings("anytime", {}, (0.0, 1.0))
    {'low': 0.0, 'high': 1.0}
    >>> range_settings("anytime", {"confidence": "asymptotic"}, (0.0, 1.0))
    {}
    """
    # Whoever says anything about the mode has made a choice, which what is known must not override.
    said = {"confidence", "low", "high", "sigma"} & set(settings)
    if said or not {"low", "high"} <= set(policy_settings(name)) or not np.all(np.isfinite(rewards)):
        return {}
    return dict(zip(("low", "high"), rewards, strict=True))


def needs_horizon(name: str) -> bool:
    """Tell whether the policy of this name cannot be made without the setting `horizon`.

    Examples
    --------
    >>> needs_horizon("bose"), needs_horizon("sbe")
    (True, False)
    """
    parameters = inspect.signature(maker_of("policy", POLICIES, name)).parameters
    return "horizon" in parameters and parameters["horizon"].default is inspect.Parameter.empty


def policy_settings(name: str) -> tuple[str, ...]:
    """Return the settings that the policy of this name takes.

    Examples
    --------
    >>> policy_settings("sp-bai")
    ('delta', 'variant', 'longest')
    """
    return settings_of(maker_of("policy", POLICIES, name))
