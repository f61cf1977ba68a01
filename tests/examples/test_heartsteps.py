"""What several methods make of HeartSteps, and that the page on logs says the same."""

import runpy
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

ROOT = Path(__file__).parents[2]
NAMES = (
    "user",
    "avail",
    "send",
    "sugg.select.utime",
    "sugg.select.slot",
    "jbsteps30pre.log",
    "jbsteps30.log",
)


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "examples" / "heartsteps.py"))


@pytest.fixture(scope="module")
def made_up(script, tmp_path_factory):
    """Return decision points of a made-up trial, in a file with the columns of the real one."""
    random, path = np.random.default_rng(1), tmp_path_factory.mktemp("data") / "steps.csv"
    lines = [",".join(NAMES)]
    for user in range(1, 9):
        for number in range(100):
            at = datetime(2025, 1, 1 + user, 8) + timedelta(days=number // 5, hours=2 * (number % 5))
            is_there = random.random() < 0.8
            sent, before = is_there and random.random() < 0.6, random.normal()
            steps = 0.3 * (number % 5) + 0.2 * user + 0.5 * sent + before + random.normal()
            row = (user, is_there, sent, at, number % 5 + 1, before, steps)
            lines.append(",".join(map(str, row)))
    path.write_text("\n".join(lines), encoding="utf-8")
    return script["decisions"](path)


def test_decisions_are_those_with_a_draw_in_the_order_of_time(made_up):
    assert 580 < len(made_up) < 700
    times = made_up["time"].to_pylist()
    assert times == sorted(times)
    assert 0.5 < np.mean(np.array(made_up["suggestion"]) == "sent") < 0.7


def test_plain_means_are_those_of_welch(script, made_up):
    steps, sent = made_up["steps"].to_numpy(), made_up["suggestion"].to_numpy() == "sent"
    found = script["difference"](made_up)
    low, high = ttest_ind(steps[sent], steps[~sent], equal_var=False).confidence_interval()
    assert [found.gap - found.once, found.gap + found.once] == pytest.approx([low, high])


def test_strata_are_compared_within(script, made_up):
    steps, sent, slots = (made_up[name].to_numpy() for name in ("steps", "suggestion", "slot"))
    pairs = [
        (steps[(slots == slot) & (sent == "sent")], steps[(slots == slot) & (sent == "none")])
        for slot in range(1, 6)
    ]
    weights = [len(a) * len(b) / (len(a) + len(b)) for a, b in pairs]
    gap = np.average([a.mean() - b.mean() for a, b in pairs], weights=weights)
    assert script["stratified"](made_up, ["slot"]).gap == pytest.approx(gap)


def test_all_methods_find_the_gap_and_covariates_save_width(script, made_up):
    found = {one.method: one for one in script["answers"](made_up)}
    assert all(abs(one.gap - 0.5) < one.once * 1.5 for one in found.values())
    plain, known = found["orthogonalised by day"], found["orthogonalised by day, with steps before"]
    assert known.once < 0.9 * plain.once < plain.always


def test_the_figure_is_drawn(script, made_up, tmp_path):
    script["figure"](made_up, script["answers"](made_up)[:4], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_the_page_says_what_the_data_say(script):
    if not script["DATA"].exists():
        pytest.skip(f"HeartSteps is not at {script['DATA']}; set HEARTSTEPS to where it is")
    rows = script["decisions"]()
    page = (ROOT / "docs" / "heartsteps.md").read_text(encoding="utf-8")
    assert len(rows) == 6061
    assert script["table"](script["answers"](rows)) in page
