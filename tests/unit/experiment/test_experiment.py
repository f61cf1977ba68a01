"""Ask and tell: order of draws, units, availability, metrics, status, bad input."""

import csv
import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from experiment_samples import entries_of, ledger_of, store_of
from inside.experiment import Asked, Settings, SharedLedger
from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    ParameterError,
    RewardError,
    UnknownProposalError,
)
from orthobandit.estimate import CovariateRegression, NoBaseline, OnlineRegression
from orthobandit.experiment.draw.audit import audit_draws, replay_log
from orthobandit.policy import SBE, UniformAllocation

from .conftest import played


def ledger(experiment):
    return ledger_of(experiment)


# Order of draws


def test_only_the_longest_settled_prefix_is_fed(make):
    experiment = make(UniformAllocation())
    first, second, third = experiment.ask_many(3)
    experiment.tell(third.id, 1.0)
    experiment.tell(second.id, 1.0)
    assert experiment.report().settled == 0
    experiment.tell(first.id, 0.0)
    assert experiment.report().settled == 3


def test_a_silent_proposal_counts_as_zero_when_its_window_has_passed(make, clock):
    experiment = make(UniformAllocation(), arms=2, window=10, silence="zero", rewards=(0, 1))
    one, two = experiment.ask_many(2)
    experiment.tell(two.id, 1.0)
    clock.now += 9.9
    assert experiment.report().settled == 0
    clock.now += 0.1
    report = experiment.report()
    assert report.settled == 2
    assert ledger(experiment).gap_intervals[0]._pending[1].counts.sum() == 2
    assert ledger(experiment).silent[one.arm] == 1
    assert ledger(experiment).silent.sum() == 1


def test_a_missing_one_is_left_out_and_the_report_says_what_that_takes(make, clock):
    experiment = make(UniformAllocation(), arms=2, window=10, silence="missing", rewards=(0, 1))
    _, two = experiment.ask_many(2)
    experiment.tell(two.id, 1.0)
    clock.now += 10
    report = experiment.report()
    assert report.settled == 2
    assert ledger(experiment).gap_intervals[0]._pending[1].counts.sum() == 1
    assert any("only if silence does not depend on the arm" in text for text in report.warnings)


def test_rounds_beyond_a_batch_count_for_their_plan(make):
    # The first plan is for one round; thirty are asked before its reward is told.
    experiment = make(AnytimeElimination(rewards=(0.0, 1.0), pilot=8))
    proposals = experiment.ask_many(300)
    assert {proposal.plan for proposal in proposals} == {1}
    rng = np.random.default_rng(3)
    experiment.tell_many([one.id for one in proposals], (rng.random(300) < 0.4).astype(float))
    book = ledger(experiment).feed
    assert book.unused == 0
    assert int(book.now().rounds) == 300
    assert book.plan.number > 3
    assert book.now().weights.max() > 0


def test_a_policy_with_phases_says_what_it_could_not_use(make):
    experiment = make(SBE(delta=0.1), arms=2)
    length = int(ledger(experiment).feed.plan.rounds)
    proposals = experiment.ask_many(length + 7)
    experiment.tell_many([one.id for one in proposals], np.zeros(length + 7))
    assert experiment.report().unused == 7


def test_a_batch_is_what_single_requests_are(make):
    one, many = make(key="00" * 16), make(key="00" * 16)
    rewards = np.tile([1.0, 0.0, 0.0, 1.0, 0.0], 40)
    numbers = [proposal.id for proposal in many.ask_many(200)]
    singles = [one.ask() for _ in range(200)]
    assert [p.arm for p in singles] == [row.arm for row in store_of(many).proposals(numbers)]
    many.tell_many(numbers, rewards)
    for proposal, reward in zip(singles, rewards, strict=True):
        one.tell(proposal.id, reward)
    for apart, together in zip(one.report().arms, many.report().arms, strict=True):
        assert apart.settled == together.settled
        assert apart.gap == pytest.approx(together.gap)
        assert apart.high == pytest.approx(together.high)


# Units


def test_a_unit_that_comes_again_gets_its_first_proposal(make):
    experiment = make()
    first = experiment.ask(unit="ann")
    experiment.tell(first.id, 1.0)
    for _ in range(30):
        experiment.tell(experiment.ask().id, 0.0)
    again = experiment.ask(unit="ann")
    assert (again.id, again.arm, again.plan) == (first.id, first.arm, first.plan)
    assert again.probabilities.tolist() == first.probabilities.tolist()
    assert again.baseline == first.baseline
    assert experiment.report().proposals == 31


def test_units_of_one_call_are_told_apart_and_repeats_are_one(make):
    experiment = make()
    found = experiment.ask_many(units=["ann", "bob", "ann"])
    assert [one.id for one in found] == [1, 2, 1]


def test_without_stickiness_a_unit_counts_every_time(make):
    experiment = make(sticky=False)
    assert [experiment.ask(unit="ann").id for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("unit", [17, "", b"ann", 1.5])
def test_a_unit_that_is_no_text_is_refused(make, unit):
    with pytest.raises(ParameterError, match="must be text"):
        make().ask(unit=unit)


# Draws


def test_audit_computes_every_draw_again(make, clock):
    experiment = make(window=5, holdout=0.2)
    rng = np.random.default_rng(1)
    played(experiment, clock, 60, [0.3, 0.4, 0.5], rng)
    experiment.ask(unit="ann", available=[0, 1])
    assert experiment.audit().passed
    assert experiment.audit().proposals == 61


def test_audit_finds_an_arm_that_was_not_drawn(make):
    experiment = make()
    experiment.ask_many(20)

    def doctored():
        for seq, entry in entries_of(experiment):
            if isinstance(entry, Asked):
                arms = entry.arms.copy()
                arms[12] = (arms[12] + 1) % 3
                yield seq, replace(entry, arms=arms)
            else:
                yield seq, entry

    found = audit_draws(experiment.settings, doctored())
    assert not found.passed
    assert found.mismatch.startswith("proposal 13 has arm")


def test_draws_follow_the_probabilities(make):
    experiment = make(UniformAllocation(), arms=4)
    arms = np.array([one.arm for one in experiment.ask_many(40_000)])
    # Five standard errors: a false alarm once in a million.
    assert np.all(np.abs(np.bincount(arms) - 10_000) < 5 * np.sqrt(7500))


def test_the_holdout_is_shown_the_reference_arm_and_kept_apart(make):
    experiment = make(UniformAllocation(), holdout=0.25, reference=2)
    proposals = experiment.ask_many(4000)
    held = [one for one in proposals if one.held]
    assert {one.arm for one in held} == {2}
    assert abs(len(held) - 1000) < 5 * np.sqrt(750)
    experiment.tell_many([one.id for one in proposals], np.ones(4000))
    report = experiment.report()
    assert report.holdout == (("reward", len(held), 1.0),)
    assert sum(arm.settled for arm in report.arms) == 4000 - len(held)


def test_nobody_is_held_to_an_arm_that_is_not_available(make):
    experiment = make(UniformAllocation(), holdout=0.5)
    proposals = experiment.ask_many(50, available=[1, 2])
    assert not any(one.held for one in proposals)
    assert {one.arm for one in proposals} == {1, 2}
    assert experiment.audit().passed


# Availability


def test_a_restricted_plan_is_what_is_logged_and_drawn_from(make):
    experiment = make()
    proposal = experiment.ask(available=[0, "2"])
    assert proposal.probabilities.tolist() == [0.5, 0.0, 0.5]
    assert proposal.arm in (0, 2)


def test_where_the_plan_has_no_available_arm_the_best_looking_is_certain(make):
    experiment = make(arms=2)
    rng = np.random.default_rng(5)
    for _ in range(40):
        proposals = experiment.ask_many(50)
        rewards = [float(rng.random() < (0.1, 0.9)[one.arm]) for one in proposals]
        experiment.tell_many([one.id for one in proposals], rewards)
    assert experiment.report().declared == "1"
    proposal = experiment.ask(available=[0])
    assert (proposal.arm, proposal.probabilities.tolist()) == (0, [1.0, 0.0])
    experiment.tell(proposal.id, 1.0)


def test_restricted_rounds_teach_about_the_arms_that_they_play(make):
    experiment = make(AnytimeElimination(rewards=(0.0, 1.0), pilot=8))
    rng = np.random.default_rng(6)
    for _ in range(60):
        proposals = experiment.ask_many(20, available=[0, 1])
        experiment.tell_many([one.id for one in proposals], (rng.random(20) < 0.5).astype(float))
    state = ledger(experiment).feed.now()
    assert state.weights[0, 1] > 0
    assert state.weights[0, 2] == 0


def test_nothing_available_is_refused(make):
    with pytest.raises(ParameterError, match="at least one of the arms"):
        make().ask(available=[])


# Metrics


def test_metrics_have_intervals_of_their_own(make):
    experiment = make(metrics=[Metric("latency", rewards=(0.0, 200.0))])
    rng = np.random.default_rng(7)
    for _ in range(60):
        for proposal in experiment.ask_many(20):
            slow = 100.0 + 40.0 * (proposal.arm == 1) + rng.normal()
            experiment.tell(proposal.id, {"reward": 0.0, "latency": slow})
    estimate, low, high = experiment.report().metrics[1].gaps[1]
    assert low < 40.0 < high
    assert abs(estimate - 40.0) < 10.0
    assert low > 0


def test_the_objective_may_be_told_after_another_metric(make):
    experiment = make(metrics=[Metric("revenue")])
    proposal = experiment.ask()
    experiment.tell(proposal.id, {"revenue": 9.5})
    experiment.tell(proposal.id, 1.0)
    assert experiment.report().settled == 1


def test_rewards_that_add_up_are_final_at_the_end_of_the_window(make, clock):
    experiment = make(UniformAllocation(), window=10, add=True, arms=2, rewards=(0.0, 5.0))
    proposal = experiment.ask()
    for value in (1.0, 0.5, 1.0):
        clock.now += 1
        experiment.tell(proposal.id, value)
    assert experiment.report().settled == 0
    clock.now += 10
    assert experiment.report().settled == 1
    # The residual is the sum: the forecast knew nothing.
    assert ledger(experiment).gap_intervals[0]._pending[1].sums[proposal.arm] == 2.5
    with pytest.raises(ClosedError, match="a longer `window` waits longer"):
        experiment.tell(proposal.id, 1.0)


def test_a_sum_beyond_the_declared_range_is_refused(make):
    experiment = make(UniformAllocation(), window=10, add=True, arms=2, rewards=(0.0, 1.0))
    proposal = experiment.ask()
    experiment.tell(proposal.id, 0.75)
    with pytest.raises(RewardError, match=r"reward=1.5 of proposal 1"):
        experiment.tell(proposal.id, 0.75)
    experiment.tell(proposal.id, 0.25)


def test_a_guardrail_retires_an_arm_that_is_proven_worse(make):
    experiment = make(
        metrics=[Metric("latency", rewards=(0.0, 200.0))], guardrails=[Guardrail("latency", margin=10.0)]
    )
    rng = np.random.default_rng(8)
    for _ in range(100):
        proposals = experiment.ask_many(20)
        slow = [100.0 + 40.0 * (one.arm == 1) + rng.normal() for one in proposals]
        good = (rng.random(20) < 0.5).astype(float)
        experiment.tell_many([one.id for one in proposals], {"reward": good, "latency": slow})
    report = experiment.report()
    assert [arm.is_retired for arm in report.arms] == [False, True, False]
    assert report.arms[1].probability == 0.0
    assert any("retired by the guardrail on 'latency'" in text for text in report.warnings)
    assert experiment.replay().is_equal


def test_a_guardrail_needs_a_policy_that_can_retire(make):
    with pytest.raises(ParameterError, match="cannot retire arms"):
        make(UniformAllocation(), metrics=[Metric("slow")], guardrails=[Guardrail("slow")])


# Baselines


def test_covariates_reach_the_forecast(make):
    policy = AnytimeElimination(rewards=(0.0, 10.0), baseline=CovariateRegression(("age",)))
    experiment = make(policy)
    rng = np.random.default_rng(9)
    for _ in range(300):
        age = float(rng.random())
        proposal = experiment.ask(covariates={"age": age})
        experiment.tell(proposal.id, 8.0 * age)
    assert experiment.ask(covariates={"age": 0.9}).baseline > 5.0
    assert experiment.ask(covariates={"age": 0.1}).baseline < 3.0
    with pytest.raises(ParameterError, match="covariate 'age' is missing"):
        experiment.ask()
    assert experiment.replay().is_equal


class Broken:
    """Forecasts nonsense once in a while."""

    def predict_one(self, x):
        return float("nan") if x["round"] % 3 == 2 else 0.5

    def learn_one(self, x, y):
        pass


def test_a_forecast_that_is_not_finite_is_replaced_and_counted(make):
    experiment = make(AnytimeElimination(rewards=(0.0, 1.0), baseline=OnlineRegression(Broken)))
    for _ in range(9):
        experiment.tell(experiment.ask().id, 1.0)
    report = experiment.report()
    assert report.metrics[0].stood_in == 3
    assert any("3 forecasts of 'reward' were not finite" in text for text in report.warnings)


# Arms that come and go, status


def test_arms_come_and_go(make):
    experiment = make(AnytimeElimination(rewards=(0.0, 1.0), pilot=8))
    rng = np.random.default_rng(10)

    def rounds(count):
        for _ in range(count):
            proposals = experiment.ask_many(20)
            experiment.tell_many([one.id for one in proposals], (rng.random(20) < 0.5).astype(float))

    rounds(20)
    early = experiment.ask_many(5)
    experiment.extend(ArmSet(np.vstack([np.eye(3), [[0.5, 0.5, 0.5]]])))
    rounds(10)
    experiment.tell_many([one.id for one in early], np.ones(5))
    rounds(10)
    experiment.retire(1)
    rounds(10)
    report = experiment.report()
    assert len(report.arms) == 4
    assert report.arms[3].settled > 0
    assert report.arms[1].is_retired
    assert experiment.ask_many(50)[0].probabilities[1] == 0.0
    assert experiment.replay().is_equal
    assert experiment.audit().passed


def test_an_arm_without_shared_features_can_come_later(make):
    experiment, rng = make(AnytimeElimination(rewards=(0.0, 1.0))), np.random.default_rng(11)
    for _ in range(60):
        if len(experiment.arms) == 3 and experiment.report().settled > 1000:
            experiment.extend(ArmSet.one_hot(4))
        proposals = experiment.ask_many(100)
        means = np.array([0.3, 0.3, 0.3, 0.7])[[one.arm for one in proposals]]
        experiment.tell_many([one.id for one in proposals], (rng.random(100) < means).astype(float))
    assert experiment.report().declared == experiment.arms.labels[3]
    assert experiment.replay().is_equal
    assert experiment.audit().passed


@pytest.mark.parametrize("rewards", [(0.0, 1.0), None])
def test_a_certificate_is_valid_after_all_that_can_happen(make, clock, rewards, tmp_path):
    experiment = make(AnytimeElimination(rewards=rewards, pilot=8), window=15)
    rng = np.random.default_rng(14)

    def rounds(count, **how):
        for _ in range(count):
            clock.now += 1.0
            proposals = experiment.ask_many(20, **how)
            told = [one.id for one in proposals if rng.random() < (0.1, 0.4, 0.5, 0.6)[one.arm]]
            if told:
                experiment.tell_many(told, np.ones(len(told)))

    rounds(30)
    rounds(3, available=[0, 2])
    assert experiment.certificate().verdict.valid
    experiment.extend(ArmSet(np.vstack([np.eye(3), [[0.5, 0.5, 0.5]]])))
    rounds(30)
    experiment.retire(2)
    rounds(30)
    certificate = experiment.certificate()
    assert certificate.verdict.valid
    certificate.write(tmp_path / "claim.json")
    assert json.loads((tmp_path / "claim.json").read_text())["claim"]
    assert experiment.replay().is_equal


def test_a_policy_without_claims_has_no_certificate(make):
    with pytest.raises(ParameterError, match="AnytimeElimination does"):
        make(UniformAllocation()).certificate()


def test_a_paused_experiment_takes_rewards_and_no_questions(make):
    experiment = make()
    proposal = experiment.ask()
    experiment.pause()
    with pytest.raises(ClosedError, match="call `resume` first"):
        experiment.ask()
    experiment.tell(proposal.id, 1.0)
    experiment.resume()
    assert experiment.ask().id == 2


def test_a_stopped_experiment_says_what_it_found(make):
    experiment = make()
    experiment.ask()
    experiment.stop("the campaign is over")
    with pytest.raises(ClosedError, match="was stopped"):
        experiment.ask()
    assert "stopped by hand before it could declare" in experiment.report().advice


# Bad input


def test_the_same_twice_is_nothing_and_another_value_an_error(make):
    experiment = make()
    one, two = experiment.ask_many(2)
    experiment.tell(two.id, 1.0)
    experiment.tell(two.id, 1.0)
    with pytest.raises(ConflictError, match="was told 1 for 'reward' before, now 0"):
        experiment.tell(two.id, 0.0)
    experiment.tell(one.id, 0.0)  # both are settled now
    experiment.tell(two.id, 1.0)
    with pytest.raises(ConflictError, match="the first value is final"):
        experiment.tell(two.id, 0.0)
    assert experiment.report().settled == 2


@pytest.mark.parametrize("number", [0, -1, 2, 10**9])
def test_an_unknown_proposal_is_named(make, number):
    experiment = make()
    experiment.ask()
    with pytest.raises(UnknownProposalError, match=f"proposal {number} was never asked for"):
        experiment.tell(number, 1.0)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), 1.5, -0.1])
def test_a_reward_outside_the_declared_range_is_refused(make, reward):
    experiment = make()
    proposal = experiment.ask()
    with pytest.raises(RewardError, match=r"must be a finite number in the declared range \[0, 1\]"):
        experiment.tell(proposal.id, reward)
    experiment.tell(proposal.id, 1.0)


@pytest.mark.parametrize("reward", ["a", None, [1.0]])
def test_a_reward_that_is_no_number_is_refused(make, reward):
    experiment = make()
    proposal = experiment.ask()
    with pytest.raises((RewardError, ParameterError)):
        experiment.tell(proposal.id, reward)


def test_a_reward_after_the_window_is_refused(make, clock):
    experiment = make(window="10s")
    proposal = experiment.ask()
    clock.now += 11
    with pytest.raises(ClosedError, match="its window of 10 seconds has passed"):
        experiment.tell(proposal.id, 1.0)
    assert experiment.report().settled == 1
    assert experiment.replay().is_equal


def test_a_reward_told_again_moves_the_clock_in_the_log_too(make, clock):
    experiment = make(window=10)
    first, _ = experiment.ask_many(2)
    experiment.tell(first.id, 1.0)
    clock.now += 11  # the second is settled by now, and nothing is told that is not known
    experiment.tell(first.id, 1.0)
    assert experiment.replay().is_equal
    assert experiment.report().settled == 2


def test_a_row_with_one_wrong_value_is_left_untold_and_may_be_told_again(make):
    experiment = make(metrics=[Metric("latency")])
    one, two = experiment.ask_many(2)
    [refusal] = experiment.tell_many([one.id, two.id], {"latency": [1.0, 2.0], "reward": [1.0, 7.0]})
    assert (refusal.index, refusal.metric) == (1, "reward")
    assert isinstance(refusal.error, RewardError)
    assert experiment.report().settled == 1
    assert not experiment.tell_many([one.id, two.id], {"latency": [1.0, 4.0], "reward": [1.0, 0.0]})
    assert experiment.report().settled == 2


@pytest.mark.parametrize("key", ["short", "zz" * 16, "AB" * 16])
def test_a_key_that_is_none_is_refused(make, key):
    with pytest.raises(ParameterError, match="32 hexadecimal digits"):
        make(key=key)


def test_gaps_of_bounded_rewards_are_not_wider_than_their_range(make):
    experiment = make()
    experiment.tell(experiment.ask().id, 1.0)
    assert [(arm.low, arm.high) for arm in experiment.report().arms[1:]] == [(-1.0, 1.0)] * 2


def test_an_unknown_metric_and_an_unknown_setting_are_named(make):
    experiment = make()
    with pytest.raises(RewardError, match="'clicks' is not a metric of this experiment; its metrics: reward"):
        experiment.tell(experiment.ask().id, {"clicks": 1.0})
    with pytest.raises(TypeError, match="'windw'"):
        make(windw=3)


def test_a_clock_that_goes_back_changes_nothing(make, clock):
    experiment = make(window=100)
    experiment.ask()
    clock.now -= 500
    experiment.ask()
    clock.now += 550
    assert experiment.report().settled == 0
    assert experiment.replay().is_equal


# State


def test_replay_gives_the_state_bit_by_bit(make, clock):
    experiment = make(window=30, metrics=[Metric("latency")], holdout=0.1)
    played(experiment, clock, 400, [0.2, 0.4, 0.6], np.random.default_rng(11), delay=20.0)
    found = experiment.replay()
    assert found.is_equal, found.difference


def test_replay_notices_another_state(make):
    experiment = make()
    experiment.tell(experiment.ask().id, 1.0)
    state = ledger(experiment).to_json()
    state["drawn"][0] += 1
    found = replay_log(experiment.settings, entries_of(experiment), 10**9, state)
    assert found.difference.startswith("state.drawn[0]")


def test_the_state_survives_json(make, clock):
    experiment = make(window=30, metrics=[Metric("latency", add=True)])
    played(experiment, clock, 200, [0.2, 0.4, 0.6], np.random.default_rng(12), delay=20.0)
    kind, settings = type(ledger(experiment)), experiment.settings
    state = ledger(experiment).to_json()
    again = kind.from_json(settings, json.loads(json.dumps(state)))
    assert again.to_json() == state


def test_settings_survive_json():
    policy = AnytimeElimination(rewards=(0, 1), goal="earn", baseline=NoBaseline(), pilot=40)
    experiment = Experiment.memory(ArmSet.one_hot(2), policy, window="2h", metrics=[Metric("x", (0, 3))])
    again = Settings.from_json(json.loads(json.dumps(experiment.settings.to_json())))
    assert again.policy == policy
    assert again.metrics == experiment.settings.metrics
    assert again.window == 7200.0
    with pytest.raises(ParameterError, match="was begun with AnytimeElimination"):
        Settings.from_json(experiment.settings.to_json(), AnytimeElimination())


def test_threads_share_an_experiment(make):
    experiment = make(UniformAllocation())

    def work():
        for _ in range(50):
            experiment.tell(experiment.ask().id, 1.0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = experiment.report()
    assert (report.proposals, report.settled) == (400, 400)
    assert experiment.replay().is_equal


def test_requests_that_wait_share_one_commit(make, monkeypatch):
    experiment, sizes, commit = make(), [], SharedLedger._commit
    waiting = [threading.Thread(target=experiment.ask) for _ in range(5)]

    def counted(self, jobs):
        if not sizes:  # while the first is at work, five more come
            for thread in waiting:
                thread.start()
            while len(self.queue) < 5:
                threading.Event().wait(0.001)
        sizes.append(len(jobs))
        commit(self, jobs)

    monkeypatch.setattr(SharedLedger, "_commit", counted)
    experiment.ask()
    for thread in waiting:
        thread.join()
    assert sizes == [1, 5]
    assert experiment.report().proposals == 6


def test_a_thread_that_fails_holds_up_nobody(make, monkeypatch):
    experiment = make()
    with monkeypatch.context() as patch:
        patch.setattr(SharedLedger, "_caught_up", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            experiment.ask()
    assert experiment.ask().id == 1


def test_export_has_a_row_a_proposal(make, tmp_path):
    experiment = make(window=5)
    one = experiment.ask(unit="ann")
    experiment.ask()
    experiment.tell(one.id, 1.0)
    experiment.export(tmp_path / "log.csv")
    header, first, second = (tmp_path / "log.csv").read_text().strip().splitlines()
    assert header == (
        "proposal,at,unit,arm,plan,distribution,holdout,settled,silence,p:0,p:1,p:2,forecast:reward,reward"
    )
    assert first.endswith(",1.0")
    assert "ann" in first
    assert second.endswith(",")
    assert [line.split(",")[7] for line in (first, second)] == ["True", "False"]


def test_an_export_has_no_formulas_for_spreadsheets(clock, tmp_path):
    arms = ArmSet.one_hot(4, ["=1+1", "-5 %", "@x", "+2"])
    experiment = Experiment.memory(arms, rewards=(-1, 1), objective="+gain", clock=clock)
    shown = [experiment.ask(unit=unit) for unit in ("=cmd|' /C calc'!A0", "\tx", "ann")]
    experiment.tell(shown[0].id, -0.5)
    experiment.export(tmp_path / "log.csv")
    experiment.export(tmp_path / "raw.csv", raw=True)
    header, *rows = csv.reader((tmp_path / "log.csv").read_text().splitlines())
    raw_header, *raw_rows = csv.reader((tmp_path / "raw.csv").read_text().splitlines())
    assert (header[-1], raw_header[-1]) == ("'+gain", "+gain")
    assert [row[2] for row in rows] == ["'=cmd|' /C calc'!A0", "'\tx", "ann"]
    assert [row[2] for row in raw_rows] == ["=cmd|' /C calc'!A0", "\tx", "ann"]
    assert all(row[3] == f"'{raw[3]}" for row, raw in zip(rows, raw_rows, strict=True))
    assert [row[-1] for row in rows] == ["-0.5", "", ""]  # numbers are no formulas


def test_an_export_says_that_a_window_has_settled_what_was_silent(make, clock, tmp_path):
    experiment = make(window=5)
    for _ in range(3):
        experiment.ask()
        clock.now += 3
    experiment.export(tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().strip().splitlines()[1:]
    assert [line.split(",")[7] for line in lines] == ["True", "True", "False"]
    # Silence is a zero once the window has passed, and nothing before.
    assert [line.split(",")[-1] for line in lines] == ["0.0", "0.0", ""]
    with pytest.raises(ParameterError, match=r"must end in \.csv or \.parquet"):
        experiment.export(tmp_path / "log.txt")


def test_a_report_is_text_json_and_a_page(make, clock):
    experiment = make(window=5, key="7" * 64)
    played(experiment, clock, 50, [0.1, 0.2, 0.9], np.random.default_rng(13))
    report = experiment.report()
    # Silent visitors settle when their window is over; how many are silent depends on the draws.
    assert str(report).startswith(f"Too early: {report.settled} of 50 visitors settled, about ")
    assert 40 < report.settled < 50
    assert json.loads(json.dumps(report.to_json()))["proposals"] == 50
    assert report.to_html().startswith("<!doctype html>")


# Health


def test_silence_that_depends_on_the_arm_is_an_alarm(make, clock):
    experiment = make(UniformAllocation(), arms=2, window=1, silence="missing", rewards=(0, 1), key="8" * 64)
    rng = np.random.default_rng(15)
    for _ in range(60):
        clock.now += 2
        proposals = experiment.ask_many(50)
        told = [one.id for one in proposals if rng.random() < (0.9, 0.6)[one.arm]]
        experiment.tell_many(told, np.zeros(len(told)))
    clock.now += 2
    [alarm] = [text for text in experiment.report().warnings if text.startswith("ALARM: ")]
    lacks = float(alarm.partition("'1' lacks ")[2].partition(" %")[0])
    assert lacks == pytest.approx(40.0, abs=4.0)  # three standard errors
    assert alarm.endswith("what is left out would bias the gaps; count silence as zero")
    assert experiment.replay().is_equal


def test_silence_that_counts_as_zero_may_depend_on_the_arm(make, clock):
    experiment = make(UniformAllocation(), arms=2, window=1, silence="zero", rewards=(0, 1))
    rng = np.random.default_rng(16)
    for _ in range(60):
        clock.now += 2
        told = [one.id for one in experiment.ask_many(50) if rng.random() < (0.9, 0.6)[one.arm]]
        experiment.tell_many(told, np.ones(len(told)))
    assert not any("ALARM" in text for text in experiment.report().warnings)


def test_gaps_that_drift_are_an_alarm_and_a_level_that_does_is_none(make):
    for drifts in (True, False):
        experiment = make(UniformAllocation(), arms=2, rewards=(0, 1))
        rng = np.random.default_rng(17)
        for step in range(150):
            proposals = experiment.ask_many(50)
            gap = 0.4 if step < 75 or not drifts else -0.4
            level = 0.3 if step < 75 else 0.5 + 0.2 * drifts
            chances = [level + gap * one.arm for one in proposals]
            rewards = (rng.random(50) < chances).astype(float)
            experiment.tell_many([one.id for one in proposals], rewards)
        alarms = [text for text in experiment.report().warnings if "the best arm may change" in text]
        assert bool(alarms) is drifts
        assert all(text.startswith("ALARM: the gap of '1' over '0' was +0.") for text in alarms)
        assert experiment.replay().is_equal


def test_a_level_that_is_far_from_zero_does_not_spoil_the_first_intervals(make):
    # The first forecasts know nothing of a level of 1000; the asymptotic mode waits until they do.
    experiment = make(UniformAllocation(), arms=2)
    rng = np.random.default_rng(18)
    for _ in range(400):
        proposal = experiment.ask()
        experiment.tell(proposal.id, 1000.0 + 2.0 * proposal.arm + rng.normal())
    _, low, high = experiment.report().metrics[0].gaps[1]
    assert 1.0 < low < 2.0 < high < 3.0


def test_what_stands_for_an_experiment_has_its_present_arms():
    one = Experiment.memory(ArmSet.one_hot(2, labels=["a", "b"]), rewards=(0, 1))
    assert repr(one) == "Experiment('in memory', 2 arms)"
    one.extend(ArmSet.one_hot(3, labels=["a", "b", "c"]))
    assert repr(one) == "Experiment('in memory', 3 arms)"
    one.close()
    assert repr(one).startswith("Experiment('in memory', ")  # closed: nobody knows any more
