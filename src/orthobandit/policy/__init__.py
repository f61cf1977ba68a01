"""Policies: rules that turn past tallies into the next plan."""

from orthobandit.policy.anytime import AnytimeElimination
from orthobandit.policy.base import FOREVER, Decision, Policy
from orthobandit.policy.best_of_k import LUCB, ActionElimination, LinLUCB, PooledTrackAndStop
from orthobandit.policy.bose import BOSE, FarthestPair
from orthobandit.policy.budget import P1RAGE, FixedBudget
from orthobandit.policy.budget_peers import GBAI, AdjacentBAI, ODLinBAI, P1Peace, Peace
from orthobandit.policy.catalogue import (
    POLICIES,
    named_policy,
    needs_horizon,
    policy_settings,
    range_settings,
)
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
