"""Every contextual policy keeps the contract: JSON, errors, units, rounds that teach nothing."""

import json

import numpy as np
import pytest

from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Bounded, Plan, SubGaussian
from orthobandit.estimate.forecast.baselines import NoBaseline
from orthobandit.policy.contextual import (
    AdditiveNoise,
    CentredThompson,
    ContextualBOSE,
    ContextualLinTS,
    ContextualLinUCB,
    ContextualSemiparametricTS,
    InformationDirected,
    Offer,
)
from orthobandit.simulation.contextual import ContextualEnvironment, SphereOffers, simulate_offers

POLICIES = [
    InformationDirected(),
    InformationDirected(confidence=SubGaussian(-2.0, 2.0, 0.5), size=1.0, play="guaranteed"),
    InformationDirected(confidence=Bounded(-20.0, 20.0), size=1.0, play="guaranteed"),
    InformationDirected(confidence=SubGaussian(-2.0, 2.0, 0.5)),
    InformationDirected(confidence=AdditiveNoise(), size=1.0, play="guaranteed"),
    ContextualBOSE(),
    ContextualBOSE(explore="uniform"),
    CentredThompson(draws=16),
    ContextualSemiparametricTS(draws=16),
    ContextualLinUCB(),
    ContextualLinTS(intercept=False),
]
CENTRED = [policy for policy in POLICIES if not isinstance(policy, ContextualLinUCB)]


def played(policy, rounds=60, scale=1.0, level=0.0, arms=4):
    """Play a policy through its protocol; return the state, and the probabilities of every round."""
    rng = np.random.default_rng(3)
    theta = np.array([0.6, -0.3, 0.2]) / scale
    state = policy.start(3)
    logged = []
    for _ in range(rounds):
        offer = Offer(scale * rng.normal(size=(arms, 3)))
        plan = policy.plan(state, offer)
        arm = int(np.searchsorted(np.cumsum(plan.probabilities), rng.random() * (1 - 1e-9)))
        reward = float(offer.features[arm] @ theta + level + rng.normal())
        logged.append(plan.probabilities)
        state = policy.observe(state, offer, plan, arm, reward, level)
    return state, np.array(logged)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_plans_are_distributions_and_states_survive_json(policy):
    state, logged = played(policy)
    assert np.allclose(logged.sum(axis=1), 1.0)
    assert (logged >= 0).all()
    again = policy.load(json.loads(json.dumps(policy.dump(state), allow_nan=False)))
    offer = Offer(np.random.default_rng(5).normal(size=(4, 3)))
    assert np.array_equal(policy.plan(again, offer).probabilities, policy.plan(state, offer).probabilities)
    assert np.array_equal(policy.estimate(again), policy.estimate(state))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_planning_leaves_the_state_as_it_was(policy):
    state, _ = played(policy, rounds=5)
    before = json.dumps(policy.dump(state))
    policy.plan(state, Offer(np.random.default_rng(1).normal(size=(6, 3))))
    assert json.dumps(policy.dump(state)) == before


@pytest.mark.parametrize("policy", CENTRED, ids=repr)
def test_a_round_with_one_arm_teaches_nothing(policy):
    state, _ = played(policy, rounds=30)
    offer = Offer([[1.0, 2.0, 3.0]])
    plan = policy.plan(state, offer)
    assert plan.probabilities.tolist() == [1.0]
    after = policy.observe(state, offer, plan, 0, 15.0)
    assert np.array_equal(policy.estimate(after), policy.estimate(state))
    assert after.rounds == state.rounds + 1


@pytest.mark.parametrize(
    "policy", [InformationDirected(), ContextualBOSE(), CentredThompson(draws=16)], ids=repr
)
def test_units_of_features_change_no_plan(policy):
    _, logged = played(policy)
    _, scaled = played(policy, scale=1000.0)
    assert np.allclose(logged, scaled, atol=1e-9)


@pytest.mark.parametrize("policy", CENTRED, ids=repr)
def test_the_regression_is_the_centred_one(policy):
    if isinstance(policy, ContextualSemiparametricTS):
        pytest.skip("its published form weighs rounds otherwise")
    if isinstance(getattr(policy, "confidence", None), AdditiveNoise):
        pytest.skip("it weighs rounds; see the test of its sums")
    if getattr(policy, "play", None) == "guaranteed":
        ridge, units = policy.settings(3).ridge * np.ones(3), np.ones(3)
    else:
        ridge, units = None, None
    rng = np.random.default_rng(0)
    state = policy.start(3)
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    rows = []
    spreads = []
    for _ in range(50):
        offer = Offer(rng.normal(size=(4, 3)))
        if units is None:
            units = offer.features.std(axis=0)
        plan = policy.plan(state, offer)
        arm = int(rng.choice(4, p=plan.probabilities))
        reward = float(rng.normal())
        x = offer.features / units
        spreads.append(x.var(axis=0))
        mean = plan.probabilities @ x
        rows.append((x[arm] - mean, reward, mean, plan.probabilities[arm] < 1))
        theta = policy.estimate(state) * units
        if rows[-1][3]:
            centre = mean @ theta
            if getattr(policy, "play", None) == "guaranteed":
                centre = np.clip(centre, *policy.confidence.range)
            gram += np.outer(rows[-1][0], rows[-1][0])
            moment += rows[-1][0] * (reward - centre)
        state = policy.observe(state, offer, plan, arm, reward)
    if ridge is None:
        # It last followed the spread of features after 32 rounds.
        ridge = policy.ridge * 3 * np.mean(spreads[:32], axis=0)
    expected = np.linalg.solve(gram + np.diag(ridge), moment) / units
    assert np.allclose(policy.estimate(state), expected, atol=1e-10)


def played_with_sums(policy, rounds=40):
    """Play a policy; return the state with G, W − λI, b and the widths that follow from the definition."""
    rng = np.random.default_rng(0)
    state = policy.start(2)
    gram, scatter, moment = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2)
    low, high = policy.confidence.range
    for _ in range(rounds):
        offer = Offer([3.0, 1.0] * rng.normal(size=(3, 2)))
        plan = policy.plan(state, offer)
        p = plan.probabilities
        arm = int(rng.choice(3, p=p))
        reward = float(np.clip(rng.normal(), -1, 2))
        mean = p @ offer.features
        if p[arm] < 1:
            centre = np.clip(0.3 + mean @ policy.estimate(state), low, high)
            bound = max(high - centre, centre - low) ** 2
            x = offer.features - mean
            drawn = np.outer(x[arm], x[arm])
            gram += drawn
            scatter += 0.25 * drawn + bound * (drawn + 2 * (x.T * p) @ x) / 3
            moment += x[arm] * (reward - centre)
        state = policy.observe(state, offer, plan, arm, reward, 0.3)
    return state, gram, scatter, moment


@pytest.mark.parametrize("play", ["default", "guaranteed"])
@pytest.mark.parametrize("size", [0.4, 2.0])
def test_exact_intervals_are_the_extremes_of_what_the_sums_allow(play, size):
    policy = InformationDirected(
        confidence=SubGaussian(-1.0, 2.0, 0.5), size=size, delta=0.1, play=play, radius=3.0
    )
    state, gram, scatter, moment = played_with_sums(policy)
    if play == "guaranteed":
        prior = policy.settings(2).prior * np.eye(2)
    else:
        prior = 10.0 * 2 * (0.25 + 1.5**2) * np.diag(state.memory.units**2)
    scatter = scatter + prior
    beta = np.sqrt(2 * np.log(10) + np.log(np.linalg.det(scatter) / np.linalg.det(prior)))
    ellipsoid = policy.ellipsoid(state)
    assert np.allclose(ellipsoid.information, gram)
    assert np.allclose(ellipsoid.scatter, scatter)
    assert np.allclose(ellipsoid.moment, moment)
    assert np.isclose(ellipsoid.radius, beta)

    # All θ on a fine grid of the disc ‖θ‖ ≤ size that the ellipsoid does not rule out.
    # A hair inside, so that rounding at the rim of the disc decides nothing.
    axis = (1.0 - 1e-12) * np.linspace(-size, size, 801)
    theta = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    left = moment - theta @ gram
    allowed = np.einsum("nd,dn->n", left, np.linalg.solve(scatter, left.T)) <= beta**2
    allowed &= np.linalg.norm(theta, axis=1) <= size
    for z in ([1.0, 0.0], [1.0, -2.0], [0.3, 1.0]):
        low, high = policy.intervals(state, z)
        values = theta[allowed] @ z
        slack = 0.12 * np.ptp(values)
        assert values.min() - slack <= low[0] <= values.min()
        assert values.max() <= high[0] <= values.max() + slack


def test_without_a_bound_on_the_effects_what_was_not_varied_stays_unknown():
    policy = InformationDirected(confidence=SubGaussian(-1.0, 1.0, 0.5))
    state = policy.start(2)
    rng = np.random.default_rng(1)
    for _ in range(300):
        offer = Offer([[0.0, 5.0], [1.0, 5.0]])  # the second feature never differs
        plan = policy.plan(state, offer)
        arm = int(rng.choice(2, p=plan.probabilities))
        state = policy.observe(state, offer, plan, arm, 0.5 * arm + 0.1 * rng.normal())
    low, high = policy.intervals(state, [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert low[0] <= 0.5 <= high[0] < 10
    assert low[1:].tolist() == [-np.inf, 0.0]
    assert high[1:].tolist() == [np.inf, 0.0]
    sized = InformationDirected(confidence=SubGaussian(-1.0, 1.0, 0.5), size=1.0)
    low, high = sized.intervals(state, [[0.0, 1.0]])
    assert (low[0], high[0]) == (-1.0, 1.0)


def test_the_scale_is_that_of_the_rounds_that_estimates_rest_on():
    """Later rounds that teach nothing, with small residuals, do not make old estimates look better."""
    policy = InformationDirected(baseline=NoBaseline())
    rng = np.random.default_rng(7)
    state = policy.start(1)
    even = Plan([0.5, 0.5], 1)
    offer = Offer([[0.0], [1.0]])
    for _ in range(40):
        state = policy.observe(state, offer, even, int(rng.integers(2)), float(rng.normal(scale=10.0)))
    low, high = policy.intervals(state, [1.0])
    alone = Plan([0.0, 1.0], 1)
    for _ in range(400):
        level = float(policy.estimate(state)[0])
        state = policy.observe(state, offer, alone, 1, level + float(rng.normal(scale=0.1)))
    assert np.array_equal(policy.intervals(state, [1.0]), (low, high))
    assert 2.0 < (high - low)[0] / 2 < 20.0


def test_a_first_visitor_far_from_typical_does_not_set_the_ridge():
    """A context of nearly 0 at first must not leave the interaction without a penalty."""
    policy = InformationDirected()
    estimates = []
    for first in (1.0, 1e-4):
        state = policy.start(2)
        visitors = np.random.default_rng(2)
        for t in range(20):
            age = first if t == 0 else float(visitors.normal())
            offer = Offer([[0.0, 0.0], [1.0, age]])
            arm = int(visitors.integers(2))
            state = policy.observe(state, offer, Plan([0.5, 0.5], 1), arm, float(visitors.normal()))
        estimates.append(policy.estimate(state))
    assert np.allclose(estimates[0], estimates[1], atol=0.1)


def test_exact_claims_change_nothing_in_what_is_played():
    plain, logged = played(InformationDirected())
    certified, same = played(InformationDirected(confidence=SubGaussian(-2.0, 2.0, 0.5)))
    assert np.array_equal(logged, same)
    assert np.array_equal(plain.memory.theta, certified.memory.theta)


def test_units_of_features_change_no_exact_claim():
    policy = InformationDirected(confidence=SubGaussian(-2.0, 2.0, 0.5))
    state, _ = played(policy)
    scaled, _ = played(policy, scale=1000.0)
    z = np.array([1.0, -2.0, 0.5])
    assert np.allclose(policy.intervals(scaled, 1000.0 * z), policy.intervals(state, z), rtol=1e-9)


@pytest.mark.parametrize("policy", [InformationDirected(), ContextualBOSE(), ContextualLinUCB()], ids=repr)
def test_simulations_are_reproducible_and_learn(policy):
    world = ContextualEnvironment(SphereOffers(5, 3), [1.0, 0.0, 0.0])
    first = simulate_offers(policy, world, horizon=2000, replications=2, seed=4)
    second = simulate_offers(policy, world, horizon=2000, replications=1, seed=4)
    assert first.regret[0] == second.regret[0]
    half = first.curve[:, first.curve.shape[1] // 2 - 1]
    assert (first.regret - half < half).all()


def test_bad_input_is_refused_by_name():
    policy = InformationDirected()
    state = policy.start(3)
    offer = Offer(np.eye(3))
    plan = policy.plan(state, offer)
    with pytest.raises(
        ParameterError, match="round 0: the offer has 2 features; this experiment's offers have 3"
    ):
        policy.plan(state, Offer([[1.0, 2.0]]))
    with pytest.raises(
        ParameterError, match="round 0: the plan has probabilities for 3 arms; the offer has 2"
    ):
        policy.observe(state, Offer(np.eye(3)[:2]), plan, 0, 1.0)
    with pytest.raises(RewardError, match="round 0: reward=nan"):
        policy.observe(state, offer, plan, int(np.argmax(plan.probabilities)), np.nan)
    with pytest.raises(ParameterError, match=r"round 0: arm=\d cannot have been drawn"):
        policy.observe(state, offer, plan, int(np.argmin(plan.probabilities)), 1.0)
    with pytest.raises(ParameterError, match="size is missing"):
        InformationDirected(confidence=Bounded(0.0, 1.0), play="guaranteed")
    with pytest.raises(ParameterError, match="confidence is missing"):
        InformationDirected(play="guaranteed")
    with pytest.raises(ParameterError, match="play='quick' is not one of"):
        InformationDirected(play="quick")
    with pytest.raises(ParameterError, match="confidence is missing: an exact ellipsoid"):
        policy.ellipsoid(state)
    bounded = InformationDirected(confidence=Bounded(0.0, 1.0))
    state = bounded.start(3)
    plan = bounded.plan(state, offer)
    with pytest.raises(RewardError, match=r"round 0: reward=1.5 is outside the declared range \[0, 1\]"):
        bounded.observe(state, offer, plan, int(np.argmax(plan.probabilities)), 1.5)
    with pytest.raises(ParameterError, match="play='default' has no exact intervals under AdditiveNoise"):
        InformationDirected(confidence=AdditiveNoise(), size=1.0)
    with pytest.raises(ParameterError, match="Bounded\\(low, high\\), SubGaussian"):
        InformationDirected(confidence=NoBaseline(), size=1.0)


def test_the_sums_of_additive_noise_are_those_of_the_definition():
    policy = InformationDirected(confidence=AdditiveNoise(), size=0.9, delta=0.1, play="guaranteed")
    settings = policy.settings(2)
    rng = np.random.default_rng(0)
    state = policy.start(2)
    gram, scatter, moment = np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2)
    residuals = []
    recent = 0.0
    for t in range(700):  # inverses are computed afresh after 512
        offer = Offer(rng.normal(size=(3, 2)))
        p = np.array([0.2, 0.3, 0.5])
        arm = int(rng.choice(3, p=p))
        reward = float(rng.normal())
        theta = policy.estimate(state)
        x = offer.features - p @ offer.features
        # N as it was before the round, from the sums.
        a = settings.ridge * np.eye(2) + gram
        w = settings.prior * np.eye(2) + scatter
        beta = np.sqrt(2 * np.log(10) + np.linalg.slogdet(w / settings.prior)[1])
        bias = np.sqrt(settings.ridge) * 0.9
        inverse = np.linalg.inv(a)
        norm = (1 + bias / beta) * beta**2 * inverse @ w @ inverse + (1 + beta / bias) * bias**2 * inverse
        most = (0.9 + np.linalg.norm(theta)) ** 2 * np.sum(x**2, axis=1)
        off = np.minimum(np.einsum("ad,de,ae->a", x, norm, x), most)
        residual = reward - 0.1 - offer.features[arm] @ theta
        if recent > 0:
            weight = 1 / (np.sqrt(recent) + np.sqrt(p @ off)) ** 2
            drawn = np.outer(x[arm], x[arm])
            gram += weight * drawn
            moment += weight * x[arm] * (reward - 0.1 - p @ offer.features @ theta)
            bound = weight**2 * (abs(residual) + np.sqrt(off[arm])) ** 2
            scatter += bound * (drawn + 2 * (x.T * p) @ x) / 3
        residuals.append(residual**2)
        if t < 10:
            recent = 4 * max(residuals)
        elif t == 10:
            recent /= 4
        else:
            recent += (residuals[-1] - recent) / min(t - 8, 500)
        state = policy.observe(state, offer, Plan(p, 1), arm, reward, 0.1)
    ellipsoid = policy.ellipsoid(state)
    assert np.allclose(ellipsoid.information, gram)
    assert np.allclose(ellipsoid.scatter, scatter + settings.prior * np.eye(2))
    assert np.allclose(ellipsoid.moment, moment)
    assert np.isclose(
        ellipsoid.radius**2,
        2 * np.log(10) + np.linalg.slogdet(np.eye(2) + scatter / settings.prior)[1],
    )
