"""Certificates cannot be bent, and are valid whatever happens to an honest experiment."""

import numpy as np
import pytest

from experiment_samples import ledger_of
from mutants import KINDS, mutants, survivors
from orthobandit import (
    AnytimeElimination,
    ArmSet,
    Asymptotic,
    Bounded,
    Experiment,
    Guardrail,
    Metric,
    SubGaussian,
)
from orthobandit.verify import verify

FAST = ("bounded", "bounded, very many arms", "sub-Gaussian", "exact log", "asymptotic log", "rules")


@pytest.mark.parametrize("name", FAST)
def test_no_mutant_that_claims_something_else_is_valid(name):
    found, refused = survivors(KINDS[name](), 50, seed=11)
    assert not found
    assert refused >= 35  # most changes matter, so the test tests something


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_none_of_two_thousand_mutants_is_valid_and_claims_something_else(name):
    found, refused = survivors(KINDS[name](), 270, seed=12)  # 3,510 in all
    assert not found
    assert refused >= 200


@pytest.mark.parametrize("name", FAST)
def test_every_kind_of_field_is_among_the_mutants(name):
    changed = {path[0] for path, _ in mutants(KINDS[name](), 120, seed=13)}
    assert changed == {"settings", "entries", "claim"}


def live(seed, pairs="all"):
    """Return a random experiment, and a head that it had on the way.

    Arms may share features or be the same, come and go, and be unavailable; rewards come late or never.
    Guardrails may keep the reference arm in plans, hold winners back and retire arms.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.choice([2, 3, 4, 6]))
    points = rng.normal(size=(count, 2))
    kinds = {"one-hot": np.eye(count), "shared": points, "twins": np.vstack([points, points])}
    kind = str(rng.choice(list(kinds)))
    unit = 10.0 ** rng.uniform(-6, 6) if rng.random() < 0.3 else 1.0
    modes = (Bounded(0.0, unit), SubGaussian(-unit, 2 * unit, 0.5 * unit), Asymptotic())
    mode = modes[int(rng.integers(3))]
    policy = AnytimeElimination(
        confidence=mode,
        goal=str(rng.choice(["identify", "earn"])),
        epsilon=float(rng.choice([0.0, 0.1 * unit])),
        pilot=None if rng.random() < 0.7 else int(rng.integers(4, 60)),
        pairs=pairs,
    )
    now, waiting, heads, means = [0.0], [], [], rng.uniform(0.1, 0.9, 40)
    settings = {
        "window": 50.0,
        "holdout": float(rng.choice([0.0, 0.1])),
        "silence": str(rng.choice(["zero", "missing"])),
    }
    if not mode.is_exact:
        settings["rewards"] = "unknown"
    crashes = rng.choice([0.02, 0.02, 0.5], 40) if rng.random() < 0.4 else None
    if crashes is not None:
        settings["metrics"] = [Metric("crash", rewards=(0, 1))]
        settings["guardrails"] = [Guardrail("crash", harm=0.3)]
    experiment = Experiment.memory(ArmSet(kinds[kind]), policy, clock=lambda: now[0], **settings)
    scatter = float(rng.choice([0.0, 0.1]))
    for _ in range(int(rng.integers(5, 50))):
        now[0] += 1.0
        arms = experiment.arms
        some = sorted(rng.choice(len(arms), int(rng.integers(1, len(arms) + 1)), replace=False).tolist())
        asked = experiment.ask_many(int(rng.integers(1, 60)), available=some if rng.random() < 0.15 else None)
        waiting += [(now[0], one) for one in asked]
        rng.shuffle(waiting)
        told = [waiting.pop() for _ in range(int(len(waiting) * rng.uniform(0.3, 1.0)))]
        told = [one for since, one in told if since > now[0] - 49.0]  # the others' window is over
        shown = [one.arm for one in told]
        rewards = unit * np.clip(means[shown] + scatter * rng.normal(size=len(told)), 0.0, 1.0)
        values = {"reward": rewards}
        if crashes is not None:
            values["crash"] = (rng.random(len(told)) < crashes[shown]).astype(float)
        if told:
            experiment.tell_many([one.id for one in told], values)
        left = np.flatnonzero(~ledger_of(experiment).feed.retired)
        # Without the reference arm a winner could never be cleared, and there would be no certificate.
        leaving = left[left > 0] if crashes is not None else left
        if rng.random() < 0.03 and len(left) > 1:
            experiment.retire(int(rng.choice(leaving)))
        if rng.random() < 0.03:
            features = arms.features
            new = (
                np.eye(len(arms) + 1) if kind == "one-hot" else np.vstack([features, rng.normal(size=(1, 2))])
            )
            experiment.extend(ArmSet(new))
        heads.append(experiment.head())
    return experiment, heads[len(heads) // 2]


@pytest.mark.parametrize("pairs", ["all", "leader"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_to_an_experiment_its_certificate_is_valid(seed, pairs):
    experiment, head = live(seed, pairs)
    assert verify(experiment.certificate().document, head).problems == []


@pytest.mark.slow
@pytest.mark.parametrize("pairs", ["all", "leader"])
@pytest.mark.parametrize("seed", [*range(4, 8), *range(100, 200)])
def test_whatever_happens_to_many_experiments_their_certificates_are_valid(seed, pairs):
    experiment, head = live(seed, pairs)
    assert verify(experiment.certificate().document, head).problems == []
