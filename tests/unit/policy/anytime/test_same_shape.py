"""Clipped residuals of arms that differ by location only: signs of gaps, no sizes, and no other arms."""

import numpy as np
import pytest
from tests.unit.experiment.fed import Fed

from orthobandit import AnytimeElimination, ArmSet, SameShape
from orthobandit.errors import ParameterError
from orthobandit.policy.anytime.policy import anytime_elimination


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
