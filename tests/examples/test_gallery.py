"""The examples of the gallery show what they say they show, and draw it."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest

matplotlib.use("Agg")

EXAMPLES = Path(__file__).parents[2] / "examples"
GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
NAMES = (
    "ab_methods",
    "attack",
    "clinical_arms",
    "landing_page",
    "late_conversions",
    "million_arms",
    "own_forecaster",
)


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    matplotlib.pyplot.close("all")


def script(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_every_example_has_its_figure_and_says_how_to_draw_it(name):
    assert (GALLERY / f"{name}.png").stat().st_size < 80_000
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert f"`python examples/{name}.py`" in text
    assert f"docs/gallery/{name}.png" in text


def drawn(name, tmp_path, capsys, **size):
    """Run an example with small sizes; return what it has printed."""
    target = tmp_path / "figures" / "one.png"
    script(name)["main"](target=target, **size)
    assert target.stat().st_size > 5_000
    printed = capsys.readouterr().out
    assert printed.endswith(f"figure: {target}\n")
    return printed


def test_the_attack_fools_thompson_sampling_and_not_the_exact_interval(tmp_path, capsys):
    found = script("attack")
    runs = [found["attacked"](seed) for seed in range(6)]
    fooled, lost = zip(*map(found["misses"], runs), strict=True)
    assert sum(fooled) >= 4
    assert not any(lost)
    assert max(map(abs, runs[0].demand)) == found["LIMIT"]
    assert "excluded the truth at any moment in 0" in drawn("attack", tmp_path, capsys, runs=2)


def test_without_an_attack_thompson_sampling_is_right(monkeypatch):
    found = script("attack")
    monkeypatch.setitem(found["attacked"].__globals__, "LIMIT", 0.0)
    runs = [found["attacked"](seed) for seed in range(6)]
    assert all(run.shares[-1] > 0.5 for run in runs)
    assert sum(found["misses"](run)[0] for run in runs) <= 2


def test_a_season_that_is_known_saves_days_and_none_makes_claims_wrong(tmp_path, capsys):
    found = script("landing_page")
    results = found["days"](replications=6)
    medians = {name: np.median(result.stop_times) for name, result in results.items()}
    assert medians["the season, day and week"] < 0.7 * medians["none"]
    assert all(result.correct.all() for result in results.values())
    assert "a wrong season, 5 days" in drawn("landing_page", tmp_path, capsys, replications=2)


def test_the_dashboard_is_wrong_at_first_and_the_experiment_never(tmp_path, capsys):
    found = script("late_conversions")
    seen = found["followed"](visits=1000)
    assert seen.dashboard[7] < 0 < found["TRUTH"]
    ends = np.array(seen.gaps)
    known = np.isfinite(ends[:, 0])
    assert not known[: found["WINDOW"] - 1].any()
    assert known.sum() > 10
    assert np.all((ends[known, 1] <= found["TRUTH"]) & (found["TRUTH"] <= ends[known, 2]))
    assert "nothing yet" in drawn("late_conversions", tmp_path, capsys, visits=300)


def test_few_of_many_arms_are_played_and_all_are_known(tmp_path, capsys):
    found = script("million_arms")
    design = found["centred_design"](found["pages"](4))
    off, regret = found["errors"](design)
    assert len(design.arms) == 4096
    assert len(design.support) <= 91  # 12·13/2 + 13: no design needs more
    assert np.abs(off).max() < 0.3
    assert regret < 0.1
    assert "are played" in drawn("million_arms", tmp_path, capsys, choices=3)


def test_the_own_forecaster_keeps_its_contract_and_saves_days(tmp_path, capsys):
    printed = drawn("own_forecaster", tmp_path, capsys, replications=5)
    days = {line.split()[1]: float(line.split()[3]) for line in printed.splitlines() if "median" in line}
    assert printed.startswith("the forecaster keeps its contract\n")
    assert days["own"] < days["autoregressive"] < days["none"]
    assert printed.count(" 0% wrong") == 3


def test_worse_doses_are_closed_and_intervals_hold(tmp_path, capsys):
    found = script("clinical_arms")
    trial = found["run"](patients=1500)
    assert "placebo" in trial.closed
    assert trial.spared > 50
    truth = found["RESPONSE"] - found["RESPONSE"][0]
    for arm, gap in zip(trial.report.arms[1:], truth[1:], strict=True):
        assert (arm.low or -1) <= gap <= (arm.high or 1)
    assert "more responses than with an equal split" in drawn("clinical_arms", tmp_path, capsys, patients=200)


def test_methods_for_ab_tests_decide_and_are_rarely_wrong(tmp_path, capsys):
    found = script("ab_methods")
    for name, method in found["METHODS"].items():
        times, wrong = method((0.2, 0.3), 20)
        assert times.max() < found["LONGEST"], name
        assert wrong <= 5, name  # of 20 at 5 %: more have chance 3·10⁻⁴
    printed = drawn("ab_methods", tmp_path, capsys, runs=2, rates=((0.2, 0.3),))
    assert printed.startswith("| pages | fixed size | ours, exact |")


@pytest.mark.parametrize("name", ["msprt", "asymptotic_sequence", "betting"])
def test_other_methods_keep_to_their_level_where_pages_are_alike(name):
    found = script("ab_methods")
    # Alike in all but name: who is declared first does not matter, that one is does, at most 10 % of runs.
    found[name].__globals__["fixed_size"] = lambda rates, power=0.95: 3000.0
    times, _ = found[name]((0.3, 0.3 + 1e-9), 100)
    assert np.count_nonzero(times < found["LONGEST"]) <= 26  # more have chance 10⁻⁵
