"""Published methods of others, a file each, and the catalogue of all policies.

Each names its paper, what it promises there, and where it departs from it. What this package stands for is in
:mod:`orthobandit.policy`.
"""

from orthobandit.peers.action_centred_ts import ActionCentredTS, ContextualActionCentredTS
from orthobandit.peers.action_elimination import ActionElimination
from orthobandit.peers.adjacent_bai import AdjacentBAI
from orthobandit.peers.bose import BOSE, ContextualBOSE
from orthobandit.peers.catalogue import POLICIES, named_policy, needs_horizon, policy_settings, range_settings
from orthobandit.peers.centred_ts import CentredThompson
from orthobandit.peers.debiased_ts import DebiasedThompson
from orthobandit.peers.farthest_pair import FarthestPair
from orthobandit.peers.frank_wolfe_sampling import FrankWolfeSampling
from orthobandit.peers.g_bai import GBAI
from orthobandit.peers.lazy_track_and_stop import LazyTrackAndStop
from orthobandit.peers.lingame import LinGame
from orthobandit.peers.lingape import LinGapE
from orthobandit.peers.linlucb import LinLUCB
from orthobandit.peers.lints import ContextualLinTS, LinTS
from orthobandit.peers.linucb import ContextualLinUCB, LinUCB
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
from orthobandit.peers.semi_graph_ts import SemiGraphTS
from orthobandit.peers.semiparametric_ts import ContextualSemiparametricTS, SemiparametricTS
from orthobandit.peers.sp_bai import SPBAI
from orthobandit.peers.sp_bai_budget import BudgetedSPBAI
from orthobandit.peers.stratified import StratifiedMeans
from orthobandit.peers.ucb1 import UCB1
from orthobandit.peers.xy_adaptive import XYAdaptive
from orthobandit.peers.xy_static import XYStatic

__all__ = [
    "BOSE",
    "GBAI",
    "LUCB",
    "P1RAGE",
    "POLICIES",
    "RAGE",
    "SPBAI",
    "UCB1",
    "ActionCentredTS",
    "ActionElimination",
    "AdjacentBAI",
    "BudgetedSPBAI",
    "CentredThompson",
    "ContextualActionCentredTS",
    "ContextualBOSE",
    "ContextualLinTS",
    "ContextualLinUCB",
    "ContextualSemiparametricTS",
    "DebiasedThompson",
    "FarthestPair",
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
    "PooledTrackAndStop",
    "SemiGraphTS",
    "SemiparametricTS",
    "StratifiedMeans",
    "XYAdaptive",
    "XYStatic",
    "named_policy",
    "needs_horizon",
    "policy_settings",
    "range_settings",
]
