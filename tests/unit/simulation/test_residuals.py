"""Residuals in the simulator: forecasts before draws, centres, and rewards that are refused."""

from dataclasses import dataclass

import numpy as np
import pytest

from forecaster_samples import OnlineMean
from inside.simulation import Player
from orthobandit import ArmSet, Environment, simulate
from orthobandit.errors import RewardError
from orthobandit.estimate import (
    AutoRegression,
    Bounded,
    Centre,
    ExponentialMean,
    Forecast,
    Forecaster,
    NoBaseline,
    OnlineRegression,
    RunningMean,
    SubGaussian,
)
from orthobandit.policy import AnytimeElimination
from orthobandit.simulation import Adaptive, CancelBest, Gaussian, Sine

ARMS = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
SHIFTS = {"oblivious": Sine(), "compiled adversary": CancelBest()}


def environment(shift, noise=None):
    return Environment(ARMS, [0.5, 0.2], shift, noise or Gaussian(0.5))


@dataclass(frozen=True)
class InPython:
    """The same forecasts as a compiled baseline, asked round by round."""

    baseline: object

    def forecaster(self):
        return self.baseline.forecaster()


@dataclass(frozen=True)
class Echo(Adaptive):
    """An adversary that is asked in Python: the opposite of the last reward, cut at 1."""

    def values(self, past):
        return np.clip(-past.last_reward, -1.0, 1.0)


def played(baseline, shift, centre=None, size=4, rounds=150):
    player = Player(environment(shift), np.array([rounds]), 3, np.arange(size), baseline)
    if centre is None:
        values = np.tile([0.0, 0.4, -0.3], (size, 1))
        centre = Centre(values, np.full(size, -2.0), np.full(size, 2.5), limit=1.5)
    chances = np.tile([0.2, 0.5, 0.3], (size, 1))
    halves = [player.play(chances, np.full(size, rounds // 2), centre) for _ in range(2)]
    return halves[0] + halves[1]


@pytest.mark.parametrize("shift", [*SHIFTS.values(), Echo()], ids=[*SHIFTS, "python adversary"])
@pytest.mark.parametrize("baseline", [RunningMean(), ExponentialMean(0.2), AutoRegression(3)])
def test_a_python_baseline_equals_its_compiled_twin(baseline, shift):
    compiled, asked = played(baseline, shift), played(InPython(baseline), shift)
    assert np.array_equal(compiled.counts, asked.counts)
    assert asked.sums == pytest.approx(compiled.sums, abs=1e-9)
    assert asked.squares == pytest.approx(compiled.squares, abs=1e-9)


def test_without_a_baseline_residuals_are_rewards_minus_values():
    size = 2
    open_ended = Centre(np.tile([0.0, 0.4, -0.3], (size, 1)), np.full(size, -np.inf), np.full(size, np.inf))
    plain = played(NoBaseline(), Sine(), open_ended, size)
    asked = played(InPython(NoBaseline()), Sine(), open_ended, size)
    assert plain.rounds.tolist() == asked.rounds.tolist()
    # Noise is added in another order where nothing is asked, so that only the law is the same.
    assert np.abs(plain.sums / plain.counts - asked.sums / asked.counts).max() < 1.0


class Watchful(Forecaster):
    """Notes the order of events; sees no arm."""

    def __init__(self):
        self.learnt, self.residuals, self.forecasts = 0, [], []

    def forecast(self, round, covariates=None):  # noqa: A002, ARG002
        assert round == self.learnt, "a forecast was asked for before the last round was learnt"
        self.forecasts.append(self.residuals[-1] if self.residuals else 0.0)
        return Forecast(self.forecasts[-1], round)

    def learn(self, forecast, residual):
        assert forecast.round == self.learnt
        self.learnt += 1
        self.residuals.append(residual)

    def to_json(self):
        return None


@pytest.mark.parametrize("shift", [*SHIFTS.values(), Echo()])
def test_forecasts_come_before_draws_and_residuals_after(shift):
    forecasters = []

    class Watching:
        def forecaster(self):
            forecasters.append(Watchful())
            return forecasters[-1]

    size, rounds = 3, 60
    wide = Centre(np.zeros((size, 3)), np.full(size, -np.inf), np.full(size, np.inf))
    tally = played(Watching(), shift, wide, size, rounds)
    for r, watcher in enumerate(forecasters):
        assert watcher.learnt == rounds
        expected = np.array(watcher.residuals) - np.array(watcher.forecasts)
        assert tally.sums[r].sum() == pytest.approx(expected.sum(), abs=1e-9)
        assert tally.squares[r].sum() == pytest.approx((expected**2).sum(), abs=1e-9)


def test_simulate_gives_the_same_with_an_online_model_as_with_its_compiled_twin():
    results = [
        simulate(
            AnytimeElimination(baseline=baseline, growth=0.5, pilot=60),
            environment(Sine()),
            horizon=600,
            replications=3,
            seed=5,
        )
        for baseline in (RunningMean(), OnlineRegression(OnlineMean))
    ]
    assert results[0].regret == pytest.approx(results[1].regret, rel=1e-9)
    assert np.array_equal(results[0].decision.leader, results[1].decision.leader)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [SubGaussian(-1.0, 3.0, sigma=0.5)])
@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
def test_grouping_and_processes_change_no_number(shift, confidence):
    policy = AnytimeElimination(confidence=confidence, goal="earn", growth=0.5)
    common = {"horizon": 800, "replications": 4, "seed": 9}
    whole = simulate(policy, environment(shift), **common)
    for how in ({"batch": 1}, {"batch": 3}, {"jobs": 2}):
        other = simulate(policy, environment(shift), **common, **how)
        assert np.array_equal(other.regret, whole.regret)
        assert np.array_equal(other.decision.epsilon, whole.decision.epsilon)
        assert np.array_equal(other.decision.active, whole.decision.active)


@pytest.mark.parametrize("baseline", [AutoRegression(2), InPython(RunningMean())])
def test_a_reward_outside_the_declared_range_is_refused_by_name(baseline):
    policy = AnytimeElimination(confidence=Bounded(-1.0, 2.0), baseline=baseline)
    with pytest.raises(
        RewardError, match=r"reward of round \d+ lies outside the declared range \(-1.0, 2.0\)"
    ):
        simulate(policy, environment(Sine()), horizon=500, replications=2, seed=0)


def test_a_refused_reward_is_not_learnt_from():
    forecasters = []

    class Watching:
        def forecaster(self):
            forecasters.append(Watchful())
            return forecasters[-1]

    centre = Centre(np.zeros((1, 3)), np.full(1, -1.0), np.full(1, 1.0), 4.0, (-1.0, 2.4))
    with pytest.raises(RewardError, match="reward of round") as caught:
        played(Watching(), Sine(), centre, size=1)
    refused = int(str(caught.value).split("round ")[1].split()[0])
    assert forecasters[0].learnt == refused - 1
    assert refused > 1
    assert max(forecasters[0].residuals) <= 2.4


def test_the_compiled_residual_is_that_of_the_centre():
    # One arm and one round at a time: the kernel's clips against the definition.
    centre = Centre(np.array([0.0, 0.4, -0.3]), np.array(-0.2), np.array(0.3), limit=0.8)
    rewards = []

    class Spy(Forecaster):
        def forecast(self, round, covariates=None):  # noqa: A002, ARG002
            return Forecast(np.sin(round), round)

        def learn(self, forecast, residual):
            rewards.append((forecast.value, residual))

        def to_json(self):
            return None

    class Spying:
        def forecaster(self):
            return Spy()

    player = Player(environment(Sine()), np.array([50]), 3, np.arange(1), Spying())
    batch = Centre(centre.values[np.newaxis], np.array([-0.2]), np.array([0.3]), 0.8)
    for t in range(50):
        tally = player.play(np.array([[0.2, 0.5, 0.3]]), np.array([1]), batch)
        arm = int(np.argmax(tally.counts[0]))
        level, residual = rewards[t]
        expected = centre.residuals(np.array([arm]), [residual + centre.values[arm]], [level])
        assert tally.sums[0, arm] == pytest.approx(expected[0], abs=1e-12)
