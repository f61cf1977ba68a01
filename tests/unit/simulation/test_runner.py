import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from tests.unit.simulation.toys import DropWorst, FixedPolicy

from orthobandit import Plan
from orthobandit.errors import ParameterError, ProbabilityError
from orthobandit.simulation import (
    Bernoulli,
    Clipped,
    Constant,
    Formula,
    Gaussian,
    RandomWalk,
    Replay,
    Sine,
    StudentT,
    Uniform,
    exact_gap,
    one_hot,
    simulate,
)

ENVIRONMENT = one_hot([0.0, 1.0, 0.5], shift=Sine())
SETTINGS = {"horizon": 500, "replications": 4, "seed": 1}


def test_regret_of_a_single_arm_is_its_gap_times_the_rounds():
    policy = FixedPolicy((0.0, 0.0, 1.0), rounds=100)
    result = simulate(policy, ENVIRONMENT, checkpoints=[1, 99, 100, 101, 500], **SETTINGS)
    assert result.regret.tolist() == [[0.5, 49.5, 50.0, 50.5, 250.0]] * 4
    assert result.stop_times.tolist() == [-1] * 4
    assert result.plans.tolist() == [1] * 4


@pytest.mark.parametrize(
    "environment",
    [
        ENVIRONMENT,
        ENVIRONMENT.moved(RandomWalk()),
        ENVIRONMENT.moved(Sine(), Bernoulli()),
        ENVIRONMENT.moved(Constant(), StudentT()),
    ],
    ids=lambda environment: f"{environment.shift}, {environment.noise}",
)
def test_arms_and_so_regret_do_not_depend_on_the_rewards(environment):
    result = simulate(FixedPolicy(), environment, **SETTINGS)
    expected = simulate(FixedPolicy(), ENVIRONMENT, **SETTINGS)
    assert np.array_equal(result.regret, expected.regret)


def test_skipping_the_last_plan_equals_playing_it():
    played = simulate(DropWorst(final_rounds=70), ENVIRONMENT, **SETTINGS)
    skipped = simulate(DropWorst(), ENVIRONMENT, **SETTINGS)
    assert skipped.stop_times.tolist() == [150] * 4
    np.testing.assert_allclose(skipped.regret, played.regret, rtol=1e-13)


def test_an_endless_horizon_is_skipped_in_closed_form():
    result = simulate(DropWorst(), ENVIRONMENT, horizon=10**15, replications=2, seed=0, checkpoints=[10**15])
    wrong = ENVIRONMENT.gaps[result.declared]
    np.testing.assert_allclose(result.regret[:, 0] / 1e15, wrong, atol=1e-9)


def test_stop_elimination_and_declaration_are_noted():
    result = simulate(DropWorst(first=100), one_hot([0.0, 9.0, 5.0]), **SETTINGS)
    assert result.declared.tolist() == [1] * 4
    assert result.correct.all()
    assert result.elimination_times.tolist() == [[100, -1, 300]] * 4
    assert result.stop_times.tolist() == [300] * 4
    assert result.plans.tolist() == [3] * 4
    assert result.decision.active.tolist() == [[False, True, False]] * 4


def test_a_run_may_stop_at_the_declaration():
    wrong_way = one_hot([9.0, 1.0, 0.5], shift=Constant(), noise=Uniform(0.1))
    policy = DropWorst(first=100)
    marks = [50, 300, 301, 500]
    result = simulate(policy, wrong_way, stop_when_declared=True, checkpoints=marks, **SETTINGS)
    assert np.all(result.regret[:, 1] == result.regret[:, 3])
    assert np.all(result.regret[:, 0] > 0)
    assert result.stop_times.tolist() == [300] * 4


def test_one_arm_declares_at_once_without_regret():
    result = simulate(DropWorst(), one_hot([0.3]), **SETTINGS)
    assert result.stop_times.tolist() == [0] * 4
    assert result.declared.tolist() == [0] * 4
    assert np.all(result.regret == 0)


def test_any_of_several_best_arms_is_correct():
    result = simulate(DropWorst(), one_hot([1.0, 1.0, -9.0]), horizon=1000, replications=20, seed=0)
    assert set(result.declared) == {0, 1}
    assert result.correct.all()
    assert np.all(np.diff(result.regret[:, -10:], axis=1)[:, -1] == 0)


def test_an_unfinished_phase_drops_nothing():
    result = simulate(DropWorst(first=100), ENVIRONMENT, horizon=299, replications=3, seed=0)
    assert np.all(result.decision.active.sum(axis=1) == 2)
    assert result.declared.tolist() == [-1] * 3
    assert not result.correct.any()


def test_clipped_rounds_are_counted():
    certain = one_hot([0.0, 0.0], shift=Replay([0.5, 1.5, -0.5, 0.2]), noise=Bernoulli())
    assert simulate(FixedPolicy(), certain, horizon=4, replications=3, seed=0).clipped.tolist() == [2] * 3
    bounded = certain.moved(Replay([0.5, 1.5, -0.5, 0.2]), Clipped(sigma=0.0))
    assert simulate(FixedPolicy(), bounded, horizon=4, replications=3, seed=0).clipped.tolist() == [2] * 3
    additive = certain.moved(Constant(7.0), Gaussian())
    assert simulate(FixedPolicy(), additive, horizon=4, replications=3, seed=0).clipped.tolist() == [0] * 3


def test_default_checkpoints_end_with_the_horizon():
    for horizon in (1, 2, 50, 12345):
        marks = simulate(FixedPolicy(), ENVIRONMENT, horizon=horizon, replications=1, seed=0).checkpoints
        assert marks[0] == 1
        assert marks[-1] == horizon
        assert marks.size <= 50
        assert np.all(np.diff(marks) > 0)


def test_more_replications_than_memory_holds_are_refused_before_anything_is_taken():
    words = r"the result of 1,000,000,000 replications would need [\d,]+ GiB of memory, .*; run fewer, or"
    with pytest.raises(ParameterError, match=words):
        simulate(FixedPolicy(), ENVIRONMENT, horizon=1000, replications=10**9, seed=0)


def test_progress_counts_replications():
    calls = []
    simulate(FixedPolicy(), ENVIRONMENT, batch=3, progress=lambda *call: calls.append(call), **SETTINGS)
    assert calls == [(3, 4), (4, 4)]


def test_policy_is_shown_the_arms_only():
    seen = []

    @dataclass(frozen=True)
    class Curious(FixedPolicy):
        def start(self, arms, batch=(), **names):
            seen.append((arms, batch, names))
            return super().start(arms, batch, **names)

    simulate(Curious(), ENVIRONMENT, horizon=5, replications=3, seed=8, batch=2)
    assert [(arms is ENVIRONMENT.arms, batch) for arms, batch, _ in seen] == [(True, (2,)), (True, (1,))]
    assert [names["seed"] for *_, names in seen] == [8, 8]
    assert [names["replications"].tolist() for *_, names in seen] == [[0, 1], [2]]


def test_memory_does_not_grow_with_the_horizon():
    def peak(horizon):
        tracemalloc.start()
        simulate(FixedPolicy(), ENVIRONMENT, horizon=horizon, replications=2, seed=0, checkpoints=[horizon])
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(10**6)
    assert peak(10**7) < 1.2 * peak(10**6)


class Careless(FixedPolicy):
    def plan(self, state):
        return Plan(super().plan(state).probabilities, 0)


class Narrow(FixedPolicy):
    def plan(self, state):  # noqa: ARG002
        return Plan(np.full((4, 2), 0.5), 1)


class Nowhere(Formula):
    def at(self, rounds):
        return np.log(np.zeros(rounds.shape) + (rounds != 3))


def test_a_policy_that_breaks_the_protocol_is_named():
    with pytest.raises(ParameterError, match="planned 0 rounds"):
        simulate(Careless(), ENVIRONMENT, **SETTINGS)
    with pytest.raises(ProbabilityError, match=r"\(4, 2\); \(4, 3\)"):
        simulate(Narrow(), ENVIRONMENT, **SETTINGS)


def test_a_shift_that_is_not_finite_is_named():
    with np.errstate(divide="ignore"), pytest.raises(ParameterError, match="Nowhere"):
        simulate(FixedPolicy(), ENVIRONMENT.moved(Nowhere()), **SETTINGS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon=0"),
        ({"horizon": -5}, "horizon=-5"),
        ({"horizon": 1.5}, "horizon=1.5"),
        ({"horizon": True}, "horizon=True"),
        ({"replications": 0}, "replications=0"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": None}, "seed=None"),
        ({"jobs": 0}, "jobs=0"),
        ({"batch": 0}, "batch=0"),
        ({"checkpoints": [5, 3]}, "ascend"),
        ({"checkpoints": [5, 5]}, "ascend"),
        ({"checkpoints": [0, 5]}, "ascend"),
        ({"checkpoints": [501]}, "horizon 500"),
        ({"checkpoints": []}, "whole numbers"),
        ({"checkpoints": [1.5]}, "whole numbers"),
        ({"checkpoints": 5}, "whole numbers"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(changes, message):
    with pytest.raises(ParameterError, match=message):
        simulate(FixedPolicy(), ENVIRONMENT, **(SETTINGS | changes))


def test_wrong_objects_are_refused():
    with pytest.raises(ParameterError, match=r"no method start\(\)"):
        simulate("sbe", ENVIRONMENT, **SETTINGS)
    with pytest.raises(ParameterError, match="environment is a str"):
        simulate(FixedPolicy(), "sphere", **SETTINGS)
    with pytest.raises(ParameterError, match="known for 3 rounds; 500"):
        simulate(FixedPolicy(), ENVIRONMENT.moved(Replay([1.0, 2.0, 3.0])), **SETTINGS)


def test_many_arms_with_small_support_stay_cheap():
    environment = exact_gap(5, 500, 0.1, seed=0)
    chosen = tuple(np.eye(500)[7] * 0.25 + np.eye(500)[400] * 0.75)
    result = simulate(FixedPolicy(chosen), environment, checkpoints=[500], **SETTINGS)
    low, high = sorted(environment.gaps[[7, 400]] * 500)
    assert np.all((result.regret >= low - 1e-9) & (result.regret <= high + 1e-9))


def test_a_class_is_not_taken_for_a_policy():
    with pytest.raises(ParameterError, match=r"policy=FixedPolicy is a class; pass an object of it"):
        simulate(FixedPolicy, one_hot([0.0, 1.0]), horizon=4, replications=1, seed=0)
