"""What cells compute: functions from plain settings to plain tables."""

from collections.abc import Callable
from typing import Any

import numpy as np

from orthobandit.arms import ArmSet
from orthobandit.design import Design, anchor_design, centred_design
from orthobandit.estimate import Moments, OrthogonalRegression, Plan
from orthobandit.simulation import Environment, explore, misses, simulate, within
from orthobandit.study.cells import Tables
from orthobandit.study.makers import make

DESIGNS: dict[str, Callable[[ArmSet], Design]] = {"anchor": anchor_design, "centred": centred_design}


def environment_of(settings: dict[str, Any]) -> Environment:
    """Build the environment that a cell's settings describe."""
    base: Environment = _part("instance", settings["instance"])
    return base.moved(_part("shift", settings["shift"]), _part("noise", settings["noise"]))


def run_policy(settings: dict[str, Any]) -> Tables:
    """Simulate one policy: `curves` has a row a replication and checkpoint, `runs` one a replication."""
    result = simulate(
        _part("policy", settings["policy"]),
        environment_of(settings),
        horizon=settings["horizon"],
        first=settings["first"],
        replications=settings["replications"],
        seed=settings["seed"],
        checkpoints=settings["checkpoints"],
        stop_when_declared=settings["stop_when_declared"],
    )
    marks, numbers = result.checkpoints.size, result.replications.tolist()
    curves = {
        "replication": np.repeat(result.replications, marks).tolist(),
        "round": np.tile(result.checkpoints, len(numbers)).tolist(),
        "regret": result.regret.reshape(-1).tolist(),
    }
    runs = {
        "replication": numbers,
        "regret": result.regret[:, -1].tolist(),
        "stop_time": result.stop_times.tolist(),
        "declared": result.declared.tolist(),
        "is_correct": result.correct.tolist(),
        "plans": result.plans.tolist(),
    }
    return {"curves": curves, "runs": runs}


def track_error(settings: dict[str, Any]) -> Tables:
    """Explore with one design and note e_t = max_i |(x_i − x_1)ᵀ(θ̂_t − θ)| at the checkpoints.

    `pair_error` is the same over all pairs of arms. The estimate is the paper's, with ridge log(t/δ).
    """
    environment = environment_of(settings)
    arms = environment.arms
    design: Design = DESIGNS[settings["design"]](arms)
    checkpoints = np.array(settings["checkpoints"])
    tally = explore(
        environment,
        design.probabilities,
        checkpoints=checkpoints,
        replications=settings["replications"],
        seed=settings["seed"],
    )
    plan = Plan(np.broadcast_to(design.probabilities, tally.counts.shape), tally.rounds)
    estimate = OrthogonalRegression(delta=settings["delta"]).solve(arms, Moments.of(arms, plan, tally))
    values = (estimate.theta - environment.theta) @ arms.features.T
    errors = np.abs(values - values[..., :1]).max(axis=-1)
    pairs = values.max(axis=-1) - values.min(axis=-1)
    count = settings["replications"]
    return {
        "errors": {
            "replication": np.repeat(np.arange(count), checkpoints.size).tolist(),
            "round": np.tile(checkpoints, count).tolist(),
            "error": errors.reshape(-1).tolist(),
            "pair_error": pairs.reshape(-1).tolist(),
        }
    }


def track_misses(settings: dict[str, Any]) -> Tables:
    """Note when claims of anytime elimination first and last failed, with the shift within a limit."""
    environment = environment_of(settings)
    found = misses(
        _part("policy", settings["policy"]),
        environment.moved(within(environment.shift, settings["limit"])),
        horizon=settings["horizon"],
        replications=settings["replications"],
        seed=settings["seed"],
        first=settings["first"],
    )
    return {
        "misses": {
            "replication": list(range(settings["first"], settings["first"] + settings["replications"])),
            "first_miss": found.first.tolist(),
            "last_miss": found.last.tolist(),
            "rounds": found.rounds.tolist(),
        }
    }


def _part(what: str, part: dict[str, Any]) -> Any:
    return make(what, part["kind"], part["settings"])
