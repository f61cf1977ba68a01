"""Small personalised experiments, shared by tests of edge draws, certificates and metrics."""

import numpy as np

from orthobandit import ArmSet, Experiment, Personalised

ARMS = ArmSet.one_hot(3, labels=["A", "B", "C"])
RULES = {
    "B on telephones": "B if mobile >= 0.5 else A",
    "by the hour": "C if hour < 0 and mobile < 0.5 else B if mobile == 1 else A",
}
KEY = "7" * 64


def begun(*, rewards=(0, 1), rules=RULES, **settings):
    """Return an experiment in memory; rewards=None is the asymptotic mode."""
    policy = Personalised(["mobile", "hour"], rules, rewards=rewards)
    if rewards is None:
        settings["rewards"] = "unknown"
    return Experiment.memory(ARMS, policy, key=KEY, **settings)


def visitors(rng, count):
    return [{"mobile": float(rng.random() < 0.5), "hour": float(rng.normal())} for _ in range(count)]


def rewards_of(rng, arms, contexts):
    """B is better on telephones and worse elsewhere; the level depends on who comes."""
    means = [
        0.2 + 0.2 * one["mobile"] + (arm == 1) * (0.5 * one["mobile"] - 0.15)
        for arm, one in zip(arms, contexts, strict=True)
    ]
    return (rng.random(len(means)) < means).astype(float)


def play(experiment, count, *, seed=1, batch=20):
    rng = np.random.default_rng(seed)
    for start in range(0, count, batch):
        contexts = visitors(rng, batch)
        units = [f"user {seed} {start + k}" for k in range(batch)]
        shown = experiment.ask_many(units=units, context=contexts)
        rewards = rewards_of(rng, [one.arm for one in shown], contexts)
        experiment.tell_many([one.id for one in shown], rewards)
    return experiment
