"""Certificates of rules: what they earn is recomputed from visitors and rewards."""

import json
from copy import deepcopy

import numpy as np
import pytest
from tests.unit.experiment.recorded import entries_of

import orthobandit.verify as alone
from experiment_samples import ledger_of
from inside.estimate import HIDDEN
from inside.policy import COMPARISONS, parse_rule
from mutants import reseal
from orthobandit import ArmSet, Experiment, Personalised
from orthobandit.policy.contextual import Offer
from orthobandit.policy.contextual import rules as library
from personal_samples import ARMS, KEY, begun, play, rewards_of, visitors

MODES = {"bounded": (0, 1), "asymptotic": None}


@pytest.fixture(scope="module")
def documents():
    return {name: play(begun(rewards=rewards), 240).certificate().document for name, rewards in MODES.items()}


def live(seed):
    """Return a random experiment: late and missing rewards, arms that are not available or retired."""
    rng = np.random.default_rng(seed)
    now = [0.0]
    heads, waiting = [], []
    experiment = begun(
        rewards=MODES[str(rng.choice(list(MODES)))],
        window=30.0,
        silence=str(rng.choice(["zero", "missing"])),
        holdout=float(rng.choice([0.0, 0.2])),
        clock=lambda: now[0],
    )
    for turn in range(30):
        now[0] += 1.0
        contexts = visitors(rng, 6)
        some = [["A", "B"], ["B", "C"], None, None][int(rng.integers(4))]
        if turn % 7 == 3:
            plan = experiment.edge_plan()
            draws = [plan.draw(f"edge {turn} {k}", one) for k, one in enumerate(contexts)]
            experiment.expose(
                plan.plan, [one.unit for one in draws], [one.arm for one in draws], context=contexts
            )
        else:
            shown = experiment.ask_many(6, context=contexts, available=some)
            waiting += list(zip(shown, contexts, strict=True))
        rng.shuffle(waiting)
        told = [waiting.pop() for _ in range(int(len(waiting) * rng.uniform(0.2, 0.9)))]
        told = [
            one for one in told if rng.random() < 0.9 and one[0].id >= ledger_of(experiment).waiting.first
        ]
        if told:
            arms = [one.arm for one, _ in told]
            values = rewards_of(rng, arms, [context for _, context in told])
            experiment.tell_many([one.id for one, _ in told], values)
        if turn == 20 and rng.random() < 0.3:
            experiment.retire(str(rng.choice(["A", "C"])))
        heads.append(experiment.head())
    now[0] += float(rng.choice([0.0, 40.0]))
    return experiment, heads[len(heads) // 2]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_the_certificate_is_valid_and_says_what_the_report_says(seed):
    experiment, head = live(seed)
    report = experiment.report()
    certificate = experiment.certificate()
    assert alone.verify(certificate.document, head).problems == []
    assert certificate.document["head"] == experiment.head()
    claim = certificate.document["claim"]
    for gain, rule in zip(claim["gains"], report.personal.rules[1:], strict=True):
        assert (gain["rule"], gain["low"], gain["high"]) == (rule.name, rule.low, rule.high)
    assert claim["best"] == report.personal.best
    assert experiment.replay().is_equal


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_whatever_happens_to_many_their_certificates_are_valid(seed):
    experiment, head = live(seed)
    assert alone.verify(experiment.certificate().document, head).problems == []


def test_the_sentence_says_what_a_rule_earns_over_one_arm_for_all(documents):
    words = alone.verify(documents["bounded"]).claim
    assert words.startswith("earned over 'A for all' per visitor, of 240: 'B for all' ")
    assert "'B on telephones' -" in words
    assert "in at most 2.5 % of experiments (bounded rewards from 0 to 1)" in words


@pytest.mark.slow
def test_a_rule_that_is_proven_best_is_named():
    arms = ArmSet.one_hot(2, labels=["A", "B"])
    policy = Personalised(["mobile"], {"to each": "B if mobile >= 0.5 else A"}, rewards=(0, 1), explore=0.5)
    experiment = Experiment.memory(arms, policy, key=KEY)
    rng = np.random.default_rng(1)
    for _ in range(12):
        contexts = [{"mobile": float(rng.random() < 0.5)} for _ in range(50)]
        shown = experiment.ask_many(50, context=contexts)
        served = [float(one.arm == given["mobile"]) for one, given in zip(shown, contexts, strict=True)]
        experiment.tell_many([one.id for one in shown], served)
    claim = experiment.certificate().document["claim"]
    assert claim["best"] == "to each" == experiment.report().personal.best
    assert [gain["verdict"] for gain in claim["gains"]] == ["undecided", "better"]
    assert "'to each' is the best of 3 rules" in claim["sentence"]


def test_it_tells_of_the_holdout_of_offers_of_one_arm_and_of_retirements():
    experiment = play(begun(rewards=None, holdout=0.2), 300)
    rng = np.random.default_rng(5)
    contexts = visitors(rng, 30)
    shown = experiment.ask_many(30, context=contexts, available=["C"])
    experiment.tell_many([one.id for one in shown], rewards_of(rng, [one.arm for one in shown], contexts))
    experiment.retire("C")
    play(experiment, 60, seed=2)
    document = experiment.certificate().document
    claim = document["claim"]
    assert alone.verify(document).problems == []
    assert document["settings"]["holdout"] == 0.2
    held = sum(one["held"] for one in entries_of(document, "visitor"))
    assert (claim["held"], claim["alone"], claim["retired"]) == (held, 30, ["C"])
    assert claim["offered"]["A"] == 360 - held
    assert claim["offered"]["B"] == 360 - held
    assert claim["offered"]["C"] <= 330
    assert f"30 visitors had one arm, {held} were held out; retired: 'C'" in claim["sentence"]
    assert not {"C for all", "by the hour"} & {*claim["possible"]}


@pytest.mark.slow
def test_a_rule_that_names_a_retired_arm_is_not_certified_as_the_best():
    arms = ArmSet.one_hot(3, labels=["A", "B", "C"])
    experiment = Experiment.memory(arms, Personalised(["hour"], explore=0.6), rewards="unknown", key=KEY)
    rates = np.array([0.05, 0.95, 0.3])

    def play_on(count):
        shown = experiment.ask_many(count, context=[{"hour": float(k % 24)} for k in range(count)])
        chances = rates[[one.arm for one in shown]]
        draws = np.random.default_rng(count).random(count)
        experiment.tell_many([one.id for one in shown], (draws < chances).astype(float))

    play_on(700)
    assert "'B for all' is the best of 3 rules;" in experiment.certificate().document["claim"]["sentence"]
    experiment.retire("B")
    play_on(701)
    claim = experiment.certificate().document["claim"]
    assert claim["best"] == "C for all"
    assert "'C for all' is the best of 2 rules that name no retired arm" in claim["sentence"]
    experiment.retire("A")
    claim = experiment.certificate().document["claim"]
    assert (claim["possible"], claim["best"]) == (["C for all"], None)
    assert "is the best" not in claim["sentence"]


def test_nobody_is_held_out_where_there_is_no_holdout(documents):
    document = deepcopy(documents["bounded"])
    entry = next(one for one in entries_of(document, "visitor") if one["arm"] == 0)
    entry["held"] = True
    problems = alone.verify(reseal(document)).problems
    assert any("it is held out, and nobody is to be" in problem for problem in problems)


def test_it_holds_no_unit_and_no_column_that_rules_do_not_look_at():
    experiment = play(begun(rules={"B on telephones": "B if mobile >= 0.5 else A"}), 20)
    text = json.dumps(experiment.certificate().document)
    assert "user 1" not in text
    assert "hour" not in text


def test_a_file_goes_on_with_the_same_chain(tmp_path):
    path = tmp_path / "rules.db"
    policy = Personalised(["mobile", "hour"], rewards=(0, 1))
    with Experiment.create(path, ARMS, policy, key=KEY) as experiment:
        play(experiment, 40)
        head = experiment.head()
    with Experiment.open(path) as again:
        assert again.head() == head
        play(again, 20, seed=2)
        assert alone.verify(again.certificate().document, head).valid
        assert not alone.verify(again.certificate().document, head[:-1] + "x").valid


# Lies, whose hashes fit


def exchange_rewards(document):
    kinds = entries_of(document, "reward")
    kinds[3]["visitor"], kinds[4]["visitor"] = kinds[4]["visitor"], kinds[3]["visitor"]


def leave_out_a_visitor(document):
    document["entries"].remove(entries_of(document, "visitor")[5])


def renumber(document):
    entries_of(document, "visitor")[7]["visitor"] += 1


def raise_a_reward(document):
    next(one for one in entries_of(document, "reward") if one["reward"] == 0)["reward"] = 1.0


def exceed_the_range(document):
    entries_of(document, "reward")[-1]["reward"] = 1.5


def hide_a_reward(document):
    entries_of(document, "reward")[2]["reward"] = None


def hold_out_a_loser(document):
    entries_of(document, "visitor")[3]["held"] = True


def change_a_context(document):
    one = entries_of(document, "visitor")[4]["context"]
    one["mobile"] = 1.0 - one["mobile"]


def play_below_the_floor(document):
    one = next(one for one in entries_of(document, "visitor") if max(one["probabilities"]) > 0.6)
    p = one["probabilities"]
    least, most = int(np.argmin(p)), int(np.argmax(p))
    p[most] += p[least] - 1e-3
    p[least] = 1e-3


def move_a_probability(document):
    one = entries_of(document, "visitor")[-1]
    p = one["probabilities"]
    most = int(np.argmax(p))
    p[most] -= 0.01
    p[one["arm"] if one["arm"] != most else (most + 1) % 3] += 0.01


def change_a_value(document):
    entries_of(document, "visitor")[-1]["values"][1] += 0.2


def change_a_forecast(document):
    entries_of(document, "visitor")[-1]["forecast"] += 0.2


def draw_another_arm(document):
    rewarded = {one["visitor"] for one in entries_of(document, "reward") if one["reward"] == 1}
    one = next(one for one in entries_of(document, "visitor") if one["visitor"] in rewarded)
    one["arm"] = (one["arm"] + 1) % 3


def turn_a_rule(document):
    document["settings"]["written"][0][1] = "B if mobile < 0.5 else A"


def set_delta(document):
    document["settings"]["delta"] /= 2


def take_an_arm_back(document):
    document["entries"].append({"entry": "retire", "arm": 1})


LIES_OF_OFFERS = {"held": 1, "alone": 1, "retired": ["B"], "offered": {"A": 240, "B": 240, "C": 0}}


def explore_more(document):
    document["settings"]["explore"] /= 2


LIES = [
    exchange_rewards,
    leave_out_a_visitor,
    renumber,
    raise_a_reward,
    hide_a_reward,
    hold_out_a_loser,
    change_a_context,
    play_below_the_floor,
    move_a_probability,
    change_a_value,
    change_a_forecast,
    draw_another_arm,
    turn_a_rule,
    set_delta,
    take_an_arm_back,
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.parametrize("name", MODES)
def test_lies_are_found_out(documents, name, lie):
    document = deepcopy(documents[name])
    lie(document)
    assert alone.verify(reseal(document)).problems


@pytest.mark.parametrize("lie", [exceed_the_range, explore_more])
def test_lies_about_the_declared_range_are_found_out(documents, lie):
    document = deepcopy(documents["bounded"])
    lie(document)
    assert alone.verify(reseal(document)).problems


@pytest.mark.parametrize(
    "change",
    [
        *({name: value} for name, value in LIES_OF_OFFERS.items()),
        {"over": "B for all"},
        {"visitors": 241},
        {"missing": 1},
        {"possible": ["B on telephones"]},
        {"best": "B on telephones"},
        {"gains": []},
        {"guaranteed": "yes"},
        {"sentence": "all is well"},
    ],
)
@pytest.mark.parametrize("name", MODES)
def test_claims_are_recomputed(documents, name, change):
    document = deepcopy(documents[name])
    document["claim"] |= change
    assert alone.verify(reseal(document)).problems


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": 0.9},
        {"low": 0.1},
        {"high": 9.0},
        {"high": 0.01},
        {"different": 3},
        {"verdict": "better?"},
    ],
)
@pytest.mark.parametrize("name", MODES)
def test_gains_are_recomputed(documents, name, change):
    document = deepcopy(documents[name])
    document["claim"]["gains"][2] |= change
    assert alone.verify(reseal(document)).problems


# It agrees with the library


def test_constants_are_those_of_the_library():
    assert list(alone.COMPARISONS) == list(COMPARISONS)
    started = library.RuleComparison.start({"a": "A", "b": "B"}, reference="a")
    assert started.tightest == (1.0, alone.GUESSED_VISITORS)
    assert alone.HIDDEN == HIDDEN


@pytest.mark.parametrize(
    "text",
    [
        "B",
        "B if mobile >= 0.5 else A",
        "C if hour < 0 and mobile < 0.5 else B if mobile == 1 else A",
        "B if x if hour != 2 else C if mobile <= 1e-3 else B if x",
    ],
)
def test_rules_are_read_alike(text):
    labels = ["A", "B", "C", "B if x"]
    columns = ["mobile", "hour"]
    ours = parse_rule(text, labels, columns, "A")
    theirs = alone.WrittenRule(text, labels, columns)
    for mobile in (0.0, 1e-3, 0.5, 1.0):
        for hour in (-1.0, 0.0, 2.0):
            for shown in ([0, 1, 2, 3], [0, 2], [2, 3], [3]):
                context = {"mobile": mobile, "hour": hour}
                offer = Offer(np.eye(4)[shown], [labels[k] for k in shown], context)
                offered = np.isin(np.arange(4), shown)
                assert labels[theirs.arm(context, offered)] == ours(offer)


def test_a_mode_that_tells_signs_alone_has_no_gains(documents):
    forged = deepcopy(documents["asymptotic"])
    forged["settings"]["confidence"] = {"name": "asymptotic, same-shape noise", "clip": 0.5}
    problems = alone.verify(reseal(forged)).problems
    assert "the mode 'asymptotic, same-shape noise' has no intervals" in problems
