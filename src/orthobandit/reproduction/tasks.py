"""What the sections' cells compute: functions from plain settings to plain tables."""

from collections.abc import Callable
from typing import Any

import numpy as np

from orthobandit._foundation.linalg import RangeFactor
from orthobandit.arms import ArmSet
from orthobandit.design import Design, anchor_design, centred_design
from orthobandit.estimate import Estimate, Moments, OrthogonalRegression, Plan
from orthobandit.policy import SBE
from orthobandit.simulation import Constant, Environment, explore, misses, simulate, within
from orthobandit.study.cells import Tables
from orthobandit.study.spec import environment_of, make_part
from orthobandit.theory import ellipsoid_radius, theory_phase_rounds

DESIGNS: dict[str, Callable[[ArmSet], Design]] = {"anchor": anchor_design, "centred": centred_design}


def track_error(settings: dict[str, Any]) -> Tables:
    """Explore with one design and note e_t = max_i |(x_i − x_1)ᵀ(θ̂_t − θ)| at the checkpoints.

    `pair_error` is the same over all pairs of arms. The estimate is the paper's, with ridge log(t/δ).
    """
    environment = environment_of(settings)
    arms = environment.arms
    design: Design = DESIGNS[settings["design"]](arms)
    checkpoints = np.array(settings["checkpoints"])
    estimate = _estimate(environment, design, settings)
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


def _estimate(environment: Environment, design: Design, settings: dict[str, Any]) -> Estimate:
    """Explore with a design; return the estimates of all replications at all checkpoints."""
    arms = environment.arms
    tally = explore(
        environment,
        design.probabilities,
        checkpoints=settings["checkpoints"],
        replications=settings["replications"],
        seed=settings["seed"],
    )
    plan = Plan(np.broadcast_to(design.probabilities, tally.counts.shape), tally.rounds)
    return OrthogonalRegression(delta=settings["delta"]).solve(arms, Moments.of(arms, plan, tally))


def track_pac(settings: dict[str, Any]) -> Tables:
    """Explore with one design and note, after the rounds of each ε, how far the best-looking arm is behind.

    `gap` is that of the arm that looks best, `pair_error` the error of the worst pair of arms.
    """
    environment = environment_of(settings)
    arms = environment.arms
    estimate = _estimate(environment, DESIGNS[settings["design"]](arms), settings)
    looks = estimate.theta @ arms.features.T
    gaps = environment.gaps[np.argmax(looks, axis=-1)]
    off = looks - environment.theta @ arms.features.T
    errors = off.max(axis=-1) - off.min(axis=-1)
    count = settings["replications"]
    epsilons = settings["epsilons"]
    return {
        "pac": {
            "replication": np.repeat(np.arange(count), len(epsilons)).tolist(),
            "epsilon": np.tile(epsilons, count).tolist(),
            "round": np.tile(settings["checkpoints"], count).tolist(),
            "gap": gaps.reshape(-1).tolist(),
            "pair_error": errors.reshape(-1).tolist(),
        }
    }


def track_misses(settings: dict[str, Any]) -> Tables:
    """Note when claims of anytime elimination first and last failed, with the shift within a limit."""
    environment = environment_of(settings)
    found = misses(
        make_part("policy", settings["policy"]),
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


def track_survivors(settings: dict[str, Any]) -> Tables:
    """Play SBE as in the theorem and note how bad its survivors ever were.

    After phase ℓ every survivor is claimed to be within 2ε_ℓ of the best arm. `excess` is the largest
    (gap of a survivor)/(2ε_ℓ) after any phase of a run, +inf written as 1e9 if the best arm was dropped.
    """
    environment = environment_of(settings)
    policy = SBE(delta=settings["delta"], schedule="theory")
    result = simulate(
        policy,
        environment,
        horizon=settings["horizon"],
        first=settings["first"],
        replications=settings["replications"],
        seed=settings["seed"],
        checkpoints=[settings["horizon"]],
    )
    arms = environment.arms
    out = result.elimination_times
    excess = np.zeros(len(out))
    end = 0
    phase = 0
    while True:
        phase += 1
        end += theory_phase_rounds(phase, policy.delta, arms.dimension, len(arms))
        if end > settings["horizon"]:
            break
        # An arm that is dropped at the end of this phase was still played in it, but is no survivor of it.
        is_left = (out < 0) | (out > end)
        worst = np.where(is_left, result.gaps, 0.0).max(axis=1)
        excess = np.maximum(excess, worst / (2 * 2.0**-phase))
    # Tables are stored as JSON, which has no infinity: 1e9 is far above any excess.
    is_lost = out[:, np.argmin(result.gaps)] >= 0
    return {
        "survivors": {
            "replication": result.replications.tolist(),
            "excess": np.where(is_lost, 1e9, excess).tolist(),
            "phases": [phase - 1] * len(out),
        }
    }


def track_floor(settings: dict[str, Any]) -> Tables:
    """Explore under the shift of the lower bound and note squared errors in units of L/t.

    ν = −μᵀθ makes the model a linear one with covariates x_a − μ, in which no unbiased estimate of zᵀθ has a
    variance below σ²L/t, L = ‖z‖²_{Σ⁻¹}. `excess` is t·(zᵀ(θ̂ − θ))²/L, the mean over z = x_i − x_1.
    """
    environment = environment_of(settings)
    arms = environment.arms
    design: Design = DESIGNS[settings["design"]](arms)
    level = -float(design.mean @ environment.theta)
    checkpoints = np.array(settings["checkpoints"])
    estimate = _estimate(environment.moved(Constant(level), environment.noise), design, settings)
    z = arms.features[1:] - arms.features[0]
    floor = RangeFactor.of(design.covariance).norm_squared(z)
    errors = ((estimate.theta - environment.theta) @ z.T) ** 2
    excess = (errors / floor).mean(axis=-1) * checkpoints
    count = settings["replications"]
    return {
        "floors": {
            "replication": np.repeat(np.arange(count), checkpoints.size).tolist(),
            "round": np.tile(checkpoints, count).tolist(),
            "excess": excess.reshape(-1).tolist(),
        }
    }


def track_moments(settings: dict[str, Any]) -> Tables:
    """Explore and compare the second moments seen with those of the design.

    `constant` is the least c with (Σ̂ + λI)/c ≼ Σ + λI ≼ c(Σ̂ + λI), λ = log(t/δ)/t, at each checkpoint.
    `reference` and `centred` are the design's norms divided by √r.
    """
    environment = environment_of(settings)
    arms = environment.arms
    design: Design = DESIGNS[settings["design"]](arms)
    rounds = theory_phase_rounds(1, settings["delta"], arms.dimension, len(arms))
    tally = explore(
        environment,
        design.probabilities,
        checkpoints=[rounds],
        replications=settings["replications"],
        seed=settings["seed"],
    )
    centred = arms.features - design.mean
    ridge = np.log(rounds / settings["delta"]) / rounds * np.eye(centred.shape[1])
    seen = np.einsum("rk,ki,kj->rij", tally.counts[:, 0] / rounds, centred, centred) + ridge
    root = RangeFactor.of(design.covariance + ridge)
    # Rows of the whitened matrix, twice: W Σ̂ Wᵀ with W = (Σ + λI)^{−1/2}.
    once = root.whiten(seen)
    values = np.linalg.eigvalsh(root.whiten(np.swapaxes(once, -1, -2)))
    constants = np.maximum(values[:, -1], 1 / values[:, 0])
    count = settings["replications"]
    scale = np.sqrt(arms.dimension)
    return {
        "moments": {
            "replication": list(range(count)),
            "rounds": [rounds] * count,
            "constant": constants.tolist(),
            "reference": [float(design.reference_norm / scale)] * count,
            "centred": [float(design.centred_norm / scale)] * count,
        }
    }


def track_ellipsoid(settings: dict[str, Any]) -> Tables:
    """Explore; record the error of the whole estimate and of one contrast, each in the unit of its bound.

    `norm` is ‖θ̂ − θ‖ in V̂ + βI, β = log(t/δ), on the span of the arms' differences; `radius` is what Lemma
    19 says of it. `contrast` is |zᵀ(θ̂ − θ)|/√(L/t) for z = x_2 − x_1, L = ‖z‖²_{Σ⁻¹}.
    """
    environment = environment_of(settings)
    arms = environment.arms
    design: Design = DESIGNS[settings["design"]](arms)
    (rounds,) = settings["checkpoints"]
    delta = settings["delta"]
    tally = explore(
        environment,
        design.probabilities,
        checkpoints=[rounds],
        replications=settings["replications"],
        seed=settings["seed"],
    )
    plan = Plan(np.broadcast_to(design.probabilities, tally.counts.shape), tally.rounds)
    moments = Moments.of(arms, plan, tally)
    estimate = OrthogonalRegression(delta=delta).solve(arms, moments)
    off = estimate.theta[:, 0] - environment.theta
    # In the basis of the moments; what lies across the arms' differences is not estimated.
    inside = off @ arms.basis.T
    squares = np.einsum("ri,rij,rj->r", inside, moments.gram[:, 0], inside)
    norm = np.sqrt(squares + np.log(rounds / delta) * np.sum(inside**2, axis=1))
    z = arms.features[1] - arms.features[0]
    unit = np.sqrt(RangeFactor.of(design.covariance).norm_squared(z[np.newaxis])[0] / rounds)
    count = settings["replications"]
    return {
        "ellipsoids": {
            "replication": list(range(count)),
            "norm": norm.tolist(),
            "radius": [ellipsoid_radius(rounds, delta, arms.dimension)] * count,
            "contrast": (np.abs(off @ z) / unit).tolist(),
        }
    }
