"""Certificates: what is written down gives what the policy claims, and nothing else can be written down."""

import json

import numpy as np
import pytest
from tests.unit.experiment.fed import MODES, PLANE, fed

from orthobandit import AnytimeElimination, ArmSet, Experiment, Tally
from orthobandit.errors import FileFormatError, OutputError, ParameterError
from orthobandit.experiment.certificate import Certificate
from orthobandit.experiment.feeds import Feed, Feeds, since_of


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("mode", MODES)
def test_the_claim_is_that_of_the_policy_and_valid(mode, late, goal):
    run = fed(mode, goal=goal, late=late, rounds=1500)
    document = run.certificate().to_json()
    claim, decision = document["claim"], run.policy.decide(run.state)
    assert claim["survivors"] == np.flatnonzero(decision.active).tolist()
    assert claim["leader"] == decision.leader
    assert claim["declared"] == (int(decision.declared) if decision.declared >= 0 else None)
    if not late:
        assert (claim["epsilon"] or 0.0) == pytest.approx(float(decision.epsilon), rel=1e-7, abs=1e-9)
    assert {drop["arm"] for drop in claim["dropped"]} == set(np.flatnonzero(~decision.active).tolist())
    assert claim["dropped"], "nothing was dropped, so nothing is tested"


@pytest.mark.parametrize("mode", MODES)
def test_arms_with_shared_features_and_an_epsilon(mode):
    means = 0.3 + PLANE.features @ np.array([0.3, 0.05])
    run = fed(mode, arms=PLANE, means=means, epsilon=0.12, rounds=4000, seed=2)
    document = run.certificate().to_json()
    assert document["claim"]["declared"] is not None
    assert 0 <= document["claim"]["epsilon"] <= 0.12
    assert "with probability 0.95" in run.certificate().verdict.claim


def test_every_drop_names_the_feed_after_which_the_policy_dropped_the_arm():
    run = fed("bounded")
    state, when = run.policy.start(run.arms), {}
    for n, feed in enumerate(run.feeds):
        before = state.active
        state = run.policy.observe(state, feed.plan, feed.tally)
        when |= dict.fromkeys(np.flatnonzero(before & ~state.active).tolist(), n)
    assert {drop["arm"]: drop["feed"] for drop in run.certificate().to_json()["claim"]["dropped"]} == when


@pytest.mark.parametrize("mode", MODES)
def test_tests_against_a_retired_arm_begin_anew(mode):
    run = fed(mode, means=(0.2, 0.3, 0.35, 0.25, 0.7), rounds=200)
    while int(run.state.stage) < 2 or not np.diag(run.state.weights).all():
        run.until(run.clock + 1)
    assert int(run.state.declared) < 0
    leader = int(run.state.leader)
    run.retire(leader)
    assert np.diag(run.since).max() == len(run.feeds)
    run.until(1500)
    document = run.certificate().to_json()
    assert document["retired"] == [leader]
    assert leader not in document["claim"]["survivors"]
    again = Certificate.of(run.policy, run.state, run.feeds, run.since)
    assert again.verdict.valid


@pytest.mark.parametrize("mode", MODES)
def test_arms_that_come_later_count_from_then_on(mode):
    run = fed(mode, means=(0.2, 0.3, 0.35), rounds=300)
    run.extend(extended(run.arms), (0.2, 0.3, 0.35, 0.75))
    run.until(1500)
    document = run.certificate().to_json()
    assert run.since[3].min() > 0
    assert document["feeds"][0]["arms"] == 3
    assert document["claim"]["leader"] == 3


def extended(arms):
    """Return one-hot arms with one more, in the same space of features."""
    width = arms.features.shape[1]
    return ArmSet(np.vstack([arms.features, np.full(width, 1.0 / width) + np.eye(width)[0]]))


def test_before_the_first_round_nothing_is_claimed():
    policy = AnytimeElimination()
    certificate = Certificate.of(policy, policy.start(ArmSet.one_hot(3)), [])
    assert certificate.verdict.valid
    assert certificate.to_json()["claim"]["epsilon"] is None
    assert "within inf of the best of 3" in certificate.verdict.claim


def test_arms_that_are_all_alike_are_best_at_once():
    policy = AnytimeElimination(rewards=(0, 1))
    certificate = Certificate.of(policy, policy.start(ArmSet([[1.0, 2.0]] * 3)), [])
    assert certificate.to_json()["claim"]["declared"] == 0
    assert certificate.verdict.valid


def test_feeds_that_the_policy_did_not_look_at_are_left_out():
    run = fed("bounded")
    plan, none = run.policy.plan(run.state), Tally.zeros(4)
    after = Feed.of(run.state, plan, Tally.of([2, 2], [0.1, 0.2], 4))
    empty = Feed.of(fed("bounded", rounds=100).state, plan, none)
    assert after.use == empty.use == "ignored"
    certificate = Certificate.of(run.policy, run.state, [empty, *run.feeds, after])
    assert certificate.to_json() == run.certificate().to_json()


def test_files_come_back_to_the_last_digit(tmp_path):
    certificate = fed("bounded").certificate()
    certificate.write(tmp_path / "new" / "decision.json")
    again = Certificate.read(tmp_path / "new" / "decision.json")
    assert again.to_json() == certificate.to_json()
    assert again.verdict.valid


def test_ten_arms_are_a_kilobyte_a_feed_and_no_user():
    run = fed("asymptotic", means=np.linspace(0.0, 0.1, 10), rounds=9000)
    text = json.dumps(run.certificate().to_json())
    assert len(run.feeds) > 50
    assert len(text) < 1200 * len(run.feeds)


def test_feeds_survive_json():
    for feed in fed("bounded", late=3, rounds=300).feeds:
        data = json.loads(json.dumps(feed.to_json()))
        assert Feed.from_json(data).to_json() == feed.to_json()
        assert Feed.from_json(data).counted == (feed.use == "evidence")


def test_what_does_not_give_the_claim_is_refused():
    run = fed("bounded")
    with pytest.raises(ParameterError, match=r"feeds have no proof against arm .*give all that the policy"):
        Certificate.of(run.policy, run.state, run.feeds[:4])
    level = fed("bounded", means=(0.5, 0.5), rounds=500)
    with pytest.raises(ParameterError, match="feeds do not give what the state claims: what arm"):
        Certificate.of(level.policy, level.state, [*level.feeds[:5], *level.feeds[6:]])
    with pytest.raises(ParameterError, match=r"since has shape \(2, 2\); \(4, 4\) whole numbers"):
        Certificate.of(run.policy, run.state, run.feeds, np.zeros((2, 2), dtype=int))
    with pytest.raises(ParameterError, match=r"state has replications \(2,\)"):
        Certificate.of(run.policy, run.policy.start(run.arms, (2,)), [])
    with pytest.raises(ParameterError, match=r"state has replications \(2,\)"):
        Feed.of(run.policy.start(run.arms, (2,)), run.feeds[0].plan, run.feeds[0].tally)


def test_files_that_hold_something_else_are_named(tmp_path):
    (tmp_path / "other.json").write_text('{"format": "something"}')
    with pytest.raises(FileFormatError, match=r"other\.json is not an 'orthobandit certificate 3'"):
        Certificate.read(tmp_path / "other.json")
    with pytest.raises(FileFormatError, match=r"none\.json cannot be read"):
        Certificate.read(tmp_path / "none.json")
    with pytest.raises(OutputError, match="cannot be written"):
        fed("asymptotic", rounds=50).certificate().write(tmp_path)


def test_entries_begin_with_their_arms_and_tests_with_their_first_rival():
    run = fed("bounded", rounds=200)
    grown = run.policy.extend(run.state, extended(run.arms))
    since = since_of(run.since, grown, 9)
    assert since[:4, :4][~np.eye(4, dtype=bool)].max() == 0
    assert since[4].tolist() == since[:, 4].tolist() == [9] * 5


@pytest.mark.parametrize("rewards", [(0.0, 1.0), "unknown"])
def test_rounds_restricted_to_some_arms_are_in_the_certificate(rewards):
    # They are fed before the other rounds of the plan in force, which completes the batch.
    rng = np.random.default_rng(3)
    experiment = Experiment.memory(ArmSet.one_hot(3), rewards=rewards, key="5" * 32)
    for k in range(400):
        proposals = experiment.ask_many(3, available=[k % 3, (k + 1) % 3] if k % 2 else None)
        chances = np.array([0.2, 0.3, 0.7])[[one.arm for one in proposals]]
        experiment.tell_many([one.id for one in proposals], (rng.random(3) < chances).astype(float))
    certificate = experiment.certificate()
    document = certificate.to_json()
    assert certificate.verdict.valid
    assert document["claim"]["dropped"]
    plans = [(feed["plan"], feed["length"] > 0) for feed in document["feeds"]]
    assert any((plan, False) in plans[: plans.index((plan, True))] for plan, timely in plans if timely)


@pytest.mark.parametrize("rewards", [(0.0, 1.0), "unknown"])
def test_rounds_in_flight_are_unbiased_for_an_arm_that_shares_their_features(rewards):
    # Values of earlier plans must be linear in the features of the new arm too, or gaps to it are biased.
    rng, points = np.random.default_rng(4), np.array([[0.0], [1.0], [2.0], [6.0]])
    experiment = Experiment.memory(ArmSet(points[:3], list("abc")), rewards=rewards, key="6" * 32)

    def tell(proposals):
        chances = 0.2 + 0.1 * points[[one.arm for one in proposals], 0]
        rewards = (rng.random(len(proposals)) < chances).astype(float)
        experiment.tell_many([one.id for one in proposals], rewards)

    for _ in range(12):
        tell(experiment.ask_many(25))
    in_flight = experiment.ask_many(400)
    experiment.extend(ArmSet(points, list("abcd")))
    tell(in_flight)
    late = [feed for feed in experiment._now().book.feeds.all() if feed.counted and feed.plan.count == 4]
    assert any(np.ptp(feed.plan.values) > 0.01 for feed in late)
    for feed in late:
        slope = feed.plan.values[1] - feed.plan.values[0]
        np.testing.assert_allclose(feed.plan.values - feed.plan.values[0], slope * points[:, 0], atol=1e-9)
    assert experiment.certificate().verdict.valid


@pytest.mark.parametrize("rewards", [(0.0, 1.0), "unknown"])
def test_rounds_of_a_declared_arm_in_flight_when_arms_are_added_are_no_evidence(rewards):
    rng = np.random.default_rng(5)
    experiment = Experiment.memory(ArmSet.one_hot(2), rewards=rewards, key="7" * 32)

    def tell(proposals):
        chances = np.array([0.9, 0.1, 0.5])[[one.arm for one in proposals]]
        rewards = (rng.random(len(proposals)) < chances).astype(float)
        experiment.tell_many([one.id for one in proposals], rewards)

    for _ in range(20):
        tell(experiment.ask_many(50))
    assert experiment.report().declared == "0"
    in_flight = experiment.ask_many(100)
    experiment.extend(ArmSet.one_hot(3))
    tell(in_flight)
    assert experiment.certificate().verdict.valid
    assert experiment.replay().is_equal


def test_feeds_are_kept_as_they_were():
    run = fed("bounded")
    kept = Feeds()
    for feed in run.feeds:
        kept.add(feed)
    plain = [feed.to_json() for feed in run.feeds]
    assert [feed.to_json() for feed in kept.all()] == plain
    assert [feed.to_json() for feed in Feeds(kept.to_json()).all()] == plain
    assert Feeds(plain).to_json() == kept.to_json()  # as earlier releases kept them
    assert len(kept) == len(plain)
