"""Sections on personalised rounds: worlds, cells, and what verdicts make of given numbers."""

from dataclasses import replace

import numpy as np
import pytest
from tests.made_up_cells import made_up

from inside.reproduction import SECTIONS, SPHERE_TABLE, Scope, build, derive
from inside.study import join
from orthobandit.policy.contextual import ContextualBOSE
from orthobandit.reproduction.offers import POLICIES, TUNABLE, play_personalised, policy_of, world_of

NAMES = ("personalised", "visitors", "bose-setting", "kim-paik-setting")
TABLE, VISITORS, BOSE = (SECTIONS[name] for name in NAMES[:3])


def data_of(rows):
    """Return data of (policy, world, tuning, regret of each run)."""
    columns = {"policy": [], "world": [], "tuning": [], "regret": []}
    for policy, world, tuning, regret in rows:
        for value in regret:
            for name, entry in zip(columns, (policy, world, tuning, value), strict=True):
                columns[name].append(entry)
    return {"runs": {name: np.array(values) for name, values in columns.items()}}


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_names_a_policy_and_a_world_that_there_are(name):
    for is_quick in (True, False):
        for cell in SECTIONS[name].cells(Scope(is_quick)):
            tuning = cell.settings.get("tuning")
            policy = policy_of(cell.settings["player"], tuning)
            world = world_of(cell.settings["world"], 1, 0)
            # A forecast that asks for columns is played only where visitors have them.
            assert set(getattr(policy.baseline, "names", ())) <= set(world.offers.names)


@pytest.mark.parametrize("name", NAMES)
def test_the_full_form_plays_all_that_is_compared(name):
    section = SECTIONS[name]
    cells = section.cells(Scope(is_quick=False))
    data = join(cells, [made_up(cell) for cell in cells])
    assert [verdict.name for verdict in section.verdicts(data)] == [claim.name for claim in section.judged]
    assert set(data["runs"]["world"]) == set(section.sizes["worlds"][1])


def test_a_claim_is_about_the_best_peer_in_the_worst_world():
    worlds = [name for name in SPHERE_TABLE.worlds if name.startswith("d = 10")]
    runs = np.array([0.9, 1.0, 1.1])
    rows = [("ours", world, -1.0, 100.0 * runs) for world in worlds[:-1]]
    rows.append(("ours", worlds[-1], -1.0, 130.0 * runs))
    rows += [("BOSE", world, -1.0, 100.0 * runs) for world in worlds]
    rows += [("action-centred TS", world, -1.0, 900.0 * runs) for world in worlds]
    found = {verdict.name: verdict for verdict in TABLE.verdicts(data_of(rows))}
    assert list(found) == ["ours, d = 10"]  # LinUCB and other sizes were not played
    assert found["ours, d = 10"].measured.value == pytest.approx(1.3)
    assert found["ours, d = 10"].kind == "refuted"


def test_a_tuned_policy_has_its_best_tuning():
    world = "sphere, against the best, σ = 0.5"
    rows = [
        ("ours", world, -1.0, [10.0, 12.0]),
        ("BOSE as released, tuned", world, 0.5, [40.0, 44.0]),
        ("BOSE as released, tuned", world, 1.0, [20.0, 24.0]),
    ]
    data = data_of(rows)
    (verdict,) = BOSE.verdicts(data)
    assert verdict.measured.value == pytest.approx(0.5)
    (grid,) = BOSE.grids(data)
    assert grid.head == ["policy", "−max xᵀθ"]
    assert grid.rows == [["ours", "11 ± 1"], ["BOSE as released, tuned", "22 ± 2"]]


def test_visitors_are_compared_with_a_level_that_keeps_still():
    rows = [
        ("ours, linear forecast", "linear in who comes", -1.0, [15.0, 15.0]),
        ("ours", "none", -1.0, [10.0, 10.0]),
        ("ours", "linear in who comes", -1.0, [90.0, 95.0]),
    ]
    (verdict,) = VISITORS.verdicts(data_of(rows))
    assert verdict.name == "linear level"
    assert verdict.measured.value == pytest.approx(1.5)


def test_every_run_has_an_effect_of_its_own_and_a_tuning_is_the_radius():
    settings = {"kind": "positive", "arms": 5, "dimension": 10, "noise": 0.1, "level": "against the best"}
    first, second = (world_of(settings, 3, number).theta for number in (0, 1))
    assert np.linalg.norm(first) == pytest.approx(1.0)
    assert (first > 0).all()
    assert not np.allclose(first, second)
    assert policy_of("BOSE, released", 0.3) == ContextualBOSE(radius=0.3, explore="uniform")
    assert set(TUNABLE) <= set(POLICIES)
    played = play_personalised(
        {"player": "ours", "world": settings, "horizon": 200, "replications": 2, "seed": 3}
    )
    assert played["runs"]["replication"] == [0, 1]
    assert 0 < min(played["runs"]["regret"]) < max(played["runs"]["regret"]) < 200


@pytest.mark.slow
def test_small_forms_are_built_and_derived_again(tmp_path):
    short = {"rounds": (200, 200), "runs": (2, 2)}
    sections = [
        replace(section, sizes={**section.sizes, **short}) for section in (SECTIONS[name] for name in NAMES)
    ]
    found = build(sections, tmp_path, Scope(seed=3), jobs=2)
    assert derive(sections, tmp_path, Scope(seed=3)) == found
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Personalised rounds" in text
    assert (tmp_path / "charts" / "visitors-regret-1.png").stat().st_size > 5000
