"""Simulated offers: forecasters that are asked round by round play what compiled ones do."""

import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.estimate import ARMA, CovariateRegression, KernelRegression, OnlineRegression
from orthobandit.policy.contextual import InformationDirected, Interactions
from orthobandit.simulation import Sine
from orthobandit.simulation.contextual import (
    AgainstThePlan,
    ContextualEnvironment,
    InteractionOffers,
    SphereOffers,
    WhoComes,
    simulate_offers,
)


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
