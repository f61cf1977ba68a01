"""Live experiments with more arms than evidence is kept on all pairs of."""

from copy import deepcopy

import numpy as np
import pytest
from tests.unit.experiment.recorded import MODES, fed

from experiment_samples import ledger_of
from inside.policy import MOST_PAIRED, Leaders
from mutants import reseal
from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric
from orthobandit.verify import ALL_PAIRS, LEADERS, verify

COUNT = MOST_PAIRED + 20
POINTS = np.random.default_rng(5).standard_normal((COUNT + 2, 3))
MEANS = np.clip(0.5 + 0.15 * POINTS @ np.array([1.0, 0.5, 0.0]), 0.02, 0.98)


def visit(experiment, count, rng):
    """Let so many visitors come, each with a reward of 0 or 1."""
    proposals = experiment.ask_many(count)
    rewards = rng.random(count) < MEANS[[one.arm for one in proposals]]
    experiment.tell_many([one.id for one in proposals], rewards.astype(float))


@pytest.mark.slow
def test_nothing_is_refused_beyond_a_thousand_arms(tmp_path):
    where, rng = tmp_path / "page", np.random.default_rng(0)
    experiment = Experiment.create(where, ArmSet(POINTS[:COUNT]), rewards=(0, 1), key="3" * 32)
    for _ in range(10):
        visit(experiment, 100, rng)
    assert isinstance(ledger_of(experiment).feed.state, Leaders)
    before = experiment.report()
    assert not all(arm.is_active for arm in before.arms)
    leader = before.leader
    experiment.retire(leader)
    experiment.extend(ArmSet(POINTS))
    for _ in range(4):
        visit(experiment, 100, rng)
    report = experiment.report()
    assert len(report.arms) == COUNT + 2
    assert report.arms[int(leader)].is_retired
    assert report.leader != leader
    certificate = experiment.certificate()
    assert certificate.document["settings"]["evidence"] == LEADERS
    assert certificate.document["claim"]["retired"] == [leader]
    assert verify(certificate.document, experiment.head()).problems == []
    assert experiment.replay().is_equal
    assert experiment.audit().passed
    experiment.close()
    again = Experiment.open(where)
    assert again.report().to_json() == report.to_json()
    visit(again, 50, rng)
    assert again.certificate().verdict.valid


@pytest.mark.slow
def test_guardrails_judge_beyond_a_thousand_arms(tmp_path):
    # Good arms crash more; a window, a holdout, visitors who are silent and a restart are on the way.
    best = int(np.argmax(MEANS[:COUNT]))
    crashes = 0.5 + 0.1 * POINTS @ np.array([0.9, 0.4, 0.0])
    assert 0.0 < crashes.min() < crashes.max() < 1.0
    rng = np.random.default_rng(0)
    now = [0.0]
    where = tmp_path / "page"
    experiment = Experiment.create(
        where,
        ArmSet(POINTS[:COUNT]),
        AnytimeElimination(goal="earn", rewards=(0, 1)),
        window=3.0,
        holdout=0.1,
        metrics=[Metric("crash", rewards=(0, 1))],
        guardrails=[Guardrail("crash", margin=0.05)],
        key="3" * 64,
        clock=lambda: now[0],
    )
    for step in range(30):
        now[0] += 1.0
        proposals = experiment.ask_many(100)
        arms = np.array([one.arm for one in proposals])
        values = {
            "reward": (rng.random(100) < MEANS[arms]).astype(float),
            "crash": (rng.random(100) < crashes[arms]).astype(float),
        }
        told = np.flatnonzero(rng.random(100) < 0.95)
        numbers = [proposals[at].id for at in told]
        experiment.tell_many(numbers, {name: value[told] for name, value in values.items()})
        if step == 4:
            experiment.close()
            experiment = Experiment.open(where, clock=lambda: now[0])
        if step == 8:
            experiment.extend(ArmSet(POINTS))
    report = experiment.report()
    assert isinstance(ledger_of(experiment).feed.state, Leaders)
    assert report.arms[best].is_retired
    assert report.holdout is not None
    assert sum(arm.silent for arm in report.arms) > 0
    retired = [at for at, arm in enumerate(report.arms) if arm.is_retired]
    assert (crashes[retired] > crashes[0] + 0.05).all()
    assert experiment.certificate().verdict.valid
    assert experiment.replay().is_equal
    experiment.close()


@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("mode", MODES)
def test_the_claim_is_that_of_the_policy_and_valid(mode, late):
    run = fed(mode, means=(0.2, 0.3, 0.7, 0.25), late=late, rounds=1500, pairs="leader")
    document = run.certificate().to_json()
    claim, decision = document["claim"], run.policy.decide(run.state)
    assert claim["survivors"] == [str(arm) for arm in np.flatnonzero(decision.active)]
    assert claim["leader"] == str(decision.leader)
    assert claim["dropped"]
    if not late:
        assert (claim["epsilon"] or 0.0) == pytest.approx(float(decision.epsilon), rel=1e-6, abs=1e-9)


def _with_arm_left_out(document):
    entry = next(one for one in document["entries"] if one["entry"] == "plan" and one["active"])
    entry["active"] = entry["active"][1:]


def _with_another_leader(document):
    document["claim"]["leader"] = "3"


def _with_smaller_rewards(document):
    rounds = [one for one in document["entries"] if one["entry"] == "rounds"]
    rounds[len(rounds) // 2]["sums"][2] -= 0.5


def _with_evidence_on_all_pairs(document):
    document["settings"]["evidence"] = ALL_PAIRS


def _without_the_arm_that_came_back(document):
    after = next(at for at, one in enumerate(document["entries"]) if one["entry"] == "retire") + 1
    document["entries"][after]["active"] = document["entries"][after]["active"][:-1]


@pytest.mark.parametrize(
    "change",
    [
        _with_arm_left_out,
        _with_another_leader,
        _with_smaller_rewards,
        _with_evidence_on_all_pairs,
        _without_the_arm_that_came_back,
    ],
)
@pytest.mark.parametrize("mode", ["bounded", "asymptotic"])
def test_what_does_not_follow_is_found(mode, change):
    run = fed(mode, means=(0.2, 0.3, 0.8, 0.25), rounds=3000, pairs="leader")
    leader = int(run.state.leader)
    run.record.retire(leader)
    run._go_on(run.policy.retire(run.state, leader))
    run.until(run.clock + 300)
    document = run.certificate().to_json()
    assert verify(reseal(deepcopy(document))).valid
    change(document)
    assert verify(reseal(document)).problems


@pytest.mark.parametrize("rewards", [(0.0, 1.0), "unknown"])
def test_a_reference_arm_that_was_dropped_is_shown_for_guardrails(rewards):
    # Its value must be linear in the features, like those of the arms that the policy plays.
    rng = np.random.default_rng(2)
    points = rng.standard_normal((60, 2))
    points[0] = (-0.05, 0.02)  # inside of all others: no plan of the policy plays it
    means = np.clip(0.5 + 0.3 * points[:, 0], 0.05, 0.95)
    bounds = None if rewards == "unknown" else rewards
    experiment = Experiment.memory(
        ArmSet(points),
        AnytimeElimination(rewards=bounds, pairs="leader"),
        rewards=rewards,
        metrics=[Metric("crash", rewards=(0, 1))],
        guardrails=[Guardrail("crash")],
        key="4" * 32,
    )
    shown = False
    for _ in range(30):
        proposals = experiment.ask_many(60)
        arms = [one.arm for one in proposals]
        values = {
            "reward": (rng.random(60) < means[arms]).astype(float),
            "crash": (rng.random(60) < 0.02).astype(float),
        }
        experiment.tell_many([one.id for one in proposals], values)
        book = ledger_of(experiment).feed
        if book.is_compared:
            shown = True
            x = points - points.mean(axis=0)
            spread = book.plan.values - book.plan.values.mean()
            slope = np.linalg.lstsq(x, spread, rcond=None)[0]
            np.testing.assert_allclose(spread, x @ slope, atol=1e-9)
    assert shown
    assert experiment.certificate().verdict.valid
