"""Simulated offers: forecasters that are asked round by round play what compiled ones do."""

import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.estimate import ARMA, CovariateRegression, KernelRegression, OnlineRegression
from orthobandit.policy.contextual import (
    ContextualSemiparametricTS,
    InformationDirected,
    Interactions,
    SemiGraphTS,
)
from orthobandit.simulation import Gaussian, Sine
from orthobandit.simulation.contextual import (
    AgainstThePlan,
    BlockOffers,
    ContextualEnvironment,
    GrowingLevel,
    InteractionOffers,
    LinkedUserOffers,
    ReplayedOffers,
    SphereOffers,
    UserItemOffers,
    WhoComes,
    kim_paik_setting,
    simulate_offers,
)

CONTEXT = ("z1", "z2", "z3")


class Asked:
    """A baseline whose compiled step nobody knows of."""

    def __init__(self, inner):
        self._inner = inner

    def forecaster(self):
        return self._inner.forecaster()


@pytest.mark.parametrize("shift", [Sine(), AgainstThePlan()], ids=repr)
def test_asking_a_forecaster_changes_nothing(shift):
    world = ContextualEnvironment(SphereOffers(4, 3), [1.0, 0.0, 0.5], shift)
    both = [
        simulate_offers(InformationDirected(baseline=one), world, horizon=300, replications=2, seed=5)
        for one in (ARMA(lags=4), Asked(ARMA(lags=4)))
    ]
    assert np.array_equal(both[0].regret, both[1].regret)
    assert np.array_equal(both[0].curve, both[1].curve)
    assert np.array_equal(both[0].theta, both[1].theta)


@pytest.mark.parametrize("baseline", [CovariateRegression(("age",)), KernelRegression(("age",), waves=4)])
def test_a_forecaster_sees_who_comes(baseline):
    pages = Interactions(["A", "B"], context=["age", "hour"])
    level = WhoComes(lambda context: 2.0 * context[:, 0])
    world = ContextualEnvironment(InteractionOffers(pages), [0.5, 0.0, -0.5], level)
    both = [
        simulate_offers(InformationDirected(baseline=one), world, horizon=300, replications=2, seed=5)
        for one in (baseline, Asked(baseline))
    ]
    assert np.allclose(both[0].regret, both[1].regret, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("baseline", "level", "most"),
    [
        (CovariateRegression(CONTEXT), lambda context: 2.0 * context[:, 0], 1.4),
        (
            KernelRegression(CONTEXT),
            lambda context: 2.0 * np.sin(2.0 * context[:, 0]) + context[:, 1] ** 2,
            1.6,
        ),
    ],
    ids=["linear", "curved"],
)
def test_once_a_level_is_forecast_the_rounds_before_count_for_little(baseline, level, most):
    """Regret is then near to what it is without a level: ours has 1.2 times that, and had 1.6 times."""
    pages = Interactions(["A", "B", "C", "D"], context=CONTEXT)
    theta = np.random.default_rng(1).normal(size=pages.dimension)
    theta /= np.linalg.norm(theta)
    moved, still = (
        simulate_offers(
            InformationDirected(baseline=baseline),
            ContextualEnvironment(InteractionOffers(pages), theta, shift, Gaussian(0.5)),
            horizon=20_000,
            replications=12,
            seed=2,
        ).regret.mean()
        for shift in (WhoComes(level), None)
    )
    print(f"regret {moved:.0f} with a level, {still:.0f} without")
    assert moved < most * still


def test_a_curved_level_is_forecast_from_who_comes():
    pages = Interactions(["A", "B"], context=["age", "hour"])
    level = WhoComes(lambda context: 4.0 * np.cos(2.0 * context[:, 0]) + context[:, 1] ** 2)
    world = ContextualEnvironment(InteractionOffers(pages), [0.5, 0.0, -0.5], level)
    straight, curved = (
        simulate_offers(InformationDirected(baseline=one), world, horizon=3000, replications=6, seed=5)
        for one in (CovariateRegression(pages.context), KernelRegression(pages.context))
    )
    assert curved.regret.mean() < 0.6 * straight.regret.mean()


class Nothing:
    def __init__(self):
        self.seen = []

    def predict_one(self, x):
        self.seen.append(x)

    def learn_one(self, x, y):
        pass


def test_online_models_are_given_the_context():
    model = Nothing()
    pages = Interactions(["A", "B"], context=["age"])
    world = ContextualEnvironment(InteractionOffers(pages), [0.5, 0.1])
    policy = InformationDirected(baseline=OnlineRegression(lambda: model))
    simulate_offers(policy, world, horizon=3, replications=1)
    assert [sorted(one) for one in model.seen] == [["age", "round"]] * 3


def test_a_baseline_that_asks_for_what_nobody_knows_is_refused():
    world = ContextualEnvironment(SphereOffers(2, 2), [1.0, 0.0])
    policy = InformationDirected(baseline=CovariateRegression(("age",)))
    with pytest.raises(ParameterError, match="asks for context 'age'; offers have none"):
        simulate_offers(policy, world, horizon=3, replications=1)


def test_items_are_worth_to_users_what_their_traits_say():
    offers = UserItemOffers(4, 2, 3, catalogue=6)
    features, users = offers.sample(np.random.default_rng(0), 50)
    assert features.shape == (50, 4, 6)
    blocks = features.reshape(50, 4, 2, 3)
    # Every row is an outer product with the user of its round, of length 1.
    assert np.allclose(np.linalg.norm(features, axis=2), 1.0)
    items = np.einsum("nu,nkuv->nkv", users, blocks)
    assert np.allclose(blocks, users[:, None, :, None] * items[:, :, None, :])
    # Items of a round are different, and there are six of them in all.
    assert len(np.unique(np.round(items.reshape(-1, 3), 9), axis=0)) == 6
    assert all(len(np.unique(np.round(one, 9), axis=0)) == 4 for one in items)


def test_blocks_share_no_feature_and_lie_in_the_ball():
    features, _ = BlockOffers(3, 2).sample(np.random.default_rng(0), 4000)
    assert not features[:, 0].any()
    assert not features[:, 1, 2:].any()
    assert not features[:, 2, :2].any()
    lengths = np.linalg.norm(features[:, 1], axis=1)
    # Uniform in the disc: half of the points lie within √½ of its centre.
    assert lengths.max() < 1
    assert abs(np.mean(lengths < np.sqrt(0.5)) - 0.5) < 0.05


def test_offers_of_linked_users_are_those_of_the_policy():
    offers = LinkedUserOffers(3, 4, 2)
    features, context = offers.sample(np.random.default_rng(0), 300)
    policy = SemiGraphTS.of_links(3, [(0, 1), (1, 2)])
    assert sorted(set(context.argmax(axis=1))) == [0, 1, 2]
    for rows, known in zip(features, context, strict=True):
        user = int(known.argmax())
        own = rows.reshape(4, 3, 2)[:, user]
        assert np.array_equal(policy.offer(user, own).features, rows)
        assert np.allclose(np.linalg.norm(own, axis=1), 1.0)


@pytest.mark.slow
def test_friends_save_regret_whatever_the_level_does():
    """Users with nearly the same effects: linked, they lose less than each for himself."""
    users, effects = 8, 3
    ring = [(user, (user + 1) % users) for user in range(users)]
    rng = np.random.default_rng(0)
    theta = (np.array([0.8, -0.5, 0.3]) + 0.05 * rng.normal(size=(users, effects))).reshape(-1)
    world = ContextualEnvironment(LinkedUserOffers(users, 5, effects), theta, AgainstThePlan(), Gaussian(0.5))
    linked, alone = (
        simulate_offers(policy, world, horizon=2000, replications=8, seed=3)
        for policy in (SemiGraphTS.of_links(users, ring, penalty=3.0), ContextualSemiparametricTS())
    )
    ratio = linked.regret / alone.regret
    # Eight runs with the same visitors: all of them below 1 by chance has probability 2⁻⁸ if linking is idle.
    assert ratio.mean() < 0.9
    assert (ratio < 1).all()


@pytest.mark.parametrize("level", ["none", "best", "log"])
def test_the_published_setting_is_learnt_whatever_its_level(level):
    found = simulate_offers(
        InformationDirected(), kim_paik_setting(level), horizon=3000, replications=2, seed=1
    )
    half = found.curve[:, found.curve.shape[1] // 2 - 1]
    assert (found.regret - half < 0.5 * half).all()


def test_the_growing_level_goes_on_over_blocks():
    level = GrowingLevel()
    means = np.zeros((5, 2))
    assert np.allclose(level.values(means, means, 10), np.log([11, 12, 13, 14, 15]))


def test_a_bad_log_is_refused_with_its_round():
    with pytest.raises(ParameterError, match="features of round 1 have a non-finite value"):
        ReplayedOffers([[[1.0], [2.0]], [[1.0], [np.nan]]])
    with pytest.raises(ParameterError, match="context of round 0 have a non-finite value"):
        ReplayedOffers([[[1.0], [2.0]]], [[np.inf]], names=["age"])
    with pytest.raises(ParameterError, match=r"context has shape \(1, 1\)"):
        ReplayedOffers([[[1.0], [2.0]]], [[1.0]])
