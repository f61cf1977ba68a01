"""Bounds of past residuals against the definition, for plans with two and with more arms."""

import numpy as np
import pytest

from orthobandit.policy.contextual import AdditiveNoise, InformationDirected, Offer
from orthobandit.policy.contextual._residual_bounds import (
    add_residual,
    bound_into,
    look_back,
    recentre,
    unpack_into,
    where_into,
)

SIZE = 0.8


def filled(dimension, count, seed, arms=3):
    """Return settings, a memory with sums over some rounds, these rounds as (g, e, x̃, Q), and θ."""
    policy = InformationDirected(confidence=AdditiveNoise(), size=SIZE, delta=0.1, play="guaranteed")
    rng = np.random.default_rng(seed)
    settings = policy.settings(dimension)
    memory = policy.begin(dimension, np.zeros(1, dtype=np.int64))
    theta = rng.normal(size=dimension)
    theta *= SIZE / np.linalg.norm(theta)
    gram = settings.ridge * np.eye(dimension)
    moment = np.zeros(dimension)
    rounds = []
    for _ in range(count):
        features = rng.normal(size=(arms, dimension))
        p = rng.dirichlet(np.ones(arms))
        arm = int(rng.choice(arms, p=p))
        mean = p @ features
        x = features - mean
        weight = float(rng.uniform(0.5, 2.0))
        error = float(x[arm] @ theta + 0.7 * rng.normal())
        add_residual(memory, 0, features, mean, p, arm, error, weight)
        shape = (np.outer(x[arm], x[arm]) + 2 * (x.T * p) @ x) / 3
        rounds.append((weight, error, x[arm], shape))
        gram += weight * np.outer(x[arm], x[arm])
        moment += weight * x[arm] * error
    memory.gram[0] = gram
    memory.theta[0] = np.linalg.solve(gram, moment)
    return settings, memory, rounds, theta


def scatter_at(rounds, theta, prior):
    return prior * np.eye(len(theta)) + sum(g**2 * (e - x @ theta) ** 2 * q for g, e, x, q in rounds)


def unpacked(packed, dimension):
    full = np.empty((dimension, dimension))
    unpack_into(packed, full)
    return full


def test_sums_follow_the_value_of_theta():
    _, memory, rounds, theta = filled(3, 20, seed=1)
    for about in (np.zeros(3), theta, -2 * theta):
        recentre(memory, 0, about)
        assert np.allclose(unpacked(memory.second[0], 3), scatter_at(rounds, about, 0.0))
        third = sum(
            g**2 * (e - x @ about) * np.multiply.outer(x, q[np.triu_indices(3)]) for g, e, x, q in rounds
        )
        assert np.allclose(memory.third[0], third)


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("reach", [2.0, 0.3, 0.01])
def test_no_theta_of_the_ellipsoid_has_a_larger_matrix(dimension, reach):
    settings, memory, rounds, theta = filled(dimension, 40, seed=dimension)
    recentre(memory, 0, theta)
    rng = np.random.default_rng(0)
    lower = reach * np.tril(0.3 * rng.normal(size=(dimension, dimension)), -1)
    lower += reach * np.diag(rng.uniform(0.5, 1.0, size=dimension))
    bound = np.empty((dimension, dimension))
    bound_into(settings, memory, 0, lower, bound)
    for direction in rng.normal(size=(300, dimension)):
        inside = theta + lower @ (direction / np.linalg.norm(direction))
        exact = scatter_at(rounds, inside, settings.prior)
        # With one feature the bound is attained.
        assert np.linalg.eigvalsh(bound - exact)[0] >= -1e-12 * np.trace(bound)
    # (ε − x̃ᵀh)² ≤ 2ε² + 2‖x̃‖²_N is never exceeded, and the bound is sharp once θ is known.
    norm = lower @ lower.T
    simple = 2 * scatter_at(rounds, theta, settings.prior)
    simple += 2 * sum(g**2 * (x @ norm @ x) * q for g, e, x, q in rounds)
    assert np.linalg.eigvalsh(simple - bound)[0] > -1e-9 * np.trace(simple)
    if reach == 0.01:
        assert np.all(np.linalg.eigvals(np.linalg.solve(exact, bound)).real < 1.05)


def test_ellipsoid_holds_every_theta_that_both_constraints_allow():
    settings, memory, _rounds, _theta = filled(2, 40, seed=3)
    centre, lower = np.zeros(2), np.zeros((2, 2))
    information = memory.gram[0] - settings.ridge * np.eye(2)
    moment = memory.gram[0] @ memory.theta[0]
    squared = 2 * np.log(10) + memory.growth[0]
    for share in (20.0, 100.0, 2000.0):
        memory.scatter[0] = share * settings.prior * np.eye(2)
        memory.scatter_inverse[0] = np.linalg.inv(memory.scatter[0])
        assert where_into(settings, memory, 0, centre, lower)
        tried = np.random.default_rng(0).uniform(-SIZE, SIZE, size=(4000, 2))
        left = moment - tried @ information
        allowed = np.einsum("nd,de,ne->n", left, memory.scatter_inverse[0], left) <= squared
        allowed &= np.linalg.norm(tried, axis=1) <= SIZE
        assert allowed.any()
        reached = np.linalg.solve(lower, (tried[allowed] - centre).T)
        assert np.linalg.norm(reached, axis=0).max() <= 1 + 1e-9


def test_a_look_that_finds_no_theta_changes_nothing():
    settings, memory, _rounds, _theta = filled(2, 40, seed=3)
    # Far more than a θ of the declared size can explain.
    memory.theta[0] = [1e6, 0.0]
    before = [array.copy() for array in memory]
    memory.drift[0] = 1.0
    look_back(settings, memory, 0)
    assert all(np.array_equal(new, old) for new, old in zip(memory, before, strict=True))


@pytest.mark.parametrize("burst", [1e6, 1e9, 1e12])
def test_rewards_that_dwarf_all_others_leave_intervals_that_hold(burst):
    """From 10⁹ on, W was not positive definite by rounding, and log det W was wrong or no number."""
    theta = np.array([0.3, -0.4])
    policy = InformationDirected(confidence=AdditiveNoise(), size=0.5, delta=0.1, play="guaranteed")
    rng = np.random.default_rng(0)
    state = policy.start(2)
    for t in range(200):
        offer = Offer(rng.normal(size=(2, 2)))
        plan = policy.plan(state, offer)
        arm = int(rng.random() >= plan.probabilities[0])
        reward = float(offer.features[arm] @ theta + 0.1 * rng.normal() + burst * (t in (100, 101, 102)))
        state = policy.observe(state, offer, plan, arm, reward)
        memory = state.memory
        unit = np.sqrt(np.diag(memory.scatter))
        scaled = memory.scatter / np.outer(unit, unit)
        assert np.linalg.eigvalsh(scaled)[0] > 0
        growth = np.linalg.slogdet(scaled)[1] + 2 * np.log(unit).sum() - 2 * np.log(memory.prior)
        assert np.isclose(memory.growth, growth + 2 * np.log(3), atol=1e-3)
    low, high = policy.intervals(state, np.eye(2))
    assert np.all(low <= theta)
    assert np.all(theta <= high)
