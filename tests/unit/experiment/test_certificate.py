"""Certificates: what is written down gives what the policy claims, and nothing else can be written down."""

import json
from copy import deepcopy

import numpy as np
import pytest
from tests.unit.experiment.recorded import MODES, PLANE, fed, held_back, shop, visited

from experiment_samples import ledger_of
from inside.estimate import Certificate, Chain
from mutants import reseal
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.errors import FileFormatError, OutputError, ParameterError
from orthobandit.experiment.certificate import certify
from orthobandit.experiment.ledger.record import Record, commitment_of
from orthobandit.policy import UniformAllocation
from orthobandit.verify import Run, Verdict, verify


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("late", [0, 7])
@pytest.mark.parametrize("mode", MODES)
def test_the_claim_is_that_of_the_policy_and_valid(mode, late, goal):
    run = fed(mode, goal=goal, late=late, rounds=1500)
    document = run.certificate().to_json()
    claim, decision = document["claim"], run.policy.decide(run.state)
    assert claim["survivors"] == [str(arm) for arm in np.flatnonzero(decision.active)]
    assert claim["leader"] == str(decision.leader)
    assert claim["declared"] == (str(decision.declared) if decision.declared >= 0 else None)
    if not late:
        assert (claim["epsilon"] or 0.0) == pytest.approx(float(decision.epsilon), rel=1e-7, abs=1e-9)
    assert claim["dropped"] == [str(arm) for arm in np.flatnonzero(~decision.active)]
    assert claim["dropped"], "nothing was dropped, so nothing is tested"


@pytest.mark.parametrize("mode", MODES)
def test_arms_with_shared_features_and_an_epsilon(mode):
    means = 0.3 + PLANE.features @ np.array([0.3, 0.05])
    run = fed(mode, arms=PLANE, means=means, epsilon=0.12, rounds=4000, seed=2)
    document = run.certificate().to_json()
    assert document["claim"]["declared"] is not None
    assert 0 <= document["claim"]["epsilon"] <= 0.12
    assert "false winners in at most 5 % of experiments" in document["claim"]["sentence"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", MODES)
def test_arms_that_are_the_same_but_for_their_names(mode, seed):
    # Which of them leads is a matter of rounding: the record says it, and the verifier takes it for equal.
    twins = ArmSet([[0.0, 0.0], [1.0, 0.3], [1.0, 0.3], [0.4, 0.9], [0.4, 0.9]])
    run = fed(mode, arms=twins, means=0.2 + twins.features @ np.array([0.3, 0.1]), rounds=900, seed=seed)
    assert run.certificate().verdict.valid


@pytest.mark.parametrize("mode", MODES)
def test_tests_against_a_retired_arm_begin_anew(mode):
    run = fed(mode, means=(0.2, 0.3, 0.35, 0.25, 0.7), rounds=200)
    while int(run.state.stage) < 2 or not np.diag(run.state.weights).all():
        run.until(run.clock + 1)
    assert int(run.state.declared) < 0
    leader = int(run.state.leader)
    run.retire(leader)
    run.until(1500)
    claim = run.certificate().to_json()["claim"]
    assert claim["retired"] == [str(leader)]
    assert str(leader) not in claim["survivors"]


@pytest.mark.parametrize("rounds", [5, 35, 300])
@pytest.mark.parametrize("mode", MODES)
def test_arms_that_come_later_count_from_then_on(mode, rounds):
    run = fed(mode, means=(0.2, 0.3, 0.35), rounds=rounds)
    run.extend(extended(run.arms), (0.2, 0.3, 0.35, 0.75), rounds=2)
    run.until(1500)
    document = run.certificate().to_json()
    assert len(document["settings"]["labels"]) == 3
    assert document["claim"]["leader"] == "3"


@pytest.mark.parametrize("mode", MODES)
def test_arms_come_and_go_at_any_stage(mode):
    run = fed(mode, means=(0.2, 0.3, 0.35, 0.5), rounds=10, late=2)
    run.retire(0, rounds=2)
    run.until(80)
    run.extend(ArmSet.one_hot(5), (0.2, 0.3, 0.35, 0.5, 0.4), rounds=2)
    run.until(400)
    run.retire(1, rounds=2)
    run.extend(ArmSet.one_hot(6), (0.2, 0.3, 0.35, 0.5, 0.4, 0.3), rounds=2)
    run.until(900)
    assert run.certificate().to_json()["claim"]["retired"] == ["0", "1"]


def extended(arms):
    """Return one-hot arms with one more, in the same space of features."""
    width = arms.features.shape[1]
    return ArmSet(np.vstack([arms.features, np.full(width, 1.0 / width) + np.eye(width)[0]]))


def begun(policy, arms):
    """Return the state and the record of an experiment before its first round."""
    state, record = policy.start(arms), Record(Chain(commitment_of(policy, arms)))
    record.plan(policy, state)
    return state, record


def test_before_the_first_round_nothing_is_claimed():
    policy = AnytimeElimination()
    certificate = certify(policy, *begun(policy, ArmSet.one_hot(3)))
    assert certificate.verdict.valid
    assert certificate.to_json()["claim"]["epsilon"] is None
    assert "'0' is not yet known to be near the best of 3 arms (" in certificate.verdict.claim


def test_arms_that_are_all_alike_are_best_at_once():
    policy = AnytimeElimination(rewards=(0, 1))
    certificate = certify(policy, *begun(policy, ArmSet([[1.0, 2.0]] * 3)))
    assert certificate.to_json()["claim"]["declared"] == "0"
    assert certificate.verdict.valid


def test_files_come_back_to_the_last_digit(tmp_path):
    certificate = fed("bounded").certificate()
    certificate.write(tmp_path / "new" / "decision.json")
    again = Certificate.read(tmp_path / "new" / "decision.json")
    assert again.to_json() == certificate.to_json()
    assert again.verdict.valid


def test_ten_arms_are_a_kilobyte_and_a_half_a_batch_and_no_user():
    run = fed("asymptotic", means=np.linspace(0.0, 0.1, 10), rounds=9000)
    text = json.dumps(run.certificate().to_json())
    assert len(run.feeds) > 50
    assert len(text) < 1500 * len(run.feeds)


def test_what_does_not_give_the_claim_is_refused():
    run = fed("bounded")
    earlier = fed("bounded", rounds=100)
    with pytest.raises(ParameterError, match="does not follow from what was recorded: survivors is"):
        certify(run.policy, run.state, earlier.record)
    with pytest.raises(ParameterError, match=r"state has replications \(2,\)"):
        certify(run.policy, run.policy.start(run.arms, (2,)), run.record)


def test_files_that_hold_something_else_are_named(tmp_path):
    (tmp_path / "other.json").write_text('{"format": "something"}')
    with pytest.raises(
        FileFormatError, match=r"other\.json is not a certificate .* 'orthobandit certificate 5'"
    ):
        Certificate.read(tmp_path / "other.json")
    (tmp_path / "old.json").write_text('{"format": "orthobandit certificate 3"}')
    with pytest.raises(FileFormatError, match=r"`git show b720d5db~1:src/orthobandit/verify\.py`"):
        Certificate.read(tmp_path / "old.json")
    with pytest.raises(FileFormatError, match=r"none\.json cannot be read"):
        Certificate.read(tmp_path / "none.json")
    with pytest.raises(OutputError, match="cannot be written"):
        fed("asymptotic", rounds=50).certificate().write(tmp_path)


def test_a_record_goes_on_from_what_was_kept():
    run = fed("bounded", rounds=200)
    run.record = Record.from_json(json.loads(json.dumps(run.record.to_json())))
    run.until(1500)
    assert run.certificate().to_json() == fed("bounded", rounds=1500).certificate().to_json()


# Live experiments


def told(experiment, rng, chances, count, **asked):
    """Ask so many times, and tell at once."""
    proposals = experiment.ask_many(count, **asked)
    rewards = rng.random(count) < np.array(chances)[[one.arm for one in proposals]]
    experiment.tell_many([one.id for one in proposals], rewards.astype(float))


def test_key_and_settings_are_committed_to_before_the_first_draw():
    heads = set()
    for key, delta, window in (
        ("5" * 32, 0.05, "7d"),
        ("6" * 32, 0.05, "7d"),
        ("5" * 32, 0.1, "7d"),
        ("5" * 32, 0.05, "8d"),
    ):
        policy = AnytimeElimination(rewards=(0, 1), delta=delta)
        experiment = Experiment.memory(ArmSet.one_hot(2), policy, key=key, window=window)
        heads.add(experiment.head())
        assert key not in json.dumps(experiment.certificate().document)
    assert len(heads) == 4


def test_heads_that_were_published_on_the_way_bind_the_certificate():
    rng, experiment = (
        np.random.default_rng(1),
        Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), key="5" * 32),
    )
    published = [experiment.head()]
    for _ in range(12):
        told(experiment, rng, [0.2, 0.7], 30)
        published.append(experiment.head())
    assert len(set(published)) >= 4
    document = experiment.certificate().document
    for head in published:
        assert verify(document, head).valid
    assert document["head"] == published[-1]
    other = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), key="6" * 32)
    told(other, rng, [0.2, 0.7], 400)
    assert not verify(other.certificate().document, published[3]).valid


def test_the_head_survives_a_restart_and_a_replay_of_the_log(tmp_path):
    rng = np.random.default_rng(2)
    with Experiment.create(tmp_path / "e.db", ArmSet.one_hot(3), rewards=(0, 1)) as experiment:
        told(experiment, rng, [0.2, 0.3, 0.7], 200)
        told(experiment, rng, [0.2, 0.3, 0.7], 20, available=[0, 2])
        experiment.retire(1)
        head = experiment.head()
        assert experiment.replay().is_equal
    with Experiment.open(tmp_path / "e.db") as experiment:
        assert experiment.head() == head
        told(experiment, rng, [0.2, 0.3, 0.7], 200)
        assert verify(experiment.certificate().document, head).valid


def test_a_policy_without_claims_has_no_head():
    with pytest.raises(ParameterError, match="UniformAllocation gives no certificates"):
        Experiment.memory(ArmSet.one_hot(2), UniformAllocation(), rewards="unknown").head()


@pytest.mark.parametrize("rewards", [(0.0, 1.0), "unknown"])
def test_rounds_restricted_to_some_arms_are_in_the_certificate(rewards):
    # They count before the other rounds of the plan in force, which complete the batch.
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
    restricted = {entry["distribution"] for entry in document["entries"] if entry["entry"] == "distribution"}
    rounds = [entry["distribution"] for entry in document["entries"] if entry["entry"] == "rounds"]
    assert restricted & set(rounds)


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
    widened = list(ledger_of(experiment).feed.plans.values())
    tell(in_flight)
    plans = [plan for plan in widened if np.ptp(plan.values) > 0.01]
    assert plans
    for plan in plans:
        slope = plan.values[1] - plan.values[0]
        np.testing.assert_allclose(plan.values - plan.values[0], slope * points[:, 0], atol=1e-9)
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


# With these keys rounding alone decided how long a batch was to last, once this way and once that.
@pytest.mark.parametrize("key", [4, 69, 440, 541])
def test_rewards_without_noise_are_certified(key):
    experiment = Experiment.memory(ArmSet.one_hot(7), rewards=(0, 1), key=f"{key:064x}")
    for count in (1, 70, 400):
        proposals = experiment.ask_many(count)
        experiment.tell_many([one.id for one in proposals], [float(one.arm == 2) for one in proposals])
    assert experiment.certificate().verdict.valid


# Guardrails


@pytest.mark.parametrize("rewards", [(0, 1), "unknown"])
def test_a_winner_that_a_guardrail_holds_back_is_not_certified_as_declared(rewards):
    experiment = shop(rewards)
    published = []
    seen = set()
    for report in visited(experiment, 5000):
        published.append(experiment.head())
        kind = "held" if report.held else "declared" if report.declared else "open"
        if kind in seen:
            continue
        seen.add(kind)
        document = experiment.certificate().document
        verdict = verify(document, published[0])
        assert verdict.problems == []
        assert document["claim"]["held"] == report.held
        assert document["claim"]["declared"] == report.declared
        assert ("held back" in verdict.claim) == (kind == "held")
    assert seen == {"open", "held", "declared"}
    document = experiment.certificate().document
    for head in [*published[::10], published[-1]]:
        assert verify(document, head).valid
    mixed = [entry for entry in document["entries"] if entry.get("drawn")]
    # The reference arm, which was dropped, is drawn beside the plans, and rounds of these plans count. The
    # asymptotic mode drops all arms at once here, when it may speak.
    assert mixed[-1]["declared"] == 2
    assert rewards == "unknown" or any(entry["declared"] is None for entry in mixed)
    assert all(entry["drawn"][0] >= 0.2 - 1e-9 for entry in mixed)
    assert [entry["arm"] for entry in document["entries"] if entry["entry"] == "clear"] == [2]
    plans = [entry["plan"] for entry in document["entries"] if entry["entry"] == "plan"]
    assert plans == list(range(1, len(plans) + 1))


def test_nobody_can_declare_what_is_held_back():
    document = held_back().certificate().document
    winner = document["claim"]["held"]
    claimed = deepcopy(document)
    claimed["claim"] |= {"held": None, "declared": winner}
    assert any("held is claimed to be None" in one for one in verify(reseal(claimed)).problems)
    # Rounds that were drawn with the reference arm mixed in cannot be passed off as those of the plan alone.
    unmixed = deepcopy(claimed)
    for entry in unmixed["entries"]:
        if entry["entry"] == "plan":
            entry["drawn"] = None
    assert any("off those recomputed" in one for one in verify(reseal(unmixed)).problems)
    # Nothing can be cleared that is not held back.
    cleared = deepcopy(document)
    cleared["entries"].append({"entry": "clear", "arm": 0})
    assert any("it cannot be cleared" in one for one in verify(reseal(cleared)).problems)


def test_a_winner_that_can_never_be_cleared_has_no_certificate():
    experiment = shop()
    list(visited(experiment, 400))
    experiment.retire(0)
    assert list(visited(experiment, 2000, seed=1))[-1].held == "2"
    with pytest.raises(ParameterError, match="the reference arm that they compare it with was retired"):
        experiment.certificate()


def test_guardrails_that_retire_the_winner_leave_a_valid_certificate():
    experiment = shop()
    report = list(visited(experiment, 4000, crashes=(0.02, 0.02, 0.2)))[-1]
    assert report.arms[2].is_retired
    document = experiment.certificate().document
    assert document["claim"]["retired"] == ["2"]
    assert verify(document).valid
    assert experiment.replay().is_equal


# Tests that begin again


@pytest.mark.parametrize("rewards", [(0.0, 1.0), "unknown"])
@pytest.mark.parametrize("change", ["retire", "extend"])
def test_rounds_in_flight_when_tests_begin_again_do_not_count_for_them(rewards, change):
    rng = np.random.default_rng(6)
    experiment = Experiment.memory(ArmSet.one_hot(3), rewards=rewards, key="8" * 32)

    def tell(proposals):
        chances = np.array([0.3, 0.35, 0.4, 0.4])[[one.arm for one in proposals]]
        experiment.tell_many(
            [one.id for one in proposals], (rng.random(len(proposals)) < chances).astype(float)
        )

    while int(ledger_of(experiment).feed.state.stage) < 2:
        tell(experiment.ask_many(20))
    for _ in range(10):
        tell(experiment.ask_many(20))
    in_flight = experiment.ask_many(200)
    if change == "retire":
        experiment.retire(int(ledger_of(experiment).feed.state.leader))
    else:
        experiment.extend(ArmSet.one_hot(4))
    tell(in_flight)
    tell(experiment.ask_many(100))
    document = experiment.certificate().document
    replay = Run(document["settings"], Verdict())
    with np.errstate(all="ignore"):
        for number, entry in enumerate(document["entries"], start=1):
            replay.follow(number, entry)
    state = ledger_of(experiment).feed.state
    # The verifier derives from the entries alone what the policy keeps in its state.
    assert replay.first_plan.tolist() == state.first_plan.tolist()
    assert replay.first_plan.max() > 1
    assert np.allclose(replay.evidence[1], state.weights, rtol=1e-9)
