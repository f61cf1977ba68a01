"""Tables of samples: whose instances, who is told the gap, and what is made of given numbers."""

from dataclasses import replace

import numpy as np
import pytest

from orthobandit.reproduction.paper import CUT, G_OPT, OURS, SECTIONS
from orthobandit.reproduction.sections import Scope
from orthobandit.simulation import successor_sphere

SPHERE, SMALL = SECTIONS["sphere"], SECTIONS["small-gap-10"]


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

    assert cut(SPHERE) == {"SP-BAI": CUT, "SBE": CUT, G_OPT: CUT, OURS: None}
    assert set(cut(SMALL).values()) == {None}


def test_medians_and_geometric_means_stand_beside_means():
    samples = {label: [10, 100, 100_000] for label in SPHERE.contenders}
    grid = SPHERE.grids(runs_of(samples))[0]
    row = dict(zip(grid.head, grid.rows[0], strict=True))
    assert (row["mean samples"], row["median"], row["geometric mean"]) == ("33,370", "100", "464")
    assert (row["published mean"], row["published wrong"]) == ("2,038,886.49", "1%")


@pytest.mark.parametrize(("last", "kind"), [(32_350_988, "shown"), (32_351_100, "refuted")])
def test_g_opt_is_held_to_the_published_mean_of_all_instances_exactly(last, kind):
    samples = dict.fromkeys(SPHERE.contenders, [1000] * 100)
    samples[G_OPT] = [0] * 99 + [last]
    found = {verdict.name: verdict for verdict in SPHERE.verdicts(runs_of(samples))}
    assert found["G-Opt as published"].kind == kind
    fewer = {label: values[:20] for label, values in samples.items()}
    assert "G-Opt as published" not in {verdict.name for verdict in SPHERE.verdicts(runs_of(fewer))}


def test_many_instances_are_judged_by_the_geometric_mean():
    samples = dict.fromkeys(SPHERE.contenders, [50_000] * 100)
    samples[OURS] = [4_000] * 98 + [10**7] * 2
    found = {verdict.name: verdict for verdict in SPHERE.verdicts(runs_of(samples))}
    assert found[f"{OURS} samples"].measured.value == pytest.approx(4_000 * 2500**0.02)
    assert found[f"{OURS} against SP-BAI"].kind == "shown"
    one = replace(SPHERE, instances=(1, 1))
    found = {verdict.name: verdict for verdict in one.verdicts(runs_of(samples))}
    assert found[f"{OURS} samples"].measured.value == pytest.approx(203_920)
    assert found[f"{OURS} samples"].kind == "not refuted"


def test_a_table_without_published_numbers_has_no_columns_for_them():
    grid = SECTIONS["small-gap-20"].grids(runs_of({OURS: [10, 100, 1000]}))[0]
    assert grid.head[-1] == "runs"
    assert [len(row) for row in grid.rows] == [len(grid.head)]


def test_the_small_gap_takes_the_published_rounds_of_g_opt():
    part = next(cell.settings["policy"] for cell in SMALL.cells(Scope()) if cell.labels["policy"] == G_OPT)
    assert part["kind"] == "one-shot"
    assert part["settings"]["gap"] == pytest.approx(2 - 2 * np.cos(0.2), abs=1e-15)


def test_robustness_is_measured_against_the_released_constants():
    for name in ("robustness", "robustness-small-gap"):
        section = SECTIONS[name]
        assert section.reference == "RAGE, released constants"
        cells = section.cells(Scope())
        constants = {c.settings["policy"]["settings"].get("constants") for c in cells}
        assert constants == {"released", None}
        seeds = {c.settings["instance"]["settings"].get("seed") for c in cells}
        assert seeds == (set(range(1000, 1008)) if section.is_random else {None})
