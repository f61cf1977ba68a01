"""Simulated experiments: environments with a moving baseline, and a runner fast enough to trust them."""

from orthobandit.simulation.adversaries import Adaptive, CancelBest, Known, Past, PushLeader, ReactToLast
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.instances import (
    INSTANCES,
    exact_gap,
    named_instance,
    near_degenerate,
    one_hot,
    successor_sphere,
    uniform_sphere,
)
from orthobandit.simulation.measures import Misses, explore, misses, rounds_to_plan
from orthobandit.simulation.noise import (
    NOISES,
    Bernoulli,
    Clipped,
    Gaussian,
    Noise,
    StudentT,
    Uniform,
    named_noise,
)
from orthobandit.simulation.paths import Formula, Limited, Oblivious, RandomWalk, Replay, Scaled
from orthobandit.simulation.result import RunResult, Summary, compare, comparison_table
from orthobandit.simulation.runner import simulate
from orthobandit.simulation.shifts import (
    SHIFTS,
    Constant,
    Jumps,
    LogAlternating,
    Seasonal,
    Shift,
    Sine,
    Trend,
    named_shift,
    within,
)

__all__ = [
    "INSTANCES",
    "NOISES",
    "SHIFTS",
    "Adaptive",
    "Bernoulli",
    "CancelBest",
    "Clipped",
    "Constant",
    "Environment",
    "Formula",
    "Gaussian",
    "Jumps",
    "Known",
    "Limited",
    "LogAlternating",
    "Misses",
    "Noise",
    "Oblivious",
    "Past",
    "PushLeader",
    "RandomWalk",
    "ReactToLast",
    "Replay",
    "RunResult",
    "Scaled",
    "Seasonal",
    "Shift",
    "Sine",
    "StudentT",
    "Summary",
    "Trend",
    "Uniform",
    "compare",
    "comparison_table",
    "exact_gap",
    "explore",
    "misses",
    "named_instance",
    "named_noise",
    "named_shift",
    "near_degenerate",
    "one_hot",
    "rounds_to_plan",
    "simulate",
    "successor_sphere",
    "uniform_sphere",
    "within",
]
