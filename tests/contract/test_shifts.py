"""Every shift of the package keeps the contract, and the suite finds those that do not."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from inside.simulation import CHUNK_ROUNDS
from orthobandit.simulation import (
    SHIFTS,
    Adaptive,
    CancelBest,
    Formula,
    Limited,
    Oblivious,
    PushLeader,
    RandomWalk,
    ReactToLast,
    Replay,
    Scaled,
    Sine,
    Trend,
    named_shift,
)
from orthobandit.testing import SHIFT_CHECKS, ShiftSetting, check_shift

ADAPTIVE = {
    "cancel best": CancelBest(0.4),
    "push leader": PushLeader(0.4),
    "react to last": ReactToLast(0.4, 3.0),
}
MORE = {
    "reflected walk": RandomWalk(0.1, limit=0.5),
    "recorded": Replay(np.sin(np.arange(300.0))),
    "recorded again and again": Replay([1.0, -2.0, 0.5], repeats=True),
    "scaled": Scaled(RandomWalk(0.1, limit=0.5), -2.0, 1.0),
    "cut": Limited(Trend(0.01), 0.7),
}


@pytest.mark.parametrize("check", SHIFT_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SHIFTS)
def test_a_named_shift_keeps_the_contract(name, check):
    check(named_shift(name), ShiftSetting())


@pytest.mark.parametrize("name", MORE)
def test_a_path_made_from_others_keeps_the_contract(name):
    check_shift(MORE[name])


@pytest.mark.parametrize("name", ADAPTIVE)
def test_an_adversary_keeps_to_its_limit(name):
    check_shift(ADAPTIVE[name], bound=0.4)
    with pytest.raises(AssertionError, match="exceeds the bound"):
        check_shift(ADAPTIVE[name], bound=0.3)


class Restarts(Sine):
    """A path that begins again with every block that is asked for."""

    def values(self, start, count, *, seed=0, replication=0):  # noqa: ARG002
        return super().values(0, count)


class SharedWalk(RandomWalk):
    is_shared = True


@dataclass(frozen=True)
class OneWalk(Oblivious):
    """Says that replications differ, and they do not."""

    is_shared: ClassVar[bool] = False

    def chunk(self, index, *, seed=0, replication=0):  # noqa: ARG002
        return RandomWalk(0.1).chunk(index)


@dataclass(frozen=True)
class Boastful(Formula):
    """Says that it is smaller than it is."""

    bound: ClassVar[float] = 0.5

    def at(self, rounds):
        return np.sin(0.1 * rounds)


@dataclass(frozen=True)
class Endless(Formula):
    """Says that it ends, and does not mind."""

    length: ClassVar[int] = 50

    def at(self, rounds):
        return np.zeros(rounds.shape)

    def require(self, rounds):
        pass


@dataclass(frozen=True)
class Breaks(Formula):
    def at(self, rounds):
        return np.where(rounds > CHUNK_ROUNDS, np.nan, 0.0)


class Nameless(Formula):
    def at(self, rounds):
        return np.zeros(rounds.shape)


class Counting(Adaptive):
    """Has a memory of its own."""

    calls = 0

    def __repr__(self):
        return "Counting()"

    def values(self, past):
        self.calls += 1
        return np.full(past.rounds.size, float(self.calls))


@dataclass(frozen=True)
class Crowd(Adaptive):
    """Looks at the replications beside."""

    def values(self, past):
        return np.full(past.rounds.size, np.tanh(past.sums.sum()))


@dataclass(frozen=True)
class OneForAll(Adaptive):
    def values(self, past):  # noqa: ARG002
        return np.zeros(1)


@dataclass(frozen=True)
class TwoFaced(Adaptive):
    """Another compiled step than the method says."""

    step = ReactToLast.step

    def settings(self, means):  # noqa: ARG002
        return np.array([5.0, 0.9])

    def values(self, past):
        return np.zeros(past.rounds.size)


@dataclass(frozen=True)
class Meddler(Adaptive):
    """Writes on what it is shown."""

    def values(self, past):
        past.counts[:] = 0
        return np.zeros(past.rounds.size)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Restarts(), "how it is cut"),
        (SharedWalk(), "says it is shared"),
        (OneWalk(), "same in two replications"),
        (Boastful(), "exceeds the bound 0.5"),
        (Endless(), "beyond its length"),
        (Breaks(), "not finite"),
        (Nameless(), "without addresses"),
        (Counting(), "asked again"),
        (Crowd(), "those beside it"),
        (OneForAll(), "shape"),
        (TwoFaced(), "compiled step differs"),
        ("sine", "derives from"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_broken_clause_is_found(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_shift(broken)


def test_one_that_writes_on_the_past_is_stopped():
    with pytest.raises(ValueError, match="read-only"):
        check_shift(Meddler())
