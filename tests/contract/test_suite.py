"""The contract suite catches policies that break it."""

from dataclasses import replace

import numpy as np
import pytest

from orthobandit import ArmSet, Plan, Tally
from orthobandit.errors import ParameterError
from orthobandit.estimate import ARMA, RunningMean
from orthobandit.policy import FOREVER, SBE, UniformAllocation
from orthobandit.simulation import Sine
from orthobandit.testing import (
    Setting,
    check_baseline,
    check_batch,
    check_decisions,
    check_empty_tally,
    check_forecaster,
    check_inputs_kept,
    check_late,
    check_numbers,
    check_parts,
    check_policy,
    check_probabilities,
    check_replay,
    check_round_trip,
    check_shift,
    check_store,
)

ARMS = ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.1, 0.2]])


class Wrapped:
    """SBE with one clause broken by a subclass."""

    def __init__(self):
        self.inner = SBE()

    def __getattr__(self, name):
        return getattr(self.inner, name)


class PlaysEliminatedArms(Wrapped):
    def plan(self, state):
        plan = self.inner.plan(state)
        return Plan(np.full(plan.probabilities.shape, 1 / plan.count), plan.rounds, number=plan.number)

    def observe(self, state, _plan, _tally):
        return state

    def decide(self, state):
        active = state.active.copy()
        active[..., -1] = False
        return replace(self.inner.decide(state), active=active)


class ForgetsTheBatch(Wrapped):
    def decide(self, state):
        return replace(self.inner.decide(state), leader=np.asarray(0))


class TakesBackTheEnd(Wrapped):
    def __init__(self):
        self.inner = UniformAllocation()

    def plan(self, state):
        plan = self.inner.plan(state)
        return Plan(plan.probabilities, FOREVER - state.tally.rounds, number=plan.number)


class LosesDigits(Wrapped):
    def dump(self, state):
        return {**self.inner.dump(state), "probabilities": np.round(state.probabilities, 12).tolist()}


class ForgetsThePhase(Wrapped):
    def dump(self, state):
        return {**self.inner.dump(state), "tally": Tally.zeros(4, state.phase.shape).to_json()}


class HasAMood(Wrapped):
    calls = 0

    def plan(self, state):
        self.calls += 1
        plan = self.inner.plan(state)
        return Plan(plan.probabilities, plan.rounds - self.calls % 2, number=plan.number)


class MixesReplications(Wrapped):
    def plan(self, state):
        plan = self.inner.plan(state)
        rounds = np.maximum(plan.rounds // 2, 1) if plan.rounds.ndim else plan.rounds
        return Plan(plan.probabilities, rounds, number=plan.number)


class RestartsTheCount(Wrapped):
    def plan(self, state):
        return Plan(state.probabilities, state.length)

    def observe(self, state, _plan, tally):
        return self.inner.observe(state, self.inner.plan(state), tally)


class CountsCalls(Wrapped):
    def observe(self, state, plan, tally):
        state = self.inner.observe(state, plan, tally)
        return replace(state, rounds=state.rounds + 1)


class WritesOnItsState(Wrapped):
    def decide(self, state):
        decision = self.inner.decide(state)
        object.__setattr__(state, "rounds", state.rounds + 1)
        return decision


class KeepsItsNumber(Wrapped):
    def plan(self, state):
        plan = self.inner.plan(state)
        return Plan(plan.probabilities, plan.rounds, number=1)

    def observe(self, state, _plan, tally):
        return self.inner.observe(state, self.inner.plan(state), tally)


class TakesWhatIsLate(Wrapped):
    def observe(self, state, plan, tally):
        in_force = self.inner.plan(state)
        if np.any(plan.number != in_force.number):
            return state
        return self.inner.observe(state, in_force, tally)


class TakesWhatIsToCome(Wrapped):
    def late(self, state, _plan, _tally):
        return state


class ForecastsInVain(Wrapped):
    baseline = RunningMean()


class ForecastsByHand(Wrapped):
    baseline = 0.5


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (PlaysEliminatedArms, check_probabilities, "not active may be drawn"),
        (ForgetsTheBatch, check_decisions, "leader has shape"),
        (TakesBackTheEnd, check_parts, "before its rounds are in"),
        (LosesDigits, check_round_trip, "plans differently"),
        (ForgetsThePhase, check_round_trip, "plans differently"),
        (HasAMood, check_replay, "plan"),
        (MixesReplications, check_batch, "single run"),
        (RestartsTheCount, check_parts, "before its rounds are in"),
        (KeepsItsNumber, check_numbers, "an old number"),
        (TakesWhatIsLate, check_numbers, "has ended are observed"),
        (TakesWhatIsToCome, check_late, "is to come"),
        (ForecastsInVain, check_baseline, "no centre"),
        (ForecastsByHand, check_baseline, "makes no forecaster"),
        (CountsCalls, check_empty_tally, "no rounds changes the state"),
        (WritesOnItsState, check_inputs_kept, "modified"),
    ],
)
def test_a_broken_clause_is_found(broken, check, message):
    with pytest.raises(AssertionError, match=message):
        check(broken(), Setting(ARMS))
    with pytest.raises(AssertionError):
        check_policy(broken(), ARMS)


def test_the_unbroken_wrapper_passes():
    check_policy(Wrapped(), ARMS)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (SBE, r"SBE is a class; check an object of it: SBE\(\)"),
        ("sbe", r"'sbe' has no method start\(\)"),
    ],
)
def test_what_is_no_policy_is_named(policy, words):
    with pytest.raises(AssertionError, match=words):
        check_policy(policy, ARMS)


@pytest.mark.parametrize(
    ("check", "given", "words"),
    [
        (check_shift, Sine, r"Sine is a class; check an object of it: Sine\(\)"),
        (check_forecaster, ARMA, r"ARMA is a class; check an object of it: ARMA\(\)"),
        (check_forecaster, "arma", r"'arma' has no method forecaster\(\)"),
    ],
)
def test_what_is_no_shift_or_baseline_is_named(check, given, words):
    with pytest.raises(AssertionError, match=words):
        check(given)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: check_policy(SBE(), ARMS, horizn=10), r"no setting 'horizn'; did you mean 'horizon'\?"),
        (lambda: check_policy(SBE(), [[0.0], [1.0]]), "arms is a list; an ArmSet is needed"),
        (lambda: check_shift(Sine(), bund=1.0), r"no setting 'bund'; did you mean 'bound'\?"),
        (lambda: check_forecaster(ARMA(), round=10), r"no setting 'round'; did you mean 'rounds'\?"),
        (lambda: check_store(None), "make_store=None is not a function"),
    ],
)
def test_a_suite_that_is_called_wrongly_says_how(call, words):
    with pytest.raises(ParameterError, match=words):
        call()
