"""The contract of policies whose plans are recorded facts, clause by clause.

Each check plays a short experiment with a moving baseline and raises :class:`AssertionError` with the
clause of :class:`orthobandit.policy.contract.Policy`. What is tallied are multiples of 2⁻¹⁰, so that sums are
exact in any order and states can be compared bit by bit.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.random import draw_arms, stream
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Centre, Plan, Tally
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.contract import Batch, OfferSpace, PlanRecord, Policy, Space
from orthobandit.testing._play import require, require_object

PARTS = 3  # in which each tally arrives
MAX_OFFERED_ARMS = 5


@dataclass(frozen=True)
class ContractSetting:
    """The experiment that the checks play.

    Parameters
    ----------
    space : ArmSet or OfferSpace
    horizon : int
        Rounds of each replication.
    plans : int
        Most plans to follow.
    replications : int
        Size of the batches; where each round offers arms of its own, one replication is played.
    seed : int
    may_play_dropped : bool
        True for policies that still draw dropped arms, because they inform about the others.
    """

    space: Space
    horizon: int = 2000
    plans: int = 25
    replications: int = 3
    seed: int = 0
    may_play_dropped: bool = False


class Turn(NamedTuple):
    """One plan: the state that it was made from, the state that adopted it, and its rounds in parts."""

    before: Any
    offer: Offer | None
    plan: Plan
    record: PlanRecord
    adopted: Any
    parts: tuple[Batch, ...]


class Played(NamedTuple):
    """A setting, and what a policy did in it."""

    setting: ContractSetting
    turns: tuple[Turn, ...]


def check_contract(policy: Policy[Any], space: Space, **settings: Any) -> None:
    """Check every clause of :class:`orthobandit.policy.contract.Policy`.

    Parameters
    ----------
    policy : Policy
    space : ArmSet or OfferSpace
    **settings
        The other fields of :class:`ContractSetting`.
    """
    require_object(policy)
    for method in ("start", "plan", "observe", "adopt", "decide"):
        require(callable(getattr(policy, method, None)), f"{policy!r} has no method {method}()")
    require(
        hasattr(policy, "baseline"), f"{policy!r} has no attribute `baseline`; None if it forecasts nothing"
    )
    if not isinstance(space, ArmSet | OfferSpace):
        raise ParameterError(f"space is a {type(space).__name__}; an ArmSet or an OfferSpace is needed")
    setting = ContractSetting(space, **settings)
    numbers = np.arange(setting.replications) if isinstance(space, ArmSet) else np.asarray(0)
    played = Played(setting, tuple(play_contract(policy, setting, numbers)))
    for check in CONTRACT_CHECKS:
        check(policy, played)


def check_plans(policy: Policy[Any], played: Played) -> None:
    """Check that plans fit the arms, draw no dropped ones and are the same whenever they are asked for."""
    for turn in played.turns:
        probabilities = turn.plan.probabilities
        require(probabilities.shape == turn.record.active.shape, "the plan and its record have other shapes")
        if turn.offer is not None:
            require(
                turn.plan.count == len(turn.offer), "the plan has not one probability for each arm offered"
            )
        dropped = not played.setting.may_play_dropped and bool(np.any(probabilities[~turn.record.active]))
        require(not dropped, "an arm that is not active may be drawn")
        if policy.baseline is not None:
            require(turn.plan.centre is not None, "a plan has no centre, though there is a baseline")
        plan, record = policy.plan(turn.before, turn.offer)
        require(_json(plan) == _json(turn.plan), "asking twice for the plan gives two plans")
        require(record.same_as(turn.record), "asking twice for the plan gives two records")


def check_records(policy: Policy[Any], played: Played) -> None:
    """Check that a plan and a record that were stored as JSON are adopted as those that were made."""
    for turn in played.turns:
        stored = json.loads(json.dumps([turn.plan.to_json(), turn.record.to_json()], allow_nan=False))
        plan, record = Plan.from_json(stored[0]), PlanRecord.from_json(stored[1])
        require(record.same_as(turn.record), "a record is not the same after it has been to JSON and back")
        adopted = policy.adopt(turn.before, plan, record)
        require(
            content(adopted) == content(turn.adopted), "a stored plan leads to another state when adopted"
        )


def check_decided(policy: Policy[Any], played: Played) -> None:
    """Check that decisions have one entry for each replication, and name active arms only."""
    for turn in played.turns:
        decision = policy.decide(turn.adopted, turn.record)
        active = np.asarray(decision.active)
        require(active.shape == turn.record.active.shape, f"active has shape {active.shape}")
        require(0 <= decision.certainty <= 1, "certainty is not a probability")
        require(bool(np.all(decision.epsilon >= 0)), "epsilon is negative or not a number")
        rows = active.reshape(-1, active.shape[-1])
        for row, leader, declared in zip(rows, decision.leader.flat, decision.declared.flat, strict=True):
            require(bool(row[leader]), "the leader is not active")
            require(bool(declared < 0 or row[declared]), "a declared arm is not active")


def check_adding(policy: Policy[Any], played: Played) -> None:
    """Check that parts of a tally add up, in any order, and that an empty one changes nothing."""
    for turn in played.turns:
        together = content(policy.observe(turn.adopted, turn.parts))
        state = turn.adopted
        for part in turn.parts:
            state = policy.observe(state, [part])
        require(content(state) == together, "parts that are observed one by one lead to another state")
        backwards = content(policy.observe(turn.adopted, turn.parts[::-1]))
        require(backwards == together, "parts that are observed in another order lead to another state")
        plan, tally, offer = turn.parts[0]
        empty = Tally.zeros(plan.count, tally.counts.shape[:-1])
        same = policy.observe(turn.adopted, [Batch(plan, empty, offer)])
        require(content(same) == content(turn.adopted), "a tally of no rounds changes the state")
        require(
            content(policy.observe(turn.adopted, [])) == content(turn.adopted), "no tally changes the state"
        )


def check_late_rounds(policy: Policy[Any], played: Played) -> None:
    """Check that rounds of an earlier plan are taken under a later one, and change no decision.

    They too add up in any order, among themselves and with rounds of the plan in force.
    """
    for earlier, turn in pairwise(played.turns):
        parts = (*earlier.parts, *turn.parts)
        together = content(policy.observe(turn.adopted, parts))
        backwards = turn.adopted
        for part in parts[::-1]:
            backwards = policy.observe(backwards, [part])
        require(content(backwards) == together, "late rounds in another order lead to another state")
        state = policy.observe(turn.adopted, earlier.parts[:1])
        before = policy.decide(turn.adopted, turn.record)
        after = policy.decide(state, turn.record)
        for name in ("active", "declared"):
            same = np.array_equal(getattr(after, name), getattr(before, name))
            require(same, f"observing changes what is {name}; only a plan decides")


def check_kept(policy: Policy[Any], played: Played) -> None:
    """Check that no method changes its arguments."""
    for turn in played.turns:
        arguments = (turn.before, turn.adopted, turn.record._arrays(), _json(turn.plan))
        before = content(arguments)
        policy.plan(turn.before, turn.offer)
        policy.adopt(turn.before, turn.plan, turn.record)
        policy.observe(turn.adopted, turn.parts)
        policy.decide(turn.adopted, turn.record)
        require(content(arguments) == before, "a method changes its arguments")


def check_batches(policy: Policy[Any], played: Played) -> None:
    """Check that a batch of R equals R single runs with the same replication numbers."""
    if not isinstance(played.setting.space, ArmSet):
        return
    for number in range(played.setting.replications):
        singles = play_contract(policy, played.setting, np.asarray(number))
        # In a batch, a replication that has come to its horizon waits for the others; alone it stops.
        together = [turn for turn in played.turns if _rounds(turn)[number] > 0]
        for alone, turn in zip(singles, together, strict=True):
            same = np.array_equal(alone.plan.probabilities, turn.plan.probabilities[number])
            same = same and bool(alone.plan.rounds == turn.plan.rounds[number])
            require(same, f"replication {number} of a batch plans otherwise than its single run")
            decision, others = (policy.decide(each.adopted, each.record) for each in (alone, turn))
            for name in ("active", "leader", "declared", "epsilon"):
                same = np.array_equal(getattr(decision, name), getattr(others, name)[number])
                require(same, f"replication {number} of a batch has another {name} than its single run")


CONTRACT_CHECKS: tuple[Callable[[Policy[Any], Played], None], ...] = (
    check_kept,
    check_plans,
    check_records,
    check_decided,
    check_adding,
    check_late_rounds,
    check_batches,
)


def play_contract(policy: Policy[Any], setting: ContractSetting, numbers: Whole) -> Iterator[Turn]:
    """Follow the policy to the horizon; `numbers` () or (R,) name the replications and shape the batch."""
    state = policy.start(setting.space, numbers.shape, seed=setting.seed, replications=numbers)
    played = np.zeros(numbers.shape, dtype=np.int64)
    for turn in range(setting.plans):
        offer = None if isinstance(setting.space, ArmSet) else _offer(setting, turn)
        plan, record = policy.plan(state, offer)
        rounds = np.asarray(np.minimum(plan.rounds, setting.horizon - played))
        if not rounds.any():
            return
        adopted = policy.adopt(state, plan, record)
        parts = _draw(setting, plan, offer, numbers, played, rounds)
        yield Turn(state, offer, plan, record, adopted, parts)
        played = np.asarray(played + rounds)
        state = policy.observe(adopted, parts)


def _offer(setting: ContractSetting, turn: int) -> Offer:
    """Return what a round offers; features are multiples of ¼, so that sums of their products are exact."""
    random = stream(setting.seed, "contract offers", turn)
    shape = (random.integers(1, MAX_OFFERED_ARMS + 1), setting.space.dimension)
    return Offer(np.round(4 * random.standard_normal(shape)) / 4)


def _draw(
    setting: ContractSetting, plan: Plan, offer: Offer | None, numbers: Whole, played: Whole, rounds: Whole
) -> tuple[Batch, ...]:
    """Return the rounds of a plan in parts; leading axes as in the plan."""
    tallies = []
    for place in np.ndindex(numbers.shape):
        name = (int(numbers[place]), int(played[place]))
        tallies.append(_tallies(setting, plan.at(place), offer, name, int(rounds[place])))
    shape = (*numbers.shape, plan.count)
    stacked = (
        Tally(
            *(
                np.stack([getattr(tally, sums) for tally in part]).reshape(shape)
                for sums in ("counts", "sums", "squares", "largest")
            )
        )
        for part in zip(*tallies, strict=True)
    )
    return tuple(Batch(plan, tally, offer) for tally in stacked)


def _tallies(
    setting: ContractSetting, plan: Plan, offer: Offer | None, name: tuple[int, int], rounds: int
) -> list[Tally]:
    """Play rounds of one replication; `name` holds its number and the rounds that it has played so far.

    Means are linear, the shift is a sine of the round, noise is normal. Chance depends on the name and the
    seed alone, so that a batch and a single run meet the same draws.
    """
    features: Array = setting.space.features if isinstance(setting.space, ArmSet) else offer.features  # type: ignore[union-attr]
    theta = stream(setting.seed, "contract theta").standard_normal(features.shape[1])
    arms = draw_arms(stream(setting.seed, "contract arms", *name), plan.probabilities, rounds)
    noise = stream(setting.seed, "contract noise", *name).standard_normal(rounds)
    shift = 1 + np.sin(2.0 * (name[1] + np.arange(rounds)))
    rewards = (features @ theta)[arms] + shift + noise
    residuals = plan.residuals(arms, rewards) if isinstance(plan.centre, Centre) else rewards
    # Towards 0, so that none leaves the range that the plan clips to.
    residuals = np.trunc(residuals * 1024) / 1024
    return [
        Tally.of(arms[part], residuals[part], plan.count) for part in np.array_split(np.arange(rounds), PARTS)
    ]


def _rounds(turn: Turn) -> Whole:
    return np.asarray(sum(part.tally.rounds for part in turn.parts))


def _json(plan: Plan) -> str:
    return json.dumps(plan.to_json(), allow_nan=False)


def content(value: Any) -> Any:
    """Return plain values that are equal if and only if two states hold the same numbers, bit by bit."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype == np.object_:
            return (array.shape, tuple(content(part) for part in array.flat))
        return (array.dtype.str, array.shape, array.tobytes())
    if is_dataclass(value):
        return tuple(content(getattr(value, part.name)) for part in fields(value))
    if isinstance(value, Mapping):
        return {key: content(value[key]) for key in value}
    if isinstance(value, tuple | list):
        return tuple(content(part) for part in value)
    if isinstance(value, ArmSet):
        return content((value.features, value.labels))
    return value
