"""Every contextual policy keeps the contract: JSON, errors, units, rounds that teach nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Bounded, NoBaseline, Plan, SubGaussian
from orthobandit.policy.contextual import (
    AdditiveNoise,
    CentredThompson,
    ContextualActionCentredTS,
    ContextualBOSE,
    ContextualLinTS,
    ContextualLinUCB,
    ContextualSemiparametricTS,
    DebiasedThompson,
    InformationDirected,
    Offer,
    Personalised,
    SemiGraphTS,
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
    ContextualSemiparametricTS(draws=16, rule="released"),
    ContextualActionCentredTS(),
    DebiasedThompson(),
    InformationDirected(trusts_level=True),
    ContextualLinUCB(),
    ContextualLinTS(intercept=False),
]
# A plain regression learns from every round.
CENTRED = [
    policy
    for policy in POLICIES
    if not isinstance(policy, ContextualLinUCB) and not getattr(policy, "trusts_level", False)
]
WEIGHED = (ContextualSemiparametricTS, ContextualActionCentredTS)  # as published
# Each compiles for seconds; others that go the same way are tested at once.
SLOW_TO_COMPILE = (
    ContextualBOSE(explore="uniform"),
    CentredThompson(draws=16),
    DebiasedThompson(),
    InformationDirected(trusts_level=True),
    InformationDirected(confidence=AdditiveNoise(), size=1.0, play="guaranteed"),
)


def each(policies):
    """Return the policies as parameters, those that compile for long among the slow tests."""
    return [
        pytest.param(policy, marks=pytest.mark.slow) if policy in SLOW_TO_COMPILE else policy
        for policy in policies
    ]


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


@pytest.mark.parametrize("policy", each(POLICIES), ids=repr)
def test_plans_are_distributions_and_states_survive_json(policy):
    state, logged = played(policy)
    assert np.allclose(logged.sum(axis=1), 1.0)
    assert (logged >= 0).all()
    again = policy.load(json.loads(json.dumps(policy.dump(state), allow_nan=False)))
    offer = Offer(np.random.default_rng(5).normal(size=(4, 3)))
    assert np.array_equal(policy.plan(again, offer).probabilities, policy.plan(state, offer).probabilities)
    assert np.array_equal(policy.estimate(again), policy.estimate(state))


@pytest.mark.parametrize("policy", each(POLICIES), ids=repr)
def test_planning_leaves_the_state_as_it_was(policy):
    state, _ = played(policy, rounds=5)
    before = json.dumps(policy.dump(state))
    policy.plan(state, Offer(np.random.default_rng(1).normal(size=(6, 3))))
    assert json.dumps(policy.dump(state)) == before


@pytest.mark.parametrize("policy", each(CENTRED), ids=repr)
def test_a_round_with_one_arm_teaches_nothing(policy):
    state, _ = played(policy, rounds=30)
    offer = Offer([[1.0, 2.0, 3.0]])
    plan = policy.plan(state, offer)
    assert plan.probabilities.tolist() == [1.0]
    after = policy.observe(state, offer, plan, 0, 15.0)
    assert np.array_equal(policy.estimate(after), policy.estimate(state))
    assert after.rounds == state.rounds + 1


@pytest.mark.parametrize(
    "policy",
    each(
        [
            InformationDirected(),
            InformationDirected(trusts_level=True),
            ContextualBOSE(),
            CentredThompson(draws=16),
            ContextualActionCentredTS(),
        ]
    ),
    ids=repr,
)
def test_units_of_features_change_no_plan(policy):
    _, logged = played(policy)
    _, scaled = played(policy, scale=1000.0)
    assert np.allclose(logged, scaled, atol=1e-9)


@pytest.mark.parametrize("policy", each(CENTRED), ids=repr)
def test_the_regression_is_the_centred_one(policy):
    if isinstance(policy, WEIGHED):
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


def test_rounds_before_the_level_was_forecast_count_for_less():
    """After 64 rounds of which the later half is calm, all of them count as rough ones should."""
    policy = InformationDirected(baseline=NoBaseline())
    even = Plan([0.5, 0.5], 1)
    offer = Offer([[0.0], [1.0]])
    for rough in (5.0, 0.5):
        rng = np.random.default_rng(8)
        state = policy.start(1)
        for t in range(64):
            arm = int(rng.integers(2))
            scale = rough if t < 32 else 0.5
            state = policy.observe(state, offer, even, arm, 2.0 * arm + scale * float(rng.normal()))
        # V = ridge + Σ x̃², x̃ = ±½ in units of its spread ½: each round counts 1.
        counted = float(state.memory.gram[0, 0] - state.memory.ridge[0])
        assert counted == pytest.approx(64.0) if rough == 0.5 else counted < 16.0
        low, high = policy.intervals(state, [1.0])
        assert low[0] < 2.0 < high[0]


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


@pytest.mark.parametrize(
    "policy",
    [
        InformationDirected(),
        *(pytest.param(peer, marks=pytest.mark.slow) for peer in (ContextualBOSE(), ContextualLinUCB())),
    ],
    ids=repr,
)
def test_simulations_are_reproducible_and_learn(policy):
    world = ContextualEnvironment(SphereOffers(5, 3), [1.0, 0.0, 0.0])
    first = simulate_offers(policy, world, horizon=2000, replications=2, seed=4)
    second = simulate_offers(policy, world, horizon=2000, replications=1, seed=4)
    assert first.regret[0] == second.regret[0]
    half = first.curve[:, first.curve.shape[1] // 2 - 1]
    assert (first.regret - half < half).all()


@pytest.mark.parametrize("rule", ["printed", "released"])
def test_semiparametric_sums_are_as_published(rule):
    policy = ContextualSemiparametricTS(draws=16, rule=rule)
    weight = 2.0 if rule == "released" else 1.0
    state, gram, moment, units = played_as_logged(policy)
    expected = np.eye(2) * 2 + weight * gram["covariance"] + weight * gram["drawn"]
    assert np.allclose(state.memory.gram, expected)
    assert np.allclose(policy.estimate(state), np.linalg.solve(expected, 2 * weight * moment["r"]) / units)


def played_as_logged(policy, rounds=40):
    """Play a policy on three arms; return its state and the sums of features in its units."""
    rng = np.random.default_rng(2)
    state = policy.start(2)
    gram = {name: np.zeros((2, 2)) for name in ("drawn", "covariance", "weighed")}
    moment = {name: np.zeros(2) for name in ("r", "pushed", "debiased")}
    units = None
    for _ in range(rounds):
        offer = Offer(rng.normal(size=(3, 2)))
        units = offer.features.std(axis=0) if units is None else units
        plan = policy.plan(state, offer)
        p = plan.probabilities
        arm = int(rng.choice(3, p=p))
        reward = float(1.0 + rng.normal())
        x = offer.features / units
        centred = x - p @ x
        gram["drawn"] += np.outer(centred[arm], centred[arm]) if p[arm] < 1 else 0.0
        gram["covariance"] += (centred.T * p) @ centred
        moment["r"] += centred[arm] * (reward - 0.3) if p[arm] < 1 else 0.0
        # A challenge: the reference is the first arm, π the chance of the other one that can be drawn.
        challenger = int(np.argmax(p[1:])) + 1
        pi = p[challenger]
        s = x[challenger] - x[0]
        gram["weighed"] += pi * (1 - pi) * np.outer(s, s)
        push = ((arm == challenger) - pi) * s
        moment["pushed"] += push * (reward - 0.3)
        theta = policy.estimate(state) * units
        f = 0.3 + x[[0, challenger]] @ theta
        # π(1 − π) times the debiased outcome.
        error = reward - f[int(arm == challenger)]
        moment["debiased"] += s * (pi * (1 - pi) * (f[1] - f[0]) + ((arm == challenger) - pi) * error)
        state = policy.observe(state, offer, plan, arm, reward, 0.3)
    return state, gram, moment, units


@pytest.mark.parametrize(
    ("policy", "which"), [(ContextualActionCentredTS(), "pushed"), (DebiasedThompson(), "debiased")]
)
def test_challenges_add_what_was_published(policy, which):
    state, gram, moment, units = played_as_logged(policy)
    expected = np.eye(2) * 2 + gram["weighed"]
    assert np.allclose(state.memory.gram, expected)
    assert np.allclose(policy.estimate(state), np.linalg.solve(expected, moment[which]) / units)


def test_challenges_are_clipped_and_spare_all_but_two_arms():
    _, logged = played(ContextualActionCentredTS(least=0.2, most=0.7))
    assert ((logged > 0).sum(axis=1) == 2).all()
    assert (logged[:, 0] >= 0.3 - 1e-12).all()
    assert (logged[:, 0] <= 0.8 + 1e-12).all()


@pytest.mark.slow
def test_a_trusted_level_is_no_longer_trusted_once_it_follows_the_plan():
    policy = InformationDirected(trusts_level=True, baseline=NoBaseline())
    trusted = []
    for follows in (False, True):
        rng = np.random.default_rng(4)
        theta = np.array([1.0, 0.0, -0.5])
        state = policy.start(3)
        for _ in range(600):
            offer = Offer(rng.normal(size=(4, 3)))
            plan = policy.plan(state, offer)
            means = offer.features @ theta
            level = -plan.probabilities @ means if follows else 0.7
            arm = int(rng.choice(4, p=plan.probabilities))
            reward = float(means[arm] + level + 0.3 * rng.normal())
            state = policy.observe(state, offer, plan, arm, reward)
        trusted.append(int(state.memory.trusts))
        assert np.allclose(policy.estimate(state), theta, atol=0.3)
    assert trusted == [1, 0]


@pytest.mark.slow
def test_linked_users_learn_from_their_own_rounds_and_lean_on_friends():
    """Sums are those of each user; estimate and precision are as published."""
    policy = SemiGraphTS.of_links(3, [(0, 1), (1, 2)], penalty=0.5, draws=64)
    rng = np.random.default_rng(6)
    state = policy.start(6)
    gram = {user: np.zeros((2, 2)) for user in range(3)}
    moment = {user: np.zeros(2) for user in range(3)}
    units = None
    for t in range(60):
        user = t % 2  # the last one never comes
        features = rng.normal(size=(3, 2))
        units = features.std(axis=0) if units is None else units
        offer = policy.offer(user, features)
        plan = policy.plan(state, offer)
        p = plan.probabilities
        arm = int(rng.choice(3, p=p))
        reward = float(features[arm] @ [1.0, -1.0] + rng.normal())
        x = features / units
        centred = x - p @ x
        if p[arm] < 1:
            gram[user] += np.outer(centred[arm], centred[arm]) + (centred.T * p) @ centred
            moment[user] += 2 * centred[arm] * (reward - 0.2)
        state = policy.observe(state, offer, plan, arm, reward, 0.2)
    links = 0.5 * 2 * np.array(policy.laplacian)  # λ per feature
    precision = {user: gram[user] + links[user, user] * np.eye(2) for user in range(3)}
    own = {user: np.linalg.solve(precision[user], moment[user]) for user in range(3)}
    expected = [
        own[user]
        - np.linalg.solve(
            precision[user], sum(links[user, other] * own[other] for other in range(3) if other != user)
        )
        for user in range(3)
    ]
    assert np.allclose(policy.estimate(state).reshape(3, 2), np.array(expected) / units)
    # Who has never come is taken for like the friend.
    assert np.allclose(expected[2], own[1])
    # Shares are those of draws from N(θ̂, v²Γ⁻¹).
    rows = rng.normal(size=(2, 2)) * 0.2
    shares = replace(policy, draws=20_000).plan(state, policy.offer(1, rows)).probabilities
    covariance = precision[1] + sum(links[1, k] ** 2 * np.linalg.inv(precision[k]) for k in (0, 2))
    z = (rows[0] - rows[1]) / units
    spread = 2.0 * np.sqrt(state.memory.variance * z @ np.linalg.solve(covariance, z))
    assert np.isclose(shares[0], norm.cdf(z @ expected[1] / spread), atol=0.02)


def test_linked_users_refuse_what_makes_no_sense():
    with pytest.raises(ParameterError, match="user 2 has no link"):
        SemiGraphTS.of_links(3, [(0, 1)])
    with pytest.raises(ParameterError, match=r"link \(1, 1\) is not between two users"):
        SemiGraphTS.of_links(3, [(1, 1)])
    with pytest.raises(ParameterError, match="row 0 of the laplacian does not sum to 0"):
        SemiGraphTS(((1.0, -0.5), (-1.0, 1.0)))
    policy = SemiGraphTS.of_links(2, [(0, 1)])
    with pytest.raises(ParameterError, match="user=2 is unknown; users are 0 to 1"):
        policy.offer(2, [[1.0]])
    with pytest.raises(ParameterError, match="no multiple of 2 users"):
        policy.start(3)


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
    with pytest.raises(ParameterError, match="trusts_level=True makes no exact claims"):
        InformationDirected(confidence=Bounded(0.0, 1.0), trusts_level=True)
    with pytest.raises(ParameterError, match="trusts_level=True, which makes no exact claims"):
        Personalised(["age"], rewards=(0.0, 1.0), policy=InformationDirected(trusts_level=True))
    with pytest.raises(ParameterError, match=r"least=0\.9 must not exceed most=0\.8"):
        ContextualActionCentredTS(least=0.9, most=0.8)


@pytest.mark.parametrize("dimension", [2, 25])
def test_the_sums_of_additive_noise_are_those_of_the_definition(dimension):
    policy = InformationDirected(confidence=AdditiveNoise(), size=0.9, delta=0.1, play="guaranteed")
    settings = policy.settings(dimension)
    rng = np.random.default_rng(0)
    state = policy.start(dimension)
    unit = np.eye(dimension)
    gram, moment = np.zeros((dimension, dimension)), np.zeros(dimension)
    at_its_time = np.zeros((dimension, dimension))  # Σ of g²ε̄²Q, each ε̄ as bounded when its round came
    rounds = []
    residuals = []
    recent = 0.0
    for t in range(200):
        offer = Offer(rng.normal(size=(3, dimension)))
        p = np.array([0.2, 0.3, 0.5])
        arm = int(rng.choice(3, p=p))
        reward = float(rng.normal())
        theta = policy.estimate(state)
        centre, norm = state.memory.centre, state.memory.norm
        x = offer.features - p @ offer.features
        most = (0.9 + np.linalg.norm(centre)) ** 2 * np.sum(x**2, axis=1)
        off = np.minimum(np.einsum("ad,de,ae->a", x, norm, x), most)
        error = reward - 0.1 - p @ offer.features @ theta
        if t >= 10:
            # Rounds count for less while their bound is loose, above all if that is not looked at again.
            weight = 1 / (np.sqrt(recent) + (1.0 if dimension > 24 else 0.3) * np.sqrt(p @ off)) ** 2
            shape = (np.outer(x[arm], x[arm]) + 2 * (x.T * p) @ x) / 3
            gram += weight * np.outer(x[arm], x[arm])
            moment += weight * x[arm] * error
            at_its_time += weight**2 * (abs(error - x[arm] @ centre) + np.sqrt(off[arm])) ** 2 * shape
            rounds.append((weight, error, x[arm], shape))
        residuals.append((error - x[arm] @ theta) ** 2)
        if t < 10:
            recent = 4 * max(residuals)
        elif t == 10:
            recent /= 4
        else:
            recent += (residuals[-1] - recent) / min(t - 8, 500)
        state = policy.observe(state, offer, Plan(p, 1), arm, reward, 0.1)
    ellipsoid = policy.ellipsoid(state)
    prior = float(state.memory.prior)
    assert np.isclose(prior, settings.prior * 8.0 ** np.arange(3)).any()
    assert np.allclose(ellipsoid.information, gram)
    assert np.allclose(ellipsoid.moment, moment)
    assert np.isclose(
        ellipsoid.radius**2,
        2 * np.log(10) + 2 * np.log(3) + np.linalg.slogdet(ellipsoid.scatter / prior)[1],
    )
    if dimension > 24:
        assert np.allclose(ellipsoid.scatter, at_its_time + prior * unit)
        return
    # W is at least what it would be at any θ of the ellipsoid, and less than by bounds of their time.
    assert np.linalg.slogdet(ellipsoid.scatter)[1] < np.linalg.slogdet(at_its_time + prior * unit)[1]
    half = np.linalg.cholesky(state.memory.norm)
    for angle in np.linspace(0, 2 * np.pi, 40):
        inside = state.memory.centre + half @ [np.cos(angle), np.sin(angle)]
        exact = prior * unit + sum(g**2 * (e - x @ inside) ** 2 * q for g, e, x, q in rounds)
        assert np.linalg.eigvalsh(ellipsoid.scatter - exact)[0] > 0
