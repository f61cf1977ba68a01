"""Policies by name, for the command line and for sweeps."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from orthobandit._foundation.registry import WithOwn, make_named, maker_of, settings_of
from orthobandit.peers.action_centred_ts import ActionCentredTS
from orthobandit.peers.action_elimination import ActionElimination
from orthobandit.peers.adjacent_bai import AdjacentBAI
from orthobandit.peers.bose import BOSE
from orthobandit.peers.farthest_pair import FarthestPair
from orthobandit.peers.frank_wolfe_sampling import FrankWolfeSampling
from orthobandit.peers.g_bai import GBAI
from orthobandit.peers.lazy_track_and_stop import LazyTrackAndStop
from orthobandit.peers.lingame import LinGame
from orthobandit.peers.lingape import LinGapE
from orthobandit.peers.linlucb import LinLUCB
from orthobandit.peers.lints import LinTS
from orthobandit.peers.linucb import LinUCB
from orthobandit.peers.lucb import LUCB
from orthobandit.peers.mab_thompson import MABThompson
from orthobandit.peers.od_linbai import ODLinBAI
from orthobandit.peers.one_shot import OneShot
from orthobandit.peers.p1_peace import P1Peace
from orthobandit.peers.p1_rage import P1RAGE
from orthobandit.peers.peace import Peace
from orthobandit.peers.phased_elimination import PhasedElimination
from orthobandit.peers.pooled_track_and_stop import PooledTrackAndStop
from orthobandit.peers.rage import RAGE
from orthobandit.peers.semiparametric_ts import SemiparametricTS
from orthobandit.peers.sp_bai import SPBAI
from orthobandit.peers.sp_bai_budget import BudgetedSPBAI
from orthobandit.peers.stratified import StratifiedMeans
from orthobandit.peers.ucb1 import UCB1
from orthobandit.peers.xy_adaptive import XYAdaptive
from orthobandit.peers.xy_static import XYStatic
from orthobandit.policy.anytime.policy import anytime_elimination
from orthobandit.policy.base import Policy
from orthobandit.policy.budget import FixedBudget
from orthobandit.policy.explore import PureExploration, UniformAllocation
from orthobandit.policy.sbe import SBE

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
