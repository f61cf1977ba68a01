"""The contract of shifts, clause by clause; see :mod:`orthobandit.simulation.shifts`."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from orthobandit._foundation.random import draw_arms, stream
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.peers import LinTS
from orthobandit.simulation import Environment, simulate
from orthobandit.simulation.adversaries import Adaptive, Past
from orthobandit.simulation.player import Player
from orthobandit.simulation.shifts import Oblivious
from orthobandit.testing._play import require, require_object, setting_of

Shift = Oblivious | Adaptive


@dataclass(frozen=True)
class ShiftSetting:
    """The paths on which a check tries a shift.

    Parameters
    ----------
    rounds : int
        Length of a path. Adaptive shifts are played for a hundredth as many rounds.
    bound : float, optional
        The largest |ν| that is allowed; by default the `bound` of an oblivious shift.
    seed : int
    """

    rounds: int = 40_000
    bound: float | None = None
    seed: int = 0


def check_shift(shift: Shift, **settings: Any) -> None:
    """Check every clause of the contract on a shift, oblivious or adaptive.

    Parameters
    ----------
    shift : Oblivious or Adaptive
    **settings
        Fields of :class:`ShiftSetting`.

    Examples
    --------
    >>> from orthobandit.simulation import CancelBest, Sine
    >>> check_shift(Sine())
    >>> check_shift(CancelBest(0.5), bound=0.5)
    """
    require_object(shift)
    require(isinstance(shift, Oblivious | Adaptive), "a shift derives from Oblivious or Adaptive")
    setting = setting_of(ShiftSetting, settings)
    for check in SHIFT_CHECKS:
        check(shift, setting)


def check_cutting(shift: Shift, setting: ShiftSetting) -> None:
    """Check that a path does not depend on the pieces in which it is asked for, nor on their order."""
    if isinstance(shift, Adaptive):
        return
    rounds = _known(shift, setting)
    whole = _path(shift, 0, rounds, setting)
    cuts = np.sort(stream(setting.seed, "contract cuts").integers(0, rounds + 1, size=8)).tolist()
    pieces = list(zip([0, *cuts], [*cuts, rounds], strict=True))
    # From the last piece to the first, which exposes a path that remembers where it was.
    parts = {first: _path(shift, first, last - first, setting) for first, last in reversed(pieces)}
    for first, last in pieces:
        same = np.array_equal(parts[first], whole[first:last])
        require(same or first == last, "a path depends on how it is cut")
    require(np.array_equal(_path(shift, 0, rounds, setting), whole), "a path changes when it is asked again")


def check_replications(shift: Shift, setting: ShiftSetting) -> None:
    """Check that paths differ between seeds and replications, or are all the same if `is_shared` is true."""
    if isinstance(shift, Adaptive):
        return
    rounds = min(_known(shift, setting), 2000)
    paths = [
        shift.values(0, rounds, seed=seed, replication=replication)
        for seed, replication in ((setting.seed, 0), (setting.seed, 1), (setting.seed + 1, 0))
    ]
    same = [np.array_equal(paths[0], other) for other in paths[1:]]
    require(all(same) or not shift.is_shared, "a path that says it is shared differs between replications")
    require(not any(same) or shift.is_shared, "a random path is the same in two replications")


def check_bounds(shift: Shift, setting: ShiftSetting) -> None:
    """Check that values are finite and within the bound, and that reading beyond a path's end is refused."""
    bound = setting.bound
    if isinstance(shift, Oblivious):
        bound = shift.bound if bound is None else min(bound, shift.bound)
        values = _path(shift, 0, _known(shift, setting), setting)
        if shift.length is not None:
            _refuses(shift, shift.length)
    else:
        values = np.concatenate([seen for _, seen in _game(shift, setting)])
    require(bool(np.all(np.isfinite(values))), "a value is not finite")
    # A little more than the bound, because sums such as |offset| + |amplitude| are rounded.
    most = np.inf if bound is None else bound * (1 + 1e-12)
    require(bool(np.all(np.abs(values) <= most)), f"a value exceeds the bound {bound}")


def check_asking(shift: Shift, setting: ShiftSetting) -> None:
    """Check that an adaptive shift gives one value per replication, and the same one when asked again."""
    if isinstance(shift, Oblivious):
        return
    for past, values in _game(shift, setting):
        require(
            values.shape == past.rounds.shape, f"values have shape {values.shape}, not {past.rounds.shape}"
        )
        require(np.array_equal(np.asarray(shift.values(past)), values), "asked again, the answer is another")


def check_rows(shift: Shift, setting: ShiftSetting) -> None:
    """Check that an adaptive shift treats each replication independently of the others."""
    if isinstance(shift, Oblivious):
        return
    for past, values in _game(shift, setting):
        for r in range(len(values)):
            alone = np.asarray(shift.values(_rows(past, [r])))
            require(np.array_equal(alone, values[r : r + 1]), "a replication depends on those beside it")


def check_compiled_shift(shift: Shift, setting: ShiftSetting) -> None:
    """Check that a compiled step gives the same values as `values`, which cannot see the current arm.

    This is tried under plans of many rounds and against a policy that plans every round.
    """
    if isinstance(shift, Oblivious) or type(shift).step is None:
        return
    arms, theta = _arms(setting)
    numbers = np.arange(3)
    rounds = np.full(3, 50)
    players = [
        Player(Environment(arms, theta, one), np.array([400]), setting.seed, numbers)
        for one in (shift, _Asked(shift))
    ]
    for number in range(8):
        plans = stream(setting.seed, "contract plans", number).dirichlet(np.ones(len(arms)), size=3)
        compiled, asked = (player.play(plans, rounds).sums for player in players)
        require(np.array_equal(compiled, asked), "the compiled step differs from `values`")
    compiled, asked = (
        simulate(
            LinTS(), Environment(arms, theta, one), horizon=100, replications=3, seed=setting.seed
        ).regret
        for one in (shift, _Asked(shift))
    )
    require(np.array_equal(compiled, asked), "the compiled step differs from `values` in single rounds")


def check_names(shift: Shift, setting: ShiftSetting) -> None:
    """Check that ``repr`` is the same in every process, and that pickling preserves the shift."""
    text = repr(shift)
    require(" at 0x" not in text and "\n" not in text, f"repr {text!r} must be one line, without addresses")
    loaded = pickle.loads(pickle.dumps(shift))  # noqa: S301
    require(repr(loaded) == text, "a pickled shift has another repr")
    if isinstance(shift, Oblivious):
        rounds = min(_known(shift, setting), 100)
        same = np.array_equal(_path(loaded, 0, rounds, setting), _path(shift, 0, rounds, setting))
        require(same, "a pickled shift is another path")


SHIFT_CHECKS: tuple[Callable[[Any, ShiftSetting], None], ...] = (
    check_bounds,
    check_cutting,
    check_replications,
    check_asking,
    check_rows,
    check_compiled_shift,
    check_names,
)


@dataclass(frozen=True)
class _Asked(Adaptive):
    """The inner shift without its compiled step."""

    inner: Adaptive

    def values(self, past: Past) -> Array:
        return self.inner.values(past)


def _known(shift: Oblivious, setting: ShiftSetting) -> int:
    return setting.rounds if shift.length is None else min(setting.rounds, shift.length)


def _path(shift: Oblivious, start: int, count: int, setting: ShiftSetting) -> Array:
    return shift.values(start, count, seed=setting.seed, replication=1)


def _refuses(shift: Oblivious, length: int) -> None:
    try:
        shift.values(0, length + 1)
    except ParameterError:
        return
    raise AssertionError("a path is read beyond its length")


def _arms(setting: ShiftSetting) -> tuple[ArmSet, Array]:
    generator = stream(setting.seed, "contract shift arms")
    return ArmSet(generator.standard_normal((5, 3))), generator.standard_normal(3)


def _rows(past: Past, rows: list[int]) -> Past:
    """Return the past of some replications as read-only arrays."""
    taken = {field.name: getattr(past, field.name)[rows] for field in fields(past) if field.name != "means"}
    for array in taken.values():
        array.flags.writeable = False
    return replace(past, **taken)


def _game(shift: Adaptive, setting: ShiftSetting) -> Iterator[tuple[Past, Array]]:
    """Play three replications under changing plans; yield each past and the values that the shift answers."""
    size = 3
    (arms, theta) = _arms(setting)
    means = arms.features @ theta
    count = len(arms)
    past = Past(
        rounds=np.zeros(size, dtype=np.int64),
        last_arm=np.full(size, -1, dtype=np.int64),
        last_reward=np.zeros(size),
        counts=np.zeros((size, count), dtype=np.int64),
        sums=np.zeros((size, count)),
        probabilities=np.full((size, count), 1 / count),
        shares=np.full((size, count), 1 / count),
        means=means,
    )
    shares = past.shares
    for t in range(setting.rounds // 100):
        generator = stream(setting.seed, "contract shift", t)
        # Each plan lasts some rounds: adversaries may react to a change of plan.
        if t % 25 == 0:
            plans = generator.dirichlet(np.ones(count), size=size)
            past = replace(past, probabilities=plans, shares=np.array(shares))
        # Read-only: a shift that writes to its argument raises.
        known = _rows(past, list(range(size)))
        values = np.asarray(shift.values(known), dtype=np.float64)
        yield known, values
        drawn = np.array([draw_arms(generator, plan, 1)[0] for plan in past.probabilities])
        rewards = means[drawn] + np.broadcast_to(values, size) + generator.standard_normal(size)
        played = drawn[:, np.newaxis] == np.arange(count)
        shares = (t * shares + past.probabilities) / (t + 1)
        past = replace(
            past,
            rounds=past.rounds + 1,
            last_arm=drawn,
            last_reward=rewards,
            counts=past.counts + played,
            sums=past.sums + played * rewards[:, np.newaxis],
        )
