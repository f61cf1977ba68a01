"""Tables of samples: whose instances, who is told the gap, and what is made of given numbers."""

from dataclasses import replace

import numpy as np
import pytest

from inside.reproduction import (
    CUT,
    G_OPT,
    OURS,
    PAPERS_SBE,
    RAGES,
    ROBUSTNESS,
    ROBUSTNESS_SMALL_GAP,
    SECTIONS,
    SMALL_GAP_10,
    SUCCESSORS_SBE,
    TUNED_SBE,
    Scope,
)
from orthobandit.reproduction.sections.samples import SPHERE as SPHERE_TABLE
from orthobandit.simulation import successor_sphere

SPHERE, SMALL = SECTIONS["sphere"], SECTIONS["small-gap-10"]
CONTENDERS = SMALL_GAP_10.contenders
SPHERE_CONTENDERS = SPHERE_TABLE.contenders


def runs_of(samples):
    """Return data in which the named policies took these samples and were right, or −1: given up."""
    size = sum(len(values) for values in samples.values())
    stops = np.concatenate([np.asarray(values) for values in samples.values()])
    return {
        "runs": {
            "policy": np.repeat(list(samples), [len(values) for values in samples.values()]),
            "stop_time": stops,
            "declared": np.where(stops < 0, -1, 0),
            "is_correct": np.ones(size, dtype=bool),
            "limit": np.full(size, 10**8),
        }
    }


def test_the_sphere_is_the_authors_whatever_the_seed():
    for seed in (1, 4):
        cells = SPHERE.cells(Scope(is_quick=False, seed=seed))
        instances = {cell.settings["instance"]["settings"]["seed"] for cell in cells}
        assert instances == set(range(100))
        assert {cell.settings["instance"]["kind"] for cell in cells} == {"successor-sphere"}
        assert {cell.settings["seed"] for cell in cells} == {seed}
    assert "author's first 20 instances" in SPHERE.setting(Scope())
    assert "cut at 5,000,000 rounds" in SPHERE.setting(Scope())
    assert "ours has no phases and is not cut" in SPHERE.setting(Scope())


def test_only_g_opt_is_told_each_instances_gap():
    cells = SPHERE.cells(Scope())
    told = [cell for cell in cells if "gap" in cell.settings["policy"]["settings"]]
    assert {cell.labels["policy"] for cell in told} == {G_OPT}
    assert len(told) == 20
    for cell in told:
        number = cell.settings["instance"]["settings"]["seed"]
        gap = np.sort(successor_sphere(10, 100, seed=number).gaps)[1]
        assert cell.settings["policy"]["settings"]["gap"] == gap


def test_phases_are_cut_on_the_sphere_and_not_on_the_small_gap():
    def cut(section):
        return {
            cell.labels["policy"]: cell.settings["policy"]["settings"].get("longest")
            for cell in section.cells(Scope())
        }

    phased = dict.fromkeys(["SP-BAI", SUCCESSORS_SBE, *TUNED_SBE, G_OPT], CUT)
    assert cut(SPHERE) == phased | dict.fromkeys([OURS, *RAGES])
    assert set(cut(SMALL).values()) == {None}


def test_medians_and_geometric_means_stand_beside_means():
    samples = {label: [10, 100, 100_000] for label in SPHERE_CONTENDERS}
    grid = SPHERE.grids(runs_of(samples))[0]
    row = dict(zip(grid.head, grid.rows[0], strict=True))
    assert (row["mean samples"], row["median"], row["geometric mean"]) == ("33,370", "100", "464")
    assert (row["published mean"], row["published wrong"]) == ("2,038,886.49", "1%")


@pytest.mark.parametrize(("last", "kind"), [(32_350_988, "shown"), (32_351_100, "refuted")])
def test_g_opt_is_held_to_the_published_mean_of_all_instances_exactly(last, kind):
    samples = dict.fromkeys(SPHERE_CONTENDERS, [1000] * 100)
    samples[G_OPT] = [0] * 99 + [last]
    found = {verdict.name: verdict for verdict in SPHERE.verdicts(runs_of(samples))}
    assert found["G-Opt as published"].kind == kind
    fewer = {label: values[:20] for label, values in samples.items()}
    assert "G-Opt as published" not in {verdict.name for verdict in SPHERE.verdicts(runs_of(fewer))}


def test_many_instances_are_judged_by_the_geometric_mean():
    samples = dict.fromkeys(SPHERE_CONTENDERS, [50_000] * 100)
    samples[OURS] = [4_000] * 98 + [400_000] * 2
    found = {verdict.name: verdict for verdict in SPHERE.verdicts(runs_of(samples))}
    assert found[f"{OURS} samples"].measured.value == pytest.approx(4_000 * 100**0.02)
    assert found[f"{OURS} against SP-BAI"].kind == "shown"
    one = replace(SPHERE_TABLE, instances=(1, 1)).section()
    found = {verdict.name: verdict for verdict in one.verdicts(runs_of(samples))}
    assert found[f"{OURS} samples"].measured.value == pytest.approx(11_920)
    assert found[f"{OURS} samples"].kind == "undecided"


def test_a_table_without_published_numbers_has_no_columns_for_them():
    grid = SECTIONS["small-gap-20"].grids(runs_of({OURS: [10, 100, 1000]}))[0]
    assert grid.head[-1] == "runs"
    assert [len(row) for row in grid.rows] == [len(grid.head)]


def test_the_small_gap_takes_the_published_rounds_of_g_opt():
    part = next(cell.settings["policy"] for cell in SMALL.cells(Scope()) if cell.labels["policy"] == G_OPT)
    assert part["kind"] == "one-shot"
    assert part["settings"]["gap"] == pytest.approx(2 - 2 * np.cos(0.2), abs=1e-15)


def test_robustness_is_measured_against_the_released_constants():
    for table in (ROBUSTNESS, ROBUSTNESS_SMALL_GAP):
        assert table.reference == "RAGE, released constants"
        cells = table.section().cells(Scope())
        constants = {c.settings["policy"]["settings"].get("constants") for c in cells}
        assert constants == {"released", None}
        seeds = {c.settings["instance"]["settings"].get("seed") for c in cells}
        assert seeds == (set(range(1000, 1008)) if table.is_random else {None})


def with_wrong(data, label, count):
    """Return data in which the first runs of a policy declared a wrong arm."""
    places = np.flatnonzero(data["runs"]["policy"] == label)[:count]
    data["runs"]["is_correct"][places] = False
    return data


def test_the_best_tuning_in_hindsight_keeps_to_delta():
    samples = {label: [int(10_000 * c)] * 100 for label, c in TUNED_SBE.items()}
    data = runs_of(samples)
    for label, count in zip(TUNED_SBE, (1, 5, 10, 11), strict=True):
        with_wrong(data, label, count)
    assert SMALL_GAP_10.best_tuned(data["runs"]) == "SBE, paper's phases, c = 1/4"
    grid = SMALL.grids(data)[0]
    marked = [row[0] for row in grid.rows if row[0].endswith("←")]
    assert marked == ["SBE, paper's phases, c = 1/4 ←"]
    assert "at most δ = 0.1 wrong, in hindsight" in grid.caption


def test_agreement_with_published_means_counts_the_errors_of_both():
    generator = np.random.default_rng(1)
    samples = {label: generator.gamma(3.0, size=100) * 60_000 for label in CONTENDERS}
    samples["SP-BAI"] *= 187_924.68 / samples["SP-BAI"].mean()
    samples[SUCCESSORS_SBE] *= 3 * 1_881_513.94 / samples[SUCCESSORS_SBE].mean()
    samples[G_OPT] = np.full(100, 387_106)
    data = runs_of(samples)
    found = {verdict.name: verdict for verdict in SMALL.verdicts(data)}
    assert found["SP-BAI as published"].kind == "shown"
    assert found[f"{SUCCESSORS_SBE} as published"].kind == "refuted"
    assert found["G-Opt as published"].measured.high == 1.0
    rows = {
        row[0]: dict(zip(SMALL.grids(data)[0].head, row, strict=True)) for row in SMALL.grids(data)[0].rows
    }
    assert rows["SP-BAI"]["p (equal means)"] == "1"
    assert float(rows[SUCCESSORS_SBE]["p (equal means)"]) < 1e-6
    assert rows["SP-BAI"]["± s.e. there"] == "11,230"


def test_which_sbe_needs_more_samples_is_said():
    samples = {label: np.full(100, 1000) for label in CONTENDERS} | {PAPERS_SBE: np.full(100, 500)}
    found = {verdict.name: verdict for verdict in SMALL.verdicts(runs_of(samples))}
    assert found[f"SP-BAI before {SUCCESSORS_SBE}"].source == "successor"
    assert found[f"SP-BAI before {PAPERS_SBE}"].source == "question"
    assert found[f"SP-BAI before {PAPERS_SBE}"].kind == "no"


def test_rage_is_fooled_if_most_runs_are_wrong():
    data = runs_of({label: np.full(100, 1000) for label in CONTENDERS})
    name = "RAGE, σ = 1"
    kinds = [
        {one.name: one.kind for one in SMALL.verdicts(with_wrong(data, name, count))}[f"{name} is fooled"]
        for count in (0, 50, 100)
    ]
    assert kinds == ["refuted", "undecided", "shown"]
