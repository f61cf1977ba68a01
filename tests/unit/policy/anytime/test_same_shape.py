"""Clipped residuals of arms that differ by location only: signs of gaps, no sizes, and no other arms."""

import numpy as np
import pytest
from tests.unit.experiment.recorded import Fed

from orthobandit import AnytimeElimination, ArmSet, ContrastSequence, Experiment, SameShape
from orthobandit.errors import ParameterError
from orthobandit.policy.anytime.policy import anytime_elimination
from orthobandit.policy.contextual import RuleComparison


def heavy(rng, means, rounds):
    return means + rng.standard_t(3, len(means))


@pytest.fixture(scope="module")
def played():
    policy = AnytimeElimination(0.1, confidence=SameShape(8.0))
    return Fed(policy, ArmSet.one_hot(3), np.array([0.0, 1.5, 0.1]), heavy, seed=3).until(1500)


def test_residuals_are_clipped_and_no_values_of_arms_are_taken_from_them(played):
    plan = played.feeds[-1][0]
    assert played.state.values.any()
    assert plan.values.tolist() == [0.0, 0.0, 0.0]
    assert plan.residuals(np.array([0, 1]), np.array([50.0, -50.0]), 1.0).tolist() == [8.0, -8.0]
    assert max(float(tally.largest.max()) for _, tally in played.feeds) == 8.0


def test_it_finds_the_best_and_says_nothing_of_sizes(played):
    assert int(played.state.declared) == 1
    bounds = played.policy.upper_bounds(played.state)
    assert np.diag(bounds).tolist() == [0.0, 0.0, 0.0]
    assert np.isinf(bounds[~np.eye(3, dtype=bool)]).all()
    assert np.isinf(played.policy.upper_bounds(played.state, over=1)[[0, 2]]).all()


def test_the_certificate_names_the_mode_and_where_it_clips(played):
    certificate = played.certificate()
    assert certificate.verdict.valid
    assert "asymptotic, same-shape noise, clipped at 8;" in certificate.document["claim"]["sentence"]
    assert certificate.document["settings"]["confidence"]["clip"] == 8.0


def test_before_the_end_the_leader_is_within_nothing_that_is_known():
    policy = AnytimeElimination(0.1, confidence=SameShape(8.0))
    under_way = Fed(policy, ArmSet.one_hot(2), np.array([0.0, 0.05]), heavy, seed=4).until(600)
    decision = policy.decide(under_way.state)
    assert int(decision.declared) == -1
    assert decision.epsilon == np.inf
    assert under_way.certificate().verdict.valid


def test_what_it_cannot_promise_is_refused():
    with pytest.raises(ParameterError, match=r"epsilon=0\.1 needs bounds on gaps"):
        AnytimeElimination(epsilon=0.1, confidence=SameShape(5.0))
    with pytest.raises(ParameterError, match=r"these 3 arms share 1 features"):
        AnytimeElimination(confidence=SameShape(5.0)).start(ArmSet([[0.0], [1.0], [2.0]]))
    with pytest.raises(ParameterError, match=r"clip=-1\.0"):
        SameShape(-1.0)


def test_on_the_command_line_it_must_be_asked_for_by_name():
    assert anytime_elimination(confidence="same-shape", clip=5.0).confidence == SameShape(5.0)
    with pytest.raises(ParameterError, match="clip needs confidence='same-shape'"):
        anytime_elimination(clip=5.0)


def live(batches):
    """Return an experiment whose two arms are further apart than clipped residuals can tell."""
    rng = np.random.default_rng(5)
    policy = AnytimeElimination(confidence=SameShape(1.0))
    experiment = Experiment.memory(ArmSet.one_hot(2), policy, rewards="unknown", key="1" * 32)
    for _ in range(batches):
        shown = experiment.ask_many(50)
        arms = np.array([one.arm for one in shown])
        experiment.tell_many([one.id for one in shown], 1.5 * arms + 3.0 * rng.standard_normal(50))
    return experiment


def test_live_intervals_are_of_rewards_that_nobody_clipped():
    for batches in (5, 10, 15):
        report = live(batches).report()
        arm = report.arms[1]
        assert arm.low is None or arm.low <= 1.5
        assert arm.high is None or arm.high >= 1.5
    assert (report.declared, report.alarms) == ("1", ())
    assert arm.low is not None
    assert arm.high is not None


def test_intervals_are_refused():
    with pytest.raises(ParameterError, match="signs of gaps and not their sizes"):
        ContrastSequence.start(ArmSet.one_hot(2), [[0, 1]], SameShape(2.0))
    with pytest.raises(ParameterError, match="signs of gaps and not their sizes"):
        RuleComparison.start({"A": "A", "B": "B"}, reference="A", confidence=SameShape(2.0))
