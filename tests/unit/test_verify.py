"""The verifier stands alone, agrees with the library, and finds whatever was changed."""

import ast
import json
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from tests.unit.experiment.fed import MODES, PLANE, fed

import orthobandit.verify as alone
from orthobandit.estimate import Evidence, PairGeometry, Tuning
from orthobandit.estimate.boundaries import WIDE

SOURCE = Path(alone.__file__)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.fixture(scope="module")
def documents():
    return {mode: fed(mode).certificate().to_json() for mode in MODES}


def test_one_sitting_suffices_and_numpy_is_all_it_needs():
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    found = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert found - set(sys.stdlib_module_names) == {"numpy"}


def test_it_runs_alone(documents, tmp_path):
    (tmp_path / "verify.py").write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(documents["asymptotic"]))
    bad.write_text(json.dumps(documents["asymptotic"] | {"delta": 0.01}))
    for path, code, word in ((good, 0, "valid: '2' is the best"), (bad, 1, "NOT valid:")):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", str(tmp_path / "verify.py"), str(path)],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert done.stdout.startswith(word)


@pytest.mark.parametrize("mode", MODES)
def test_boundaries_agree_with_the_library(mode):
    confidence, rng = MODES[mode][0], np.random.default_rng(6)
    e = np.abs(rng.standard_normal((6, 500))) * 10.0 ** rng.uniform(-2, 5, 500)
    e[5] *= 1e-2
    tuning = np.stack(
        [10.0 ** rng.uniform(-9, -1, 500), 10.0 ** rng.uniform(-3, 5, 500), rng.uniform(0.1, 9, 500)]
    )
    if confidence.is_exact:
        e[4], e[5] = 0.3 * tuning[2] * e[2], 0.8 * tuning[2]  # no round is larger than the scale
    events, waited = 10.0 ** rng.uniform(1, 2, 500), 10.0 ** rng.uniform(0, 2, 500)
    width = confidence.width(Evidence(*e, events, waited), Tuning(*tuning, grid=WIDE))
    with np.errstate(all="ignore"):
        found = (alone.boundary(e, (events, waited), tuning, confidence.is_exact) + e[3]) / e[1]
    assert np.allclose(found, width, rtol=1e-7)
    if not confidence.is_exact:
        assert 50 < np.count_nonzero(np.isinf(width)) < 450
        assert np.all(alone.boundary(e, (9.9, waited), tuning, False) == np.inf)


@pytest.mark.parametrize("p", [[0.2] * 5, [0.5, 0.5, 0, 0, 0], [0.98, 0.005, 0.005, 0.005, 0.005]])
def test_geometry_agrees_with_the_library(p):
    replay = alone.Replay(
        {"features": PLANE.features, "confidence": {"limit": None, "bias": 0.0}, "tuning": {"scale": 1.0}}
    )
    ours, known = PairGeometry.of(PLANE.positions, np.array(p)), ~np.eye(5, dtype=bool)
    g, v, sizes = alone.geometry(replay.x, np.array(p))
    assert np.allclose(sizes, np.diagonal(ours.inner), rtol=1e-9, atol=1e-9)
    assert np.allclose(v[known], ours.variance[known], rtol=1e-9)
    there = np.isfinite(v)
    assert np.allclose(g[there], (ours.inner[:, np.newaxis] - ours.inner)[there], atol=1e-9)


def verdict_on(text, path):
    path.write_text(text, encoding="utf-8")
    try:
        return alone.verify_file(path)
    except ValueError:
        return None  # no longer JSON, or of another format


def test_no_digit_of_any_number_can_change(tmp_path):
    document = fed("asymptotic", means=(0.2, 0.6), rounds=100, seed=3).certificate().to_json()
    text, rng, tried = json.dumps(document), np.random.default_rng(7), 0
    assert verdict_on(text, tmp_path / "c.json").valid
    body = text[: text.rindex('"digest"')]
    for number in NUMBER.finditer(body):
        digits = [at for at in range(*number.span()) if text[at].isdigit()]
        for at in {digits[-1], int(rng.choice(digits))}:
            changed = text[:at] + str((int(text[at]) + int(rng.integers(1, 10))) % 10) + text[at + 1 :]
            found = verdict_on(changed, tmp_path / "c.json")
            assert found is None or found.problems, f"{number.group()} at {at} changed unnoticed"
            tried += 1
    assert tried > 200


@pytest.mark.parametrize("mode", MODES)
def test_digits_of_large_certificates_cannot_change_either(documents, mode, tmp_path):
    text, rng = json.dumps(documents[mode]), np.random.default_rng(8)
    places = [at for at, letter in enumerate(text) if letter.isdigit()]
    for at in rng.choice(places, 10, replace=False):
        changed = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        found = verdict_on(changed, tmp_path / "c.json")
        assert found is None or found.problems


def counted(document, n=-1):
    return [feed for feed in document["feeds"] if feed["use"] == "evidence"][n]


def drop_feed(document):
    del document["feeds"][-2]


def repeat_feed(document):
    document["feeds"].append(deepcopy(document["feeds"][-1]))


def one_round_more(document):
    feed = counted(document)
    feed["counts"][int(np.argmax(feed["counts"]))] += 1


def scale(name, factor):
    def change(document):
        feed = counted(document)
        feed[name] = [value * factor for value in feed[name]]

    return change


def probabilities(document):
    p = document["distributions"][counted(document)["distribution"]]
    p[0], p[1] = p[0] * 1.01, p[1] - p[0] * 0.01


def probabilities_alone(document):
    document["distributions"][-1][0] += 1e-6


def tune(name, factor):
    def change(document):
        document["tuning"][name] = [[value * factor for value in row] for row in document["tuning"][name]]

    return change


def claim(**changes):
    return lambda document: document["claim"].update(changes)


def earlier(document):
    document["claim"]["dropped"][0]["feed"] -= 4


def another_rival(document):
    drop = document["claim"]["dropped"][0]
    drop["rival"], drop["feed"] = 3 - drop["arm"], 6


def survivor_too_few(document):
    # An arm that is not yet proven worse.
    gone = document["claim"]["dropped"].pop()
    document["claim"]["dropped"].append(gone | {"feed": gone["feed"] - 3})


def since_later(document):
    document["since"] = (np.array(document["since"]) + len(document["feeds"]) - 3).tolist()


def count_the_pilot(document):
    feed = next(feed for feed in document["feeds"] if feed["use"] == "pilot")
    feed["use"] = "evidence"


def own_rival(document):
    counted(document)["rivals"][1] = 1


def values(document):
    counted(document)["values"][2] += 0.05


def delta(document):
    document["delta"] = 0.01


LIES = {
    "a feed less": drop_feed,
    "a feed twice": repeat_feed,
    "counts": one_round_more,
    "sums": scale("sums", 1.01),
    "squares": scale("squares", 1.3),
    "largest": scale("largest", 0.1),
    "probabilities": probabilities,
    "a probability": probabilities_alone,
    "α": tune("alpha", 1.1),
    "ρ": tune("rho", 3.0),
    "δ": delta,
    "a drop too early": earlier,
    "a drop by another": another_rival,
    "a drop without proof": survivor_too_few,
    "no survivors": claim(survivors=[]),
    "all survive": claim(survivors=[0, 1, 2, 3]),
    "another leader": claim(leader=1),
    "a leader from behind": claim(leader=-2),
    "ε": claim(epsilon=0.001),
    "a declaration of another": claim(declared=0),
    "bounds": claim(bounds=[0.0, 0.0, 0.0, 0.0]),
    "since": since_later,
    "the pilot": count_the_pilot,
    "its own rival": own_rival,
    "values": values,
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("mode", MODES)
def test_lies_with_a_fitting_digest_are_found_out(documents, mode, lie):
    document = deepcopy(documents[mode])
    LIES[lie](document)
    document["digest"] = alone.digest(document)
    found = alone.verify(document)
    assert not found.valid
    assert not any("digest" in problem for problem in found.problems)


@pytest.mark.parametrize(
    ("mode", "name"),
    [(mode, name) for mode in ("bounded", "sub-Gaussian") for name in ("limit", "bias", "high", "sigma")]
    + [("sub-Gaussian", "tail")],
)
def test_numbers_of_an_exact_mode_fit_each_other(documents, mode, name):
    document = deepcopy(documents[mode])
    document["confidence"][name] = document["confidence"][name] * 0.9 + 0.01
    document["digest"] = alone.digest(document)
    assert not alone.verify(document).valid


def test_the_asymptotic_mode_cannot_pass_for_an_exact_one(documents):
    document = deepcopy(documents["asymptotic"])
    document["confidence"] |= {"name": "bounded rewards", "low": 0.0, "high": 1.0}
    document["digest"] = alone.digest(document)
    assert not alone.verify(document).valid


def test_scales_of_exact_modes_bind(documents):
    document = deepcopy(documents["bounded"])
    tune("scale", 0.5)(document)
    document["digest"] = alone.digest(document)
    assert not alone.verify(document).valid


def test_sizes_beyond_the_limit_buy_nothing(documents):
    # √squares, all that a tally may know of its largest residual: bets above 1/c would pay for themselves.
    document = deepcopy(documents["bounded"])
    for feed in document["feeds"]:
        feed["largest"] = np.sqrt(feed["squares"]).tolist()
    assert max(max(feed["largest"]) for feed in document["feeds"]) > document["confidence"]["limit"]
    verdict = alone.Verdict()
    with np.errstate(all="ignore"):
        entries, _ = alone.replay(document, verdict)[-1]
    assert verdict.valid
    assert np.all(entries[5] <= np.array(document["tuning"]["scale"]) * (1 + 1e-12))


def test_a_problem_names_the_claimed_and_the_recomputed_number():
    document = fed("asymptotic", means=(0.4, 0.4), rounds=400).certificate().to_json()
    other = 1 - document["claim"]["leader"]
    right = document["claim"]["bounds"][other]
    document["claim"]["bounds"][other] = document["claim"]["epsilon"] = 0.01
    problems = " ".join(alone.verify(document).problems)
    assert (
        f"what arm {other} may lead by is claimed to be 0.01; recomputed it is {right:.6g}"[:-2] in problems
    )
    assert "ε is claimed to be 0.01" in problems
    assert "digest" in problems


@pytest.mark.parametrize("name", ["claim", "feeds", "tuning", "features", "since", "distributions", "labels"])
def test_what_is_missing_is_a_problem_not_a_crash(documents, name):
    document = {key: value for key, value in documents["asymptotic"].items() if key != name}
    found = alone.verify(document)
    assert any("cannot be recomputed" in problem for problem in found.problems)
