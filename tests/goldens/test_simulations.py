"""What every policy of the catalogue does in three small worlds, and contextual ones in three others."""

import pytest

from goldens.harness import check, golden_cases, need_the_same_rounding, plain_json
from orthobandit import simulate
from orthobandit.policy import POLICIES, named_policy, needs_horizon, policy_settings
from orthobandit.policy.contextual import (
    CentredThompson,
    ContextualActionCentredTS,
    ContextualBOSE,
    ContextualLinTS,
    ContextualLinUCB,
    ContextualSemiparametricTS,
    DebiasedThompson,
    InformationDirected,
    SemiGraphTS,
)
from orthobandit.simulation import Bernoulli, Sine, exact_gap, near_degenerate, one_hot
from orthobandit.simulation.contextual import (
    AgainstThePlan,
    ContextualEnvironment,
    GaussianOffers,
    LinkedUserOffers,
    SphereOffers,
    kim_paik_setting,
    simulate_offers,
)

FOLDER = "simulations"
HORIZON = 2000
WORLDS = {
    "near-degenerate": near_degenerate(3, 0.5),
    "exact gap under a sine": exact_gap(3, 6, 0.5, seed=1, shift=Sine()),
    "one-hot, 0 and 1": one_hot([0.2, 0.3, 0.7], noise=Bernoulli()),
}
# Settings that a policy cannot do without, but for its horizon or budget.
SETTINGS = {
    "explore": {"rounds": 500},
    "one-shot": {"gap": 0.5},
    "stratified": {"epoch": 100},
    "linlucb": {"epoch": 50},
    "pooled-track-and-stop": {"period": 100},
}
CONTEXTUAL = "contextual"
# Compiling their loops takes long.
SLOW = {
    "action-centred-ts",
    "action-elimination",
    "bose",
    "frank-wolfe-sampling",
    "lazy-track-and-stop",
    "lingame",
    "lingape",
    "lints",
    "linucb",
    "semiparametric-ts",
}
BY_ROUNDING = {"adjacent-bai"}  # last bits decide between arms that look alike
SLOW_CONTEXTUAL = {
    "CentredThompson",
    "ContextualActionCentredTS",
    "ContextualBOSE",
    "ContextualLinTS",
    "DebiasedThompson",
    "SemiGraphTS",
}
USERS = LinkedUserOffers(3, 3, 2)
CONTEXTUAL_WORLDS = {
    "sphere against the plan": ContextualEnvironment(SphereOffers(4, 3), [1.0, 0.0, -0.5], AgainstThePlan()),
    "Gaussian": ContextualEnvironment(GaussianOffers(3, 2), [0.7, 0.7]),
    "Kim & Paik": kim_paik_setting(),
    "users": ContextualEnvironment(USERS, [1.0, 0.0, 0.8, 0.2, 0.0, 1.0]),
}
CONTEXTUAL_POLICIES = {
    "CentredThompson": CentredThompson(),
    "ContextualActionCentredTS": ContextualActionCentredTS(),
    "ContextualBOSE": ContextualBOSE(),
    "ContextualLinTS": ContextualLinTS(),
    "ContextualLinUCB": ContextualLinUCB(),
    "ContextualSemiparametricTS": ContextualSemiparametricTS(),
    "DebiasedThompson": DebiasedThompson(),
    "InformationDirected": InformationDirected(),
    "SemiGraphTS": SemiGraphTS.of_links(3, [(0, 1), (1, 2)]),
}


def settings_of(name):
    """Return the settings that a policy cannot do without."""
    own = {"horizon": HORIZON} if needs_horizon(name) else {}
    if "budget" in policy_settings(name):
        own["budget"] = HORIZON
    return own | SETTINGS.get(name, {})


@pytest.mark.parametrize("name", golden_cases(FOLDER, sorted(POLICIES), SLOW))
def test_policy(name):
    if name in BY_ROUNDING:
        need_the_same_rounding()
    shown = {}
    for title, world in WORLDS.items():
        policy = named_policy(name, **settings_of(name))
        runs = simulate(policy, world, horizon=HORIZON, replications=2, seed=3)
        shown[title] = {
            "regret": runs.regret[:, [len(runs.checkpoints) // 4, len(runs.checkpoints) // 2, -1]],
            "stop times": runs.stop_times,
            "elimination times": runs.elimination_times,
            "plans": runs.plans,
            "clipped": runs.clipped,
            "declared": runs.declared,
            "leader": runs.decision.leader,
            "active": runs.decision.active,
            "settings": {key: str(value) for key, value in runs.settings.items()},
        }
    check({f"{FOLDER}/{name}.json": plain_json(shown)})


@pytest.mark.parametrize("name", golden_cases(CONTEXTUAL, CONTEXTUAL_POLICIES, SLOW_CONTEXTUAL))
def test_contextual_policy(name):
    shown = {}
    for title, world in CONTEXTUAL_WORLDS.items():
        if name == "SemiGraphTS" and title != "users":
            continue
        runs = simulate_offers(CONTEXTUAL_POLICIES[name], world, horizon=400, replications=2, seed=3)
        shown[title] = {
            "regret": runs.curve[:, [len(runs.rounds) // 2, -1]],
            "taught": runs.taught,
            "theta": runs.theta,
        }
    check({f"{CONTEXTUAL}/{name}.json": plain_json(shown)})
