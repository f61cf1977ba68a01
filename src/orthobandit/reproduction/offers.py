"""Personalised rounds that sections play: worlds and policies by name, and the task of their cells."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from orthobandit._foundation.random import stream
from orthobandit._foundation.types import Array
from orthobandit.estimate import CovariateRegression, KernelRegression
from orthobandit.peers import (
    CentredThompson,
    ContextualActionCentredTS,
    ContextualBOSE,
    ContextualLinUCB,
    ContextualSemiparametricTS,
)
from orthobandit.policy.contextual import AdditiveNoise, InformationDirected, Interactions
from orthobandit.policy.contextual.base import CompiledContextual
from orthobandit.simulation import Gaussian, Sine
from orthobandit.simulation.contextual import (
    AgainstTheBest,
    AgainstThePlan,
    ContextualEnvironment,
    ContextualShift,
    InteractionOffers,
    Offers,
    PositiveOffers,
    SphereOffers,
    WhoComes,
    kim_paik_setting,
    simulate_offers,
)
from orthobandit.simulation.shifts import Oblivious
from orthobandit.study.cells import Tables

TASK = f"{__name__}:play_personalised"

CONTEXT = ("z1", "z2", "z3")

# The first arm of the sphere is no reference that needs no action: action-centred TS takes it for one.
POLICIES: Mapping[str, CompiledContextual] = {
    "ours": InformationDirected(),
    "ours, guaranteed": InformationDirected(confidence=AdditiveNoise(), size=1.0, play="guaranteed"),
    "ours, linear forecast": InformationDirected(baseline=CovariateRegression(CONTEXT)),
    "ours, smooth forecast": InformationDirected(baseline=KernelRegression(CONTEXT)),
    "LinUCB": ContextualLinUCB(),
    "BOSE": ContextualBOSE(),
    "BOSE, released": ContextualBOSE(explore="uniform"),
    "semiparametric TS": ContextualSemiparametricTS(),
    "semiparametric TS, released": ContextualSemiparametricTS(rule="released"),
    "action-centred TS": ContextualActionCentredTS(),
    "centred TS": CentredThompson(),
}
TUNABLE = {"BOSE, released": "radius", "semiparametric TS": "spread", "LinUCB": "radius"}


def _bend(context: Array) -> Array:
    return np.asarray(2.0 * np.sin(2.0 * context[:, 0]) + context[:, 1] ** 2)


def _slope(context: Array) -> Array:
    return 2.0 * context[:, 0]


# Names of levels as cells have them.
LEVELS: Mapping[str, Callable[[], Oblivious | ContextualShift | None]] = {
    "none": lambda: None,
    "sine": Sine,
    "against the best": AgainstTheBest,
    "against the plan": AgainstThePlan,
    "linear in who comes": lambda: WhoComes(_slope),
    "curved in who comes": lambda: WhoComes(_bend),
}
FEATURES: Mapping[str, Callable[[int, int], Offers]] = {
    "sphere": SphereOffers,
    "positive": PositiveOffers,
}


def world_of(settings: Mapping[str, Any], seed: int, replication: int) -> ContextualEnvironment:
    """Return the world of one run; θ, where it is not published, has length 1 and belongs to the run."""
    kind = settings["kind"]
    if kind == "kim-paik":
        return kim_paik_setting(settings["level"])
    shift = LEVELS[settings["level"]]()
    noise = Gaussian(settings["noise"])
    offers: Offers
    if kind == "visitors":
        pages = Interactions(["A", "B", "C", "D"], context=CONTEXT)
        offers = InteractionOffers(pages)
    else:
        offers = FEATURES[kind](settings["arms"], settings["dimension"])
    generator = stream(seed, "effect", offers.dimension, replication)
    # As in BOSE's public code: positive features have positive effects.
    drawn = (
        generator.dirichlet(np.ones(offers.dimension))
        if kind == "positive"
        else generator.normal(size=offers.dimension)
    )
    return ContextualEnvironment(offers, drawn / np.linalg.norm(drawn), shift, noise)


def policy_of(name: str, tuning: float | None) -> CompiledContextual:
    """Return a policy by its name, with its radius or spread changed where a tuning is given."""
    policy = POLICIES[name]
    if tuning is None:
        return policy
    return replace(policy, **{TUNABLE[name]: tuning})  # type: ignore[type-var]


def play_personalised(settings: dict[str, Any]) -> Tables:
    """Play one policy in one world, a run for each replication with an effect of its own."""
    policy = policy_of(settings["player"], settings.get("tuning"))
    regret = []
    for replication in range(settings["replications"]):
        world = world_of(settings["world"], settings["seed"], replication)
        found = simulate_offers(
            policy,
            world,
            horizon=settings["horizon"],
            replications=1,
            # One stream a run: a prime beyond any number of replications keeps seeds apart.
            seed=settings["seed"] * 10_007 + replication,
        )
        regret.append(float(found.regret[0]))
    return {"runs": {"replication": list(range(len(regret))), "regret": regret}}
