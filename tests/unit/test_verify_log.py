"""The verifier of logs stands on numpy and verify.py, and finds whatever was changed."""

import ast
import json
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from tests.unit.experiment.fed import fed

import orthobandit.verify as decision
import orthobandit.verify_log as alone
from certified_logs import LOGS, certified, found_in, rows_of, saved
from orthobandit import ArmSet
from orthobandit.estimate.augmented import Pulls

SOURCE = Path(alone.__file__)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
MODES = {"exact": "exact with plans that change", "asymptotic": "plans that change"}
PLANE = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])


def test_numpy_and_the_verifier_of_decisions_are_all_it_needs():
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 170
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    others = {name for name in found if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others == {"numpy", "verify", "orthobandit.verify"}


def test_the_two_files_run_without_the_package(tmp_path):
    for path in (SOURCE, Path(decision.__file__)):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    document = certified("plans that change")
    (tmp_path / "good.json").write_text(json.dumps(document))
    (tmp_path / "bad.json").write_text(json.dumps(document | {"delta": 0.01}))
    script = (
        "import runpy, sys; sys.modules['orthobandit'] = None; sys.path.insert(0, sys.argv[1]);"
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0] + '/verify_log.py', run_name='__main__')"
    )
    for name, code, words in (("good", 0, "valid: gaps of 'reward' over '0'"), ("bad", 1, "NOT valid:")):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", "-c", script, str(tmp_path), str(tmp_path / f"{name}.json")],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert done.stdout.startswith(words)


def test_certificates_of_decision_are_verified_too(tmp_path):
    certificate = fed("bounded", means=(0.2, 0.7), rounds=400).certificate()
    certificate.write(tmp_path / "decision.json")
    assert alone.verify_file(tmp_path / "decision.json").claim == certificate.verdict.claim
    text = (tmp_path / "decision.json").read_text(encoding="utf-8")
    (tmp_path / "decision.json").write_text(text.replace('"delta": 0.05', '"delta": 0.04'))
    assert not alone.verify_file(tmp_path / "decision.json").valid


@pytest.mark.parametrize("text", ['{"format": "other"}', '{"format": ["a"]}', "[1, 2]", "no json", "{}", ""])
def test_other_files_are_refused(text, tmp_path):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match=r"it is neither an 'orthobandit certificate 3'|line 1 column 1"):
        alone.verify_file(tmp_path / "other.json")


def test_a_file_that_was_cut_is_refused_wherever_it_was(tmp_path):
    text = json.dumps(certified("plans that change"))
    for end in np.random.default_rng(3).integers(1, len(text), 30):
        (tmp_path / "cut.json").write_text(text[:end])
        with pytest.raises(ValueError, match="char"):
            alone.verify_file(tmp_path / "cut.json")


@pytest.mark.parametrize(
    "p", [[0.2] * 5, [0.5, 0.5, 0, 0, 0], [0.98, 0.005, 0.005, 0.005, 0.005], [0, 0, 0, 0.5, 0.5]]
)
@pytest.mark.parametrize("reference", [0, 3])
def test_geometry_agrees_with_the_library(p, reference):
    mode = {"confidence": {"limit": None, "bias": 0.0}, "tuning": {"scale": [1.0] * 4, "alpha": [0.01] * 4}}
    gaps = alone.Gaps(mode | {"features": PLANE.features.tolist(), "reference": reference})
    g, v = gaps.geometry(np.array([p]))
    rows = np.eye(5)[gaps.others] - np.eye(5)[reference]
    ours = Pulls.of(PLANE.positions, rows, np.array([p], dtype=float))
    assert np.array_equal(np.isfinite(v), ours.known)
    assert np.allclose(np.where(ours.known, v, 1.0), ours.variance, rtol=1e-9)
    assert np.allclose(g, np.where(ours.known[..., np.newaxis], ours.pull, 0.0), atol=1e-9)


def verdict_on(text, path):
    path.write_text(text, encoding="utf-8")
    try:
        return alone.verify_file(path)
    except ValueError:
        return None  # no longer JSON, or of another format


def test_no_digit_of_any_number_can_change(tmp_path):
    text = json.dumps(saved(found_in(rows_of(22, [[0.5, 0.5]], rows=400, hours=16))))
    rng, tried = np.random.default_rng(7), 0
    assert verdict_on(text, tmp_path / "c.json").valid
    body = text[: text.rindex('"digest"')]
    for number in NUMBER.finditer(body):
        digits = [at for at in range(*number.span()) if text[at].isdigit()]
        at = int(rng.choice(digits))
        changed = text[:at] + str((int(text[at]) + int(rng.integers(1, 10))) % 10) + text[at + 1 :]
        found = verdict_on(changed, tmp_path / "c.json")
        assert found is None or found.problems, f"{number.group()} at {at} changed unnoticed"
        tried += 1
    assert tried > 150


@pytest.mark.parametrize("name", LOGS)
def test_digits_of_all_certificates_cannot_change_either(name, tmp_path):
    text, rng = json.dumps(certified(name)), np.random.default_rng(8)
    places = [at for at, letter in enumerate(text) if letter.isdigit()]
    for at in rng.choice(places, 4, replace=False):
        changed = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        found = verdict_on(changed, tmp_path / "c.json")
        assert found is None or found.problems


def places_of(value, path=()):
    """Yield the path of every number in nested lists and dictionaries."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_of(part, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def changed_at(document, path, change):
    out = deepcopy(document)
    *way, last = path
    place = out
    for key in way:
        place = place[key]
    place[last] = change(place[last])
    return out | {"digest": decision.digest(out)}


# Numbers whose change need not show if a new digest is made: how large residuals are matters where they are
# extreme, features of arms in general position do not, a larger δ claims less, and a shift is shown rounded.
FREE = {"largest", "features", "delta", "offset"}


@pytest.mark.parametrize("mode", MODES)
def test_numbers_that_change_by_a_tenth_are_found_out_with_a_fitting_digest(mode):
    document, rng = certified(MODES[mode]), np.random.default_rng(9)
    free = FREE | ({"scale"} if mode == "asymptotic" else set())
    paths = [path for path in places_of(document) if not free & set(path)]
    few = [path for path in paths if path[0] != "buckets"]
    many = [path for path in paths if path[0] == "buckets"]
    some = [many[at] for at in rng.choice(len(many), 60, replace=False)]
    for path in [*few, *some]:
        wrong = changed_at(document, path, lambda x: x + 1 if isinstance(x, int) else 1.1 * x + 0.001)
        found = alone.verify(wrong)
        assert found.problems, f"{path} changed unnoticed"
        assert not any("digest" in problem for problem in found.problems)


def test_features_that_arms_share_cannot_change():
    document = certified("arms with features")
    for path in places_of(document["features"], ("features",)):
        assert not alone.verify(changed_at(document, path, lambda x: x + 0.1)).valid


def feed(document, b=-1):
    return document["buckets"][b]["feeds"][0]


def drop_bucket(document):
    del document["buckets"][20]


def repeat_bucket(document):
    document["buckets"].append(deepcopy(document["buckets"][-1]))


def swap_plans(document):
    document["distributions"].reverse()


def behind(document):
    feed(document)["distribution"] -= len(document["distributions"])


def scaled(name, factor):
    def change(document):
        for bucket in document["buckets"]:
            for one in bucket["feeds"]:
                one[name] = [value * factor for value in one[name]]

    return change


def tune(name, factor):
    def change(document):
        document["tuning"][name] = [value * factor for value in document["tuning"][name]]

    return change


def one_level_for_all(document):
    document["tuning"] = {name: values[:1] for name, values in document["tuning"].items()}


def negative_level(document):
    document["tuning"]["alpha"] = [0.1, -0.09]


def fraction(document):
    feed(document)["counts"][0] += 0.5


def absent_arm(document):
    p = document["distributions"][feed(document)["distribution"]]
    p[0], p[1] = 0.0, p[0] + p[1]


def probability(document):
    document["distributions"][0][0] += 1e-6


def negative_probability(document):
    p = document["distributions"][0]
    p[0], p[1] = -p[0], p[1] + 2.0 * p[0]


def claim(name, value):
    def change(document):
        document["claim"][name][0] = value

    return change


def narrower(document):
    low, high = document["claim"]["low"], document["claim"]["high"]
    document["claim"]["low"] = [a + 1e-3 * (b - a) for a, b in zip(low, high, strict=True)]


def other_reference(document):
    document["reference"] = 2


def reference_from_behind(document):
    document["reference"] -= 3


def words_of_the_other_mode(document):
    is_exact = document["confidence"]["limit"] is not None
    document["claim"]["mode"] = "asymptotic, …" if is_exact else "exact for values from 0 to 1; …"


def confidence(**changes):
    return lambda document: document["confidence"].update(changes)


LIES = {
    "a bucket less": drop_bucket,
    "a bucket twice": repeat_bucket,
    "plans for each other": swap_plans,
    "a plan from behind": behind,
    "sums": scaled("sums", 1.001),
    "squares": scaled("squares", 0.9),
    "larger squares": scaled("squares", 1.2),
    "counts": scaled("counts", 2),
    "half a round": fraction,
    "an arm that cannot be drawn": absent_arm,
    "a probability": probability,
    "a probability below 0": negative_probability,
    "α": tune("alpha", 1.1),
    "smaller α": tune("alpha", 0.5),
    "ρ": tune("rho", 3.0),
    "one level for all gaps": one_level_for_all,
    "a level below 0": negative_level,
    "an estimate": claim("estimates", 0.3),
    "no estimate": claim("estimates", None),
    "a lower end": claim("low", 0.001),
    "no lower end": claim("low", None),
    "an upper end": claim("high", 0.9),
    "a verdict": claim("verdicts", "worse?"),
    "narrower intervals": narrower,
    "another reference arm": other_reference,
    "a reference arm from behind": reference_from_behind,
    "words of another mode": words_of_the_other_mode,
    "a bias": confidence(bias=0.01),
    "a limit": confidence(limit=0.9),
    "another mode": confidence(name="sub-Gaussian noise", low=0.0, high=3.0, limit=3.0),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("mode", MODES)
def test_lies_with_a_fitting_digest_are_found_out(mode, lie):
    document = deepcopy(certified(MODES[mode]))
    LIES[lie](document)
    document["digest"] = decision.digest(document)
    found = alone.verify(document)
    assert not found.valid
    assert not any("digest" in problem for problem in found.problems)


def test_values_must_be_linear_in_the_features():
    document = deepcopy(certified("arms with features"))
    document["buckets"][-1]["values"][2] += 1e-3
    assert any("off a linear function" in problem for problem in alone.verify(document).problems)


def test_residuals_beyond_the_declared_range_are_found_out():
    document = deepcopy(certified("two arms of 0 and 1"))
    one = feed(document)
    one["largest"] = [1.5 * document["confidence"]["limit"]] * 2
    assert any("in its range" in problem for problem in alone.verify(document).problems)


def test_scales_of_the_exact_mode_bind():
    document = deepcopy(certified("exact with plans that change"))
    tune("scale", 0.5)(document)
    document["digest"] = decision.digest(document)
    assert not alone.verify(document).valid


def test_extreme_residuals_cannot_be_made_small():
    document = deepcopy(certified("rare events"))
    for bucket in document["buckets"]:
        for one in bucket["feeds"]:
            n, q = np.array(one["counts"]), np.array(one["squares"])
            one["largest"] = np.sqrt(q / np.maximum(n, 1)).tolist()
    document["digest"] = decision.digest(document)
    assert not alone.verify(document).valid


def test_a_problem_names_the_claimed_and_the_recomputed_number():
    document = deepcopy(certified("plans that change"))
    right = document["claim"]["low"][0]
    document["claim"]["low"][0] = 0.01
    problems = " ".join(alone.verify(document).problems)
    assert f"low of '1' is claimed to be 0.01; recomputed it is {right:.6g}"[:-2] in problems
    assert "the digest does not fit" in problems


@pytest.mark.parametrize(
    "name",
    ["claim", "buckets", "tuning", "features", "distributions", "labels", "confidence", "delta", "alarms"],
)
def test_what_is_missing_is_a_problem_not_a_crash(name):
    document = {key: value for key, value in certified("plans that change").items() if key != name}
    found = alone.verify(document)
    assert any("cannot be recomputed" in problem for problem in found.problems)
