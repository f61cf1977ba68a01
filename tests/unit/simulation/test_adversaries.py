from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from tests.unit.simulation.toys import DropWorst, FixedPolicy, TakeTurns

from inside._foundation import compiled
from orthobandit.errors import ParameterError
from orthobandit.policy import UCB1, LinTS
from orthobandit.simulation import (
    Adaptive,
    CancelBest,
    Constant,
    Known,
    Past,
    PushLeader,
    ReactToLast,
    one_hot,
    simulate,
)


def _past(**changes):
    values = {
        "rounds": np.array([10, 10, 0]),
        "last_arm": np.array([1, 0, -1]),
        "last_reward": np.array([0.4, -3.0, 0.0]),
        "counts": np.array([[4, 6], [10, 0], [0, 0]]),
        "sums": np.array([[8.0, 6.0], [-20.0, 0.0], [0.0, 0.0]]),
        "probabilities": np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]]),
        "shares": np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
        "means": np.array([0.6, 0.1]),
    }
    return Past(**(values | changes))


def test_cancel_best_by_hand():
    # The best arm, 0: favoured, treated as before, avoided.
    assert CancelBest(0.8).values(_past()).tolist() == [-0.8, -0.6, 0.8]
    assert CancelBest(0.5).values(_past()).tolist() == [-0.5, -0.5, 0.5]


def test_push_leader_by_hand():
    # Leaders 0 (favoured), 0 (the only one played, as before), none yet.
    assert PushLeader(0.8).values(_past()).tolist() == [-0.8, -0.8, 0.0]
    behind = _past(sums=np.array([[4.0, 12.0], [-20.0, 0.0], [0.0, 0.0]]))
    assert PushLeader(0.8).values(behind).tolist() == [0.8, -0.8, 0.0]


def test_react_to_last_by_hand():
    assert ReactToLast(1.0).values(_past()).tolist() == [-0.4, 1.0, 0.0]
    assert ReactToLast(1.0, strength=2.0).values(_past()).tolist() == [-0.8, 1.0, 0.0]


@dataclass(frozen=True)
class Interpreted(Adaptive):
    """Asks a built-in adversary round by round in Python."""

    inner: Adaptive

    def values(self, past):
        return self.inner.values(past)


@pytest.mark.parametrize("adversary", [CancelBest(0.7), PushLeader(0.7), ReactToLast(0.7, 0.5)], ids=repr)
@pytest.mark.parametrize("policy", [FixedPolicy(), DropWorst(first=20)], ids=repr)
def test_compiled_step_equals_python_bit_for_bit(adversary, policy):
    settings = {"horizon": 400, "replications": 5, "seed": 3, "checkpoints": [1, 7, 100, 400]}
    environment = one_hot([0.0, 0.4, 0.2, 0.1], shift=adversary)
    compiled = simulate(policy, environment, **settings)
    asked = simulate(policy, environment.moved(Interpreted(adversary)), **settings)
    changed = {"settings": {}}
    assert compiled.to_json() | changed == asked.to_json() | changed


@dataclass(frozen=True)
class Spy(Adaptive):
    """Writes down what it was shown."""

    seen: list

    def values(self, past):
        self.seen.append(past)
        return np.zeros(past.rounds.size)


def test_an_adversary_sees_the_past_and_the_plan():
    seen = []
    simulate(
        DropWorst(first=10), one_hot([0.0, 5.0, 1.0], shift=Spy(seen)), horizon=40, replications=2, seed=0
    )
    assert [past.rounds[0] for past in seen] == list(range(30))
    assert seen[0].last_arm.tolist() == [-1, -1]
    assert seen[0].shares.tolist() == [[1 / 3] * 3] * 2
    for before, after in pairwise(seen):
        gained = after.counts - before.counts
        assert np.array_equal(np.argmax(gained, axis=1), after.last_arm)
        assert np.all(gained.sum(axis=1) == 1)
        np.testing.assert_allclose((after.sums - before.sums).sum(axis=1), after.last_reward, atol=1e-12)
    # The second phase keeps two arms; what they had before is the first phase's third.
    assert np.sort(seen[15].probabilities[0]).tolist() == [0, 0.5, 0.5]
    np.testing.assert_allclose(seen[15].shares[0], 1 / 3)


class Broken(Adaptive):
    def __init__(self, answer):
        self.answer = answer

    def values(self, past):  # noqa: ARG002
        return self.answer


@pytest.mark.parametrize("answer", [np.zeros(3), [np.nan, 0.0], 0.0])
def test_a_broken_adversary_is_named(answer):
    with pytest.raises(ParameterError, match="Broken"):
        simulate(FixedPolicy(), one_hot([0.0, 1.0], shift=Broken(answer)), horizon=5, replications=2, seed=0)


@pytest.mark.parametrize(
    "wrong", [lambda: CancelBest(-1), lambda: PushLeader(np.inf), lambda: ReactToLast(1, np.nan)]
)
def test_bad_limits_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


@pytest.mark.parametrize(("adversary", "share"), [(CancelBest(), 0.0), (PushLeader(), 0.9)], ids=repr)
def test_a_learner_blind_to_shifts_is_misled(adversary, share):
    run = {"horizon": 2000, "replications": 50, "seed": 0}
    environment = one_hot([0.5, 0.0, 0.1])
    assert np.all(simulate(TakeTurns(), environment, **run).decision.leader == 0)
    misled = simulate(TakeTurns(), environment.moved(adversary), **run)
    assert np.mean(misled.decision.leader == 0) <= share


@compiled
def _everything(settings, known):
    """Read every field of what is known, and cut the result."""
    total = settings[0] * known.rounds + 0.5 * known.last_arm - 0.3 * known.last_reward
    for i in range(known.means.size):
        total += (i + 1) * (0.01 * known.counts[i] - 0.02 * known.sums[i])
        total += (i + 1) * (known.probabilities[i] - 0.7 * known.shares[i]) + known.means[i]
    return min(max(total, -1.0), 1.0)


@dataclass(frozen=True)
class Everything(Adaptive):
    """Answers from all that it may know."""

    step = staticmethod(_everything)

    def settings(self, means):
        return np.array([means[0] / 7])

    def values(self, past):
        def known(r):
            names = ("rounds", "last_arm", "last_reward", "counts", "sums", "probabilities", "shares")
            return Known(*(getattr(past, name)[r] for name in names), past.means)

        settings = self.settings(past.means)
        return np.array([_everything.py_func(settings, known(r)) for r in range(past.rounds.size)])


@pytest.mark.parametrize("policy", [DropWorst(first=20), LinTS(), UCB1()], ids=repr)
def test_a_compiled_step_knows_what_the_method_knows(policy):
    settings = {"horizon": 300, "replications": 3, "seed": 8, "checkpoints": [1, 50, 300]}
    environment = one_hot([0.1, 0.4, 0.2], shift=Everything())
    fast = simulate(policy, environment, **settings)
    slow = simulate(policy, environment.moved(Interpreted(Everything())), **settings)
    assert np.array_equal(fast.regret, slow.regret)
    assert np.array_equal(fast.stop_times, slow.stop_times)
    assert not np.array_equal(
        fast.regret, simulate(policy, environment.moved(ReactToLast()), **settings).regret
    )


@compiled
def _nowhere(settings, known):
    return np.nan


@compiled
def _whole(settings, known):
    return 1


@compiled
def _greedy(settings, known):
    return known.current_arm * 1.0


@dataclass(frozen=True)
class WithStep(Adaptive):
    def values(self, past):
        return np.zeros(past.rounds.size)


class Nowhere(WithStep):
    step = staticmethod(_nowhere)


class Whole(WithStep):
    step = staticmethod(_whole)


def test_a_step_may_return_a_whole_number():
    runs = [
        simulate(LinTS(), one_hot([0.0, 1.0], shift=shift), horizon=50, replications=2, seed=0)
        for shift in (Whole(), Constant(1.0))
    ]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


class Greedy(WithStep):
    """Asks for the arm of the coming round, which nobody tells."""

    step = staticmethod(_greedy)


class Plain(WithStep):
    @staticmethod
    def step(settings, known):  # noqa: ARG004
        return 0.0


class Square(Nowhere):
    def settings(self, means):  # noqa: ARG002
        return np.zeros((2, 2))


@pytest.mark.parametrize("policy", [FixedPolicy(), LinTS()], ids=repr)
@pytest.mark.parametrize(
    ("adversary", "message"),
    [
        (Nowhere(), "not finite"),
        (Greedy(), "not a compiled function"),
        (Plain(), r"numba\.njit"),
        (Square(), r"settings of .* shape \(2, 2\)"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_broken_step_is_named(adversary, message, policy):
    with pytest.raises(ParameterError, match=message):
        simulate(policy, one_hot([0.0, 1.0], shift=adversary), horizon=5, replications=2, seed=0)
