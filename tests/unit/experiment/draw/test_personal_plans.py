"""Personalised plans are handed out as data; draws by them are computed again and count as if made here."""

import json

import numpy as np
import pytest

from experiment_samples import exposure_counts, ledger_of
from inside.experiment import EdgePlan
from inside.policy import HandedPlan
from orthobandit import ArmSet, Experiment, Personalised
from orthobandit.errors import ClosedError, ConflictError, ParameterError
from orthobandit.verify import verify
from personal_samples import ARMS, KEY, begun, play, rewards_of, visitors


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def drawn(experiment, count, seed=9):
    plan = experiment.edge_plan()
    contexts = visitors(np.random.default_rng(seed), count)
    return plan, [plan.draw(f"edge {seed} {k}", one) for k, one in enumerate(contexts)]


def posted(experiment, draws, rewards=None):
    contexts = [one.context for one in draws]
    units, arms = [one.unit for one in draws], [one.arm for one in draws]
    return experiment.expose(draws[0].plan, units, arms, rewards, context=contexts)


def sent(plan):
    """Return a plan as it comes out of JSON."""
    personal = plan.personal.to_json()
    return EdgePlan.from_json(json.loads(json.dumps({**vars(plan), "personal": personal})))


def test_before_the_first_visitor_two_arms_are_compared():
    plan = begun().edge_plan()
    shares = plan.distribution({"mobile": 1.0, "hour": 2.0})
    assert sorted(shares) == pytest.approx([0.1 / 3] + [0.45 + 0.1 / 3] * 2)
    assert sent(plan) == plan


@pytest.mark.slow
def test_a_handed_plan_is_what_asking_would_plan():
    # After 1,024 rounds a visitor out of line changes nothing any more.
    experiment = play(begun(), 1040, batch=40)
    plan = sent(experiment.edge_plan())
    for k, one in enumerate(visitors(np.random.default_rng(3), 20)):
        shown = experiment.ask(f"new {k}", context=one)
        assert plan.distribution(one) == tuple(shown.probabilities.tolist())


def test_exposures_count_as_visitors_and_all_can_be_recomputed():
    experiment = play(begun(holdout=0.1), 100)
    _, draws = drawn(experiment, 60)
    rewards = rewards_of(np.random.default_rng(2), [one.arm for one in draws], [one.context for one in draws])
    assert exposure_counts(posted(experiment, draws, [*rewards[:40], *[None] * 20])) == (60, 0, 40, 0)
    assert exposure_counts(posted(experiment, draws[40:], rewards[40:])) == (0, 20, 20, 0)
    report = experiment.report()
    assert (report.proposals, report.settled) == (160, 160)
    held = ledger_of(experiment).holdout[0].counts.sum()
    assert ledger_of(experiment).feed.state.comparison.rounds == 160 - held
    assert held > 5
    assert experiment.audit().passed
    assert experiment.replay().is_equal
    assert verify(experiment.certificate().document, experiment.head()).valid


def test_rewards_may_come_without_the_context():
    experiment = begun()
    plan, draws = drawn(experiment, 3)
    posted(experiment, draws)
    units, arms = [one.unit for one in draws], [one.arm for one in draws]
    assert exposure_counts(experiment.expose(plan.plan, units, arms, [1.0, 0.0, 1.0])) == (0, 3, 3, 0)


def test_what_the_version_does_not_draw_is_refused_by_its_place():
    experiment = play(begun(), 60)
    _, draws = drawn(experiment, 6)
    wrong = list(draws)
    wrong[1] = draws[1]._replace(arm=(draws[1].arm + 1) % 3)
    wrong[3] = draws[3]._replace(context={"mobile": 1.0})
    exposed = posted(experiment, wrong, [1.0] * 6)
    assert exposure_counts(exposed) == (4, 0, 4, 2)
    assert [one.index for one in exposed.refused] == [1, 3]
    assert "is not what plan 62 draws for it" in str(exposed.refused[0].error)
    assert "context has no 'hour'" in str(exposed.refused[1].error)
    assert experiment.replay().is_equal


def test_a_number_that_is_none_is_refused_with_its_batch():
    experiment = begun()
    _, draws = drawn(experiment, 2)
    wrong = [draws[0], draws[1]._replace(context={"mobile": float("nan"), "hour": 0.0})]
    with pytest.raises(ParameterError, match="'mobile'=nan must be a finite number"):
        posted(experiment, wrong)
    assert experiment.report().proposals == 0


def test_a_context_that_would_draw_another_arm_is_refused():
    # The one lie that pays: to claim another context for a visitor, so that another rule gets the reward.
    experiment = play(begun(), 400)
    plan, draws = drawn(experiment, 200)
    lies = [
        one._replace(context={**one.context, "mobile": 1.0 - one.context["mobile"]})
        for one in draws
        if plan.draw(one.unit, {**one.context, "mobile": 1.0 - one.context["mobile"]}).arm != one.arm
    ]
    assert len(lies) > 50
    assert exposure_counts(posted(experiment, lies)) == (0, 0, 0, len(lies))


def test_versions_last_a_minute_and_old_ones_are_known(tmp_path):
    clock = Clock()
    policy = Personalised(["mobile", "hour"], rewards=(0, 1))
    with Experiment.create(tmp_path / "edge.db", ARMS, policy, key=KEY, clock=clock) as experiment:
        first, draws = drawn(experiment, 5)
        play(experiment, 20)
        clock.now = 59.0
        assert experiment.edge_plan() == first
        clock.now = 61.0
        second = experiment.edge_plan()
        assert second.plan > first.plan
        assert second.salt != first.salt
        clock.now = 200.0
        assert experiment.edge_plan() == second  # nothing was learnt since
    with Experiment.open(tmp_path / "edge.db", clock=clock) as experiment:
        assert experiment.edge_plan() == second
        assert exposure_counts(posted(experiment, draws, [1.0] * 5)) == (5, 0, 5, 0)
        assert experiment.replay().is_equal
        with pytest.raises(ParameterError, match=r"plan=3 was never handed out; the newest is"):
            experiment.expose(3, ["ann"], [0], context=[{"mobile": 1.0, "hour": 0.0}])


def test_a_unit_that_has_another_arm_is_refused():
    experiment = begun()
    shown = experiment.ask("edge 9 0", context={"mobile": 1.0, "hour": 0.0})
    plan, draws = drawn(experiment, 1)
    assert plan.plan > shown.plan
    [refused] = posted(experiment, draws).refused
    assert isinstance(refused.error, ConflictError)
    assert "since it first came" in str(refused.error)


def test_an_arm_that_was_retired_is_offered_by_no_later_version():
    experiment = play(begun(holdout=0.2), 40)
    _, before = drawn(experiment, 30, seed=5)
    experiment.retire("A")
    plan, after = drawn(experiment, 30, seed=6)
    assert plan.personal.arms == (1, 2)
    assert {one.label for one in after} == {"B", "C"}
    assert exposure_counts(posted(experiment, before)) == (30, 0, 0, 0)
    assert exposure_counts(posted(experiment, after)) == (30, 0, 0, 0)
    experiment.ask_many(20, context={"mobile": 0.0, "hour": 0.0})
    assert experiment.audit().passed
    assert experiment.replay().is_equal


def test_plans_are_not_handed_out_where_only_the_server_can_draw():
    brought = Experiment.memory(ARMS, Personalised([], rewards=(0, 1), features=["price"]), key=KEY)
    with pytest.raises(ConflictError, match="bring features of their own"):
        brought.edge_plan()
    by_number = begun(sticky=False)
    with pytest.raises(ConflictError, match="draws go by number"):
        by_number.edge_plan()
    stopped = begun()
    stopped.stop()
    with pytest.raises(ClosedError):
        stopped.edge_plan()


def test_arms_with_features_cross_them_with_the_context():
    arms = ArmSet([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], labels=["none", "one", "two"])
    experiment = Experiment.memory(arms, Personalised(["hour"], rewards=(0, 1)), key=KEY)
    plan = experiment.edge_plan()
    assert len(plan.personal.theta) == 4
    assert sum(plan.distribution({"hour": 0.5})) == pytest.approx(1.0)


def test_a_plan_that_cannot_be_read_is_named():
    data = begun().edge_plan().personal.to_json()
    del data["theta"]
    with pytest.raises(ParameterError, match=r"cannot be read: KeyError\('theta'\)"):
        HandedPlan.from_json(data)
