import pytest

from inside.study import Cache, Cell
from orthobandit.errors import ParameterError, SpecError, StudyError
from orthobandit.study import Part, Sweep, run_sweep
from orthobandit.study.sweep import run_cells


def squares(results):
    return [tables["squares"]["square"][0] for tables in results]


def test_results_come_in_the_order_of_the_cells(toy_cells, tmp_path):
    assert squares(run_cells(toy_cells("mark", [3, 1, 2]), Cache(tmp_path / "cells"))) == [9, 1, 4]


def test_nothing_is_computed_twice(toy_cells, tmp_path):
    cache = Cache(tmp_path / "cells")
    run_cells(toy_cells("mark", [1, 2]), cache)
    assert squares(run_cells(toy_cells("mark", [1, 2, 3, 3]), cache)) == [1, 4, 9, 9]
    assert toy_cells.computed() == [1, 2, 3]


def test_processes_change_no_number(toy_cells, tmp_path):
    numbers = list(range(5))
    alone = run_cells(toy_cells("mark", numbers), Cache(tmp_path / "one"))
    assert run_cells(toy_cells("mark", numbers), Cache(tmp_path / "two"), jobs=2) == alone


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_after_an_interruption_the_rest_is_computed(toy_cells, tmp_path, jobs):
    cache = Cache(tmp_path / "cells")
    (toy_cells.folder / "stop-3").touch()
    with pytest.raises(KeyboardInterrupt):
        run_cells(toy_cells("interrupt_at", range(5)), cache, jobs=jobs)
    (toy_cells.folder / "stop-3").unlink()
    assert squares(run_cells(toy_cells("interrupt_at", range(5)), cache)) == [0, 1, 4, 9, 16]
    kept = set(toy_cells.computed())
    if jobs == 1:
        assert toy_cells.computed() == sorted(kept)


@pytest.mark.slow
def test_a_worker_that_dies_is_named_and_what_is_finished_kept(toy_cells, tmp_path):
    with pytest.raises(StudyError, match="run the same command again"):
        run_cells(toy_cells("die", [1, 2]), Cache(tmp_path / "cells"), jobs=2)


def test_progress_begins_with_what_is_cached_and_ends_with_everything(toy_cells, tmp_path):
    cache, seen = Cache(tmp_path / "cells"), []
    run_cells(toy_cells("mark", [1]), cache)
    run_cells(toy_cells("mark", [1, 2, 3]), cache, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 3
    # One of three like ones is done; cells note their time in milliseconds.
    known = cache.entry(toy_cells("mark", [1])[0])[1]
    known = max(known, 1e-3)
    assert seen[0] == pytest.approx((known, 3 * known))
    assert seen[-1][0] == seen[-1][1]


def test_costly_cells_come_first(toy_cells, tmp_path):
    seen = []

    class Noting(Cache):
        def store(self, cell, tables, seconds):
            seen.append(cell.settings["number"])
            super().store(cell, tables, seconds)

    plain = toy_cells("mark", [1, 2, 3])
    cells = [Cell(c.task, c.settings, c.labels, cost=c.settings["number"]) for c in plain]
    run_cells(cells, Noting(tmp_path / "cells"))
    assert seen == [3, 2, 1]


@pytest.mark.parametrize(
    ("settings", "said"), [({"jobs": 0}, "jobs=0"), ({"backend": "rya"}, "did you mean 'ray'")]
)
def test_wrong_settings_are_refused(tmp_path, settings, said):
    with pytest.raises(ParameterError, match=said):
        run_cells([], Cache(tmp_path), **settings)


def study_of(**changed):
    """Return the arguments of a small study, some of them changed."""
    parts = {
        "policies": Part("sbe"),
        "instances": Part("one-hot", {"means": [0.0, 0.5]}),
        "shifts": Part("none"),
    }
    return {what: {"one": part} for what, part in parts.items()} | {"horizon": 100} | changed


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"policies": {"ours": "sbe"}}, r"policies ours: 'sbe' is not a Part; write Part\('sbe'\)"),
        ({"shifts": {"demand": 3}}, r"shifts demand: 3 is not a Part; a Part\(kind, settings\) is needed"),
        ({"noise": "gaussian"}, r"noise: 'gaussian' is not a Part; write Part\('gaussian'\)"),
        ({"policies": ["sbe"]}, r"policies=\['sbe'\] must be a dict of parts by name"),
        ({"seeds": 1}, "seeds=1 must be several whole numbers"),
    ],
)
def test_a_study_of_the_wrong_types_says_what_is_needed(changed, words):
    with pytest.raises(SpecError, match=words):
        Sweep(**study_of(**changed))


def test_a_file_is_not_a_study():
    with pytest.raises(ParameterError, match=r"'study.toml' is not a Sweep; .*read_spec\(path\) makes one"):
        run_sweep("study.toml")
