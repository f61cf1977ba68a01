"""The contract of policies, clause by clause.

Each check simulates a short experiment with a moving baseline and raises :class:`AssertionError` with the
broken clause of :class:`~orthobandit.policy.base.Policy`. Rewards are multiples of 2⁻¹⁰, so that sums
are exact in any order and states can be compared bit by bit.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from orthobandit._foundation.types import Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate import Plan, Tally
from orthobandit.policy import FOREVER, Decision, Policy
from orthobandit.testing._play import PlayRecord, Setting, Step, require, require_object, setting_of


def check_policy(policy: Policy[Any], arms: ArmSet, **settings: Any) -> None:
    """Check every clause of :class:`~orthobandit.policy.base.Policy`.

    Parameters
    ----------
    policy : Policy
    arms : ArmSet
        At least one arm; try several sets, with one arm and with repeated arms among them.
    **settings
        The other fields of :class:`Setting`.

    Examples
    --------
    >>> from orthobandit.policy import SBE
    >>> check_policy(SBE(), ArmSet.one_hot(3))
    """
    require_object(policy)
    for method in ("start", "plan", "observe", "decide", "dump", "load"):
        require(callable(getattr(policy, method, None)), f"{policy!r} has no method {method}()")
    require(
        hasattr(policy, "baseline"), f"{policy!r} has no attribute `baseline`; None if it forecasts nothing"
    )
    if not isinstance(arms, ArmSet):
        raise ParameterError(f"arms is a {type(arms).__name__}; an ArmSet is needed: ArmSet(features)")
    setting = setting_of(Setting, settings, arms=arms)
    record = PlayRecord(policy, setting)
    for check in CHECKS:
        check(policy, setting, record)


def check_probabilities(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that plans are probability distributions and never draw dropped arms."""
    count = len(setting.arms)
    batch = (2, setting.replications)
    # Two leading axes: code that flattens replications often forgets to restore their shape.
    plan = policy.plan(policy.start(setting.arms, batch, seed=setting.seed))
    require(plan.probabilities.shape == (*batch, count), f"a plan of batch {batch} has the wrong shape")
    for step in _record(policy, setting, record).batch:
        total = step.plan.probabilities.sum(axis=-1)
        require(bool(np.all(step.plan.probabilities >= 0)), "a plan has a negative probability")
        require(bool(np.all(np.abs(total - 1) < 1e-9)), "probabilities of a plan do not sum to one")
        active = policy.decide(step.state).active
        drawn_in_vain = not setting.may_play_dropped and bool(np.any(step.plan.probabilities[~active]))
        require(not drawn_in_vain, "an arm that is not active may be drawn")


def check_decisions(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that decisions have one entry per replication and name active arms only."""
    shape = (setting.replications, len(setting.arms))
    for step in _record(policy, setting, record).batch:
        decision = policy.decide(step.state)
        require(decision.active.shape == shape, f"active has shape {decision.active.shape}, not {shape}")
        for name in ("leader", "declared", "epsilon"):
            got = getattr(decision, name).shape
            require(got == shape[:1], f"{name} has shape {got}, not {shape[:1]}")
        require(bool(np.all(_taken(decision.active, decision.leader))), "the leader is not active")
        declared = decision.declared >= 0
        named = _taken(decision.active, np.where(declared, decision.declared, 0))
        require(bool(np.all(named | ~declared)), "a declared arm is not active")
        require(bool(np.all(decision.epsilon >= 0)), "epsilon is negative or not a number")
        require(0 <= decision.certainty <= 1, "certainty is not a probability")


def check_round_trip(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that a state restored from JSON plans, observes and decides as before, bit by bit."""
    for step in _record(policy, setting, record).batch:
        midway = policy.observe(step.state, step.plan, step.parts[0])
        # Also in the middle of a plan: its rounds so far must survive as well.
        for state, tally in ((step.state, step.tally), (midway, step.parts[1])):
            text = _text(policy, state)
            plan = policy.plan(state)
            loaded = policy.load(setting.arms, json.loads(text))
            require(_text(policy, loaded) == text, "dump(load(dump(state))) differs from dump(state)")
            _same_plan(policy.plan(loaded), plan, "a loaded state plans differently")
            _same_decision(policy.decide(loaded), policy.decide(state), "a loaded state decides differently")
            after = policy.observe(state, plan, tally)
            resumed = policy.observe(loaded, plan, tally)
            require(_text(policy, resumed) == _text(policy, after), "a loaded state observes differently")


def check_replay(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that the same seed and the same rewards give the same states, bit by bit."""
    record = _record(policy, setting, record)
    for first, second in zip(record.batch, record.play_again(), strict=True):
        _same_plan(second.plan, first.plan, "a replay makes another plan")
        _same_plan(policy.plan(first.state), first.plan, "asking twice for the plan gives two plans")
        require(_text(policy, first.state) == _text(policy, second.state), "a replay has another state")


def check_batch(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that a batch of R equals R single runs with the same replication numbers."""
    record = _record(policy, setting, record)
    for number in range(setting.replications):
        single = record.single(number)
        # In a batch, a finished replication waits for the others; alone it stops.
        together = [step for step in record.batch if step.tally.rounds[number] > 0]
        require(len(single) == len(together), "a single run makes another number of plans than its batch")
        for alone, step in zip(single, together, strict=True):
            message = f"replication {number} of a batch differs from its single run"
            plan = step.plan
            mine = Plan(plan.probabilities[number], plan.rounds[number], number=plan.number[number])
            _same_plan(mine, alone.plan, message, setting.tolerance)
            _same_decision(_pick(policy.decide(step.state), number), policy.decide(alone.state), message)


def check_parts(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that a tally may arrive in parts: the plan stays in force, and the result is the same.

    The plan's remaining rounds go down as parts arrive, unless it lasts for ever. Empty parts at the end are
    left out: by then the next plan is in force.
    """
    for step in _record(policy, setting, record).single(0):
        state = step.state
        seen = 0
        for part in step.parts:
            # The plan has ended; what is left of its tally is empty.
            if seen == step.plan.rounds:
                break
            left = FOREVER if step.plan.rounds == FOREVER else step.plan.rounds - seen
            rest = Plan(step.plan.probabilities, left, number=step.plan.number)
            _same_plan(policy.plan(state), rest, "a plan changes before its rounds are in")
            state = policy.observe(state, rest, part)
            seen += int(part.rounds)
        whole = policy.observe(step.state, step.plan, step.tally)
        _same_plan(policy.plan(state), policy.plan(whole), "parts lead to another plan than the whole")
        _same_decision(policy.decide(state), policy.decide(whole), "parts lead to another decision")


def check_numbers(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that each plan has its own number, and that rounds of an ended plan are refused."""
    for step in _record(policy, setting, record).single(0):
        if not step.tally.rounds:
            continue
        after = policy.observe(step.state, step.plan, step.tally)
        now = policy.plan(after)
        # A plan of 0 rounds means that the run is over.
        is_over = bool(step.tally.rounds == step.plan.rounds and now.rounds > 0)
        same = bool(now.number == step.plan.number)
        require(
            same != is_over, "a new plan has an old number" if is_over else "a plan in force is renumbered"
        )
        if not is_over:
            continue
        before = _text(policy, after)
        try:
            policy.observe(after, step.plan, step.tally)
        except TallyError:
            require(_text(policy, after) == before, "a refused tally changes the state")
        else:
            raise AssertionError("rounds of a plan that has ended are observed")


def check_late(policy: Any, setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that the method `late`, if there is one, accepts rounds of past plans and refuses future ones."""
    if not hasattr(policy, "late"):
        return
    earlier: Step | None = None
    for step in _record(policy, setting, record).single(0):
        if earlier is not None:
            before = _text(policy, step.state)
            part = earlier.parts[0]
            text = _text(policy, policy.late(step.state, earlier.plan, part))
            again = _text(policy, policy.load(setting.arms, json.loads(text)))
            require(again == text, "a state with late rounds does not survive JSON")
            plan = earlier.plan
            # Only its number shows that this plan was never made.
            ahead = Plan(plan.probabilities, plan.rounds, plan.centre, step.plan.number + 1)
            try:
                policy.late(step.state, ahead, part)
            except TallyError:
                require(_text(policy, step.state) == before, "a state was modified by `late`")
            else:
                raise AssertionError("rounds of a plan that is to come are taken for late")
        earlier = step


def check_baseline(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that a policy has a `baseline`, and that its plans have a centre if that is not None."""
    require(hasattr(policy, "baseline"), "there is no `baseline`; None says that rewards are tallied")
    if policy.baseline is None:
        return
    require(callable(getattr(policy.baseline, "forecaster", None)), "the baseline makes no forecaster")
    for step in _record(policy, setting, record).batch:
        require(step.plan.centre is not None, "a plan has no centre, though there is a baseline")


def check_empty_tally(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that observing an empty tally leaves the state as it is."""
    for step in _record(policy, setting, record).batch:
        empty = Tally.zeros(len(setting.arms), (setting.replications,))
        same = policy.observe(step.state, step.plan, empty)
        require(_text(policy, same) == _text(policy, step.state), "a tally of no rounds changes the state")


def check_inputs_kept(policy: Policy[Any], setting: Setting, record: PlayRecord | None = None) -> None:
    """Check that planning, observing and deciding do not modify their arguments."""
    for step in _record(policy, setting, record).batch:
        before = _text(policy, step.state), step.plan.to_json(), step.tally.to_json()
        policy.decide(step.state)
        policy.observe(step.state, policy.plan(step.state), step.tally)
        after = _text(policy, step.state), step.plan.to_json(), step.tally.to_json()
        require(before == after, "an argument was modified")


CHECKS: tuple[Callable[[Policy[Any], Setting, PlayRecord | None], None], ...] = (
    check_probabilities,
    check_decisions,
    check_round_trip,
    check_replay,
    check_batch,
    check_parts,
    check_numbers,
    check_late,
    check_baseline,
    check_empty_tally,
    check_inputs_kept,
)


def _record(policy: Policy[Any], setting: Setting, record: PlayRecord | None) -> PlayRecord:
    return PlayRecord(policy, setting) if record is None else record


def _text(policy: Policy[Any], state: Any) -> str:
    return json.dumps(policy.dump(state), allow_nan=False)


def _taken(active: Mask, arm: Whole) -> Mask:
    return np.asarray(np.take_along_axis(active, arm[..., np.newaxis], axis=-1)[..., 0])


def _pick(decision: Decision, number: int) -> Decision:
    return Decision(
        decision.active[number],
        decision.leader[number],
        decision.declared[number],
        decision.epsilon[number],
        decision.certainty,
        decision.mode,
    )


def _same_plan(got: Plan, wanted: Plan, message: str, tolerance: float = 0.0) -> None:
    near = np.abs(got.probabilities - wanted.probabilities) <= tolerance
    require(bool(near.all()) and np.array_equal(got.rounds, wanted.rounds), message)


def _same_decision(got: Decision, wanted: Decision, message: str) -> None:
    for name in ("active", "leader", "declared", "epsilon", "certainty", "mode"):
        same = np.array_equal(getattr(got, name), getattr(wanted, name))
        require(same, f"{message}: {name} is {getattr(got, name)}, not {getattr(wanted, name)}")
