import json
import re
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from jinja2 import UndefinedError

from inside.reproduction import (
    CONTENDERS,
    FIGURE_1,
    MOST_VERDICTS,
    SECTIONS,
    Chart,
    Claim,
    Grid,
    Measured,
    Scope,
    Section,
)
from orthobandit.errors import ParameterError, StudyError
from orthobandit.reproduction.charts import (
    Curve,
    Dot,
    Series,
    dot_rows,
    error_panels,
    regret_panels,
    scaling_panels,
)
from orthobandit.reproduction.report import build, chosen, derive, templates
from orthobandit.reproduction.sections.regret import Size
from orthobandit.study import Part, Sweep


def small(bound=0.5, **words):
    """Return a section that takes no time: one policy in two forms, one instance."""

    def runs(form):
        return Sweep(
            policies={"SBE": Part("sbe"), "exact": Part("sbe", {"design": "centred"})},
            instances={"two": Part("one-hot", {"means": [0.0, 1.0]})},
            shifts={"sine": Part("sine")},
            horizon=400,
            replications=3,
            seeds=(form.seed,),
            batch=1,
        ).cells()

    def share(data):
        correct = data["runs"]["is_correct"]
        return Measured.share(int(correct.sum()), correct.size)

    def table(data):
        return Grid("runs", ["policy", "what", "n"], [["SBE", "all", str(len(data["runs"]["regret"]))]])

    def chart(_data):
        curve = Curve("SBE", *(np.arange(1.0, 4.0) for _ in range(4)))
        panels = {"a": [curve], "b": [curve, curve]}
        return Chart.of_panels("one", "One <line>", regret_panels, panels)

    names = {
        "name": "small",
        "title": "Small <section>",
        "plain": "A plain <sentence>.",
        "group": "Tests",
        "claims": "SBE declares & is right.",
    }
    return Section(
        **(names | words),
        described=lambda form: f"seed {form.seed}",
        runs=runs,
        judged=[Claim("right", "SBE is <right>", "share", share, at_least=bound, source="here")],
        tabled=[table],
        drawn=[chart],
    )


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cells" not in path.parts
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    build([small()], folder, Scope(seed=3))
    return folder


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_whatever_the_jobs(report, tmp_path):
    build([small()], tmp_path, Scope(seed=3), jobs=2)
    assert contents(report) == contents(tmp_path)
    build([small()], tmp_path, Scope(seed=3))
    assert contents(report) == contents(tmp_path)


def test_all_parts_are_written(report):
    names = set(contents(report))
    assert names == {
        "index.html",
        "verdicts.json",
        "charts/small-one.png",
        "charts/small-one.svg",
        "data/small/curves.parquet",
        "data/small/runs.parquet",
    }


def test_verdicts_are_derived_again_from_the_parquet_files(report):
    stored = json.loads((report / "verdicts.json").read_text())
    assert derive([small()], report, Scope(seed=3)) == stored
    verdict = stored["sections"]["small"]["verdicts"][0]
    assert verdict["kind"] == ("shown" if verdict["low"] >= 0.5 else "undecided")
    assert verdict["low"] < verdict["value"] <= verdict["high"]
    assert sum(stored["tally"].values()) == sum(stored["sections"]["small"]["tally"].values()) == 1


def test_the_page_needs_no_network_and_follows_the_theme(report):
    page = (report / "index.html").read_text()
    for loader in ("<script", "<link", "<img", "@import", 'src="', 'href="http', "url(http"):
        assert loader not in page
    assert "prefers-color-scheme: dark" in page
    assert "#1b1c1f" not in page.split("</style>")[1]
    for said in ("Small &lt;section&gt;", "SBE declares &amp; is right.", "seed 3", "--only small"):
        assert said in page
    assert page.count("<svg") == 2  # a panel each, so that a narrow page can stack them
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    targets = re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', page)
    assert set(targets) <= set(identifiers)


def test_a_refuted_claim_stands_first_on_the_page(tmp_path):
    found = build([small(bound=2.0)], tmp_path, Scope(seed=3))
    assert found["tally"] == {"refuted": 1, "undecided": 0, "shown": 0, "no": 0, "open": 0, "yes": 0}
    page = (tmp_path / "index.html").read_text()
    summary = page[page.index('class="summary"') : page.index("</div>")]
    assert "SBE is &lt;right&gt;" in summary
    assert "✗ 1 refuted" in summary
    assert "this package" in summary  # whose claim it is
    assert page.index('class="summary"') < page.index("<section")


def test_a_page_without_refuted_claims_says_so(report):
    page = (report / "index.html").read_text()
    assert "No claim is refuted." in page
    assert "✗" not in page


def test_whatever_a_section_says_is_text_and_not_markup(tmp_path):
    bold = '<b>bold</b> & "quoted"'
    section = small(title=bold, plain=bold, claims=bold, group=bold, bound=2.0)
    build([section], tmp_path, Scope(seed=3))
    page = (tmp_path / "index.html").read_text()
    assert "<b>bold" not in page
    assert (
        page.count("&lt;b&gt;bold&lt;/b&gt; &amp; &#34;quoted&#34;") == 6
    )  # also in the list and the summary


def test_a_name_that_a_template_lacks_is_an_error():
    with pytest.raises(UndefinedError, match="'shwon' is undefined"):
        templates().from_string("{{ shwon }}").render(shown=[])


def test_the_templates_are_part_of_the_package():
    found = resources.files("orthobandit.reproduction").joinpath("templates")
    assert {file.name for file in found.iterdir()} == {
        "marks.html.j2",
        "page.html.j2",
        "section.html.j2",
        "style.css",
    }


def test_every_section_begins_with_a_plain_sentence(report):
    page = (report / "index.html").read_text()
    begin = page[page.index('<section id="small"') :]
    assert begin.index("A plain &lt;sentence&gt;.") < begin.index("<table") < begin.index("Claimed.")


@pytest.mark.parametrize("name", SECTIONS)
def test_plain_sentences_are_sentences_and_titles_have_no_letters_of_formulas(name):
    plain = SECTIONS[name].plain
    assert plain.count(". ") == 0
    assert plain.endswith((".", "?"))
    assert not set("√Δδεθν∞=") & set(plain + SECTIONS[name].title)
    assert "(d, K)" not in SECTIONS[name].title


def test_redo_commands_write_to_folders_of_their_own(report):
    stored = json.loads((report / "verdicts.json").read_text())
    assert stored["sections"]["small"]["command"] == (
        "orthobandit reproduce --quick --only small --seed 3 --out report-small"
    )


@pytest.mark.slow
def test_a_part_does_not_replace_the_whole(tmp_path):
    both = [small(), small(name="other")]
    build(both, tmp_path, Scope(seed=3))
    before = contents(tmp_path)
    with pytest.raises(StudyError, match=r"more sections \(small\).*--out"):
        build([both[1]], tmp_path, Scope(seed=3))
    assert contents(tmp_path) == before
    build(both, tmp_path, Scope(seed=3))
    # A whole report may have lost a section since.
    build([both[1]], tmp_path, Scope(seed=3), is_whole=True)
    assert list(json.loads((tmp_path / "verdicts.json").read_text())["sections"]) == ["other"]


def test_unknown_sections_are_refused_with_the_nearest_name():
    assert [section.name for section in chosen(SECTIONS, ["figure-3", "figure-1"])] == [
        "figure-1",
        "figure-3",
    ]
    assert len(chosen(SECTIONS, None)) == len(SECTIONS)
    with pytest.raises(ParameterError, match="did you mean 'figure-1'"):
        chosen(SECTIONS, ["figre-1"])


def test_a_report_has_no_more_claims_than_its_level_allows_for():
    # Each is judged once, in either form, or not at all.
    assert 100 < sum(len(section.judged) for section in SECTIONS.values()) <= MOST_VERDICTS


def test_a_claim_without_a_bound_is_refused():
    claim = Claim("free", "anything goes", "nothing", lambda data: Measured.exactly(1))
    with pytest.raises(StudyError, match="'free' has no bound"):
        claim.judge({})


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_can_be_planned_in_both_scopes(name):
    section = SECTIONS[name]
    full = Scope(is_quick=False, seed=2)
    assert section.cells(full)
    assert section.setting(full).endswith((".", "are."))
    quick = Scope(is_quick=True, seed=2)
    assert section.setting(quick).endswith((".", "are."))
    keys = {cell.key for cell in section.cells(quick)}
    assert keys
    assert keys.isdisjoint(cell.key for cell in section.cells(Scope(is_quick=True, seed=3)))


def test_charts_label_their_axes_and_name_their_lines():
    x = np.array([1.0, 10.0, 100.0])
    line = Series("DEO", x, x, x / 10, x)
    for figure in (
        error_panels({"a": ([line, replace(line, name="exact")], 120.0, "level")}),
        scaling_panels({"a": ([line], "T", "regret"), "b": ([replace(line, fit=None)], "T", "plans")}),
    ):
        panels = [axis for axis in figure.axes if axis.axison]
        names = [axis.get_legend() for axis in figure.axes if not axis.axison]
        for axis, legend in zip(panels, names, strict=True):
            assert axis.get_xlabel()
            drawn = axis.get_legend_handles_labels()[1]
            assert drawn
            assert [text.get_text() for text in legend.get_texts()] == drawn
        figure.canvas.draw()
    rows = dot_rows(
        {"SBE": {"here": Dot(3e5, 1e4), "published": Dot(4e5)}, "G-Opt": {"published": Dot(2e6)}}, "samples"
    )
    assert [text.get_text() for text in rows.axes[0].get_yticklabels()] == ["SBE", "G-Opt"]


def test_the_regret_figure_tunes_on_both_grids(tmp_path):
    (ours,) = FIGURE_1.ours
    contenders = {"SBE": CONTENDERS["SBE"], "BOSE": CONTENDERS["BOSE"], ours: FIGURE_1.contenders[ours]}
    sizes = (Size(2, 3, sets=(2, 2), rounds=(1500, 1500)),)
    figure = replace(FIGURE_1, contenders=contenders, sizes=sizes).section()
    found = build([figure], tmp_path, Scope(seed=1))
    names = [verdict["name"] for verdict in found["sections"]["figure-1"]["verdicts"]]
    assert names == [
        "under ν¹ at (2, 3) SBE below BOSE, tuned as in the paper",
        "under ν¹ at (2, 3) SBE below BOSE, tuned on the wide grid",
        "under ν¹ at (2, 3) SBE becomes flat",
        f"under ν¹ at (2, 3) {ours} against the best peer",
    ]
    page = (tmp_path / "index.html").read_text()
    assert "←" in page
    assert "2677.66" in page
    assert "c = 1/16" in page
    assert "λ = 1" in page
    assert (tmp_path / "charts" / "figure-1-wide.png").stat().st_size > 5000
