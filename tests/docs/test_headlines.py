"""Every generated number of README and the pages is that of the store, and says what it was measured with."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from inside.reproduction import OURS, PAPERS_SBE, SECTIONS, SMALL_GAP_10, SUCCESSORS_SBE, Scope, build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("headlines", ROOT / "docs" / "headlines.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["headlines"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def store(script):
    return script.read_store()


def test_every_page_is_what_the_store_and_the_code_say(script, store):
    # If this fails after a change of code: python docs/headlines.py write
    for page, text in script.pages(store):
        assert page.read_text(encoding="utf-8") == text, page.name


def test_every_number_of_a_page_says_what_it_was_measured_with(script, store):
    pages = [page.read_text(encoding="utf-8") for page in script.PAGES]
    assert sum(len(script.NUMBER.findall(text)) for text in pages) > 20
    for text in pages:
        covered = [
            name for mark in script.SINCE.finditer(text) for name in script._names(mark["names"], store)
        ]
        assert {mark["name"] for mark in script.NUMBER.finditer(text)} <= set(covered)


def test_a_change_of_code_makes_a_page_out_of_date(script, store, monkeypatch):
    name = f"small-gap-10/{OURS}/mean"
    fresh = {name: replace(store[name], code=script.current_code(name), version="7.8")}
    assert script.since(fresh, [name]) == "measured with 7.8"
    page = f"<!--= {name} -->0<!--/--> <!--since {name}-->?<!--/-->"
    before = script.rewrite(page, None, fresh)
    assert store[name].text in before
    monkeypatch.setattr(script, "current_code", lambda name: "other")
    assert script.since(fresh, [name]) == "measured with 7.8, code changed since"
    assert script.rewrite(page, None, fresh) != before
    assert script.stale(fresh) == [(name, fresh[name].command)]


def test_every_number_rests_on_some_cells(script, store):
    assert {len(script.current_code(name)) for name in store} == {16}
    # Of one section, policies rest on their own cells alone.
    codes = [script.current_code(f"small-gap-10/{label}/mean") for label in (OURS, "SP-BAI", PAPERS_SBE)]
    assert len(set(codes)) == 3
    assert script.current_code("figure-1/(5, 10)/BOSE") != script.current_code("figure-1/(20, 30)/BOSE")


def test_the_store_says_how_each_number_came_about(store):
    for name, number in store.items():
        assert number.text
        assert number.version
        assert number.command.startswith(("orthobandit reproduce --", "python examples/"))
        assert number.runs > 0 or name == "report"


def test_a_changed_number_changes_a_page_between_its_marks_only(script, store):
    text = script.README.read_text(encoding="utf-8")
    name = f"sphere/{OURS}/mean"
    changed = {**store, name: replace(store[name], text="1 ± 1")}
    new = script.rewrite(text, script.summary(changed), changed)
    assert "| 1 ± 1 (geometric " in new
    assert new.partition(script.BEGIN)[0] == text.partition(script.BEGIN)[0]
    assert new.partition(script.END)[2] == text.partition(script.END)[2]


def test_readme_is_short(script):
    assert len(script.README.read_text(encoding="utf-8").splitlines()) <= 150


def test_readme_without_markers_is_refused(script, store):
    with pytest.raises(SystemExit, match="the page needs the lines"):
        script.rewrite("# orthobandit\n", script.summary(store), store)


def test_a_mark_without_numbers_is_refused(script, store):
    with pytest.raises(KeyError, match="no stored number begins with"):
        script.rewrite("<!--since nothing-->?<!--/-->", None, store)


def test_peers_below_ours_are_named(script, store):
    ours, peer = f"figure-1/(5, 10)/{OURS}", "figure-1/(5, 10)/BOSE"
    below = {**store, peer: replace(store[peer], text="1 ± 1", label="BOSE, c = 1/4")}
    assert "BOSE, c = 1/4 at (5, 10), the level swings" in script.summary(below)
    every = {name: replace(number, text="9,999") for name, number in store.items() if name != ours}
    above = every | {ours: replace(store[ours], text="1 ± 1")}
    for name in store:
        if name.endswith(f"/{OURS}"):
            above[name] = replace(store[name], text="1 ± 1")
    assert "No peer tuned in hindsight has less regret than ours." in script.summary(above)


def test_each_sbe_says_which_phases_it_runs(script, store):
    text = script.table(store)
    assert f"{SUCCESSORS_SBE}: " in text
    assert f"{PAPERS_SBE}: " in text
    assert "SBE: 1,731,234" not in text


def test_a_tuning_that_is_the_default_is_listed_once(script, store):
    tuned = store[f"sphere/{script.TUNED_SBE}/mean"]
    same = {
        **store,
        f"sphere/{script.TUNED_SBE}/mean": replace(tuned, label=f"{PAPERS_SBE}, {script.BEST_C}"),
        f"small-gap-10/{script.TUNED_SBE}/mean": replace(tuned, label=f"{PAPERS_SBE}/2, {script.BEST_C}"),
    }
    small_gap, sphere = script.table(same).splitlines()[2:4]
    assert sphere.count(f"{PAPERS_SBE}, {script.BEST_C}: ") == sphere.count(PAPERS_SBE) == 1
    assert f"{PAPERS_SBE}: " in small_gap
    assert f"{PAPERS_SBE}/2, {script.BEST_C}: " in small_gap


def test_the_factors_that_the_errata_name_are_those_of_the_numbers(script, store):
    def mean(section, label):
        return script._value(store[f"{section}/{label}/mean"].text)

    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    released, proven = (
        [
            mean(section, OURS) / mean(section, f"RAGE, {which}")
            for section in ("robustness", "robustness-small-gap")
        ]
        for which in ("released constants", "constants of its proof")
    )
    assert f"anytime elimination takes {released[0]:.2f} of RAGE's samples" in text
    assert f"is a factor of {released[1]:.1f}. Against" in text
    assert f"would look like {proven[0]:.2f} and {proven[1]:.1f}." in text


def test_as_many_refuted_claims_are_listed_as_are_counted(script):
    verdict = {"kind": "refuted", "claim": "A is less than B"}
    question = {"kind": "no", "claim": "C is less than D"}
    tally = {"refuted": 2, "undecided": 0, "shown": 1, "no": 1, "open": 0, "yes": 0}
    sections = {"a": {"verdicts": [verdict, question]}, "b": {"verdicts": [verdict]}}
    text = script._tally_words({"tally": tally, "sections": sections})
    assert text.count("A is less than B") == 2
    assert "C is less than D" not in text


@pytest.fixture(scope="module")
def report(script, tmp_path_factory):
    """Return a small report of one section, whose cells are those of the present code."""
    contenders = ("SP-BAI", SUCCESSORS_SBE, PAPERS_SBE, OURS)
    small = replace(
        SMALL_GAP_10,
        contenders={label: SMALL_GAP_10.contenders[label] for label in contenders},
        runs=(3, 3),
        tuned=(PAPERS_SBE,),
        asked=(),
        fooled=(),
        is_close={},
        reach={OURS: 36_000},
    )
    folder = tmp_path_factory.mktemp("report")
    section = small.section()
    build([section], folder, Scope(seed=3))
    patch = pytest.MonkeyPatch()
    patch.setattr(script, "SECTIONS", {**SECTIONS, "small-gap-10": section})
    patch.setattr(script, "SAMPLE_TABLES", {"small-gap-10": small})
    script._cells.cache_clear()
    script.current_code.cache_clear()
    yield folder
    patch.undo()
    script._cells.cache_clear()
    script.current_code.cache_clear()


def test_numbers_of_a_report_carry_their_code(script, report):
    found = script.numbers_of(report, ["small-gap-10"])
    number = found[f"small-gap-10/{OURS}/mean"]
    assert number.runs == 3
    assert number.command == "orthobandit reproduce --quick --seed 3 --only small-gap-10"
    assert number.code == script.current_code(f"small-gap-10/{OURS}/mean", Scope(seed=3))
    tuned = found[f"small-gap-10/{script.TUNED_SBE}/mean"]
    assert tuned.label == f"{PAPERS_SBE}, the best c with at most δ wrong"


def test_a_report_of_other_code_is_refused(script, report):
    path = report / "verdicts.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"seed": 4}), encoding="utf-8")
    try:
        with pytest.raises(SystemExit, match="4 of 4 cells of small-gap-10 are of other code"):
            script.numbers_of(report, ["small-gap-10"])
    finally:
        path.write_text(json.dumps(content), encoding="utf-8")


def test_examples_are_read_as_they_print(script):
    season = "best page, and regret; means of 200 runs\nseason ± 0.5  UCB1                63%  regret  416\n"
    assert script._season(season) == {"0.5/UCB1": ("416", "UCB1", 200)}
    pages = "| pages | fixed size | ours |\n|---|---:|---:|\n| 5 % | 100 | 0.66 ± 0.03, 1 wrong |\n"
    found = script._pages(pages)
    assert found["5 %/ours"][0] == "0.66 ± 0.03, 1 wrong"
    assert found["5 %/ours, one-sided"][0] == "0.79 ± 0.04"
