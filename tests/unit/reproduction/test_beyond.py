"""Sections that go beyond the paper: what their tables and verdicts make of given numbers."""

from dataclasses import replace

import numpy as np
import pytest

from inside.reproduction import ROBUSTNESS, Scope, build, derive
from orthobandit.reproduction.sections.coverage import COVERAGE, DELTA, MODES, coverage_section
from orthobandit.reproduction.sections.ratios import EARNING as EARNING_TABLE

EARNING = EARNING_TABLE.section()


def misses_of(failed, runs=1000, last=50):
    """Return data in which so many runs of each mode fail at round `last` under one shift."""
    first = np.concatenate([np.where(np.arange(runs) < count, last, -1) for count in failed.values()])
    mode = np.repeat(list(failed), runs)
    return {
        "misses": {
            "mode": mode,
            "shift": np.full(mode.size, "sine"),
            "first_miss": first,
            "last_miss": first,
            "rounds": np.full(mode.size, 100),
        }
    }


@pytest.mark.parametrize(
    ("failed", "kind"),
    [(0, "shown"), (66, "shown"), (75, "undecided"), (130, "undecided"), (150, "refuted")],
)
def test_a_mode_is_shown_or_refuted_only_by_exact_limits(failed, kind):
    counts = dict.fromkeys(MODES, 0) | {"asymptotic": failed}
    verdicts = {verdict.name: verdict.kind for verdict in COVERAGE.verdicts(misses_of(counts))}
    assert verdicts["asymptotic coverage"] == kind
    assert verdicts["bounded rewards coverage"] == "shown"


def test_eleven_failures_of_forty_show_nothing():
    counts = dict.fromkeys(MODES, 11)
    kinds = {verdict.kind for verdict in COVERAGE.verdicts(misses_of(counts, runs=40))}
    assert kinds == {"undecided"}


def test_the_round_from_which_a_mode_held():
    allowed = int(DELTA * 1000)
    counts = dict.fromkeys(MODES, allowed) | {"asymptotic": allowed + 1}
    grid = COVERAGE.grids(misses_of(counts))[0]
    last = dict(zip(grid.head, grid.rows[-1], strict=True))
    assert last["bounded rewards"] == "the first"
    assert last["asymptotic"] == "51"


def test_every_run_of_a_mode_has_its_own_number():
    cells = COVERAGE.cells(Scope(is_quick=False, seed=1))
    of_one = [c for c in cells if c.labels == {"mode": "asymptotic", "shift": "cancel-best"}]
    assert [c.settings["first"] for c in of_one] == [0, 250, 500, 750]
    assert sum(c.settings["replications"] for c in of_one) == 1000
    assert len({c.labels["shift"] for c in cells}) == 13


def runs_of(means):
    """Return data with two arm sets, a run each, around a mean regret, under both shifts."""
    policies = np.repeat(list(means), 4)
    shifts = np.tile(["sine", "sine", "log-alternating", "log-alternating"], len(means))
    regret = np.concatenate([mean * np.array([0.9, 1.1, 0.9, 1.1]) for mean in means.values()])
    instances = np.tile(["arms 1", "arms 2"], 2 * len(means))
    size = regret.size
    return {
        "runs": {
            "policy": policies,
            "shift": shifts,
            "instance": instances,
            "regret": regret,
            "stop_time": np.full(size, 10),
            "declared": np.zeros(size, dtype=int),
            "is_correct": np.ones(size, dtype=bool),
            "limit": np.full(size, 100),
        }
    }


def test_ratios_are_of_means_on_the_same_shift():
    first, second = list(EARNING_TABLE.reach)
    data = runs_of({"SBE": 1000.0, first: 200.0, second: 600.0})
    verdicts = {verdict.name: verdict for verdict in EARNING.verdicts(data)}
    assert verdicts[f"{first}, sine"].measured.value == pytest.approx(0.2)
    # On the same arm sets the ratio has no error at all.
    assert verdicts[f"{first}, sine"].kind == "shown"
    assert verdicts[f"{second}, log-alternating"].kind == "refuted"
    assert EARNING.grids(data)[0].rows[1][4] == "0.200"


def test_runs_on_a_sole_arm_set_are_what_is_independent():
    first, second = list(EARNING_TABLE.reach)
    data = runs_of({"SBE": 1000.0, first: 200.0, second: 600.0})
    data["runs"]["instance"] = np.full(data["runs"]["regret"].size, "the arms")
    data["runs"]["regret"][data["runs"]["policy"] == first] *= np.array([0.8, 1.2, 0.8, 1.2])
    measured = {verdict.name: verdict.measured for verdict in EARNING.verdicts(data)}[f"{first}, sine"]
    assert measured.value == pytest.approx(0.204)
    assert 0 < measured.error < 0.1


def test_errors_of_means_are_over_arm_sets_and_not_over_runs():
    data = runs_of({"SBE": 1000.0})
    twice = {name: np.concatenate([values, values]) for name, values in data["runs"].items()}
    once = EARNING.grids(data)[0].rows[0]
    again = EARNING.grids({"runs": twice})[0].rows[0]
    assert (once[2:4], once[-1]) == (["1,000", "100"], "2")
    # Every run twice is no more arm sets.
    assert (again[2:4], again[-1]) == (["1,000", "100"], "4")


@pytest.mark.slow
def test_small_forms_are_built_and_derived_again(tmp_path):
    sections = [
        replace(EARNING_TABLE, rounds=300, sets=(1, 1), runs=(2, 2)).section(),
        replace(ROBUSTNESS, rounds=3000, sets=(1, 1), runs=(2, 2)).section(),
        coverage_section({"asymptotic": MODES["asymptotic"]}),
    ]
    found = build(sections, tmp_path, Scope(seed=3), jobs=2)
    assert derive(sections, tmp_path, Scope(seed=3)) == found
    assert (tmp_path / "charts" / "coverage-misses.png").stat().st_size > 5000
