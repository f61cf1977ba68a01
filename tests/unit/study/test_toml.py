import pytest

from inside.study import compute, make
from orthobandit.errors import FileFormatError, SpecError
from orthobandit.estimate import Bounded
from orthobandit.study import Part, Sweep, read_spec
from orthobandit.study.toml import from_plain, line_of

SPEC = """\
# a study
name = "mine"
horizon = 2000
replications = 25
seeds = [1, 2]
shifts = ["sine", "log-alternating"]

[policies.SBE]
kind = "sbe"
grid = { scale = [1, 2] }

[policies.BOSE]
kind = "bose"

[instances.small]
kind = "exact-gap"
dimension = 5
count = 10
seed = 1

[noise]
kind = "gaussian"
sigma = 0.5
"""


def read(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_spec(path)


def test_a_file_becomes_every_combination(tmp_path):
    study = read(tmp_path, SPEC)
    assert list(study.policies) == ["SBE scale=1", "SBE scale=2", "BOSE"]
    assert study.policies["SBE scale=2"] == Part("sbe", {"scale": 2})
    assert study.noise == Part("gaussian", {"sigma": 0.5})
    cells = study.cells()
    assert len(cells) == 3 * 1 * 2 * 2 * 3  # policies, instances, shifts, seeds, batches of 10
    assert sum(cell.settings["replications"] for cell in cells) == 3 * 2 * 2 * 25
    bose = next(cell for cell in cells if cell.labels["policy"] == "BOSE")
    assert bose.settings["policy"]["settings"] == {"horizon": 2000}


def test_a_new_policy_adds_cells_and_changes_none(tmp_path):
    before = {cell.key for cell in read(tmp_path, SPEC).cells()}
    after = {cell.key for cell in read(tmp_path, SPEC + '\n[policies.UCB]\nkind = "ucb1"\n').cells()}
    assert before < after


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('kind = "bose"', 'kind = "bsoe"', 13, "unknown policy 'bsoe'; did you mean 'bose'?"),
        ("horizon = 2000", "horizon = -3", 3, "horizon=-3 must be a whole number of at least 1"),
        ("horizon = 2000", "horizon = 2e3", 3, "horizon=2000.0 must be a whole number"),
        ("replications", "replcations", 4, "unknown key 'replcations'; did you mean 'replications'?"),
        ("[policies.BOSE]", "[polices.BOSE]", 12, "unknown key 'polices'; did you mean 'policies'?"),
        ("{ scale", "{ sclae", 10, "policy 'sbe' has no setting 'sclae'; did you mean 'scale'?"),
        ("[1, 2] }", "[1, -2] }", 10, "scale=-2 must be a finite number above 0"),
        ("[1, 2] }", "1 }", 10, "grid must be a table of lists"),
        ("[1, 2]\nshifts", "[1, -2]\nshifts", 5, "seeds=-2 must be a whole number of at least 0"),
        ("[1, 2]\nshifts", "1\nshifts", 5, "seeds=1 must be a list"),
        (
            "[1, 2]\nshifts",
            "[2, 1, 1]\nshifts",
            5,
            "seeds has 1 twice, which would count the same",
        ),
        ('"sine", "log-alternating"', '"sine", "sine"', 6, "shifts has 'sine' twice; leave one out"),
        ("[1, 2] }", "[1, 1] }", 10, "grid of 'SBE': scale has 1 twice; leave one out"),
        ("sigma = 0.5", "grid = { sigma = [1, 2] }", 23, "noise takes no grid"),
        ("horizon = 2000", f"horizon = {10**23}", 3, f"horizon={10**23} must be a whole number of at most"),
        ("replications = 25", f"replications = {10**12}", 4, "cells; raise batch=10"),
        ('name = "mine"', "name = 3", 2, "name=3 must be a text"),
        ("replications = 25", "checkpoints = []", 4, "checkpoints=[] must be a list of whole numbers"),
        ("replications = 25", "checkpoints = ['x']", 4, "checkpoints=['x'] must be a list of whole numbers"),
        ("replications = 25", "foo = 25", 4, "unknown key 'foo'; the names are batch, checkpoints"),
        ('"sine", ', '"sin", ', 6, "unknown shift 'sin'; did you mean 'sine'?"),
        ("dimension = 5", "dimensions = 5", 17, "has no setting 'dimensions'; did you mean 'dimension'?"),
        ("dimension = 5", "dimension = 1", 17, "dimension=1 must be a whole number of at least 2"),
        ("seed = 1", "", 15, "instance 'exact-gap' needs the setting 'seed'"),
        ("sigma = 0.5", "sigma = -1", 23, "sigma=-1 must be a finite number ≥ 0"),
        ("sigma = 0.5", "sgima = 1", 23, "did you mean 'sigma'?"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_nearest_name(tmp_path, old, new, line, said):
    assert SPEC.count(old) == 1
    with pytest.raises(SpecError) as error:
        read(tmp_path, SPEC.replace(old, new))
    assert f"study.toml line {line}: " in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SPEC.replace("horizon = 2000", ""), "the key 'horizon' is missing"),
        ("horizon = = 3", "study.toml is not a TOML file that can be read: .* line 1"),
        ("policies = 3\ninstances = 1\nshifts = 1\nhorizon = 1", r"\[policies.NAME\]"),
        ("policies = []\ninstances = []\nshifts = []\nhorizon = 1", "policies is empty"),
    ],
)
def test_what_is_no_study_is_refused(tmp_path, text, said):
    with pytest.raises(SpecError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize("means", ["[]", "['a', 'b']", "3", "[nan, 1.0]", "[[0.0], [1.0]]"])
def test_means_that_are_no_numbers_are_refused(tmp_path, means):
    arms = f'kind = "one-hot"\nmeans = {means}'
    old = 'kind = "exact-gap"\ndimension = 5\ncount = 10\nseed = 1'
    with pytest.raises(SpecError, match=r"line 17: means=.* must be a list of"):
        read(tmp_path, SPEC.replace(old, arms))


def test_a_folder_is_no_study(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read as a TOML file: Is a directory"):
        read_spec(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"nowhere\.toml is not a file"):
        read_spec(tmp_path / "nowhere.toml")


def test_every_form_of_toml_is_located():
    text = 'a.b = 1\n\n["x y"]\nc = [\n  1,\n\n  2]\nd = { e = 1 }\n[f]\n'
    assert line_of(text, ("a", "b")) == 1
    assert line_of(text, ("x y", "c")) == 4
    assert line_of(text, ("x y", "d", "e")) == 8
    assert line_of(text, ("f", "missing")) == 9
    assert line_of(text, ("nothing",)) is None


def test_python_and_toml_say_the_same():
    plain = {
        "horizon": 100,
        "policies": {"SBE": {"kind": "sbe"}},
        "instances": {"arms": {"kind": "one-hot", "means": [0.0, 1.0]}},
        "shifts": ["none"],
    }
    written = Sweep(
        policies={"SBE": Part("sbe")},
        instances={"arms": Part("one-hot", {"means": [0.0, 1.0]})},
        shifts={"none": Part("none")},
        horizon=100,
    )
    assert [c.key for c in from_plain(plain).cells()] == [c.key for c in written.cells()]


def test_a_path_that_is_too_short_and_bad_checkpoints_are_refused():
    parts = {
        "policies": {"SBE": Part("sbe")},
        "instances": {"arms": Part("one-hot", {"means": [0.0, 1.0]})},
        "shifts": {"none": Part("none")},
    }
    with pytest.raises(SpecError, match="checkpoints run from 5 to 200"):
        Sweep(**parts, horizon=100, checkpoints=(5, 200))
    with pytest.raises(SpecError, match="stop_when_declared='yes'"):
        Sweep(**parts, horizon=100, stop_when_declared="yes")


RANGES = """\
horizon = 50
replications = 1
shifts = ["none"]
[policies]
ours = { kind = "anytime" }
own = { kind = "anytime", low = -1.0, high = 2.0 }
plain = { kind = "anytime", confidence = "asymptotic" }
SBE = { kind = "sbe" }
[instances]
two = { kind = "one-hot", means = [0.2, 0.6] }
"""


def settings(study):
    return {cell.labels["policy"]: cell.settings["policy"]["settings"] for cell in study.cells()}


@pytest.mark.parametrize(
    ("noise", "low", "high"),
    [("'bernoulli'", 0.0, 1.0), ("{kind = 'clipped', low = -3, high = 5}", -3.0, 5.0)],
)
def test_policies_are_told_the_range_of_rewards_unless_they_say_it_themselves(tmp_path, noise, low, high):
    told = settings(read(tmp_path, f"noise = {noise}\n" + RANGES))
    assert told["ours"] == {"low": low, "high": high}
    assert told["own"] == {"low": -1.0, "high": 2.0}
    assert told["plain"] == {"confidence": "asymptotic"}
    assert told["SBE"] == {}


@pytest.mark.parametrize("more", ["noise = 'uniform'\n", "noise = 'bernoulli'\nrange_known = false\n"])
def test_they_are_not_told_a_range_that_is_unknown_or_kept_from_them(tmp_path, more):
    assert settings(read(tmp_path, more + RANGES))["ours"] == {}


def test_an_exact_mode_runs_where_the_range_is_known(tmp_path):
    cells = read(tmp_path, "noise = 'bernoulli'\n" + RANGES).cells()
    made = make("policy", "anytime", cells[0].settings["policy"]["settings"])
    assert made.confidence == Bounded(0.0, 1.0)
    assert compute(cells[0])["runs"]["replication"] == [0]


def test_the_switch_is_true_or_false(tmp_path):
    with pytest.raises(SpecError, match="line 1: range_known='no' must be true or false"):
        read(tmp_path, "range_known = 'no'\n" + RANGES)
