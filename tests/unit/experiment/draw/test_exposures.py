"""Draws that were made elsewhere are computed again, and count as if they had been made here."""

import numpy as np
import pytest

from experiment_samples import exposure_counts, ledger_of, outcomes_of
from inside.experiment import EdgePlan
from orthobandit import AnytimeElimination, ArmSet, Experiment, Metric
from orthobandit.errors import ClosedError, ConflictError, ParameterError, RewardError
from orthobandit.estimate import CovariateRegression
from orthobandit.experiment.draw.hashing import positions, salt_of, salted
from orthobandit.policy import UniformAllocation

LABELS = ["a", "b", "c"]


def make(**settings):
    settings = {"rewards": (0, 1), "key": "5" * 64, **settings}
    return Experiment.memory(ArmSet.one_hot(3, LABELS), **settings)


def drawn(experiment, count, start=0):
    plan = experiment.edge_plan()
    return plan, [plan.draw(f"user-{k}") for k in range(start, start + count)]


def posted(experiment, draws, rewards=None, **more):
    units, arms = [one.unit for one in draws], [one.arm for one in draws]
    return experiment.expose(draws[0].plan, units, arms, rewards, **more)


@pytest.mark.parametrize("holdout", [0.0, 0.3])
def test_the_edge_draws_what_asking_draws(holdout):
    experiment = make(holdout=holdout)
    plan, draws = drawn(experiment, 200)
    asked = experiment.ask_many(units=[one.unit for one in draws])
    assert [one.arm for one in draws] == [one.arm for one in asked]
    assert [one.label for one in draws] == [one.label for one in asked]
    assert plan.plan == asked[0].plan
    assert any(one.held for one in asked) == (holdout > 0)
    assert exposure_counts(posted(experiment, draws)) == (0, 200, 0, 0)


def test_a_plan_survives_json():
    plan = make(holdout=0.1).edge_plan()
    assert EdgePlan.from_json(vars(plan)) == plan


def test_exposures_and_their_rewards_are_taken_once():
    experiment = make()
    _, draws = drawn(experiment, 50)
    assert exposure_counts(posted(experiment, draws, [1.0] * 20 + [None] * 30)) == (50, 0, 20, 0)
    assert exposure_counts(posted(experiment, draws, [1.0] * 20 + [None] * 30)) == (0, 50, 20, 0)
    assert exposure_counts(posted(experiment, draws[20:], [0.0] * 30)) == (0, 30, 30, 0)
    report = experiment.report()
    assert (report.proposals, report.settled, report.awaited) == (50, 50, 0)
    assert experiment.audit().passed
    assert experiment.replay().is_equal


def test_a_unit_that_comes_twice_in_a_batch_is_one_exposure():
    experiment = make(window="1h", add=True, rewards=(0, 5))
    _, draws = drawn(experiment, 3)
    assert exposure_counts(posted(experiment, [*draws, draws[1]], [1.0, 1.0, None, 2.0])) == (3, 1, 3, 0)
    assert experiment.known(draws[1].unit) is not None
    assert experiment.report().proposals == 3


def test_what_was_not_drawn_so_is_refused_by_its_place():
    experiment = make()
    _, draws = drawn(experiment, 10)
    wrong = [
        one._replace(arm=(one.arm + 1) % 3) if place in (3, 7) else one for place, one in enumerate(draws)
    ]
    exposed = posted(experiment, wrong, [1.0] * 10)
    assert exposure_counts(exposed) == (8, 0, 8, 2)
    assert [one.index for one in exposed.refused] == [3, 7]
    assert "is not what plan 1 draws for it" in str(exposed.refused[0].error)
    assert experiment.known("user-3") is None
    far = [one._replace(arm=99) for one in draws[:1]]
    assert exposure_counts(posted(experiment, far)) == (0, 0, 0, 1)


def test_rewards_are_refused_one_by_one():
    experiment = make()
    _, draws = drawn(experiment, 9)
    rewards = [1.0, 0.0, 7.0, 1.0, None, -1.0, 0.5, 0.0, 1.0]
    exposed = posted(experiment, draws, rewards)
    assert exposure_counts(exposed) == (9, 0, 6, 2)
    assert [(one.index, one.metric) for one in exposed.refused] == [(2, "reward"), (5, "reward")]
    assert all(isinstance(one.error, RewardError) for one in exposed.refused)
    exposed = posted(experiment, draws[:2], [0.0, 0.0])  # the first was told 1
    assert exposure_counts(exposed) == (0, 2, 1, 1)
    assert isinstance(exposed.refused[0].error, ConflictError)


def test_several_metrics_are_told_by_name():
    experiment = make(metrics=[Metric("seconds", (0, 10))], window="1h")
    _, draws = drawn(experiment, 4)
    rewards = {"reward": [1, 0, None, 1], "seconds": [2.5, None, None, 99]}
    exposed = posted(experiment, draws, rewards)
    assert exposure_counts(exposed) == (4, 0, 4, 1)
    assert (exposed.refused[0].index, exposed.refused[0].metric) == (3, "seconds")
    with pytest.raises(RewardError, match="'sale' is not a metric"):
        posted(experiment, draws, {"sale": [1, 1, 1, 1]})


def test_a_unit_keeps_the_arm_of_its_first_plan():
    experiment = make()
    plan, draws = drawn(experiment, 40)
    posted(experiment, draws)
    experiment.retire("c")
    again = [experiment.edge_plan().draw(one.unit) for one in draws]
    exposed = posted(experiment, again)
    assert exposure_counts(exposed) == (0, 0, 0, 40)
    assert f"of plan {plan.plan} since it first came" in str(exposed.refused[0].error)
    assert exposure_counts(posted(experiment, draws, [1.0] * 40)) == (0, 40, 40, 0)


def test_exposures_of_a_plan_that_has_ended_count_for_it(tmp_path):
    settings = {"rewards": (0, 1), "name": "late"}
    with Experiment.create(tmp_path / "late.db", ArmSet.one_hot(3, LABELS), **settings) as experiment:
        old, late = drawn(experiment, 30)
        first = 100
        while old.plan in (int(one.number) for one in ledger_of(experiment).feed.plans.values()):
            _, draws = drawn(experiment, 200, first)
            posted(experiment, draws, np.linspace(0, 1, 200))
            first += 200
        unused = experiment.report().unused
        assert exposure_counts(posted(experiment, late, [1.0] * 30)) == (30, 0, 30, 0)
        assert experiment.report().unused == unused
        assert experiment.known(late[0].unit).plan == old.plan
        assert experiment.audit().passed
        assert experiment.replay().is_equal
        assert experiment.certificate().verdict.valid


def test_arms_that_came_since_are_never_drawn_by_an_old_plan():
    experiment = make()
    _, late = drawn(experiment, 20)
    experiment.extend(ArmSet.one_hot(4, [*LABELS, "d"]))
    _, draws = drawn(experiment, 400, 100)
    posted(experiment, draws, np.linspace(0, 1, 400))
    assert exposure_counts(posted(experiment, late, [0.5] * 20)) == (20, 0, 20, 0)
    assert experiment.audit().passed
    assert experiment.replay().is_equal


@pytest.mark.parametrize("plan", [0, 2, 10**6])
def test_plans_that_never_were_are_refused(plan):
    with pytest.raises(ParameterError, match=f"plan={plan} was never in force; the plan now is 1"):
        make().expose(plan, ["ann"], [0])


def test_the_order_within_a_batch_knows_neither_arms_nor_rewards():
    experiment, other = make(), make()
    _, draws = drawn(experiment, 60)
    posted(experiment, draws)
    posted(other, sorted(draws, key=lambda one: one.arm))
    units = [one.unit for one in draws]
    numbers = [experiment.known(unit).id for unit in units]
    assert numbers == [other.known(unit).id for unit in units]
    assert numbers != sorted(numbers)


def test_while_nothing_is_drawn_only_rewards_are_taken():
    experiment = make()
    _, draws = drawn(experiment, 10)
    posted(experiment, draws[:5])
    experiment.pause()
    with pytest.raises(ClosedError, match="paused"):
        experiment.edge_plan()
    exposed = posted(experiment, draws, [1.0] * 10)
    assert exposure_counts(exposed) == (0, 5, 5, 5)
    assert {type(one.error) for one in exposed.refused} == {ClosedError}
    assert [one.index for one in exposed.refused] == [5, 6, 7, 8, 9]


def test_a_salt_tells_nothing_of_other_plans():
    key = "5" * 64
    salts = {salt_of(key, purpose, plan) for purpose in (b"plan", b"holdout") for plan in range(5)}
    assert len(salts) == 10
    assert np.array_equal(salted(salt_of(key, b"plan", 3), ["=ann"]), positions(key, b"plan", 3, ["=ann"]))
    with pytest.raises(ConflictError, match="no salts"):
        make(key="5" * 32).edge_plan()


def test_only_the_server_can_draw_by_number():
    with pytest.raises(ConflictError, match="sticky"):
        make(sticky=False).edge_plan()
    with pytest.raises(ConflictError, match="sticky"):
        make(sticky=False).expose(1, ["ann"], [0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "units must be a list of text"),
        (([7], [0]), "units must be a list of text"),
        ((["ann\0"], [0]), "without null characters"),
        ((["ann"], [0, 1]), "must be whole numbers of arms, as many as units: 1"),
        ((["ann"], [0.5]), "must be whole numbers of arms, as many as units: 1"),
        ((["ann"], [0], [1.0, 2.0]), "reward has 2 values for 1 units"),
        ((["ann"], [0], ["much"]), "must be numbers"),
    ],
)
def test_what_cannot_be_a_batch_is_named(arguments, message):
    with pytest.raises((ParameterError, RewardError), match=message):
        make().expose(1, *arguments)


def test_a_batch_with_a_key_is_answered_alike(tmp_path):
    with Experiment.create(
        tmp_path / "sum.db", ArmSet.one_hot(3, LABELS), rewards=(0, 9), window="7d", add=True
    ) as experiment:
        _, draws = drawn(experiment, 5)
        wrong = [draws[0]._replace(arm=(draws[0].arm + 1) % 3), *draws[1:]]
        first = posted(experiment.once("k"), wrong, [4.0] * 5)
        again = posted(experiment.once("k"), wrong, [4.0] * 5)
        assert exposure_counts(first) == exposure_counts(again) == (4, 0, 4, 1)
        assert str(first.refused[0].error) == str(again.refused[0].error)
        assert isinstance(again.refused[0].error, ConflictError)


def test_covariates_are_kept_with_their_units():
    policy = AnytimeElimination(rewards=(0, 1), baseline=CovariateRegression(names=("basket",)))
    experiment = Experiment.memory(ArmSet.one_hot(3, LABELS), policy)
    _, draws = drawn(experiment, 6)
    given = [{"basket": float(place)} for place in range(6)]
    assert exposure_counts(posted(experiment, draws, covariates=given)) == (6, 0, 0, 0)
    rows = {row.unit: row for row in (one.proposal for one in outcomes_of(experiment))}
    assert [rows[one.unit].covariates["basket"] for one in draws] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(ParameterError, match="'basket' is missing"):
        posted(experiment, drawn(experiment, 2, 50)[1])


def test_policies_that_take_nothing_late_say_what_they_left_out():
    experiment = Experiment.memory(
        ArmSet.one_hot(3, LABELS), UniformAllocation(), rewards="unknown", key="5" * 64
    )
    _, draws = drawn(experiment, 10)
    assert exposure_counts(posted(experiment, draws, [1.0] * 10)) == (10, 0, 10, 0)
