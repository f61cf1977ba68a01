"""The verifier stands alone, agrees with the library, and finds whatever was changed."""

import ast
import json
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.experiment.recorded import MODES, PLANE, entries_of, fed

import orthobandit.verify as alone
from certified_logs import certified
from inside.estimate import EXPECTED, NEAR, WIDE, Pulls, describe_mode
from mutants import reseal
from orthobandit.estimate import Evidence, PairGeometry, Tuning, augmented
from orthobandit.estimate.confidence import evidence, modes, sequence, tightness
from orthobandit.policy.anytime import all_pairs, delta, stages

SOURCE = Path(alone.__file__)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
LOGS = {"exact log": "exact with plans that change", "asymptotic log": "plans that change"}


@pytest.fixture(scope="module")
def documents():
    return {mode: fed(mode).certificate().to_json() for mode in MODES} | {
        name: certified(log) for name, log in LOGS.items()
    }


def problems_of(document):
    """Return what is wrong with a document whose hashes fit."""
    found = alone.verify(reseal(document))
    assert not any("the digest does not" in one or "the head is" in one for one in found.problems)
    return found.problems


def tallies_of(document):
    """Return the tallies of a certificate of either kind, in order."""
    buckets = entries_of(document, "bucket")
    return entries_of(document, "rounds") or [plan for bucket in buckets for plan in bucket["plans"]]


# It stands alone


def test_a_path_where_a_certificate_belongs_is_named():
    with pytest.raises(
        TypeError, match=r"document='decision.json' must be a certificate .* verify_file\(path\)"
    ):
        alone.verify("decision.json")


def test_numpy_is_all_it_needs():
    text = SOURCE.read_text(encoding="utf-8")
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.partition(".")[0])
    assert found - set(sys.stdlib_module_names) == {"numpy"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("asymptotic", "valid: '2' is the best"), ("exact log", "valid: gaps of 'reward' over '1'")],
)
def test_the_file_runs_without_the_package(documents, tmp_path, name, words):
    (tmp_path / "verify.py").write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(documents[name]))
    bad.write_text(json.dumps(documents[name] | {"digest": ""}))
    for arguments, code, said in (
        ([good], 0, words),
        ([good, "--head", documents[name]["head"]], 0, words),
        ([good, "--head", "3:00"], 1, "NOT valid:"),
        ([bad], 1, "NOT valid:"),
    ):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", str(tmp_path / "verify.py"), *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert done.stdout.startswith(said)


# It agrees with the library


@pytest.mark.parametrize("grids", [(alone.WIDE, WIDE), (alone.NEAR, NEAR), (alone.EXPECTED, EXPECTED)])
@pytest.mark.parametrize("mode", MODES)
def test_boundaries_agree_with_the_library(mode, grids):
    confidence, rng = MODES[mode][0], np.random.default_rng(6)
    e = np.abs(rng.standard_normal((6, 300))) * 10.0 ** rng.uniform(-2, 5, 300)
    e[5] *= 1e-2
    tuning = np.stack(
        [10.0 ** rng.uniform(-9, -1, 300), 10.0 ** rng.uniform(-3, 5, 300), rng.uniform(0.1, 9, 300)]
    )
    if confidence.is_exact:
        e[4], e[5] = 0.3 * tuning[2] * e[2], 0.8 * tuning[2]  # no round is larger than the scale
    ours, grid = Tuning(*tuning, grid=grids[1]), grids[0]
    width = confidence.width(Evidence(*e, np.full(300, 99.0)), ours)
    speaks = np.ones(300, dtype=bool)
    with np.errstate(all="ignore"):
        if not confidence.is_exact:
            speaks = alone.may_speak(e, 99.0, np.inf, tuning[0])
        bound = alone.boundary(e, speaks, tuning, confidence.is_exact, grid)
        totals = np.where(np.arange(300) % 2, 1.001, 0.999) * (bound + e[3])
        reached = alone.is_reached(totals, e, speaks, tuning, confidence.is_exact, grid)
        silent = alone.is_reached(totals, e, np.zeros(300, dtype=bool), tuning, confidence.is_exact, grid)
    assert np.count_nonzero(speaks) > 100
    assert np.array_equal(np.isfinite(bound), speaks)
    assert np.allclose((bound + e[3]) / e[1], width, rtol=1e-7)
    assert reached.tolist() == (speaks & (np.arange(300) % 2 == 1)).tolist()
    assert not silent.any()


def test_the_asymptotic_mode_may_speak_where_the_library_says():
    rng = np.random.default_rng(8)
    e = np.abs(rng.standard_normal((6, 500))) * 10.0 ** rng.uniform(-2, 2, 500)
    e[5] = np.sqrt(e[2] / rng.uniform(1, 200, 500))
    events = rng.uniform(1, 200, 500)
    waited = rng.uniform(0, 40, 500)
    alpha = 10.0 ** rng.uniform(-9, -1, 500)
    ours = modes.may_speak(Evidence(*e, events, waited), alpha)
    assert alone.may_speak(e, events, waited, alpha).tolist() == ours.tolist()
    assert 50 < np.count_nonzero(ours) < 450
    # Each of the three conditions silences by itself.
    enough = (1e9 * np.ones((6, 1)), 1e9, 1e9, np.array([0.01]))
    enough[0][5] = 1.0
    assert alone.may_speak(*enough).all()
    assert not alone.may_speak(enough[0], 3 * np.log(100) - 0.1, *enough[2:]).any()
    assert not alone.may_speak(*enough[:2], np.log(100) - 0.1, enough[3]).any()
    enough[0][5] = 1e4
    assert not alone.may_speak(*enough).any()


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5])
def test_pairs_wait_as_long_as_in_the_library(seed):
    # One arm is quiet, and gaps are of all sizes.
    rng = np.random.default_rng(seed)
    played = fed("asymptotic", rounds=400, late=3, seed=seed)
    assert int(played.state.stage) == 2
    state = replace(
        played.state,
        relative=played.state.drawn * rng.permutation([0.1, 0.9, 1.1, 2.0]),
        # Squared gaps of 1 to 100 times a round's variance.
        totals=np.sqrt(played.state.variances * played.state.weights * 10.0 ** rng.uniform(0, 2, (4, 4))),
    )
    replay = alone.Run(played.record.chain.settings, alone.Verdict())
    replay.evidence = np.stack([getattr(state, name) for name in all_pairs.EVIDENCE])
    replay.met = state.met
    replay.sizes.drawn = state.drawn
    replay.sizes.relative = state.relative
    ours = state.evidence().waited
    assert np.allclose(replay.waited(), ours, rtol=1e-12)
    assert len({round(one, 6) for one in (state.weights / ours).ravel()}) > 2


@pytest.mark.parametrize("p", [[0.2] * 5, [0.5, 0.5, 0, 0, 0], [0.98, 0.005, 0.005, 0.005, 0.005]])
def test_geometry_agrees_with_the_library(p):
    ours, known = PairGeometry.of(PLANE.positions, np.array(p)), ~np.eye(5, dtype=bool)
    found = alone.PairGeometry(alone.hull(PLANE.features), np.array(p))
    assert np.allclose(found.size, np.diagonal(ours.inner), rtol=1e-9, atol=1e-9)
    assert np.allclose(found.v[known], ours.variance[known], rtol=1e-9)
    assert np.allclose(found.reach[known], ours.reach(np.array(p))[known], rtol=1e-9, atol=1e-9)
    there = np.isfinite(found.v)
    assert np.allclose(found.g[there], (ours.inner[:, np.newaxis] - ours.inner)[there], atol=1e-9)


def test_arms_with_the_same_features_are_nowhere_apart():
    # A plan that is restricted to them tells nothing, and not the rounding of their coordinates.
    features = np.random.default_rng(7).normal(size=(3, 2))
    found = alone.PairGeometry(alone.hull(np.vstack([features, features])), np.array([0.5, 0, 0, 0.5, 0, 0]))
    assert np.all(np.isinf(found.v))


@pytest.mark.parametrize("p", [[0.2] * 5, [0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5]])
@pytest.mark.parametrize("reference", [0, 3])
def test_geometry_of_gaps_agrees_with_the_library(p, reference):
    given = {"labels": list(PLANE.labels), "features": PLANE.features.tolist(), "delta": 0.05, "metric": "m"}
    given |= {
        "reference": PLANE.labels[reference],
        "confidence": {"name": "asymptotic"},
        "buckets": {"width": 1, "origin": 0, "doubles_after": None, "fewest_rows": 4},
    }
    log = alone.Log(given, alone.Verdict())
    g, v = log.geometry(np.array([p]))
    ours = Pulls.of(PLANE.positions, np.eye(5)[log.first] - np.eye(5)[log.second], np.array([p], dtype=float))
    assert np.array_equal(np.isfinite(v), ours.known)
    assert np.allclose(np.where(ours.known, v, 1.0), ours.variance, rtol=1e-9)
    assert np.allclose(g, np.where(ours.known[..., np.newaxis], ours.pull, 0.0), atol=1e-9)


def test_constants_are_those_of_the_policy():
    compared = set()
    for module in (delta, stages, modes, evidence, augmented, tightness):
        for name, value in vars(alone).items():
            if name.isupper() and isinstance(value, int | float | dict) and hasattr(module, name):
                assert getattr(module, name) == value, name
                compared.add(name)
    assert compared >= {
        "SHOWN",
        "RESERVE",
        "BOUNDS_TO_READ",
        "BOUNDS_THAT_STOP",
        "EVENTS",
        "EVENTS_PER_LEVEL",
    }
    assert compared >= {"WAIT", "QUIET_WAIT", "PER_SQUARED_GAP", "QUIET", "DRAWN", "HIDDEN", "PER_LEVEL"}
    assert compared >= {"EARLY", "LEAST_BATCHES", "MOST_BATCHES", "GUESSED_ROUNDS"}
    assert alone.MOST_PAIRED == sequence.MOST_PAIRED == 40


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_delta_is_split_as_the_policy_does(epsilon):
    rng = np.random.default_rng(5)
    values, v = rng.normal(size=6), rng.uniform(1, 9, (6, 6))
    v[2, 3] = np.inf
    policy = fed("bounded", rounds=1, epsilon=epsilon).policy
    gaps = delta.cautious_gaps(values, v, 0.3, 50)
    expected = delta.cautious_gaps(values, v, 0.3, 50, 0.2)
    with np.errstate(all="ignore"):
        assert np.allclose(alone.cautious_gaps(values, v, 0.3, 50, 0.2), expected)
        assert np.allclose(alone.cautious_gaps(values, v, 0.3, 50), gaps)
        found = alone.split_delta(0.03, gaps, v, 0.3)
    off = ~np.eye(6, dtype=bool)
    assert np.allclose(found[off], delta.split_delta(0.03, gaps, v, 0.3)[off], rtol=1e-9)
    assert alone.shares_of_delta(policy.delta, epsilon) == pytest.approx(delta.shares(policy))


@pytest.mark.parametrize("mode", MODES)
def test_a_run_with_an_expected_gap_is_recomputed_and_another_gap_is_found_out(mode):
    document = fed(mode, expect=0.25).certificate().to_json()
    assert document["settings"]["expect"] == 0.25
    assert problems_of(document) == []
    document["settings"]["expect"] = 0.01
    assert problems_of(document)
    document["settings"]["expect"] = -1.0
    assert any("a gap of -1.0 is expected" in problem for problem in problems_of(document))


@pytest.mark.parametrize("mode", MODES)
def test_limits_of_modes_agree_with_the_library(mode):
    confidence = MODES[mode][0]
    found = alone.Mode({"confidence": describe_mode(confidence)}, alone.Verdict())
    assert (found.limit, found.bias) == pytest.approx((confidence.limit, confidence.bias), rel=1e-12)


# The three forgeries that earlier verifiers took for valid


@pytest.mark.parametrize("mode", MODES)
def test_rivals_chosen_afterwards_are_found_out(documents, mode):
    document = deepcopy(documents[mode])
    for plan in entries_of(document, "plan"):
        if plan["stage"] == "evidence" and plan["declared"] is None:
            plan["leader"], plan["second"] = plan["second"], plan["leader"]
    assert any("the leader is claimed to be arm" in problem for problem in problems_of(document))
    document = deepcopy(documents[mode])
    plan = next(one for one in entries_of(document, "plan") if one["stage"] == "evidence")
    plan["second"] = ({0, 1, 2, 3} - {plan["leader"], plan["second"]}).pop()
    assert any("the runner-up is claimed to be arm" in problem for problem in problems_of(document))


@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_batches_that_were_left_out_are_found_out(documents, mode, renumbered):
    document = deepcopy(documents[mode])
    entries = document["entries"]
    batches = [
        place for place, one in enumerate(entries) if one["entry"] == "plan" and one["stage"] == "evidence"
    ]
    gone = {place + k for place in batches[1:-1:2] for k in (0, 1)}  # a plan and its rounds
    assert len(gone) >= 4
    document["entries"] = [one for place, one in enumerate(entries) if place not in gone]
    if renumbered:
        for number, plan in enumerate(entries_of(document, "plan"), start=1):
            plan["plan"] = plan["distribution"] = number
        for number, one in enumerate(entries_of(document, "rounds"), start=1):
            one["distribution"] = number
    found = problems_of(document)
    assert any("values" in problem for problem in found) if renumbered else found


@pytest.mark.parametrize("name", [*MODES, *LOGS])
def test_values_that_were_moved_are_found_out(documents, name):
    document = deepcopy(documents[name])
    for entry in document["entries"]:
        if entry.get("stage") == "evidence":
            entry["values"][1] += 0.2
    assert any("off those recomputed" in problem for problem in problems_of(document))


# Other lies, whose hashes fit


def halve(name):
    def change(document):
        tally = tallies_of(document)[-2]
        tally[name] = [value / 2 for value in tally[name]]

    return change


def leave_out_a_tally(document):
    kind = "rounds" if document["settings"]["kind"] == "decision" else "bucket"
    del document["entries"][document["entries"].index(entries_of(document, kind)[-2])]


def repeat_an_entry(document):
    document["entries"].append(deepcopy(document["entries"][-1]))


def play_another_way(document):
    mixed = [one["probabilities"] for one in document["entries"] if max(one.get("probabilities") or [1]) < 1]
    p = mixed[-1]
    p[0], p[1] = p[0] * 0.9, p[1] + p[0] * 0.1


def sum_to_more_than_one(document):
    entry = next(one for one in document["entries"] if one.get("probabilities"))
    entry["probabilities"][0] += 1e-6


def count_the_pilot(document):
    next(one for one in document["entries"] if one.get("stage") == "pilot")["stage"] = "evidence"


def set_delta(document):
    document["settings"]["delta"] = 0.01


def rename(document):
    document["settings"]["labels"][1] = "renamed"


def exchange_labels(document):
    labels = document["settings"]["labels"]
    labels[0], labels[1] = labels[1], labels[0]


def exceed_the_largest(document):
    tally = tallies_of(document)[-1]
    tally["largest"] = [10 * value for value in tally["largest"]]


def count_one_round_more(document):
    counts = tallies_of(document)[-2]["counts"]
    counts[int(np.argmax(counts))] += 1


def draw_half_a_round(document):
    tallies_of(document)[-1]["counts"][0] += 0.5


LIES = {
    "a tally less": leave_out_a_tally,
    "an entry twice": repeat_an_entry,
    "counts": count_one_round_more,
    "sums": halve("sums"),
    "squares": halve("squares"),
    "largest residuals": exceed_the_largest,
    "half a round": draw_half_a_round,
    "probabilities": play_another_way,
    "a probability": sum_to_more_than_one,
    "the pilot": count_the_pilot,
    "δ": set_delta,
    "a label": rename,
    "labels exchanged": exchange_labels,
    "the sentence": lambda document: document["claim"].update(sentence="all is well"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", [*MODES, *LOGS])
def test_lies_are_found_out(documents, name, lie):
    document = deepcopy(documents[name])
    LIES[lie](document)
    assert problems_of(document)


@pytest.mark.parametrize(
    "change",
    [
        {"survivors": []},
        {"survivors": ["0", "2"]},
        {"dropped": ["0"]},
        {"leader": "1"},
        {"declared": "0"},
        {"declared": None},
        {"epsilon": 0.001},
        {"retired": ["3"]},
        {"bounds": {"0": 0.0, "1": 0.0, "2": 0.0, "3": 0.0}},
        {"bounds": {}},
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_claims_of_decisions_are_recomputed(documents, mode, change):
    document = deepcopy(documents[mode])
    document["claim"] |= change
    assert problems_of(document)


@pytest.mark.parametrize("name", [*MODES, *LOGS])
def test_claims_that_nobody_checks_are_refused(documents, name):
    document = deepcopy(documents[name])
    document["claim"]["guaranteed"] = "yes"
    assert any("missing or odd are ['guaranteed']" in problem for problem in problems_of(document))
    document = deepcopy(documents[name]) | {"seal": "approved"}
    assert any("missing or odd are ['seal']" in problem for problem in problems_of(document))


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": 0.3},
        {"estimate": None},
        {"low": None},
        {"low": 0.001},
        {"high": 0.9},
        {"verdict": "worse?"},
        {"arm": "9"},
    ],
)
@pytest.mark.parametrize("name", LOGS)
def test_claims_of_logs_are_recomputed(documents, name, change):
    document = deepcopy(documents[name])
    document["claim"]["gaps"][0] |= change
    assert problems_of(document)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "asymptotic"},
        {"high": 1.5},
        {"low": -0.75},
        {"name": "sub-Gaussian noise", "sigma": 1.0, "tail": 1e-5},
        {"name": "any"},
    ],
)
@pytest.mark.parametrize("name", ["bounded", "exact log"])
def test_the_declared_range_binds(documents, name, change):
    document = deepcopy(documents[name])
    document["settings"]["confidence"] |= change
    assert problems_of(document)


def test_residuals_that_spread_beyond_the_declared_range_are_found_out(documents):
    # Rewards from 0 to 1 with forecasts between them: values that differ leave no room for both −1 and 1.
    document = deepcopy(documents["bounded"])
    tally = tallies_of(document)[-1]
    tally["largest"] = [0.999 if count else 0.0 for count in tally["counts"]]
    tally["squares"] = [0.99 * count for count in tally["counts"]]
    tally["sums"] = [0.0 for _ in tally["counts"]]
    assert any("spread beyond the declared range" in problem for problem in problems_of(document))


# Heads


@pytest.mark.parametrize("name", ["bounded", "exact log"])
def test_a_certificate_goes_on_from_every_head_of_its_log(documents, name):
    document = documents[name]
    every = list(alone.heads(document["settings"], document["entries"]))
    assert len(set(every)) == len(document["entries"]) + 1
    for head in (every[0], every[len(every) // 2], every[-1]):
        assert alone.verify(document, head).valid


def test_another_log_does_not_go_on_from_a_head(documents):
    document = documents["bounded"]
    published = list(alone.heads(document["settings"], document["entries"]))[10]
    other = fed("bounded", seed=2).certificate().to_json()
    found = alone.verify(other, published)
    assert any("the log was changed since, or is another one" in problem for problem in found.problems)
    assert alone.verify(other).valid
    later = published.replace("10:", "999:")
    assert any(
        "it was cut, or is older than the head" in one for one in alone.verify(document, later).problems
    )
    assert not alone.verify(document, "no head").valid


def test_changed_settings_and_keys_do_not_go_on_from_the_first_head(documents):
    document = deepcopy(documents["bounded"])
    first = next(alone.heads(document["settings"], document["entries"]))
    document["settings"]["key"] = "another"
    assert alone.verify(reseal(document)).valid  # the key decides no arithmetic
    assert not alone.verify(document, first).valid


# Files


def verdict_on(text, path):
    path.write_text(text, encoding="utf-8")
    try:
        return alone.verify_file(path)
    except ValueError:
        return None  # no longer JSON, or of another format


@pytest.mark.parametrize("name", [*MODES, *LOGS])
def test_no_digit_can_change(documents, name, tmp_path):
    text, rng = json.dumps(documents[name]), np.random.default_rng(8)
    assert verdict_on(text, tmp_path / "c.json").valid
    numbers = list(NUMBER.finditer(text))
    for at in rng.choice(len(numbers), 5, replace=False):
        digits = [place for place in range(*numbers[at].span()) if text[place].isdigit()]
        for place in {digits[-1], int(rng.choice(digits))}:
            changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
            found = verdict_on(changed, tmp_path / "c.json")
            assert found is None or found.problems, f"{numbers[at].group()} changed unnoticed"


def test_digits_that_are_rounded_away_cannot_change(documents, tmp_path):
    text = json.dumps(documents["bounded"])
    long = next(
        one.group() for one in NUMBER.finditer(text) if len(one.group()) > 16 and "e" not in one.group()
    )
    found = verdict_on(text.replace(long, f"{long}00001"), tmp_path / "c.json")
    assert any("is not how that number was written" in problem for problem in found.problems)


def test_a_part_that_is_there_twice_is_a_problem(documents, tmp_path):
    text = json.dumps(documents["bounded"])
    assert text.count('"declared": "') == 1
    # Some readers take the first of two parts with one name; the verifier checks the last.
    found = verdict_on(text.replace('"declared": "', '"declared": "0", "declared": "'), tmp_path / "c.json")
    assert found.problems == ["parts are there twice, of which only one was checked: ['declared']"]


def test_alarms_are_a_list(documents):
    document = deepcopy(documents[next(iter(LOGS))])
    document["claim"]["alarms"] = False
    assert alone.verify(reseal(document)).problems == ["alarms are a list, not False"]


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested more deeply"):
        alone.verify_file(tmp_path / "deep.json")


@pytest.mark.parametrize("text", ['{"format": "other"}', '{"format": ["a"]}', "[1, 2]", "no json", "{}", ""])
def test_other_files_are_refused(text, tmp_path):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match=r"it is not an 'orthobandit certificate 5'|line 1 column 1"):
        alone.verify_file(tmp_path / "other.json")


@pytest.mark.parametrize("name", ["orthobandit certificate 3", "orthobandit certificate of a log 3"])
def test_certificates_of_earlier_releases_are_told_who_reads_them(name, tmp_path):
    (tmp_path / "old.json").write_text(json.dumps({"format": name}))
    with pytest.raises(ValueError, match=rf"it is an '{name}'.*`git show b720d5db~1:src"):
        alone.verify_file(tmp_path / "old.json")


def test_a_problem_names_the_claimed_and_the_recomputed_number():
    document = fed("asymptotic", means=(0.4, 0.4), rounds=900).certificate().to_json()
    leader = document["claim"]["leader"]
    other = "1" if leader == "0" else "0"
    right = document["claim"]["bounds"][other]
    document["claim"]["bounds"][other] = document["claim"]["epsilon"] = 0.01
    problems = " ".join(alone.verify(document).problems)
    said = f"what '{other}' may lead '{leader}' by is claimed to be 0.01; recomputed it is {right:.6g}"
    assert said[:-2] in problems
    assert "ε is claimed to be 0.01" in problems
    assert "digest" in problems


@pytest.mark.parametrize("part", ["settings", "entries", "claim", "head"])
@pytest.mark.parametrize("name", ["asymptotic", "exact log"])
def test_what_is_missing_is_a_problem_not_a_crash(documents, name, part):
    document = {key: value for key, value in documents[name].items() if key != part}
    found = alone.verify(document)
    assert any("cannot be recomputed" in problem for problem in found.problems)
