"""Policies: rules that turn past tallies into the next plan. Published methods are in `orthobandit.peers`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orthobandit.policy.anytime import AnytimeElimination
from orthobandit.policy.base import FOREVER, Decision, Policy
from orthobandit.policy.budget import FixedBudget
from orthobandit.policy.explore import PureExploration, UniformAllocation
from orthobandit.policy.sbe import SBE

if TYPE_CHECKING:
    from orthobandit.peers import (
        BOSE,
        GBAI,
        LUCB,
        P1RAGE,
        POLICIES,
        RAGE,
        SPBAI,
        UCB1,
        ActionCentredTS,
        ActionElimination,
        AdjacentBAI,
        BudgetedSPBAI,
        FarthestPair,
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
        SemiparametricTS,
        StratifiedMeans,
        XYAdaptive,
        XYStatic,
        named_policy,
        needs_horizon,
        policy_settings,
        range_settings,
    )

__all__ = [
    "BOSE",
    "FOREVER",
    "GBAI",
    "LUCB",
    "P1RAGE",
    "POLICIES",
    "RAGE",
    "SBE",
    "SPBAI",
    "UCB1",
    "ActionCentredTS",
    "ActionElimination",
    "AdjacentBAI",
    "AnytimeElimination",
    "BudgetedSPBAI",
    "Decision",
    "FarthestPair",
    "FixedBudget",
    "FrankWolfeSampling",
    "LazyTrackAndStop",
    "LinGame",
    "LinGapE",
    "LinLUCB",
    "LinTS",
    "LinUCB",
    "MABThompson",
    "ODLinBAI",
    "OneShot",
    "P1Peace",
    "Peace",
    "PhasedElimination",
    "Policy",
    "PooledTrackAndStop",
    "PureExploration",
    "SemiparametricTS",
    "StratifiedMeans",
    "UniformAllocation",
    "XYAdaptive",
    "XYStatic",
    "named_policy",
    "needs_horizon",
    "policy_settings",
    "range_settings",
]


def __getattr__(name: str) -> Any:
    """Return a published method or the catalogue, which had their home here before 0.5."""
    if name in __all__:
        return getattr(import_module("orthobandit.peers"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
